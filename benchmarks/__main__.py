"""Measure ncukit against the bars of its design, beside the tools that do the same.

    python -m benchmarks [--quick] [-o FILE] [PART...]

Prints a table of ratios; with all parts at full size it is kept in benchmarks/RESULTS.md too.  Takes about
five minutes on two idle cores, with --quick one: smaller inputs and one round, to see that everything works.
Reports and ncu are found as in the tests: NCUKIT_SHARED or ../shared, else the bundled samples; NCUKIT_NCU,
PATH or where CI installs it.  Exit code 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import results
from benchmarks.dataset import dataset
from benchmarks.long import long
from benchmarks.measure import CHECKOUT, Row
from benchmarks.newcomer import newcomer
from benchmarks.pages import pages
from benchmarks.readers import Setting, setting
from benchmarks.speed import speed
from benchmarks.timeline import timeline

PARTS: dict[str, Callable[[Setting], Iterator[Row]]] = {
    part.__name__: part for part in (speed, long, dataset, timeline, pages, newcomer)
}
KEPT = CHECKOUT / "benchmarks" / "RESULTS.md"


def every_row(name: str, here: Setting) -> Iterator[Row]:
    """Yield the rows of a part; one that fails is a bar missed, and the others go on."""
    try:
        yield from PARTS[name](here)
    except (Exception, SystemExit) as error:
        print(error, file=sys.stderr)
        yield Row(name, f"failed: {type(error).__name__}", met=False)


def main(words: Sequence[str] | None = None) -> int:
    """Print what was measured; return 1 where a bar was missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"{name:10} {part.__doc__}" for name, part in PARTS.items()),
    )
    parser.add_argument("--quick", action="store_true", help="small inputs, one round")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="keep the table in this file")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}; default: all")
    options = parser.parse_args(words)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    output = options.output or (None if options.quick or options.parts else KEPT)
    began, rows = time.perf_counter(), []
    print(results.table((), {}), flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.parts or PARTS:
            folder = Path(scratch) / name
            folder.mkdir()
            here = setting(folder, quick=options.quick)
            for row in every_row(name, here):
                print(results.line(row), flush=True)
                rows.append(row)
            shutil.rmtree(folder)
    if output:
        results.write(output, rows, here.ncu, time.perf_counter() - began)
        print(output)
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
