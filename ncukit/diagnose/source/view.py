"""From counters by PC to the costs of rows, lines, files and functions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ncukit.catalog.counted import NOT_ISSUED, STATES, by_pc
from ncukit.catalog.stalls import category
from ncukit.diagnose.source import files
from ncukit.diagnose.source.notes import notes
from ncukit.diagnose.source.producers import producer
from ncukit.diagnose.source.sass import NONE, parse
from ncukit.model import Kernel, RawKernel
from ncukit.model.raw import Code
from ncukit.model.source import (
    Basis,
    Cost,
    Function,
    SassRow,
    SourceFile,
    SourceLine,
    SourceView,
)

WAITS = frozenset({"long_scoreboard", "short_scoreboard", "barrier", "membar", "drain"})
"""States in which the sampled instruction is the victim of another one."""

VISIBLE = 0.005
"""Share of all samples from which it is worth finding out what a row waits for."""

COUNTER = 2**64
"""What no counter of the hardware reaches: a larger count is damage."""

Columns = Mapping[str, Mapping[int, int]]


def source_view(kernel: Kernel) -> SourceView | None:
    """Return what every instruction and line of ``kernel`` cost; None where nothing was counted by PC.

    The kernel must have been read with details (`ncukit.normalise.wanted`).
    """
    raw = kernel.raw
    if raw.code is None or kernel.failed:
        return None
    return _Builder(kernel, raw.code).view()


class _Builder:
    def __init__(self, kernel: Kernel, code: Code) -> None:
        self.kernel, self.code = kernel, code
        self.position = {pc: i for i, pc in enumerate(code.pcs)}
        self.basis, states = _states(kernel.raw)
        self.sampled = bool(states)
        self.states: list[dict[str, int]] = [{} for _ in code.pcs]
        self.damaged = 0
        for state, column in states.items():
            for pc, n in column.items():
                if pc in self.position and (count := self._count(n)):
                    self.states[self.position[pc]][state] = count
        self.columns = {
            name: [self._count(column.get(pc, 0)) for pc in code.pcs]
            for name, column in _columns(kernel.raw).items()
        }
        self.parsed = [parse(text) if text else NONE for text in code.sass]
        self.lines = tuple(line if line and line[1] > 0 else None for line in code.lines)

    def view(self) -> SourceView:
        starts = self._starts()
        total = self._sum(range(len(self.code.pcs)))
        rows = self._rows(starts, total)
        functions = tuple(self._function(i, starts) for i in range(len(starts)))
        found = SourceView(self.basis, total, functions, rows, self._files())
        return replace(found, notes=notes(found, self.kernel, self.damaged))

    def _count(self, n: int) -> int:
        """Return ``n``, or 0 where no counter can have counted it."""
        if 0 <= n < COUNTER:
            return n
        self.damaged += 1
        return 0

    def _sum(self, rows: Iterable[int]) -> Cost:
        """Return the cost of the instructions at these positions, summed."""
        rows = tuple(rows)
        states: Counter[str] = Counter()
        for i in rows:
            if self.states[i]:
                states.update(self.states[i])
        return self._cost(
            dict(states), {name: sum(map(column.__getitem__, rows)) for name, column in self.columns.items()}
        )

    def _row(self, i: int) -> Cost:
        return self._cost(self.states[i], {name: column[i] for name, column in self.columns.items()})

    def _cost(self, states: Mapping[str, int], sums: Mapping[str, int]) -> Cost:
        categories: dict[str, int] = {}
        for state, n in states.items():
            name = category(state)
            categories[name] = categories.get(name, 0) + n
        sampled = sum(states.values()) if self.sampled else None
        return Cost(
            waiting=sampled if self.basis == "waiting" else None,
            samples=sums.get("samples", sampled if self.basis == "samples" else None),
            categories=categories,
            states=states,
            instructions=sums.get("instructions"),
            threads=sums.get("threads"),
            sectors=sums.get("sectors"),
            excess_sectors=_excess(sums, "sectors", "ideal_sectors"),
            wavefronts=sums.get("wavefronts"),
            excess_wavefronts=_excess(sums, "wavefronts", "ideal_wavefronts"),
            local_sectors=sums.get("local_sectors"),
            spills=sums.get("spills"),
            divergent=sums.get("divergent"),
        )

    def _starts(self) -> list[int]:
        """Return the positions at which functions begin: as the report says, and wherever a call leads."""
        targets = {i.target for i in self.parsed if i.opcode == "CALL"} | set(self.kernel.raw.functions)
        return sorted({0, *(self.position[pc] for pc in targets if pc in self.position)})

    def _rows(self, starts: list[int], total: Cost) -> tuple[SassRow, ...]:
        code, rows = self.code, []
        function_of = _function_of(len(code.pcs), starts)
        jumps = [self.position.get(i.target or 0) if i.opcode == "BRA" else None for i in self.parsed]
        least = VISIBLE * sum(total.states.values())
        for i, pc in enumerate(code.pcs):
            start, cost = starts[function_of[i]], self._row(i)
            rows.append(
                SassRow(
                    pc,
                    pc - code.pcs[start],
                    code.sass[i].strip(),
                    self.parsed[i].name,
                    function_of[i],
                    cost,
                    self.lines[i],
                    self._producer(i, start, jumps, cost, least),
                )
            )
        return tuple(rows)

    def _producer(
        self, row: int, start: int, jumps: list[int | None], cost: Cost, least: float
    ) -> int | None:
        if not cost.states or sum(cost.states.values()) < max(1.0, least):
            return None
        state = max(cost.states, key=lambda s: cost.states[s])
        return producer(self.parsed, jumps, row, start, state) if state in WAITS else None

    def _function(self, number: int, starts: list[int]) -> Function:
        pcs, first = self.code.pcs, starts[number]
        last = (starts[number + 1] if number + 1 < len(starts) else len(pcs)) - 1
        entry = next((pc for pc in self.kernel.raw.functions if pc in self.position), pcs[0])
        name = self.kernel.name if pcs[first] == entry else f"function at +0x{pcs[first] - pcs[0]:x}"
        return Function(name, first, last, self._sum(range(first, last + 1)))

    def _files(self) -> tuple[SourceFile, ...]:
        by_line: list[dict[int, list[int]]] = [defaultdict(list) for _ in self.code.files]
        for i, line in enumerate(self.lines):
            if line is not None:
                by_line[line[0]][line[1]].append(i)
        short = files.names(self.code.files)
        return tuple(self._file(n, short[n], rows) for n, rows in enumerate(by_line))

    def _file(self, number: int, name: str, by_line: Mapping[int, list[int]]) -> SourceFile:
        path = self.code.files[number]
        status, texts = files.texts(self.code, number, by_line, self.kernel.file)
        lines = tuple(
            SourceLine(n, texts.get(n), self._sum(by_line[n]), tuple(by_line[n]))
            if n in by_line
            else SourceLine(n, texts[n])
            for n in sorted({*by_line, *texts})
        )
        cost = self._sum([i for rows in by_line.values() for i in rows])
        return SourceFile(path, name, status, cost, lines, files.generated(path))


def _columns(raw: RawKernel) -> dict[str, Mapping[int, int]]:
    """Return the counters by PC that the report has, by column of a cost."""
    present = (
        (column, next((n for n in names if n in raw.by_pc), None)) for column, names in by_pc().items()
    )
    return {column: raw.by_pc[name] for column, name in present if name is not None}


def _states(raw: RawKernel) -> tuple[Basis, Columns]:
    """Return what the samples are and their states: those that cost time where they are told apart."""
    sampled = {name[len(STATES) :]: column for name, column in raw.by_pc.items() if name.startswith(STATES)}
    waiting = {s.removesuffix(NOT_ISSUED): c for s, c in sampled.items() if s.endswith(NOT_ISSUED)}
    if waiting:
        return "waiting", waiting
    return ("samples", sampled) if sampled else ("none", {})


def _excess(sums: Mapping[str, int], moved: str, ideal: str) -> int | None:
    return sums[moved] - sums[ideal] if moved in sums and ideal in sums else None


def _function_of(count: int, starts: list[int]) -> list[int]:
    found, function = [], -1
    following = set(starts)
    for i in range(count):
        function += i in following
        found.append(function)
    return found
