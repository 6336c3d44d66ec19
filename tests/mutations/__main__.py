"""Run mutations by hand: ``python -m tests.mutations --help``."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.mutations.kinds import KINDS
from tests.mutations.run import run
from tests.mutations.warm import warm

LAST = "report in a folder"
"""Loads pyarrow: what comes after it would not be read as in a real start."""


def main() -> int:
    """Run the cases asked for; print a table; return 1 where one is at fault."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--first", type=int, default=0, help="seed of the first case")
    parser.add_argument("--seed", type=int, help="only this case: its command and all that it prints")
    parser.add_argument("--keep", type=Path, help="copy the damaged input of --seed here")
    options = parser.parse_args()
    warm()
    faults = 0
    print("| input | cases | ended with | faults | longest [s] | largest memory [MB] |")
    print("| --- | ---: | --- | ---: | ---: | ---: |")
    for name in sorted(options.kind or KINDS, key=LAST.__eq__):
        seeds = (
            [options.seed]
            if options.seed is not None
            else [*range(options.first, options.first + options.count)]
        )
        if name == LAST:
            warm(dataset=True)
        codes: Counter[str] = Counter()
        longest = largest = 0.0
        wrong = 0
        for seed in seeds:
            folder = Path(tempfile.mkdtemp(prefix="ncukit-mutation-"))
            data, words = KINDS[name].case(seed)
            KINDS[name].place(folder, data)
            if options.seed is not None:
                words = (*words, "--debug")
            ended = run(words, folder)
            codes[str(ended.code)] += 1
            longest, largest = max(longest, ended.seconds), max(largest, ended.memory / 1e6)
            if fault := ended.fault():
                wrong += 1
                last = ended.err.strip().splitlines()[-1:]
                print(f"{name} seed {seed}: {fault}: {' '.join(words[:1])} {last}", file=sys.stderr)
            if options.seed is not None:
                print(" ".join(words), ended.out[-3000:], ended.err[-6000:], sep="\n")
                if options.keep:
                    options.keep.write_bytes(data)
            shutil.rmtree(folder)
        ends = ", ".join(f"{code}: {n}" for code, n in sorted(codes.items()))
        print(f"| {name} | {len(seeds)} | {ends} | {wrong} | {longest:.1f} | {largest:.0f} |", flush=True)
        faults += wrong
    print(f"\n{faults} faults, {time.strftime('%Y-%m-%d', time.gmtime())}")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
