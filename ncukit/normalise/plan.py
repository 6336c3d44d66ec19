"""How every metric is computed from the raw metrics of a report: made once, used by all its launches."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping

from ncukit.catalog import Metric, Source, load
from ncukit.model import Quality, Value
from ncukit.model.value import Lack
from ncukit.record import dataclass

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
