"""Translate one launch from native counters to neutral metrics.

Presence decides which source of a metric wins: the first whose every operand is in the report, that is valid
on this compute capability and whose result is finite.  What no source gives is unknown, with the reason.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping

from ncukit.catalog import Catalog, Metric, Source, load
from ncukit.catalog.expression import OPCODES, OPCODES_FULL, THREADS_BY_PC, Missing, Number, Result, Undefined
from ncukit.catalog.opcodes import half_operations
from ncukit.model import Instance, Kernel, Quality, RawKernel, RawValue, Value, Wanted

SHORT = 20e-6
"""[s] Ratios of counters from different replay passes are not reliable below this duration."""

PERCENT_TOLERANCE = 1.0
"""[points] by which a percentage may leave its range before it is flagged."""

_RANK: dict[Quality, int] = {"exact": 0, "derived": 1, "estimate": 2}


def wanted(*, rules: bool = False, details: bool = False) -> Wanted:
    """Return what `normalise` needs of a report; ``rules`` and ``details`` add what only a page shows."""
    catalog = load()
    return Wanted(
        metrics=catalog.raw_names | {MARK},
        instances=catalog.instance_names,
        breakdowns=frozenset(catalog.breakdowns.values()),
        sections=details,
        rules=rules,
        nvtx=details,
        sass="half",
    )


MARK = "ncukit__synthetic"
"""Raw string metric that a report written by ncukit itself, not measured, carries."""


def normalise(raw: RawKernel, file: str = "") -> Kernel:
    """Return ``raw`` in neutral metrics; ``file`` is the report it came from.

    >>> kernel = normalise(RawKernel(0, "f", "f()", "f", metrics={"gpu__time_duration.sum": 2000}))
    >>> kernel.metrics["kernel_duration"].value, kernel.metrics["kernel_duration"].unit
    (2e-06, 's')
    """
    catalog = load()
    failed = failure(raw)
    launch = _Launch(raw, catalog, failed)
    metrics = {id: launch.value(metric) for id, metric in catalog.metrics.items()}
    signals = {id: launch.value(metric) for id, metric in catalog.signals.items()}
    breakdowns = {} if failed else _breakdowns(raw, catalog.breakdowns)
    return Kernel(file, raw, metrics, signals, breakdowns, failed)


def failure(raw: RawKernel) -> str | None:
    """Return why ``raw`` holds no valid measurement, or None for a good launch.

    ncu writes a result even when the kernel could not be run again: without a launch configuration, or with
    zero replay passes (the counters are then copies of an earlier launch), or with NaN for what was asked.
    """
    metrics = raw.metrics
    if raw.workload != "kernel":
        return None
    grid = metrics.get("launch__grid_size", 0 if raw.origin == "report" else None)
    if grid == 0:
        return "the launch failed under the profiler: no launch configuration was recorded"
    if metrics.get("profiler__replayer_passes") == 0:
        return "the launch was not profiled: zero replay passes (its counters belong to another launch)"
    if _is_nan(metrics.get("gpu__time_duration.sum")):
        return "the profiling pass failed: the duration is not a number"
    return None


class _Launch:
    """One launch while its metrics are computed (an `expression.Launch`)."""

    def __init__(self, origin: RawKernel, catalog: Catalog, failed: str | None) -> None:
        self.catalog, self.failed = catalog, failed
        self.sass = origin.sass
        self.instances = origin.instances
        self.raw: dict[str, RawValue] = {}
        self.values: dict[str, Value] = {}
        bad: list[tuple[str, str]] = []
        for name, value in origin.metrics.items():
            if value != value:
                bad.append((name, "not a number"))
            elif value == 0 and ".peak_sustained" in name:
                bad.append((name, "failed pass, its peak reads 0"))
            else:
                self.raw[name] = value
        major = self.raw.get("device__attribute_compute_capability_major")
        minor = self.raw.get("device__attribute_compute_capability_minor", 0)
        self.cc = int(major) * 10 + int(minor) if isinstance(major, int | float) else None
        present = frozenset((*self.raw, *self.instances))
        self.plan = _plan(present, tuple(sorted(bad)), self.cc)

    def ref(self, id: str) -> Result:
        value = self.values.get(id) or self.value(self.catalog.metrics.get(id) or self.catalog.signals[id])
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

    def value(self, metric: Metric) -> Value:
        """Return the value of ``metric``, computed once."""
        known = self.values.get(metric.id)
        if known is None:
            known = self.values[metric.id] = self._compute(metric)
        return known

    def _compute(self, metric: Metric) -> Value:
        if self.failed and not _survives(metric):
            return _unknown(metric, f"failed pass: {self.failed}")
        candidates, unknown = self.plan[metric.id]
        undefined = ""
        for source, names in candidates:
            try:
                result = source.expression.evaluate(self)
            except Missing:
                continue
            except (Undefined, OverflowError) as error:
                undefined = undefined or str(error.args[0])
                continue
            if isinstance(result, str):
                if metric.kind == "string":
                    return self._known(metric, source, names, result)
            elif math.isfinite(result):
                return self._known(metric, source, names, result)
        return _unknown(metric, f"undefined: {undefined} is 0") if undefined else unknown

    def _known(self, metric: Metric, source: Source, names: tuple[str, ...], result: Result) -> Value:
        quality = source.quality
        if refs := source.expression.refs:
            references = [self.values[id] for id in refs]
            names = tuple(dict.fromkeys((*names, *(name for value in references for name in value.sources))))
            quality = max((quality, *(v.quality for v in references if v.quality)), key=_RANK.__getitem__)
        doubt = self._doubt(metric, result)
        return Value(metric.id, result, metric.unit, quality, names, doubt, doubt is None, source.expr)

    def _doubt(self, metric: Metric, result: Result) -> str | None:
        """Return why a value must not be used by a rule, or None."""
        if metric.range is None or isinstance(result, str):
            return None
        low, high = metric.range
        slack = PERCENT_TOLERANCE if metric.unit == "%" else 0
        if low is not None and result < low - slack:
            return f"unreliable: below {low:g} {metric.unit}".rstrip()
        if high is not None and result > high + slack:
            return f"unreliable: above {high:g} {metric.unit}".rstrip()
        if metric.id.endswith("hit_rate_pct"):
            duration = self.value(self.catalog.metrics["kernel_duration"]).value
            if isinstance(duration, int | float) and duration < SHORT:
                return f"unreliable: counters of different passes, and a kernel under {SHORT * 1e6:.0f} µs"
        return None


Candidates = tuple[tuple[Source, tuple[str, ...]], ...]


def _survives(metric: Metric) -> bool:
    """Return whether a metric stays true when the measurement failed: device attributes, launch values."""
    return metric.family == "launch" or metric.collected_by == "always"


@functools.lru_cache(maxsize=64)
def _plan(
    present: frozenset[str], bad: tuple[tuple[str, str], ...], cc: int | None
) -> dict[str, tuple[Candidates, Value]]:
    """Return, per metric, the sources whose raw operands are all present, and what to say if none works.

    Launches of one report mostly hold the same metrics, so this is computed once for all of them.
    """
    catalog = load()
    plan: dict[str, tuple[Candidates, Value]] = {}
    for metric in (*catalog.metrics.values(), *catalog.signals.values()):
        valid = [source for source in metric.sources if source.valid_on(cc)]
        candidates: list[tuple[Source, tuple[str, ...]]] = []
        for source in valid:
            e = source.expression
            if present.issuperset(e.raws) and present.issuperset(e.instanced):
                tables = (f"table: {argument}" for function, argument in e.calls if function == "table")
                used = (name for name in e.optional if name in present)
                candidates.append((source, tuple(dict.fromkeys((*e.raws, *used, *e.instanced, *tables)))))
        plan[metric.id] = (tuple(candidates), _unknown(metric, _reason(metric, valid, dict(bad), cc)))
    return plan


def _unknown(metric: Metric, reason: str) -> Value:
    return Value(metric.id, None, metric.unit, reason=reason)


def _reason(metric: Metric, valid: list[Source], bad: Mapping[str, str], cc: int | None) -> str:
    for source in valid:
        for name in source.expression.raws:
            if name in bad:
                return f"{bad[name]}: {name}"
    if cc is not None and (metric.not_on(cc) or not valid):
        return f"not on this GPU (CC {cc / 10:.1f})" + (
            f": absent on {metric.absent}" if metric.absent else ""
        )
    if metric.collected_by != "always":
        return f"not collected: section {metric.collected_by}"
    return "not in the report"


def _is_nan(value: RawValue | None) -> bool:
    return isinstance(value, float) and value != value


def _breakdowns(raw: RawKernel, names: Mapping[str, str]) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return the members of every maximum that the report breaks down, largest first."""
    result: dict[str, tuple[tuple[str, float], ...]] = {}
    for id, name in names.items():
        members = raw.metrics.get(name)
        if isinstance(members, str):
            values = _member_values(raw, (member.strip() for member in members.split(",")))
            result[id] = tuple(sorted(values, key=lambda item: -item[1]))
    return result


def _member_values(raw: RawKernel, members: Iterable[str]) -> Iterable[tuple[str, float]]:
    for member in members:
        value = raw.metrics.get(member)
        if isinstance(value, int | float) and not _is_nan(value):
            yield member, float(value)
