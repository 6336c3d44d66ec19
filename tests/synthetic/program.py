"""A compiled kernel as a list of instructions, and how often a block executes each of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.synthetic.compile import CODE

PIPES = (
    # pipe, opcodes without modifiers; the first match wins, NOP and the like run on none
    ("tensor", r"[HIDB]MMA|HGMMA|HFMA2\.MMA"),
    ("fp64", r"D(ADD|MUL|FMA|SETP)"),
    ("fp16", r"H(ADD|MUL|FMA)2"),
    ("xu", r"MUFU|[IF]2[IF]|POPC"),
    ("fma", r"F(FMA|MUL|ADD)|IMAD"),
    ("lsu", r"LD[GSL]|ST[GSL]|LDSM|LDGSTS|LDGDEPBAR|SHFL|ATOM[GS]?|RED"),
    ("adu", r"BAR|S2R|LDC|DEPBAR"),
    ("cbu", r"BRA|EXIT|BSSY|BSYNC|CALL|RET"),
    ("uniform", r"U[A-Z0-9]+|S2UR|R2UR"),
    ("alu", r"[A-Z][A-Z0-9]*"),
)
_PIPES = tuple((pipe, re.compile(rf"({opcodes})(\.|$)")) for pipe, opcodes in PIPES)
_WIDTH = {"64": 2, "128": 4, "4": 4}


@dataclass(frozen=True)
class Instruction:
    """One SASS instruction: offset in the function [byte], text, source line."""

    offset: int
    text: str
    line: int

    @property
    def predicate(self) -> str:
        """The guard, such as ``@!P0``; empty when there is none."""
        return self.text.split()[0] if self.text.startswith("@") else ""

    @property
    def full_opcode(self) -> str:
        """The opcode with its modifiers: ``LDG.E.128``."""
        return self.text.split()[1 if self.predicate else 0]

    @property
    def opcode(self) -> str:
        """The opcode without modifiers: ``LDG``."""
        return self.full_opcode.split(".")[0]

    @property
    def pipe(self) -> str | None:
        """The pipe that executes it."""
        if self.opcode in ("NOP", "VOTE"):
            return None
        return next(pipe for pipe, opcodes in _PIPES if opcodes.match(self.full_opcode))

    @property
    def words(self) -> int:
        """32-bit words that a memory instruction moves for a thread."""
        return max((_WIDTH.get(part, 1) for part in self.full_opcode.split(".")[1:]), default=1)

    @property
    def operands(self) -> list[str]:
        """The operands as text."""
        return [part.strip() for part in self.text.partition(self.full_opcode)[2].split(",")]

    @property
    def target(self) -> int | None:
        """Offset that a branch goes to."""
        found = re.search(r"0x7f([0-9a-f]{10})", self.text) if self.opcode == "BRA" else None
        return int(found[1], 16) if found else None

    def writes(self) -> set[str]:
        """Return the registers that it writes; meant for loads, shuffles and the like."""
        register = next((op for op in self.operands if re.fullmatch(r"U?R\d+", op)), None)
        if register is None or self.opcode.startswith(("ST", "RED", "LDGSTS")):
            return set()
        kind, number = re.fullmatch(r"(U?R)(\d+)", register).groups()
        return {f"{kind}{int(number) + i}" for i in range(self.words)}

    def reads(self) -> set[str]:
        """Return the registers that it reads, the first of each operand pair included."""
        first = 0 if self.opcode.startswith(("ST", "RED", "BAR", "LDGSTS")) else 1
        found = re.findall(r"\bU?R\d+", ",".join(self.operands[first:]))
        wide = {f"R{int(r[1:]) + i}" for r in found if r[0] == "R" for i in range(self.words)}
        return set(found) | (wide if self.opcode.startswith("ST") else set())


@dataclass(frozen=True)
class Step:
    """Executions of an instruction by one block: warps, threads that were active, threads predicated on."""

    instruction: Instruction
    warps: int
    active: int
    on: int


Path = Callable[[Instruction], tuple[int, int, int] | None]
"""Of an instruction: (warps of the block, active threads, threads predicated on) of one pass, None: all."""


def listing(name: str, mangled: str) -> list[Instruction]:
    """Return the instructions of kernel ``mangled`` of ``code/NAME.sass``."""
    found: list[Instruction] = []
    here = False
    for row in (CODE / f"{name}.sass").read_text().splitlines():
        if row.startswith("# "):
            here = row[2:] == mangled
        elif here:
            offset, text, line, _ = row.split("\t")
            found.append(Instruction(int(offset, 16), text, int(line)))
    if not found:
        raise KeyError(mangled)
    return found


def steps(program: Sequence[Instruction], warps: int, trips: int, path: Path | None = None) -> list[Step]:
    """Return what a block of ``warps`` executes: the loop ``trips`` times, the rest once.

    A backward branch closes the loop and is taken ``trips - 1`` times; a guard that leaves early is not
    taken; nothing after the last EXIT is executed.
    """
    end = max(i.offset for i in program if i.opcode == "EXIT" and not i.predicate)
    loop = _loop(program)
    found = []
    for i in program:
        if i.offset > end:
            found.append(Step(i, 0, 0, 0))
            continue
        times = trips if loop and loop[0] <= i.offset <= loop[1] else 1
        executed, active, on = (path and path(i)) or (warps, 32 * warps, 32 * warps)
        on = 0 if i.opcode == "BRA" or i.predicate == "@!PT" else on
        taken = 32 * warps * (trips - 1) if loop and i.offset == loop[1] else on * times
        found.append(Step(i, executed * times, active * times, taken))
    return found


def _loop(program: Sequence[Instruction]) -> tuple[int, int] | None:
    """Return (first, last) offset of the loop; the kernels here have at most one."""
    loops = [(i.target, i.offset) for i in program if i.target is not None and i.target < i.offset]
    assert len(loops) <= 1, loops
    return loops[0] if loops else None


def consumers(program: Sequence[Instruction], producers: str) -> Iterator[int]:
    """Yield the offset of the first reader of what each instruction that matches ``producers`` wrote."""
    for n, producer in enumerate(program):
        if re.match(producers, producer.full_opcode) and (written := producer.writes()):
            later = (i.offset for i in program[n + 1 :] if written & i.reads())
            if (offset := next(later, None)) is not None:
                yield offset
