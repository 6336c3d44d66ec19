"""Where the numbers of a comparison come from: files, versions, commands."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from ncukit.model.comparison import Comparison, Side
from ncukit.render.line import Line, code, line
from ncukit.render.view.provenance import base_names, this_page
from ncukit.render.words import plural

KINDS = {"repeats": "repeats", "run": "a run", "baseline": "a baseline", "kernels": "launches"}


def provenance(comparison: Comparison, *, generated: str, command: str) -> list[dict[str, Any]]:
    """Return names and lines of the list; folders of machines are cut off."""
    rows: list[tuple[str, Line]] = []
    named = [("Base", comparison.base), *(("Other", against.other) for against in comparison.others)]
    for name, side in named:
        kind = KINDS.get(side.kind)
        for file in side.files or ():
            said = f", {file.size:,} bytes, sha256 "
            rows.append((name, line(code(PurePath(file.path).name), said, code(file.sha256))))
        if not side.files:
            rows.append((name, line(code(side.label))))
        if kind:
            rows.append(("", line(f"{side.label} is {kind}; {plural(side.launches, 'launch')}.")))
        rows.append(("Made with", line(_made(side))))
    return [*({"name": name, "text": text} for name, text in rows), this_page(command, generated)]


def _made(side: Side) -> str:
    known = side.recorded
    parts = [
        f"ncu {known.ncu}" if known.ncu else "ncu version not recorded",
        f"driver {known.driver}" if known.driver else "driver not recorded",
        f"clock control {known.clock_control}" if known.clock_control else "clock control not recorded",
        f"cache control {known.cache_control}" if known.cache_control else "cache control not recorded",
        f"git {known.git}" if known.git else "",
        f"command `{base_names(known.command)}`" if known.command and "`" not in known.command else "",
    ]
    return ", ".join(part for part in parts if part) + "."
