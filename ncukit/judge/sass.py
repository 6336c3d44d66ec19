"""What one line of SASS does, whom it waits for, and which lines are the hottest."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ncukit.model import Kernel
from ncukit.model.source import Cost, HotLine, SourceView, reason, share, unit, waits_for, weight
from ncukit.record import dataclass

# ---- What one line of SASS reads, writes and jumps to, as far as the text tells
#  NVIDIA does not document SASS operand by operand; this knows what is common to Volta and later, and says
# less rather than guess.

_LINE = re.compile(
    r"^\s*(?:\{\s*)?(?:@!?(U?P\d+|U?PT)\s+)?([A-Z][A-Z0-9_]*)((?:\.[A-Za-z0-9_]+)*)\s*(.*?)[;}]?\s*$"
)
_REGISTER = re.compile(r"\b(U?)([RP])(\d+)((?:\.[A-Za-z0-9_]+)*)")
_TARGET = re.compile(r"0x([0-9a-f]{4,})\s*$")
_NOTHING = re.compile(
    r"^(ST|STG|STL|STS|STSM|SUST|RED|REDG|REDAS|BRA|BRX|JMP|JMX|EXIT|RET|CALL|BSSY|BSYNC|BREAK|YIELD|KILL|BPT|"
    r"BAR|MEMBAR|FENCE|ERRBAR|DEPBAR|LDGDEPBAR|LDGSTS|WARPSYNC|WARPGROUP|NANOSLEEP|CCTL|CCTLL|UTMA\w*|UBLKCP|"
    r"ACQBULK|UCGABAR\w*|ARRIVES|NOP)$"
)
"""Opcodes without a result register."""

_TESTS = re.compile(r"^(U?[A-Z]+SETP2?|U?PLOP3|FCHK|QSPC)$")
"""Opcodes whose results are predicates alone."""

_DOUBLE = re.compile(r"^(DADD|DMUL|DFMA|DMNMX|DSETP)$")
"""Opcodes whose operands are register pairs."""


@dataclass(frozen=True)
class Instruction:
    """One parsed line; ``reads`` and ``writes`` name registers and predicates ("R4", "UR2", "P0").

    ``guarded``: it runs only where its predicate holds.  ``target`` is the PC that it may jump to.
    """

    opcode: str
    modifiers: tuple[str, ...]
    reads: frozenset[str]
    writes: frozenset[str]
    guarded: bool = False
    target: int | None = None

    @property
    def name(self) -> str:
        """Opcode with modifiers."""
        return ".".join((self.opcode, *self.modifiers))


NONE = Instruction("", (), frozenset(), frozenset())
"""An instruction whose text is unknown."""


@functools.lru_cache(maxsize=65536)
def parse(text: str) -> Instruction:
    """Return what ``text`` says.

    >>> found = parse("@!P0  LDG.E.64 R8, [R2.64+0x10]")
    >>> found.name, sorted(found.reads), sorted(found.writes)
    ('LDG.E.64', ['P0', 'R2', 'R3'], ['R8', 'R9'])
    >>> sorted(parse("STG.E [R4.64], R3").reads), parse("STG.E [R4.64], R3").writes
    (['R3', 'R4', 'R5'], frozenset())
    """
    found = _LINE.match(text)
    if found is None:
        return NONE
    guard, opcode, dotted, rest = found.groups()
    modifiers = tuple(part for part in dotted.split(".") if part)
    operands = _split(rest)
    results = 0 if _NOTHING.match(opcode) else _results(operands, registers=not _TESTS.match(opcode))
    writes = {r for operand in operands[:results] for r in _registers(operand, _width(opcode, modifiers))}
    reads = {r for operand in operands[results:] for r in _registers(operand, _read_width(opcode, operand))}
    guarded = guard is not None and not guard.endswith("T")
    if guarded:
        reads.add(guard)
    jump = _TARGET.search(rest) if opcode in ("BRA", "CALL", "JMP", "BSSY", "BRX") else None
    target = int(jump[1], 16) if jump else None
    return Instruction(opcode, modifiers, frozenset(reads), frozenset(writes), guarded, target)


def _split(rest: str) -> list[str]:
    """Return the operands, split at commas outside brackets."""
    operands, depth, start = [], 0, 0
    for i, letter in enumerate(rest):
        depth += letter in "[("
        depth -= letter in "])"
        if letter == "," and depth == 0:
            operands.append(rest[start:i].strip())
            start = i + 1
    return [*operands, rest[start:].strip()] if rest.strip() else []


def _results(operands: list[str], *, registers: bool) -> int:
    """Return how many of the first operands are results: predicates, one register, carry predicates.

    Without ``registers`` only predicates are.
    """
    count, register = 0, not registers
    for operand in operands:
        predicate = re.fullmatch(r"U?P(\d+|T)", operand)
        plain = re.fullmatch(r"U?R(\d+|Z)(\.\w+)*", operand)
        if predicate:
            count += 1
        elif plain and not register:
            register, count = True, count + 1
        else:
            break
    return count


def _registers(operand: str, width: int) -> Iterable[str]:
    for uniform, kind, number, suffix in _REGISTER.findall(operand):
        if kind == "P":
            yield f"{uniform}P{number}"
            continue
        several = 2 if ".64" in suffix else width if "[" not in operand else 1
        for i in range(several):
            yield f"{uniform}R{int(number) + i}"


def _width(opcode: str, modifiers: tuple[str, ...]) -> int:
    """Return how many registers a result fills."""
    if "128" in modifiers or opcode in ("HMMA", "IMMA", "QMMA"):
        return 4
    if "64" in modifiers or "WIDE" in modifiers or "F64" in modifiers[:1] or _DOUBLE.match(opcode):
        return 2
    if opcode == "LDSM":
        return int(modifiers[-1]) if modifiers and modifiers[-1] in ("2", "4") else 1
    return 1


def _read_width(opcode: str, operand: str) -> int:
    if "[" in operand:
        return 1
    return 4 if opcode.endswith("MMA") else 2 if _DOUBLE.match(opcode) else 1


# ---- Which instruction a waiting one waits for: a sample names the victim, the cause stands before it

REACH = 400
"""Instructions looked back: a loop body that is longer hides the load of its own iteration anyway."""

_LONG = re.compile(r"^(LDG|LDL|LD|LDT|TEX|TLD4?|TMML|TXD|SULD|ATOM|ATOMG|ATOMS|SYNCS|LDTM|CCTL)$")
_SHORT = re.compile(
    r"^(LDS|LDSM|ATOMS|SHFL|MUFU|S2R|S2UR|I2F|F2I|F2F|FRND|I2FP?|LDC|ULDC|LDCU|R2UR|POPC|FLO|BREV|MATCH|REDUX|"
    r"VOTE|VOTEU|MOVM|B2R|SYNCS|LDTM|ELECT|QSPC|DADD|DMUL|DFMA|DSETP)$"
)
_STORE = re.compile(r"^(ST|STG|STL|STS|RED|REDG|ATOM|ATOMG|UTMASTG|UTMAREDG|SUST)$")
COPY_WAITS = ("DEPBAR", "LDGDEPBAR")
"""Waits for asynchronous copies; like that of a barrier, theirs is sampled at them or behind them."""

_COPY = re.compile(r"^(LDGSTS|UTMALDG|UBLKCP)$")

Code = Sequence[Instruction]


def producer(code: Code, jumps: Sequence[int | None], row: int, start: int, state: str) -> int | None:
    """Return the position of what ``code[row]`` waits for in ``state`` (raw name), or None.

    The function begins at ``start``; ``jumps`` are the positions that branches lead to.  Where nothing before
    ``row`` fits and a later branch leads back before it, the search goes on from that branch: the load then
    belongs to the iteration before.
    """
    if state == "barrier":
        return _barrier(code, row, start)
    if state == "drain":
        done = _before(code, row, start, lambda i: i.opcode == "EXIT", 2)
        return None if done is None else _before(code, done, start, _is(_STORE), REACH)
    if state == "membar":
        return _before(code, row, start, lambda i: i.opcode in ("MEMBAR", "FENCE", "ERRBAR"), 3)
    if state not in ("long_scoreboard", "short_scoreboard"):
        return None
    kinds = _LONG if state == "long_scoreboard" else _SHORT
    if code[row].opcode in COPY_WAITS or (row > start and code[row - 1].opcode in COPY_WAITS):
        return _before(code, row, start, _is(_COPY), REACH)
    needed = code[row].reads
    if not needed:
        return None
    found = _writer(code, row, start, needed, kinds)
    if found is not None:
        return found
    for branch in range(row, min(len(code), row + REACH)):
        target = jumps[branch]
        if target is not None and start <= target <= row:
            return _writer(code, branch, row + 1, needed, kinds)
    return None


def _barrier(code: Code, row: int, start: int) -> int | None:
    """Return the barrier before ``row``; for a wait on warp-group MMA the MMA."""
    if code[row].opcode == "WARPGROUP":
        return _before(code, row, start, lambda i: i.opcode.endswith("GMMA"), REACH)
    return _before(code, row, start, lambda i: i.opcode in ("BAR", "UCGABAR_WAIT", "WARPSYNC"), 2)


def _writer(code: Code, row: int, start: int, needed: frozenset[str], kinds: re.Pattern[str]) -> int | None:
    """Return the last instruction before ``row`` of these kinds that writes something needed."""
    left = set(needed)
    for position in range(row - 1, max(start, row - REACH) - 1, -1):
        written = code[position].writes & left
        if written and kinds.match(code[position].opcode):
            return position
        if not code[position].guarded:
            left -= written  # overwritten by something else: an older load of it is done
        if not left:
            return None
    return None


def _is(pattern: re.Pattern[str]) -> Callable[[Instruction], bool]:
    return lambda instruction: pattern.match(instruction.opcode) is not None


def _before(code: Code, row: int, start: int, fits: Callable[[Instruction], bool], reach: int) -> int | None:
    for position in range(row - 1, max(start, row - reach) - 1, -1):
        if fits(code[position]):
            return position
    return None


# ---- The lines that cost most, or the instructions where there is no line information

COUNT = 10
"""Lines kept with a diagnosis."""


def hot(view: SourceView | None, count: int = COUNT) -> tuple[HotLine, ...]:
    """Return the lines with the most samples (executed instructions, where none were taken), most first.

    A line is the sum of its instructions, inlined code included.

    >>> hot(None)
    ()
    """
    if view is None:
        return ()
    groups = [(line.cost, line.rows) for file in view.files for line in file.lines if line.cost is not None]
    if not groups:
        groups = [(row.cost, (i,)) for i, row in enumerate(view.rows)]
    groups = [(cost, rows) for cost, rows in groups if weight(view, cost)]
    groups.sort(key=lambda group: -weight(view, group[0]))
    return tuple(_line(view, cost, rows) for cost, rows in groups[:count])


def _line(view: SourceView, cost: Cost, rows: tuple[int, ...]) -> HotLine:
    hottest = view.rows[max(rows, key=lambda i: weight(view, view.rows[i].cost))]
    place, text = view.place(hottest) or f"+0x{hottest.offset:x}", hottest.text
    if hottest.line is not None:
        file, number = hottest.line
        text = next((line.text for line in view.files[file].lines if line.number == number), None) or text
    return HotLine(
        place, text.strip(), weight(view, cost), unit(view), share(view, cost), cost, *reason(cost),
        waits_for(view, rows),
    )  # fmt: skip


# ---- What a source view cannot show, and what would let it

ENOUGH = 100
"""Samples below which shares are noise."""

NO_LINES = (
    "No line information: build with `nvcc -lineinfo` (Triton writes it unless TRITON_DISABLE_LINE_INFO is "
    "set), and profile again."
)
NO_SAMPLES = "No PC samples: `--section SourceCounters` collects them."
NO_TEXT = "The report holds no SASS text for these instructions."
SUMS = (
    "A line stands for all its instructions, inlined code included; a line that is not listed was folded "
    "into others by the compiler, it is not free."
)


def notes(view: SourceView, kernel: Kernel, damaged: int = 0) -> tuple[str, ...]:
    """Return sentences on what is missing in ``view`` and why; ``damaged`` counts were left out."""
    found = [*_samples(view, kernel)]
    if damaged:
        are = "1 count is" if damaged == 1 else f"{damaged} counts are"
        found.append(f"{are} negative or beyond 64 bits: damaged, and left out.")
    if not any(row.text for row in view.rows):
        found.append(NO_TEXT)
    if not view.files:
        return (*found, NO_LINES)
    return (*found, *_lines(view), *_texts(view), SUMS)


def _samples(view: SourceView, kernel: Kernel) -> list[str]:
    total = view.amount(view.total)
    if view.basis == "none":
        return [NO_SAMPLES]
    found = []
    if total < ENOUGH:
        found.append(f"Only {total} samples: shares are noise below some hundreds.")
    if view.basis == "samples":
        found.append("Samples in which the scheduler issued are not told apart: shares are of all samples.")
    if kernel.number("pc_samples_dropped_bytes"):
        found.append("The sampling buffer overflowed: some samples are lost.")
    return found


def _lines(view: SourceView) -> list[str]:
    without = sum(row.line is None for row in view.rows)
    return [f"{without} of {len(view.rows)} instructions belong to no line."] if without else []


def _texts(view: SourceView) -> list[str]:
    count = Counter(file.status for file in view.files)
    found = []
    if count["missing"]:
        gone = sorted({f.generated for f in view.files if f.status == "missing" and f.generated})
        found.append(
            f"Source not found: the text of {count['missing']} of {len(view.files)} files is neither in the "
            "report nor, at its path, below this folder; `--import-source yes` puts it into the report."
            + (
                f" {' and '.join(gone)} wrote some of them into a cache, from which they vanish."
                if gone
                else ""
            )
        )
    if count["changed"]:
        found.append(
            f"{count['changed']} files changed after the report was written: their text is not shown."
        )
    if count["builtin"]:
        found.append(f"{count['builtin']} files are library code of the compiler, named without a folder.")
    return found
