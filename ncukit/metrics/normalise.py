"""Translate one launch from native counters to neutral metrics, by a plan made once a report."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping

from ncukit.metrics import Catalog, Metric, Source, load
from ncukit.metrics.evaluation import Missing, Number, Result, Undefined, half_operations
from ncukit.metrics.expression import OPCODES, OPCODES_FULL, STATES, THREADS_BY_PC, by_pc, sampled_names
from ncukit.model import Instance, Kernel, Quality, RawKernel, RawValue, Value, Wanted
from ncukit.model.kernel import Lack
from ncukit.record import dataclass
from ncukit.report.reader import failure

# ---- How every metric is computed from the raw metrics of a report: made once, used by all its launches

PERCENT_TOLERANCE = 1.0
"""[points] by which a percentage may leave its range before it is flagged."""

_MARKS = re.compile(r"[{}@]")
_RANK: dict[Quality, int] = {"exact": 0, "derived": 1, "estimate": 2}


class Candidate:
    """A source whose raw operands are all in the report."""

    def __init__(self, source: Source, names: tuple[str, ...]) -> None:
        self.evaluate, self.refs = source.expression.evaluate, source.expression.refs
        self.formula = source.expr
        self.alone: tuple[tuple[str, ...], Quality] = names, source.quality
        self._evidence: dict[tuple[object, ...], tuple[tuple[str, ...], Quality]] = {}

    def evidence(self, values: Mapping[str, Value]) -> tuple[tuple[str, ...], Quality]:
        """Return raw names and quality of what was computed from ``values`` of its references too.

        Tuples of names belong to the plan, as this does: their identity will do to find what was made before.
        """
        references = [values[ref] for ref in self.refs]
        key = (*[id(value.sources) for value in references], *[value.quality for value in references])
        found = self._evidence.get(key)
        if found is None:
            names, quality = self.alone
            names = (*names, *(name for value in references for name in value.sources))
            known = (value.quality for value in references if value.quality)
            quality = max((quality, *known), key=_RANK.__getitem__)
            found = self._evidence[key] = tuple(dict.fromkeys(names)), quality
        return found


class Recipe:
    """How one metric is computed from what a report holds, and what is said where that fails."""

    def __init__(self, metric: Metric, candidates: tuple[Candidate, ...], unknown: Value) -> None:
        self.metric, self.candidates, self.unknown = metric, candidates, unknown
        self.text = metric.kind == "string"
        low, high = metric.range or (None, None)
        slack = PERCENT_TOLERANCE if metric.unit == "%" else 0
        self.least = -math.inf if low is None else low - slack
        self.most = math.inf if high is None else high + slack
        self.hit_rate = metric.range is not None and metric.id.endswith("hit_rate_pct")


@dataclass(frozen=True)
class Group:
    """Metrics that may have a value, and what is said of those that have none."""

    open: tuple[Recipe, ...]
    unknown: Mapping[str, Value]


class Plan:
    """How every metric is computed from the raw metrics ``present``; ``bad`` are those without a value."""

    def __init__(
        self, present: frozenset[str], bad: tuple[tuple[str, tuple[str, str]], ...], cc: int | None
    ) -> None:
        self._present, self._bad, self._cc = present, dict(bad), cc
        self._catalog = load()
        self._recipes: dict[str, Recipe] = {}

    @functools.cached_property
    def metrics(self) -> Group:
        """The metrics of the catalog."""
        return self._group(self._catalog.metrics)

    @functools.cached_property
    def signals(self) -> Group:
        """The signals of the catalog."""
        return self._group(self._catalog.signals)

    def recipe(self, id: str) -> Recipe:
        """Return how metric or signal ``id`` is computed."""
        found = self._recipes.get(id)
        if found is None:
            found = self._recipes[id] = self._made(self._catalog.metrics.get(id) or self._catalog.signals[id])
        return found

    def _may_hold(self, raws: Iterable[str], references: Iterable[str]) -> bool:
        """Return whether these raw metrics are there and all ``references`` may have a value."""
        return self._present.issuperset(raws) and all(self.recipe(id).candidates for id in references)

    def _group(self, ids: Iterable[str]) -> Group:
        recipes = [self.recipe(id) for id in ids]
        unknown = {recipe.metric.id: recipe.unknown for recipe in recipes if not recipe.candidates}
        return Group(tuple(recipe for recipe in recipes if recipe.candidates), unknown)

    def _made(self, metric: Metric) -> Recipe:
        present, cc = self._present, self._cc
        valid = [source for source in metric.sources if source.valid_on(cc)]
        candidates: list[Candidate] = []
        for source in valid:
            if not source.may_hold(present):
                continue
            e = source.expression
            if (
                present.issuperset(e.instanced)
                and self._may_hold(e.raws, e.needs)
                and all(any(self._may_hold(*term) for term in choice) for choice in e.choices)
            ):
                tables = (f"table: {argument}" for function, argument in e.calls if function == "table")
                used = (name for name in e.optional if name in present)
                names = tuple(dict.fromkeys((*e.raws, *used, *e.instanced, *tables)))
                candidates.append(Candidate(source, names))
        return Recipe(metric, tuple(candidates), _unknown(metric, valid, self._bad, cc))


plan = functools.lru_cache(maxsize=64)(Plan)
"""Launches of one report mostly hold the same metrics: their plan is made once."""


def unknown(metric: Metric, short: str, more: str = "", lack: Lack = "missing", over: str = "") -> Value:
    """Return the value of a metric that has none: why in short, and the particulars that follow it."""
    return Value(metric.id, None, metric.unit, reason=f"{short}{more}", lack=lack, short=short, over=over)


def bare(expression: str) -> str:
    """Return an expression of the catalog without the marks of its language."""
    return _MARKS.sub("", expression)


def _unknown(
    metric: Metric, valid: list[Source], bad: Mapping[str, tuple[str, str]], cc: int | None
) -> Value:
    for source in valid if bad else ():
        for name in (*source.expression.raws, *source.expression.instanced):
            if name in bad:
                short, more = bad[name]
                return unknown(metric, short, f"{more}: {name}", "failed")
    if cc is not None and (metric.not_on(cc) or not valid):
        absent = f"; absent: {metric.absent}" if metric.absent else ""
        return unknown(metric, "not on this GPU", f" (CC {cc / 10:.1f}){absent}", "absent")
    if metric.collected_by != "always":
        return unknown(metric, "not collected", f": section {metric.collected_by}")
    return unknown(metric, "not in the report")


# ---- Translate one launch from native counters to neutral metrics
# Presence decides which source of a metric wins: the first whose every operand is in the report, that is
# valid on this compute capability and whose result is finite. What no source gives is unknown, with the
# reason.

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
