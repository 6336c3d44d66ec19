"""Run attacks by hand: ``python -m tests.attacks --help``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

from tests.attacks.ground import Ground
from tests.attacks.kinds import KINDS
from tests.attacks.rounds import attacked
from tests.conftest import CHECKOUT
from tests.mutations.warm import warm


def main() -> int:
    """Run the rounds asked for; print what failed, and how to repeat it; return 1 where something did."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=100)
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    parser.add_argument("--first", type=int, default=0, help="seed of the first round")
    parser.add_argument("--seed", type=int, help="only this round, with all that it prints")
    parser.add_argument("--checkout", type=Path, default=CHECKOUT, help="attack this one instead")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("not root: no file gets another owner")
    warm()
    one = options.seed is not None
    seeds = [options.seed] if one else range(options.first, options.first + options.count)
    rounds: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    ground, began = Ground(options.checkout), time.monotonic()
    try:
        for seed in seeds:
            found = attacked(seed, ground, options.kind)
            rounds[found.kind] += 1
            wrong[found.kind] += bool(found.faults)
            again = f" --kind {options.kind}" if options.kind else ""
            for fault in found.faults:
                print(f"{found.kind}: {fault}: python -m tests.attacks --seed {seed}{again}", flush=True)
            if rounds.total() % 50 == 0:
                print(f"{rounds.total()} rounds, {wrong.total()} with faults", file=sys.stderr, flush=True)
            for words, ended in found.ends if one else ():
                print(" ".join(words), ended.code, ended.out[-3000:], ended.err[-6000:], sep="\n")
    finally:
        ground.close()
    for kind, count in sorted(rounds.items()):
        print(f"{kind}: {count} rounds, {wrong[kind]} with faults")
    print(f"{len(seeds)} rounds, {sum(wrong.values())} with faults, {time.monotonic() - began:.0f} s")
    return min(wrong.total(), 1)


if __name__ == "__main__":
    sys.exit(main())
