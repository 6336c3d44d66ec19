"""One kernel of one report as the index shows it: a number, a launch for the roofline, words, a link."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from ncukit.model import Diagnosis, Verdict
from ncukit.model.comparison import Measured
from ncukit.record import dataclass
from ncukit.render.cells import Cells, Tips
from ncukit.render.view.groups import Launch
from ncukit.render.words import limited_by, shorten, signature
from ncukit.roofline import place

UNKNOWN_GPU = "unknown GPU"


@dataclass(frozen=True)
class Row:
    """A measured kernel; ``n`` counts from 1, the most time first; ``link`` leads to its report's page."""

    n: int
    measured: Measured
    launch: Launch
    name: str
    link: str

    @property
    def gpu(self) -> str:
        """Name of the GPU."""
        return self.measured.gpu or UNKNOWN_GPU

    @property
    def limit(self) -> str:
        """What limits it for most of its time, and how many other answers there are."""
        limits = self.measured.limits
        (cls, limiter), _ = max(limits.items(), key=lambda item: item[1])
        others = f", {len(limits) - 1} other" if len(limits) > 1 else ""
        return limited_by(cls, limiter) + others

    @property
    def copies(self) -> str:
        """Say that the report lies there several times, and is counted once; nothing of a single one."""
        others = self.measured.origin.copies
        return f"{len(others) + 1} copies of one file" if others else ""


def rows_of(measured: Sequence[Measured], tips: Tips, home: Path) -> list[Row]:
    """Return the rows, the most time first; links are relative to the folder ``home`` of the page."""
    ordered = sorted(measured, key=lambda m: (-m.total, m.origin.name, m.kernel.demangled))
    names = _names(ordered)
    rows = []
    for n, one in enumerate(ordered, 1):
        kernel = replace(one.kernel, raw=replace(one.kernel.raw, index=n - 1))
        verdict = Verdict(one.cls, one.limiter, "low", "")  # only class and limiter are shown
        launch = Launch(Cells(kernel, tips), Diagnosis(kernel, place(kernel), verdict))
        rows.append(Row(n, one, launch, names[one.kernel.demangled], link(one.origin.page, home)))
    return rows


def link(page: str | None, home: Path) -> str:
    """Return the address of ``page`` relative to the folder ``home``; nothing where there is none.

    >>> link("/runs/a b:c/report.html", Path("/runs"))
    'a%20b%3Ac/report.html'
    """
    if page is None:
        return ""
    return quote(os.path.relpath(page, home).replace(os.sep, "/"), errors="surrogateescape")


def _names(measured: Sequence[Measured]) -> dict[str, str]:
    """Return a short name for each kernel, with what tells two of the same function apart."""
    kernels = {m.kernel.demangled: m.kernel for m in measured}
    functions = [kernel.name for kernel in kernels.values()]
    names = {}
    for demangled, kernel in kernels.items():
        rest = signature(kernel.name, demangled) if functions.count(kernel.name) > 1 else ""
        names[demangled] = shorten(f"{shorten(kernel.name, 48)}{rest}" or "kernel without a name", 70)
    return names
