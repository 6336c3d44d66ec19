"""The table of a run, and the archive that is carried home."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scripts.acceptance.outcome import Row
from scripts.acceptance.scrub import Scrub

LIMIT = 16_000_000
"""Size of the archive [byte] that is not exceeded."""
SLACK = 200_000
"""What compressing may hold back, and the end of the archive take [byte]."""
RECORDS = ("run.json", "timing.json", "metrics.json", "experiment.json", "logs/*.log")


def markdown(rows: Sequence[Row], about: str) -> str:
    """Return the table of ``rows``: one line a step, and below it each check."""
    counts = Counter(row.state for row in rows)
    lines = [about, "", ", ".join(f"{count} {state}" for state, count in counts.items()) + ".", ""]
    lines += ["| step | state | seconds | note |", "| --- | --- | ---: | --- |"]
    lines += [f"| {_cell(row.name)} | {row.state} | {row.seconds:.1f} | {_cell(row.note)} |" for row in rows]
    lines += ["", "| step | what | expected | found | met |", "| --- | --- | --- | --- | --- |"]
    words = {True: "yes", False: "**no**", None: ""}
    lines += [
        f"| {_cell(row.name)} | {_cell(c.what)} | {_cell(c.expected)} | {_cell(c.found)} | {words[c.met]} |"
        for row in rows
        for c in row.checks
    ]
    return "\n".join(lines) + "\n"


def document(rows: Iterable[Row], about: str) -> dict[str, Any]:
    """Return the same as JSON data."""
    listed = [{**asdict(row), "folder": row.folder.name if row.folder else None} for row in rows]
    return {"schema": "ncukit.acceptance/1", "about": about, "rows": listed}


def archive(
    target: Path, folder: Path, rows: Sequence[Row], about: str, *, scrub: Scrub, limit: int = LIMIT
) -> list[str]:
    """Write the archive: the table, logs, records, one page, the reports; return what is in it.

    The compressed size stays below ``limit`` [byte]: what no longer fits is left out, the largest reports
    first.
    """
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    (folder / "table.md").write_text(markdown(rows, about), encoding="utf-8")
    (folder / "table.json").write_text(json.dumps(document(rows, about), indent=1), encoding="utf-8")
    taken: list[str] = []
    with gzip.open(target, "wb") as packed, tarfile.open(fileobj=packed, mode="w") as file:
        for path in _files(folder):
            data = scrub.file(path)
            packed.flush()
            room = limit - SLACK - target.stat().st_size
            if len(data) > room and len(zlib.compress(data, 9)) > room:
                continue
            name = str(path.relative_to(folder))
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(data), int(path.stat().st_mtime), 0o644
            file.addfile(member, io.BytesIO(data))
            taken.append(name)
    return taken


def _files(folder: Path) -> Iterator[Path]:
    yield folder / "table.md"
    yield folder / "table.json"
    yield from sorted((folder / "logs").iterdir())
    for name in RECORDS:
        yield from _found(folder, name)
    pages = [path for path in _found(folder, "report.html") if path.with_name("profile.ncu-rep").exists()]
    yield from (pages or _found(folder, "report.html"))[:1]
    yield from sorted(_found(folder, "profile.ncu-rep"), key=lambda path: path.stat().st_size)


def _found(folder: Path, name: str) -> list[Path]:
    return sorted((folder / "runs").rglob(name))


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
