"""What each SASS line and each source line of one launch cost.

`ncukit.judge.source_view.source_view` makes a `SourceView` from a kernel that was read with details;
None where the report counted nothing by instruction.  How to read it:

- ``view.rows`` is the SASS in address order, each `SassRow` with its own `Cost`; ``view.files`` holds the
  source lines, ``view.functions`` the functions.  A line's cost is the sum over its instructions (inlined
  code included), so lines, functions and rows each add up to ``view.total``.
- ``row.line`` is (position in ``view.files``, line number); `SourceLine.rows` are positions in
  ``view.rows``: the two are linked both ways.
- Shares [%] are of ``view.total``: ``view.share(cost)``.  ``view.basis`` says of what: "waiting" samples
  (taken in cycles in which the scheduler issued nothing: those cost time) or, where a report has no such
  counter, all "samples".
- A source line without instructions is context; its ``cost`` is None, and ``text`` None means unknown.
- ``row.producer`` is the position of the row that a waiting row waits for: then the row is the victim.
- What is None was not collected; 0 was counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal

from ncukit.record import dataclass

Basis = Literal["waiting", "samples", "none"]
Status = Literal["embedded", "found", "changed", "missing", "builtin"]
"""Where a file's text comes from: the report; the disk; on the disk but changed since; nowhere (vanished, or
on another machine); a name without a folder, as compilers give their own library code."""


ENOUGH_SAMPLES = 100
"""Samples below which shares of samples are noise."""


@dataclass(frozen=True)
class Cost:
    """What a group of instructions cost, summed.

    ``waiting`` and ``samples`` [sample]; ``categories`` are those of the view's basis by stall category of
    the catalog, ``states`` the same by raw state.  ``instructions`` [inst] are executed warp instructions,
    ``threads`` [inst] thread instructions predicated on.  ``sectors`` are those that global accesses of these
    instructions need in L2 (theoretical), ``wavefronts`` those of shared memory; ``excess_...`` the part
    beyond the ideal for the same bytes.  ``local_sectors`` are those of local memory, ``spills`` [inst] what
    the compiler marked as register spills, ``divergent`` the branches in which threads of a warp parted.
    """

    waiting: int | None = None
    samples: int | None = None
    categories: Mapping[str, int] = field(default_factory=dict)
    states: Mapping[str, int] = field(default_factory=dict)
    instructions: int | None = None
    threads: int | None = None
    sectors: int | None = None
    excess_sectors: int | None = None
    wavefronts: int | None = None
    excess_wavefronts: int | None = None
    local_sectors: int | None = None
    spills: int | None = None
    divergent: int | None = None


@dataclass(frozen=True)
class SassRow:
    """One instruction: ``offset`` [byte] from the start of its function, ``text`` as disassembled.

    ``function`` is a position in the view's functions, ``line`` (position in its files, line number).
    ``producer`` is the position of the row whose result a waiting instruction needs.
    """

    pc: int
    offset: int
    text: str
    opcode: str
    function: int
    cost: Cost
    line: tuple[int, int] | None = None
    producer: int | None = None


@dataclass(frozen=True)
class SourceLine:
    """One line of a source file; ``rows`` are the positions of its instructions, none for context."""

    number: int
    text: str | None
    cost: Cost | None = None
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class SourceFile:
    """One source file: lines with instructions and, where the text is known, some around them.

    ``name`` is the shortest end of ``path`` that no other file of the view shares; ``generated`` names the
    compiler that wrote it ("Triton", "Inductor").
    """

    path: str
    name: str
    status: Status
    cost: Cost
    lines: tuple[SourceLine, ...]
    generated: str = ""


@dataclass(frozen=True)
class Function:
    """One function of the kernel's code: the kernel itself first, then what it calls.

    ``first`` and ``last`` are positions in the view's rows.
    """

    name: str
    first: int
    last: int
    cost: Cost


@dataclass(frozen=True)
class SourceView:
    """All instructions and lines of one launch; ``notes`` are sentences on what is missing and why."""

    basis: Basis
    total: Cost
    functions: tuple[Function, ...]
    rows: tuple[SassRow, ...]
    files: tuple[SourceFile, ...]
    notes: tuple[str, ...] = ()

    def amount(self, cost: Cost) -> int:
        """Return the samples of ``cost`` that the view's shares are made of."""
        return (cost.waiting if self.basis == "waiting" else cost.samples) or 0

    def share(self, cost: Cost) -> float | None:
        """Return the share [%] of ``cost`` in all samples of the view's basis; None without samples."""
        total = self.amount(self.total)
        return 100 * self.amount(cost) / total if total else None

    def place(self, row: SassRow) -> str | None:
        """Return "file:line" of ``row``, or None without line information."""
        return None if row.line is None else f"{self.files[row.line[0]].name}:{row.line[1]}"

    def hot_lines(self, count: int = 10) -> list[tuple[SourceFile, SourceLine]]:
        """Return the lines with the most samples, most first; none without samples or line information."""
        lines = [(f, line) for f in self.files for line in f.lines if line.cost and self.amount(line.cost)]
        return sorted(lines, key=lambda found: -self.amount(found[1].cost or self.total))[:count]

    def hot_rows(self, count: int = 10) -> list[int]:
        """Return the positions of the instructions with the most samples, most first."""
        rows = [i for i, row in enumerate(self.rows) if self.amount(row.cost)]
        return sorted(rows, key=lambda i: -self.amount(self.rows[i].cost))[:count]


@dataclass(frozen=True)
class HotLine:
    """One of the hottest source lines of a launch or, without line information, instructions.

    ``place`` is "file:line", or the offset of the instruction ("+0x70"); ``text`` the source line or, where
    it is unknown, the SASS of its hottest instruction.  ``amount`` [``unit``] are samples or, where none were
    taken, executed instructions; ``share`` [%] of those of the launch.  Most samples are in ``state`` (raw
    name), ``state_share`` [%] of them.  ``note`` says who waits for whom.
    """

    place: str
    text: str
    amount: int
    unit: Literal["sample", "inst"]
    share: float
    cost: Cost
    state: str = ""
    state_share: float = 0.0
    note: str = ""


def weight(view: SourceView, cost: Cost) -> int:
    """Return what lines are ranked by: samples or, where none were taken, executed instructions."""
    return view.amount(cost) if unit(view) == "sample" else cost.instructions or 0


def unit(view: SourceView) -> Literal["sample", "inst"]:
    """Return what `weight` counts."""
    return "sample" if view.amount(view.total) else "inst"


def share(view: SourceView, cost: Cost) -> float:
    """Return the share [%] of ``cost`` in the weight of the launch; 0 where nothing was counted."""
    total = weight(view, view.total)
    return 100 * weight(view, cost) / total if total else 0.0


def reason(cost: Cost) -> tuple[str, float]:
    """Return the state (raw name) with the most samples, and its share [%] of those of ``cost``."""
    if not cost.states:
        return "", 0.0
    state = max(cost.states, key=lambda s: cost.states[s])
    return state, 100 * cost.states[state] / sum(cost.states.values())


def waits_for(view: SourceView, rows: Iterable[int]) -> str:
    """Return what the hottest of these instructions waits for; empty where it is no victim of another."""
    hottest = max(rows, key=lambda i: view.amount(view.rows[i].cost))
    row = view.rows[hottest]
    if row.producer is None:
        return ""
    cause = view.rows[row.producer]
    where = view.place(cause)
    at = f" of {where}" if where and where != view.place(row) else "" if where else f" at +0x{cause.offset:x}"
    return f"{row.opcode} waits for {cause.opcode}{at}"
