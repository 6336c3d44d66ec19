"""What one line of SASS reads, writes and jumps to, as far as the text tells.

NVIDIA does not document SASS operand by operand; this knows what is common to Volta and later, and says
less rather than guess.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from ncukit.record import dataclass

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
