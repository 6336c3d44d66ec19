"""What the parts of an expression do with one launch: closures that raise where a value is missing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ncukit.model.raw import Instance, RawValue


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
