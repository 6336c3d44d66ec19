"""What each instruction, source line and file cost, and who waits for whom.

`ncukit.model.source` says how to read the result.  Not here: rules about it (``rules/source.py``).
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath, PureWindowsPath

from ncukit.judge.sass import NONE, notes, parse, producer
from ncukit.metrics.catalog import category
from ncukit.metrics.expression import NOT_ISSUED, STATES, by_pc
from ncukit.model import Kernel, RawKernel
from ncukit.model.kernel import Code
from ncukit.model.source import (
    Basis,
    Cost,
    Function,
    SassRow,
    SourceFile,
    SourceLine,
    SourceView,
    Status,
)
from ncukit.report.source_code import near

# ---- Source files of a report: which are whose, where their text is, and what to say when it is nowhere
#  Text comes from the report itself, else from the disk: only of files below the current folder that look
# like source code, only the lines around counted instructions, and only where the file has not changed
# since the report was written.  A report can name any file: a page of a stranger's must not show the user's
# others.

ENDINGS = frozenset(
    [
        ".cu",
        ".cuh",
        ".c",
        ".cc",
        ".cpp",
        ".cxx",
        ".h",
        ".hh",
        ".hpp",
        ".hxx",
        ".inl",
        ".inc",
        ".ipp",
        ".py",
        ".jl",
        ".rs",
        ".f90",
        ".f95",
        ".cl",
        ".ptx",
        ".mlir",
        ".ttir",
        ".ttgir",
        ".llir",
        ".mojo",
        ".zig",
    ]
)
"""What a file must end in for its text to be taken from the disk: a report can name any file."""

LARGEST = 4 << 20
"""[byte] Larger files on the disk are not read."""

COMPILERS = {"torchinductor": "Inductor", ".triton": "Triton", "triton/cache": "Triton"}
"""Part of a path -> the compiler that wrote the file there; such files are caches and vanish."""


def names(paths: Sequence[str]) -> list[str]:
    """Return for each path its shortest end that no other has.

    >>> names(["/a/x/main.cu", "/a/y/main.cu", "/a/y/util.h"])
    ['x/main.cu', 'y/main.cu', 'util.h']
    """
    parts = [_parts(path) for path in paths]
    found: dict[int, str] = {}
    depth = 1
    while len(found) < len(paths):
        ends = {i: "/".join(p[-depth:]) for i, p in enumerate(parts) if i not in found}
        often = Counter(ends.values())
        for i, end in ends.items():
            if often[end] == 1 or depth >= len(parts[i]):
                found[i] = end
        depth += 1
    return [found[i] for i in range(len(paths))]


def _parts(path: str) -> tuple[str, ...]:
    kind = PureWindowsPath if "\\" in path or path[1:2] == ":" else PurePosixPath
    return kind(path).parts or (path,)


def generated(path: str) -> str:
    """Return the compiler in whose cache ``path`` lies, or an empty text."""
    normal = path.replace("\\", "/")
    return next((compiler for part, compiler in COMPILERS.items() if part in normal), "")


def file_texts(code: Code, number: int, used: Iterable[int], report: str) -> tuple[Status, Mapping[int, str]]:
    """Return where the text of file ``number`` comes from, and its lines near the ``used`` ones."""
    path = code.files[number]
    if (embedded := code.texts.get(number)) is not None:
        return "embedded", embedded
    if len(_parts(path)) == 1:
        return "builtin", {}
    return _on_disk(path, set(used), report)


def _on_disk(path: str, used: set[int], report: str) -> tuple[Status, Mapping[int, str]]:
    if os.path.splitext(path)[1] not in ENDINGS or not os.path.isabs(path):
        return "missing", {}
    try:
        if not _is_below_here(path):
            return "missing", {}
        found = os.stat(path)
        if not os.path.isfile(path) or found.st_size > LARGEST:
            return "missing", {}
        newer = os.path.exists(report) and found.st_mtime > os.stat(report).st_mtime
        with open(path, encoding="utf-8", errors="replace") as file:
            content = file.read()
    except (OSError, ValueError):
        return "missing", {}
    if newer or max(used, default=0) > content.count("\n") + 1:
        return "changed", {}
    return "found", near(content, used)


def _is_below_here(path: str) -> bool:
    """Return whether the file ``path`` lies below the current folder, links resolved, and none hides it."""
    here, real = os.path.realpath("."), os.path.realpath(path)
    if os.path.commonpath([here, real]) != here:
        return False
    return not any(part.startswith(".") for part in os.path.relpath(real, here).split(os.sep))


# ---- From counters by PC to the costs of rows, lines, files and functions

WAITS = frozenset({"long_scoreboard", "short_scoreboard", "barrier", "membar", "drain"})
"""States in which the sampled instruction is the victim of another one."""

VISIBLE = 0.005
"""Share of all samples from which it is worth finding out what a row waits for."""

COUNTER = 2**64
"""What no counter of the hardware reaches: a larger count is damage."""

Columns = Mapping[str, Mapping[int, int]]


def source_view(kernel: Kernel) -> SourceView | None:
    """Return what every instruction and line of ``kernel`` cost; None where nothing was counted by PC.

    The kernel must have been read with details (`ncukit.metrics.normalise.wanted`).
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
        short = names(self.code.files)
        return tuple(self._file(n, short[n], rows) for n, rows in enumerate(by_line))

    def _file(self, number: int, name: str, by_line: Mapping[int, list[int]]) -> SourceFile:
        path = self.code.files[number]
        status, texts = file_texts(self.code, number, by_line, self.kernel.file)
        lines = tuple(
            SourceLine(n, texts.get(n), self._sum(by_line[n]), tuple(by_line[n]))
            if n in by_line
            else SourceLine(n, texts[n])
            for n in sorted({*by_line, *texts})
        )
        cost = self._sum([i for rows in by_line.values() for i in rows])
        return SourceFile(path, name, status, cost, lines, generated(path))


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
