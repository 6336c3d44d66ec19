"""Translate one launch from native counters to neutral metrics.

Presence decides which source of a metric wins: the first whose every operand is in the report, that is valid
on this compute capability and whose result is finite.  What no source gives is unknown, with the reason.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping

from ncukit.catalog import Catalog, load
from ncukit.catalog.counted import STATES, by_pc, sampled_names
from ncukit.catalog.evaluation import Missing, Number, Result, Undefined
from ncukit.catalog.expression import OPCODES, OPCODES_FULL, THREADS_BY_PC
from ncukit.catalog.opcodes import half_operations
from ncukit.model import Instance, Kernel, RawKernel, RawValue, Value, Wanted
from ncukit.normalise.plan import PERCENT_TOLERANCE, Recipe, bare, plan, unknown
from ncukit.read.failed import failure

SHORT = 20e-6
"""[s] Ratios of counters from different replay passes are not reliable below this duration."""

PER_OPCODE = ("_per_opcode", "_per_opcode_with_modifier_all")
"""Ends of counters that every kernel adds to: 0 beside an empty list was not counted, so it is no zero."""


def wanted(*, signals: bool = True, details: bool = False, code: bool | None = None) -> Wanted:
    """Return what `normalise` needs of a report: with ``signals`` for rules, with ``details`` for a page.

    ``code`` adds what is known by instruction and over time, which takes most of the time where a report
    has it; a page wants it, unless it is given as False.
    """
    catalog = load()
    names = catalog.raw_names | {MARK}
    code = details if code is None else code
    return Wanted(
        metrics=names | catalog.signal_names if signals else names,
        instances=catalog.instance_names,
        breakdowns=frozenset(catalog.breakdowns.values()) if signals else frozenset(),
        sections=details,
        rules=details,
        nvtx=details,
        sass="half",
        code=code,
        by_pc=frozenset({f"{STATES}*", *(n for names in by_pc().values() for n in names)} if code else ()),
        series=sampled_names() if code else frozenset(),
    )


MARK = "ncukit__synthetic"
"""Raw string metric that a report written by ncukit itself, not measured, carries."""


def normalise(raw: RawKernel, file: str = "", *, signals: bool = True) -> Kernel:
    """Return ``raw`` in neutral metrics; ``file`` is the report it came from.

    Without ``signals`` a kernel can be shown but not judged: the rules need them.

    >>> counters = {"launch__grid_size": 1, "gpu__time_duration.sum": 2000}
    >>> kernel = normalise(RawKernel(0, "f", "f()", "f", metrics=counters))
    >>> kernel.metrics["kernel_duration"].value, kernel.metrics["kernel_duration"].unit
    (2e-06, 's')
    """
    catalog = load()
    failed = failure(raw)
    values = _Launch(raw, catalog, failed).all_values(signals=signals)
    metrics = {id: values[id] for id in catalog.metrics}
    if not signals:
        return Kernel(file, raw, metrics, failed=failed)
    others = {id: values[id] for id in catalog.signals}
    breakdowns = {} if failed else _breakdowns(raw, catalog.breakdowns)
    return Kernel(file, raw, metrics, others, breakdowns, failed)


NO_OPCODE = ("no opcode was counted", ", though every kernel executes some")
"""An opcode counter that lists nothing and adds up to 0 did not count: it was seen beside 43 million warp
instructions and a busy FMA pipe (CC 12.1, ncu 2026.1).  FLOPs are then unknown; 0 would say it did none."""


class _Launch:
    """One launch while its metrics are computed (an `expression.Launch`)."""

    def __init__(self, origin: RawKernel, catalog: Catalog, failed: str | None) -> None:
        self.catalog, self.failed = catalog, failed
        self.sass = origin.sass
        self.instances = {name: rows for name, rows in origin.instances.items() if rows}
        self.raw: dict[str, RawValue] = {}
        self.values: dict[str, Value] = {}
        bad: list[tuple[str, tuple[str, str]]] = []
        for name, value in origin.metrics.items():
            if value != value:
                bad.append((name, ("not a number", "")))
            elif value == 0 and ".peak_sustained" in name:
                bad.append((name, ("failed pass", ", its peak reads 0")))
            elif value == 0 and name.endswith(PER_OPCODE) and name not in self.instances:
                bad.append((name, NO_OPCODE))
            else:
                self.raw[name] = value
        parts = [self.raw.get(f"device__attribute_compute_capability_{part}") for part in ("major", "minor")]
        major, minor = (int(n) if isinstance(n, int | float) and math.isfinite(n) else None for n in parts)
        self.cc = None if major is None else major * 10 + (minor or 0)
        present = frozenset((*self.raw, *self.instances))
        self.plan = plan(present, tuple(sorted(bad)), self.cc)

    def all_values(self, *, signals: bool) -> Mapping[str, Value]:
        """Return every metric by id, and every signal too where they are asked for."""
        if self.failed:
            for id in (*self.catalog.metrics, *(self.catalog.signals if signals else ())):
                self._value(id)
            return self.values
        groups = (self.plan.metrics, self.plan.signals) if signals else (self.plan.metrics,)
        for group in groups:
            self.values.update(group.unknown)
        for group in groups:
            for recipe in group.open:
                if recipe.metric.id not in self.values:
                    self._compute(recipe)
        return self.values

    def ref(self, id: str) -> Result:
        value = self.values.get(id) or self._value(id)
        if value.value is None:
            raise Missing("@" + id)
        return value.value

    def call(self, function: str, argument: str) -> Number:
        if function == "table":
            row = self.catalog.peaks.get(self.cc or 0, {})
            if not row.get(argument):
                raise Missing(f"no {argument} peak known for this GPU")
            return row[argument]
        if function == "half_ops":
            if self.sass is None:
                raise Missing("no SASS in the report")
            return half_operations(self.rows(THREADS_BY_PC), self.sass)
        opcodes = self.catalog.opcodes
        if function == "tensor_ops":
            return opcodes.tensor_operations(self.rows(OPCODES_FULL), argument)
        return (opcodes.mix if function == "opmix" else opcodes.count)(self.rows(OPCODES), argument)

    def rows(self, name: str) -> tuple[Instance, ...]:
        if not (rows := self.instances.get(name)):  # what ncu prints can hold the total alone
            raise Missing(f"no instances of {name}")
        return rows

    def _value(self, id: str) -> Value:
        """Return the value of metric or signal ``id``, computed once."""
        if (known := self.values.get(id)) is not None:
            return known
        recipe = self.plan.recipe(id)
        return self._failed_value(recipe, self.failed) if self.failed else self._compute(recipe)

    def _failed_value(self, recipe: Recipe, reason: str) -> Value:
        """Return what is left of a metric in a launch that failed: device attributes, launch values."""
        metric = recipe.metric
        if metric.family == "launch" or metric.collected_by == "always":
            return self._compute(recipe)
        value = self.values[metric.id] = unknown(metric, "failed pass", f": {reason}", "failed")
        return value

    def _compute(self, recipe: Recipe) -> Value:
        metric, value = recipe.metric, recipe.unknown
        why: Value | None = None
        for candidate in recipe.candidates:
            try:
                result = candidate.evaluate(self)
            except Missing:
                continue
            except Undefined as error:
                if why is None:
                    over = bare(str(error.args[0]))
                    why = unknown(metric, "undefined", f": {over} is 0", "undefined", over)
                continue
            except (OverflowError, ValueError):  # rounds what is infinite, or infinity less infinity
                why = why or unknown(metric, "not a number", f": {bare(candidate.formula)}", "undefined")
                continue
            doubt, noisy = None, False
            if isinstance(result, str):
                if not recipe.text:
                    continue
            elif not math.isfinite(result):
                why = why or unknown(metric, "not a number", f": {bare(candidate.formula)}", "undefined")
                continue
            elif recipe.hit_rate or not recipe.least <= result <= recipe.most:
                doubt, noisy = self._doubt(recipe, result)
            names, quality = candidate.evidence(self.values) if candidate.refs else candidate.alone
            value = Value(
                metric.id,
                result,
                metric.unit,
                quality,
                names,
                doubt,
                doubt is None,
                candidate.formula,
                noisy=noisy,
            )
            break
        else:
            if why is not None:
                value = why
        self.values[metric.id] = value
        return value

    def _doubt(self, recipe: Recipe, result: Number) -> tuple[str | None, bool]:
        """Return why a value must not be used by a rule, or None, and whether it is only noisy."""
        if result < recipe.least or result > recipe.most:
            low, high = recipe.metric.range or (None, None)
            word, limit = ("below", low) if result < recipe.least else ("above", high)
            return f"unreliable: {word} {limit:g} {recipe.metric.unit}".rstrip(), False
        if recipe.hit_rate:
            duration = self._value("kernel_duration").value
            if isinstance(duration, int | float) and duration < SHORT:
                passes = "unreliable: counters of different passes, and a kernel under"
                return f"{passes} {SHORT * 1e6:.0f} µs", True
        return None, False


def _breakdowns(raw: RawKernel, names: Mapping[str, str]) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return the members of every maximum that the report breaks down, largest first."""
    result: dict[str, tuple[tuple[str, float], ...]] = {}
    for id, name in names.items():
        members = raw.metrics.get(name)
        if isinstance(members, str):
            values = _member_values(raw, _members(members))
            result[id] = tuple(sorted(values, key=lambda item: -item[1]))
    return result


@functools.lru_cache(maxsize=256)
def _members(listed: str) -> tuple[str, ...]:
    return tuple(member.strip() for member in listed.split(","))


def _member_values(raw: RawKernel, members: Iterable[str]) -> Iterable[tuple[str, float]]:
    """Yield the members that have a value; what is no percentage (infinite, far above 100) has none."""
    for member in members:
        value = raw.metrics.get(member)
        if value is None or isinstance(value, str):
            continue
        if -PERCENT_TOLERANCE <= value <= 100 + PERCENT_TOLERANCE:
            yield member, float(value)
