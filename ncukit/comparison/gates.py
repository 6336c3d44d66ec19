"""Gates: conditions that fail a comparison, such as ``dram_bytes > +5%``.

    ID OP LIMIT      OP is > >= < <=
    +5%  -10%        change of the other side, in percent of the base
    +3pt             change of a percentage, in points
    1.02x            other side over base
    0  2ms  1.5GB    the other side itself, in base units or with a prefix; 80% for a percentage

The condition says what must not be: a gate trips when it holds.  A gate compares values as written; noise
suppresses it only on request.  What cannot be decided trips as well, unless it is allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Literal

from ncukit.comparison.pairs import told_apart
from ncukit.comparison.rows import CLEAN, signed
from ncukit.errors import UsageError
from ncukit.metrics import load
from ncukit.model.comparison import Against, Comparison, Outcome, Pair, Row, State, Unmatched
from ncukit.quantity import brief
from ncukit.record import dataclass
from ncukit.run.tools.names import NamePattern

Kind = Literal["percent", "points", "factor", "value"]
UNDECIDED = "cannot be decided"

_GATE = re.compile(r"\s*([A-Za-z_][\w.]*)\s*(>=|<=|>|<)\s*(\S.*?)\s*")
_LIMIT = re.compile(r"([+\-\u2212]?)\s*(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*(\S.*)?")
_PREFIXES = {"p": 1e-12, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "": 1.0} | {
    "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30
}  # fmt: skip
_SYMBOLS = {
    "s": ("s",),
    "byte": ("B", "byte", "bytes"),
    "byte/s": ("B/s", "byte/s"),
    "hz": ("Hz", "hz"),
    "FLOP": ("FLOP",),
    "FLOP/s": ("FLOP/s",),
    "byte/block": ("B", "byte"),
}
"""How the base unit of a metric may be written behind a prefix."""
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">": lambda value, limit: value > limit,
    ">=": lambda value, limit: value >= limit,
    "<": lambda value, limit: value < limit,
    "<=": lambda value, limit: value <= limit,
}


@dataclass(frozen=True)
class Gate:
    """One condition that must not hold; ``limit`` is percent, points, a factor or a value in base units.

    ``kernel`` restricts it to kernels of that name.
    """

    text: str
    id: str
    operator: str
    limit: float
    kind: Kind
    kernel: str | None = None


def parse(text: str, kernel: str | None = None) -> Gate:
    """Return the gate that ``text`` says.

    Raises:
        UsageError: it is no gate, or its metric does not exist; the hint names the nearest.

    >>> parse("dram_bytes > +5%").kind, parse("kernel_duration > 1.02x").limit, parse("spill_inst > 0").kind
    ('percent', 1.02, 'value')
    """
    found = _GATE.fullmatch(text)
    if not found:
        raise UsageError(
            f"{text!r} is no gate",
            "write ID OP LIMIT, such as 'dram_bytes > +5%' or 'kernel_duration > 1.02x'",
        )
    id, operator, limit = found.groups()
    unit = _unit(id, text)
    number, kind = _limit(text, limit, unit)
    if kernel is not None:
        NamePattern(kernel)  # says at once that a pattern is none
    return Gate(f"{id} {operator} {' '.join(limit.split())}", id, operator, number, kind, kernel)


def apply(
    comparison: Comparison,
    gates: Sequence[Gate],
    *,
    allow_unknown: bool = False,
    beyond_noise: bool = False,
    chosen: bool = False,
) -> Comparison:
    """Return ``comparison`` with what every gate says of every pair, and of what has no counterpart.

    With ``chosen`` only some kernels were asked for: gates of others say nothing.
    """
    outcomes = [
        replace(outcome, allowed=True) if allow_unknown and outcome.state == "undecided" else outcome
        for gate in gates
        for against in comparison.others
        for outcome in _outcomes(gate, against, beyond_noise, chosen)
    ]
    return replace(comparison, gates=tuple(outcomes))


def _outcomes(gate: Gate, against: Against, beyond_noise: bool, chosen: bool) -> Iterator[Outcome]:
    wanted = NamePattern(gate.kernel) if gate.kernel else None

    def meant(pair: Pair | Unmatched) -> bool:
        kernel = pair.other.kernel if isinstance(pair, Pair) else pair.sample.kernel
        return wanted is None or wanted.matches(kernel.name, kernel.demangled)

    label = against.other.label
    if gate.id == CLEAN:
        yield _outcome(gate, "", label, against.clean, beyond_noise)
        return
    names = _names(against)
    pairs = [pair for pair in against.pairs if meant(pair)]
    for pair in pairs:
        yield _outcome(gate, names[id(pair.other)], label, pair.row(gate.id), beyond_noise)
    lost = [u for u in against.only_base if meant(u)]
    fresh = new = [u for u in against.only_other if meant(u)]
    if gate.kind == "value":  # needs no base
        for unmatched in new:
            value = unmatched.sample.kernel.metrics[gate.id]
            yield _outcome(gate, names[id(unmatched.sample)], label, Row(gate.id, value, value), beyond_noise)
        new = []
    for unmatched in (*lost, *new):
        yield _undecided(gate, names[id(unmatched.sample)], label, unmatched.reason)
    if not pairs and not lost and not fresh and not (chosen and gate.kernel):
        name = f" named like {gate.kernel!r}" if gate.kernel else ""
        yield _undecided(gate, gate.kernel or "", label, f"there is no launch{name}")


def _names(against: Against) -> dict[int, str]:
    """Return the name of each sample, by its identity: those of one side differ."""
    base = [u.sample for u in against.only_base]
    other = [*(pair.other for pair in against.pairs), *(u.sample for u in against.only_other)]
    return {
        id(sample): name
        for some in (base, other)
        for sample, name in zip(some, told_apart(some), strict=True)
    }


def _outcome(gate: Gate, kernel: str, label: str, row: Row | None, beyond_noise: bool) -> Outcome:
    if row is None:
        return _undecided(gate, kernel, label, "neither side has a clean time")
    value, reason = _measured(gate, row)
    if value is None:
        return _undecided(gate, kernel, label, reason)
    holds = _OPERATORS[gate.operator](value, gate.limit)
    state: State = "tripped" if holds else "passed"
    message = _message(gate, row, value)
    if holds and beyond_noise and gate.kind != "value" and not row.beyond_noise:
        state = "noise"
        message += f"; within the noise ({row.noise_from})"
    return Outcome(gate.text, kernel, label, state, message, metric=gate.id)


def _measured(gate: Gate, row: Row) -> tuple[float | None, str]:
    """Return what the gate compares with its limit, or None and why that cannot be known."""
    if gate.kind == "value":
        if row.other.number is None:
            return None, f"other: {row.other.reason or 'not collected'}"
        return row.other.number, ""
    if row.change is None:
        return None, row.reason or row.why or "not comparable"
    if gate.kind == "factor":
        if row.ratio is None:  # the base is 0
            return (1.0 if row.change == 0 else math.copysign(math.inf, row.change)), ""
        return row.ratio, ""
    if gate.kind == "percent" and row.change_unit == "pt":
        base, other = row.base.number or 0.0, row.other.number or 0.0
        if not base:
            return (0.0 if other == base else math.copysign(math.inf, other)), ""
        return 100 * (other - base) / base, ""
    return row.change, ""


def _undecided(gate: Gate, kernel: str, label: str, reason: str) -> Outcome:
    return Outcome(gate.text, kernel, label, "undecided", f"{UNDECIDED}: {reason}", metric=gate.id)


def _message(gate: Gate, row: Row, value: float) -> str:
    unit = row.other.unit
    if gate.kind == "value":
        return brief(row.other.number, unit)
    ends = f"{brief(row.base.number, unit)} \u2192 {brief(row.other.number, unit)}"
    if not math.isfinite(value):
        return f"{ends} (from 0)"
    if gate.kind == "factor":
        return f"{ends} ({value:.4g}\u202fx)"
    return f"{ends} ({signed(value, 'pt' if gate.kind == 'points' else '%', digits=2)})"


def _unit(id: str, text: str) -> str:
    if id == CLEAN:
        return "s"
    metrics = load().metrics
    if id not in metrics:
        near = get_close_matches(id, [*metrics, CLEAN], 3, 0.4)
        raise UsageError(
            f"gate {text!r}: there is no metric {id!r}",
            f"nearest: {', '.join(near) or 'none'}; `ncukit catalog` lists all",
        )
    if metrics[id].kind == "string":
        raise UsageError(f"gate {text!r}: {id} is text, not a number", "gate on a number")
    return metrics[id].unit


def _limit(text: str, limit: str, unit: str) -> tuple[float, Kind]:
    found = _LIMIT.fullmatch(limit)
    if not found:
        raise UsageError(f"gate {text!r}: {limit!r} is no limit", "write +5%, +3pt, 1.02x or a number")
    sign, digits, suffix = found[1], float(found[2]), (found[3] or "").strip()
    number = -digits if sign in ("-", "\u2212") else digits
    if suffix == "%" and sign:
        return number, "percent"
    if suffix == "%":
        if unit == "%":
            return number, "value"
        raise UsageError(f"gate {text!r}: {limit} is no change", f"write +{limit} for a change by {limit}")
    if suffix in ("pt", "pts"):
        if unit != "%":
            raise UsageError(f"gate {text!r}: points are for percentages", f"write +{digits:g}% instead")
        if not sign:
            raise UsageError(f"gate {text!r}: {limit} is no change", f"write +{limit}")
        return number, "points"
    if suffix in ("x", "X", "\u00d7"):
        return number, "factor"
    return number * _scale(text, suffix, unit), "value"


def _scale(text: str, suffix: str, unit: str) -> float:
    """Return what one ``suffix`` is in the base unit of a metric."""
    if suffix == unit:
        return 1.0
    for symbol in ("", *_SYMBOLS.get(unit, ())):
        if suffix.endswith(symbol) and (prefix := suffix.removesuffix(symbol)) in _PREFIXES:
            return _PREFIXES[prefix]
    raise UsageError(
        f"gate {text!r}: {suffix!r} is no unit of this metric",
        f"its unit is {unit or 'none: a plain number'}",
    )
