"""One number on the page: its short text, its state, and the evidence that its tooltip shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ncukit import quantity
from ncukit.metrics import Metric, load
from ncukit.model import Kernel, Quality, Value
from ncukit.render.words import named

Cell = dict[str, Any]
"""``text``, ``state`` (exact, derived, estimate, missing, absent, flagged), ``tip``; if flagged, ``mark``."""

CAPACITIES = frozenset({"l2_cache_size", "shared_mem_config", "stack_size"})
_TEXTS = {"ecc_enabled": {0: "off", 1: "on"}}
_BARE = re.compile(r"\{[^{}]+\}")
_EMPTY = (
    ("request", "no requests"),
    ("lookup", "no lookups"),
    ("sector", "no sectors"),
    ("wavefront", "no wavefronts"),
    ("branch", "no branches"),
    ("bytes", "no bytes"),
    ("inst", "no instructions"),
)
"""What a ratio over nothing lacks, by a part of its denominator's name."""
_OVER = {
    "branch_efficiency_pct": ("divergent_branches", "no branches"),
    "l1_hit_rate_pct": ("l1_sectors", "no lookups"),
    "l1_global_load_hit_rate_pct": ("global_load_sectors", "no global loads"),
    "shared_bank_conflict_pct": ("shared_wavefronts", "no wavefronts"),
}
"""Ratios that ncu reports as 0 when there was nothing to divide by: what is then 0 too, and the words."""


class Tips:
    """The evidence of every number of a page, each text once: raw names, formulas, meanings, reasons."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._words: dict[str, int] = {"": 0}
        self._catalog: dict[str, list[Any]] = {}
        self._kernels: dict[str, dict[str, list[Any]]] = {}

    def metric(self, launch: int, kernel: Kernel, value: Value) -> str:
        """Register the evidence of ``value`` and return its key."""
        key = value.id
        if key not in self._catalog:
            entry = load().metrics.get(key) or load().signals.get(key)
            self._catalog[key] = [key, 0, 0, 0, 1] if entry is None else self._entry(entry)
        raw = [part for name in value.sources for part in (self._name(name), raw_text(kernel, name))]
        formula = value.formula or ""
        if _BARE.fullmatch(formula):
            formula = ""
        return self._add(
            launch,
            key,
            quantity.full(value.value, value.unit) if value.known else "",
            value.quality or "",
            formula.replace("{", "").replace("}", ""),
            raw,
            named(value.reason or ""),
        )

    def computed(
        self,
        launch: int,
        key: str,
        value: str,
        quality: str,
        meaning: str,
        formula: str,
        sources: Sequence[tuple[str, str]] = (),
    ) -> str:
        """Register a number that the page itself computed, from neutral metrics, and return its key."""
        if key not in self._catalog:
            self._catalog[key] = [meaning, 0, 0, 0, 0]
        raw = [part for name, text in sources for part in (self._name(name), text)]
        return self._add(launch, key, value, quality, formula, raw, "")

    def as_dict(self) -> dict[str, Any]:
        """Return the island that the page's script reads."""
        return {
            "names": list(self._names),
            "words": list(self._words),
            "cat": self._catalog,
            "k": self._kernels,
        }

    def _entry(self, metric: Metric) -> list[Any]:
        how = metric.collected_by if metric.collected_by != "always" else ""
        return [metric.meaning, self._word(how), self._word(metric.note), self._word(metric.command), 1]

    def _add(
        self, launch: int, key: str, value: str, quality: str, formula: str, raw: list[Any], reason: str
    ) -> str:
        entry: list[Any] = [value, self._word(quality), self._word(formula), raw, self._word(reason)]
        while entry and not entry[-1]:
            entry.pop()
        self._kernels.setdefault(str(launch), {})[key] = entry
        return f"{launch}/{key}"

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _word(self, word: str) -> int:
        return self._words.setdefault(word, len(self._words))


class Cells:
    """Makes the cells of one launch; ``cells["dram_bytes"]`` is the number of that metric."""

    def __init__(self, kernel: Kernel, tips: Tips) -> None:
        self.kernel = kernel
        self.tips = tips
        self.launch = kernel.index + 1

    def __getitem__(self, id: str) -> Cell:
        return self.of(self.value(id))

    def value(self, id: str) -> Value:
        """Return metric or signal ``id``; one that nobody computed is unknown."""
        found = self.kernel.metrics.get(id) or self.kernel.signals.get(id)
        return found if found is not None else Value(id, None, "", reason="not collected")

    def number(self, id: str) -> float | None:
        """Return metric ``id`` as a number that may be used, else None."""
        return self.kernel.number(id)

    def of(self, value: Value) -> Cell:
        """Return the cell of ``value``, with its tooltip; a ratio over nothing says so instead of 0."""
        if value.value == 0 and value.id in _OVER:
            over, words = _OVER[value.id]
            if self.value(over).value == 0:
                tip = self.tips.metric(self.launch, self.kernel, value)
                return {"text": words, "state": "missing", "tip": tip}
        cell: Cell = {
            "text": text(value),
            "state": state(value),
            "tip": self.tips.metric(self.launch, self.kernel, value),
        }
        if cell["state"] == "flagged":
            cell["mark"] = mark(value)
        return cell

    def computed(
        self,
        key: str,
        value: quantity.Number | None,
        unit: str,
        *,
        meaning: str,
        formula: str,
        sources: Sequence[str] = (),
        raw: Sequence[str] = (),
        quality: Quality = "derived",
        short: str = "",
    ) -> Cell:
        """Return a cell that the page computed from neutral metrics ``sources`` or raw counters ``raw``."""
        used = [(id, quantity.full(self.value(id).value, self.value(id).unit)) for id in sources]
        used += [(name, raw_text(self.kernel, name)) for name in raw]
        tip = self.tips.computed(
            self.launch, key, quantity.full(value, unit), quality, meaning, formula, used
        )
        return {"text": short or quantity.short(value, unit), "state": quality, "tip": tip}


def raw_text(kernel: Kernel, name: str) -> str:
    """Return the full value of one raw counter of the report; of an instanced one, how many instances."""
    if (value := kernel.raw.metrics.get(name)) is not None:
        return quantity.full(value, kernel.raw.units.get(name, ""))
    rows = kernel.raw.instances.get(name)
    return "" if rows is None else f"{len(rows):,} instances"


def text(value: Value) -> str:
    """Return what stands in the place of the number."""
    if not value.known:
        if value.status == "undefined":
            return next((words for part, words in _EMPTY if part in value.over), value.short or "undefined")
        return quantity.MISSING if value.status == "absent" else value.brief
    if value.id in _TEXTS and isinstance(value.value, int | float):
        return _TEXTS[value.id].get(int(value.value), str(value.value))
    return quantity.short(value.value, value.unit, capacity=value.id in CAPACITIES)


def state(value: Value) -> str:
    """Return how sure the number is: exact, derived, estimate, flagged, missing, or absent on this GPU."""
    if not value.known:
        return "absent" if value.status == "absent" else "missing"
    return (value.quality or "exact") if value.reliable else "flagged"


def mark(value: Value) -> str:
    """Return the word beside a number that no rule may use."""
    return "noisy" if value.noisy else "unreliable"


def plain(text: str) -> Cell:
    """Return a cell without evidence: a number that is not a metric."""
    return {"text": text, "state": "plain", "tip": ""}
