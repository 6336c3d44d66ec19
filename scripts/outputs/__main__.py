"""Print every difference in what command lines leave behind, between a revision and the working tree.

    python -m scripts.outputs REV                   REV against the working tree
    python -m scripts.outputs REV OTHER             REV against another revision
    python -m scripts.outputs REV REV               REV run anew against itself: what is left to chance
    python -m scripts.outputs REV --only 'compare'  only cases whose title holds this regular expression
    python -m scripts.outputs --list --only csv     the titles of cases; nothing runs

Compared are exit code, stdout, stderr and every file written, of the bundled samples and of what is in
../shared (or NCUKIT_SHARED).  Outputs of revisions are kept in build/outputs.  Exit code 0: no difference;
1: differences; 2: the net itself failed, or no case matches.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from scripts.outputs import run
from scripts.outputs.cases import Case, cases
from scripts.outputs.compare import differences

CHECKOUT = Path(__file__).resolve().parents[2]
GROUPS = 100
"""Differences that are printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.outputs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("revision", metavar="REV", nargs="?", help="what to compare with")
    parser.add_argument("other", metavar="OTHER", nargs="?", help="instead of the working tree")
    parser.add_argument("--only", metavar="PATTERN", help="cases whose title holds this regular expression")
    parser.add_argument("--list", action="store_true", help="print the titles of the cases")
    parser.add_argument("--full", action="store_true", help="print every difference, unshortened")
    options = parser.parse_args(arguments)
    try:
        found = _chosen(options.only)
        if options.list:
            print("\n".join(case.title for case in found))
            return 0
        if options.revision is None:
            raise run.NetError("no revision is named")
        return _compare(found, options.revision, options.other, full=options.full)
    except run.NetError as error:
        print(f"error: {error}\nhint: see python -m scripts.outputs --help", file=sys.stderr)
        return 2


def _chosen(pattern: str | None) -> list[Case]:
    """Return the cases, those that match; none is an error: it would look like no difference."""
    shared = Path(os.environ.get("NCUKIT_SHARED") or CHECKOUT.parent / "shared")
    if not (shared / "reports").is_dir():
        print(f"{shared} holds no reports: only the bundled samples run", file=sys.stderr)
    try:
        wanted = re.compile(pattern or "")
    except re.error as error:
        raise run.NetError(f"{pattern} is no regular expression: {error}") from error
    found = [case for case in cases(CHECKOUT / "reports" / "samples", shared) if wanted.search(case.title)]
    if not found:
        raise run.NetError(f"no case matches {pattern}")
    return found


def _compare(found: list[Case], old: str, new: str | None, *, full: bool) -> int:
    began = time.monotonic()
    commit = run.revision(CHECKOUT, old)
    other = None if new is None else run.revision(CHECKOUT, new)
    with run.place(CHECKOUT) as where:
        before = _of_commit(found, commit, where)
        if other is None:
            run.lay_folder(CHECKOUT, where)
            after = run.outputs(found, where)
        elif other == commit:
            run.lay_revision(CHECKOUT, commit, where)
            after = run.outputs(found, where)
        else:
            after = _of_commit(found, other, where)
    groups = differences(before, after)
    for group in groups if full else groups[:GROUPS]:
        print(group.text(full=full), end="\n\n")
    if not full and len(groups) > GROUPS:
        print(f"{len(groups) - GROUPS} more differences: --full prints them all\n")
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    differing = len({case for group in groups for case, _ in group.places})
    crashed = sum(b"Traceback (most recent call last)" in out.parts["stderr"] for out in after.values())
    print(
        f"{len(found)} command lines: {differing} differ, in {len(groups)} ways; "
        f"{sum(out.code == 0 for out in after.values())} end with 0, {crashed} with a traceback; "
        f"{time.monotonic() - began:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} s of processors"
    )
    return int(bool(groups))


def _of_commit(found: list[Case], commit: str, where: run.Place) -> dict[Case, run.Output]:
    cache = run.Cache(CHECKOUT / "build" / "outputs" / f"{commit}.sqlite")
    try:
        run.lay_revision(CHECKOUT, commit, where)
        return run.outputs(found, where, cache)
    finally:
        cache.close()


if __name__ == "__main__":
    sys.exit(main())
