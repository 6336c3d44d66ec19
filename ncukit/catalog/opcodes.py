"""Count work from SASS opcodes: instruction classes, tensor operations, packed-half operations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from ncukit.catalog.evaluation import Missing
from ncukit.record import dataclass

if TYPE_CHECKING:
    from ncukit.model.raw import Instance

HALF_OPCODES = ("HADD2", "HMUL2", "HFMA2")
_HALF = re.compile(r"^\s*(?:\{\s*)?(?:@!?U?P\w+\s+)?(HADD2|HMUL2|HFMA2)\b(\S*)\s*(.*)")
_OPERATIONS = {"HADD2": 2, "HMUL2": 2, "HFMA2": 4}
_WARPGROUP_SHAPE = re.compile(r"^(\d+)x(\d+)x(\d+)$")


@dataclass(frozen=True)
class Opcodes:
    """The instruction classes and tensor shapes of ``data/opcodes.json``."""

    classes: tuple[tuple[str, str], ...]
    tensor: frozenset[str]
    shapes: Mapping[str, tuple[int, int, int]]
    _class_of: dict[str, str] = field(default_factory=dict, compare=False)

    def class_of(self, opcode: str) -> str:
        """Return the class of ``opcode`` (without modifiers): the first that matches, else "other"."""
        known = self._class_of.get(opcode)
        if known is None:
            found = (name for name, pattern in self.classes if re.search(pattern, opcode))
            known = self._class_of[opcode] = next(found, "other")
        return known

    def count(self, instances: Iterable[Instance], name: str) -> float:
        """Return the warp instructions [inst] of class ``name``."""
        return sum(float(n) for opcode, n in instances if self.class_of(str(opcode)) == name)

    def mix(self, instances: tuple[Instance, ...], name: str) -> float:
        """Return the share [%] of class ``name`` in all warp instructions."""
        total = sum(float(n) for _, n in instances)
        if not total:
            raise Missing("no instruction executed")
        return 100 * self.count(instances, name) / total

    def tensor_operations(self, instances: Iterable[Instance], dtype: str) -> float:
        """Return the tensor operations [FLOP or OP] of ``dtype``, 2 m n k per warp instruction.

        A warp-group MMA runs on four warps (2 m n k / 4 each); a Volta HMMA.884 step counts 512.

        Raises:
            Missing: an MMA of unknown shape ran (tcgen05 keeps its shape in a descriptor).
        """
        total = 0.0
        for opcode, count in instances:
            name, *modifiers = str(opcode).split(".")
            if not count or self.class_of(name) != "tensor":
                continue
            if name not in self.tensor or not (per_instruction := self._operations(name, modifiers)):
                raise Missing(f"the shape of {opcode} is not in the opcode")
            if tensor_dtype(name, modifiers) == dtype:
                total += float(count) * per_instruction
        return total

    def _operations(self, name: str, modifiers: list[str]) -> float:
        for modifier in modifiers:
            if name == "HMMA" and modifier == "884":
                return 512
            if modifier in self.shapes:
                m, n, k = self.shapes[modifier]
                return 2 * m * n * k
            if shape := _WARPGROUP_SHAPE.match(modifier):
                m, n, k = map(int, shape.groups())
                return 2 * m * n * k / 4
        return 0


def tensor_dtype(name: str, modifiers: list[str]) -> str:
    """Return the input type of a tensor opcode.

    >>> tensor_dtype("HMMA", ["16816", "F32", "BF16"]), tensor_dtype("IMMA", ["16832", "S8", "S8"])
    ('bf16', 'int8')
    """
    if name in ("HMMA", "HGMMA"):
        return "tf32" if "TF32" in modifiers else "bf16" if "BF16" in modifiers else "fp16"
    if name in ("QMMA", "QGMMA"):
        return "fp4" if "E2M1" in modifiers else "fp8"
    if name in ("IMMA", "IGMMA"):
        return "int4" if {"S4", "U4"} & set(modifiers) else "int8"
    return {"DMMA": "fp64", "BMMA": "int1"}.get(name, "unknown")


def half_operations(threads_by_pc: Iterable[Instance], sass: Mapping[int, str]) -> float:
    """Return the packed-half operations [FLOP]: 2 per HADD2 and HMUL2, 4 per HFMA2 and thread.

    Two idioms are no arithmetic: ``HFMA2 Rd, -RZ, RZ, c, c`` loads a constant, ``HADD2.F32`` converts.
    """
    total = 0.0
    for pc, threads in threads_by_pc:
        text = sass.get(int(pc)) if isinstance(pc, int) else None
        match = _HALF.match(text) if text else None
        if match is None:
            continue
        opcode, modifiers, rest = match.groups()
        operands = [operand.strip() for operand in rest.split(",")]
        constant = opcode == "HFMA2" and [o.lstrip("-") for o in operands[1:3]] == ["RZ", "RZ"]
        conversion = opcode == "HADD2" and "F32" in modifiers.split(".")
        if not constant and not conversion:
            total += _OPERATIONS[opcode] * float(threads)
    return total


def is_half(text: str) -> bool:
    """Return whether a SASS line is a packed-half instruction."""
    return _HALF.match(text) is not None
