"""What an expression comes to for one launch: counters, and work counted from SASS opcodes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from ncukit.record import dataclass

if TYPE_CHECKING:
    from ncukit.model.kernel import Instance, RawValue


# ---- What the parts of an expression do with one launch: closures that raise where a value is missing

Number = float | int
Result = Number | str


class Missing(Exception):
    """An operand is not there; ``args[0]`` names it."""


class Undefined(Exception):
    """A ratio over nothing; ``args[0]`` is the denominator as written."""


class Launch(Protocol):
    """What an expression may ask of one launch."""

    @property
    def raw(self) -> Mapping[str, RawValue]:
        """Raw metrics that are present and finite."""

    @property
    def instances(self) -> Mapping[str, tuple[Instance, ...]]:
        """Instances of raw metrics: (correlation id, value)."""

    def ref(self, id: str) -> Result:
        """Return the value of neutral metric ``id`` or raise Missing."""

    def call(self, function: str, argument: str) -> Number:
        """Return the value of a function that needs opcodes, SASS or the peak table, or raise Missing."""


Evaluate = Callable[[Launch], Result]


def _number(value: Result) -> Number:
    if isinstance(value, str):
        raise Missing(value)
    return value


_CONSTANTS: dict[Evaluate, Number] = {}
"""What needs no evaluation: operators take it in."""


def constant(value: Number) -> Evaluate:
    """Always ``value``."""

    def evaluate(launch: Launch) -> Number:
        return value

    _CONSTANTS[evaluate] = value
    return evaluate


def raw(name: str) -> Evaluate:
    """The raw metric ``name``."""

    def evaluate(launch: Launch) -> Result:
        try:
            return launch.raw[name]
        except KeyError:
            raise Missing(name) from None

    return evaluate


def reference(id: str) -> Evaluate:
    """The neutral metric ``id``."""
    return lambda launch: launch.ref(id)


def add(a: Evaluate, b: Evaluate) -> Evaluate:
    """``a + b``."""
    return lambda launch: _number(a(launch)) + _number(b(launch))


def subtract(a: Evaluate, b: Evaluate) -> Evaluate:
    """``a - b``."""
    return lambda launch: _number(a(launch)) - _number(b(launch))


def multiply(a: Evaluate, b: Evaluate) -> Evaluate:
    """``a * b``."""
    if b in _CONSTANTS:
        a, b = b, a
    if (factor := _CONSTANTS.get(a)) is not None:
        return lambda launch: factor * _number(b(launch))
    return lambda launch: _number(a(launch)) * _number(b(launch))


def divide(a: Evaluate, b: Evaluate, denominator: str) -> Evaluate:
    """``a / b``, undefined where ``b``, written ``denominator``, is 0."""
    if divisor := _CONSTANTS.get(b):
        return lambda launch: _number(a(launch)) / divisor

    def evaluate(launch: Launch) -> Number:
        upper, lower = _number(a(launch)), _number(b(launch))
        if lower == 0:
            raise Undefined(denominator.strip())
        return upper / lower

    return evaluate


def power(a: Evaluate, b: Evaluate) -> Evaluate:
    """``a ** b``."""
    return lambda launch: _number(_number(a(launch)) ** _number(b(launch)))


def negate(a: Evaluate) -> Evaluate:
    """``-a``."""
    return lambda launch: -_number(a(launch))


def sum_present(terms: list[Evaluate], zero: bool) -> Evaluate:
    """The sum of the ``terms`` that have a value; of none of them 0 if ``zero``, else missing."""

    def evaluate(launch: Launch) -> Number:
        total: Number = 0
        found = zero
        for term in terms:
            try:
                total += _number(term(launch))
                found = True
            except Missing as missing:
                name = missing
        if not found:
            raise Missing(*name.args)
        return total

    return evaluate


def instances(metric: str, pattern: str) -> Evaluate:
    """The sum over the instances of ``metric`` whose name matches ``pattern``."""

    def evaluate(launch: Launch) -> Number:
        try:
            instances = launch.instances[metric]
        except KeyError:
            raise Missing(metric) from None
        matches = re.compile(pattern).search  # here: most reports have no such instances
        return sum(_number(value) for opcode, value in instances if matches(str(opcode)))

    return evaluate


def argmin(choices: list[tuple[str, Evaluate, bool]]) -> Evaluate:
    """The labels of the least ``choices``, joined by +; zeros count where all are zero."""

    def evaluate(launch: Launch) -> str:
        limits: dict[str, Number] = {}
        for label, value, may_miss in choices:
            try:
                limits[label] = _number(value(launch))
            except Missing:
                if not may_miss:
                    raise
        set_limits = {label: limit for label, limit in limits.items() if limit} or limits
        least = min(set_limits.values())
        return "+".join(label for label, limit in set_limits.items() if limit == least)

    return evaluate


def _tail(waves: Number) -> Number:
    whole = math.floor(waves)
    return 0 if waves <= 0 or waves == whole else 100 / (whole + 1)


_ARITHMETIC: dict[str, Callable[..., Number]] = {
    "max": max,
    "min": min,
    "ceil": math.ceil,
    "round": round,
    "tail": _tail,
}


def arithmetic(name: str, arguments: list[Evaluate]) -> Evaluate:
    """A function of numbers, by ``name``."""
    function = _ARITHMETIC[name]
    return lambda launch: function(*(_number(argument(launch)) for argument in arguments))


# ---- Count work from SASS opcodes: instruction classes, tensor operations, packed-half operations

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
