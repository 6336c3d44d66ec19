"""The table of a run, and the archive that is carried home."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scripts.acceptance.outcome import Row

LIMIT = 16_000_000
"""Size of the archive [byte] that is not exceeded."""
LARGEST_REPORT = 1_000_000
"""Reports up to this size [byte] are taken along."""


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


def archive(target: Path, folder: Path, rows: Sequence[Row], about: str, *, limit: int = LIMIT) -> list[str]:
    """Write the archive: the table, logs, records, the smallest reports and one page; return what is in it.

    The compressed size stays below ``limit`` [byte]: what no longer fits is left out, largest last.
    """
    (folder / "table.md").write_text(markdown(rows, about), encoding="utf-8")
    (folder / "table.json").write_text(json.dumps(document(rows, about), indent=1), encoding="utf-8")
    records = [path for name in ("run.json", "timing.json", "metrics.json") for path in _found(folder, name)]
    reports = [path for path in _found(folder, "profile.ncu-rep") if path.stat().st_size <= LARGEST_REPORT]
    pages = [path for path in _found(folder, "report.html") if path.with_name("profile.ncu-rep").exists()]
    first = [folder / "table.md", folder / "table.json", *sorted((folder / "logs").iterdir())]
    rest = [*records, *sorted(reports, key=_size), *pages[:1]]
    with tarfile.open(target, "w:gz") as file:
        taken: list[str] = []
        for path in (*first, *rest):
            if target.stat().st_size + path.stat().st_size > limit - 1_000_000 and path not in first[:2]:
                continue
            name = str(path.relative_to(folder))
            file.add(path, arcname=name, filter=_anonymous)
            assert file.fileobj is not None
            file.fileobj.flush()
            taken.append(name)
    return taken


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _found(folder: Path, name: str) -> list[Path]:
    return sorted((folder / "runs").rglob(name))


def _size(path: Path) -> int:
    return path.stat().st_size


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
