"""Install the wheel in fresh environments, at both ends of the versions that it allows, and try it there.

    python -m scripts.compatibility                    # every declared Python that is found; pip, pipx, uv
    python -m scripts.compatibility --python 3.12 --versions lowest
    python -m scripts.compatibility --installers       # pip, the sdist, pipx and uv alone, without tests
    python -m scripts.compatibility --record           # what was tried, into docs/compatibility.md

Ends with 1 where something fails.  Everything lies in build/compatibility.  What is tried is the installed
wheel: the tests run in an unpacked source distribution without its ``ncukit``.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial

from scripts.installing.environment import (
    CHECKOUT,
    DEPENDENCIES,
    PYTHONS,
    Built,
    Environment,
    Failed,
    interpreters,
    new,
    run,
)
from scripts.installing.installers import INSTALLERS
from scripts.installing.trial import ENDS, Row, try_wheel, version

FOLDER = CHECKOUT / "build" / "compatibility"
PAGE = CHECKOUT / "docs" / "compatibility.md"
BEGIN, END = "<!-- compatibility: begin -->\n", "<!-- compatibility: end -->\n"


def main() -> int:
    asked = arguments()
    built = build()
    tools = Environment.fresh(FOLDER / "tools", sys.executable)
    tools.pip("install", "--quiet", "uv", "pipx")
    rows: list[Row] = []
    if not asked.installers:
        rows += wheels(asked.python or PYTHONS, [asked.versions] if asked.versions else ENDS, built, tools)
    if not asked.python:
        rows += installers(built, tools)
    failed = sum(bool(row.failure) for row in rows)
    if asked.record:
        record([row for row in rows if not row.failure])
    print(f"compatibility: {len(rows) - failed} passed, {failed} failed")
    return int(bool(failed))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="append", metavar="3.N", help="only this Python; repeatable")
    parser.add_argument("--versions", choices=ENDS, help="only this end")
    parser.add_argument("--installers", action="store_true", help="only the ways to install, without tests")
    parser.add_argument("--record", action="store_true", help="write the results into docs/compatibility.md")
    return parser.parse_args()


def build() -> Built:
    """Return the wheel and the source distribution, built anew."""
    place = new(FOLDER / "dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", place, CHECKOUT])
    return Built(next(place.glob("*.whl")), next(place.glob("*.tar.gz")))


def wheels(minors: Iterable[str], ends: Iterable[str], built: Built, tools: Environment) -> Iterator[Row]:
    """Try the wheel with each Python of ``minors``, at ``ends`` of its versions."""
    found = interpreters()
    for minor in minors:
        if minor not in found:
            print(f"Python {minor}: not found, not tried", flush=True)
            continue
        for end in ends:
            place = FOLDER / f"{minor}-{end}"
            yield tried(f"Python {minor}, {end}", partial(try_wheel, built, tools, found[minor], end, place))


def installers(built: Built, tools: Environment) -> Iterator[Row]:
    """Try each way to install."""
    for way, install in INSTALLERS.items():
        yield tried(way, partial(install, built, tools, FOLDER / "installers"))


def tried(name: str, trial: Callable[[], Row | str]) -> Row:
    """Return what ``trial`` returns, or how it failed; print it."""
    started = time.monotonic()
    try:
        found = trial()
        row = found if isinstance(found, Row) else Row(name, found)
    except Failed as failure:
        row = Row(name, failure=str(failure))
    print(f"{row.what}: {row.result or 'FAILED'} ({time.monotonic() - started:.0f} s)", flush=True)
    if row.failure:
        print(row.failure, flush=True)
    return row


def record(rows: Iterable[Row]) -> None:
    """Write ``rows`` into the page; what was not tried now stays as it was, with its date."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    last, _, tail = rest.partition(END)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    lines = dict(re.findall(r"^(\| (?:Python|p|u)[^|]* )(\|.*)$", last, re.MULTILINE))
    for row in rows:
        cells = [*[row.versions[name] for name in DEPENDENCIES if row.versions], row.result, today]
        lines[f"| {row.what} "] = f"| {' | '.join(cells)} |"
    made = sorted(first + more for first, more in lines.items() if first.startswith("| Python"))
    ways = [first + more for first, more in lines.items() if not first.startswith("| Python")]
    table = [
        f"ncukit {version()}, {platform.system()} {platform.machine()}.",
        "",
        f"| environment | {' | '.join(DEPENDENCIES)} | tests | date |",
        f"| --- |{' --- |' * (len(DEPENDENCIES) + 2)}",
        *made,
        "",
        "| way to install | tried | date |",
        "| --- | --- | --- |",
        *ways,
    ]
    text = "\n".join([head + BEGIN, *table, "", END + tail])
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
