"""Load and validate the catalog."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncukit.catalog.expression import Expression, compile_expression, instanced, named, needs_every_name
from ncukit.catalog.opcodes import Opcodes
from ncukit.errors import NcukitError
from ncukit.record import dataclass

if TYPE_CHECKING:
    from ncukit.model.value import Quality

DATA = Path(__file__).resolve().parent / "data"
FAMILIES = ("context", "speed_of_light", "memory", "scheduler", "launch", "source", "roofline")
_UNITS = """
s hz cycle inst inst/s inst/cycle % ratio bool byte byte/s byte/block byte/sector bit SM block thread warp
wave request sector sector/request wavefront conflict branch sample register register/thread pass FLOP OP
FLOP/s OP/s FLOP/byte inst/byte
"""
UNITS = frozenset(_UNITS.split()) | {""}


@dataclass(frozen=True)
class Source:
    """One way to compute a metric; ``cc`` is the inclusive range of capabilities (x 10) it holds for."""

    expr: str
    quality: Quality = "exact"
    cc: tuple[int, int] | None = None
    note: str = ""
    collected_by: str = ""

    @functools.cached_property
    def expression(self) -> Expression:
        """The compiled expression."""
        return compile_expression(self.expr)

    def may_hold(self, present: frozenset[str]) -> bool:
        """Return False where a raw metric that it needs is not ``present``, told without compiling it."""
        return not needs_every_name(self.expr) or present.issuperset(named(self.expr))

    def valid_on(self, cc: int | None) -> bool:
        """Return whether the raw names mean this on compute capability ``cc`` (x 10; None is unknown)."""
        return self.cc is None or (cc is not None and self.cc[0] <= cc <= self.cc[1])


@dataclass(frozen=True)
class Metric:
    """One neutral metric: what it means, in which unit, and where it comes from."""

    id: str
    family: str
    unit: str
    meaning: str
    direction: str
    range: tuple[float | None, float | None] | None
    kind: str
    sources: tuple[Source, ...]
    collected_by: str
    sections: tuple[str, ...]
    absent: str
    absent_on: tuple[tuple[int, int], ...]
    note: str

    def not_on(self, cc: int | None) -> bool:
        """Return whether GPUs of compute capability ``cc`` (x 10) are known not to have it."""
        return cc is not None and any(low <= cc <= high for low, high in self.absent_on)

    @property
    def command(self) -> str:
        """The ncu options that collect it; empty when it is always there."""
        return " ".join(f"--section {section}" for section in self.sections)


@dataclass(frozen=True)
class Catalog:
    """All metrics in order, the signals that only rules use, opcode classes, peaks and the stall taxonomy."""

    metrics: Mapping[str, Metric]
    signals: Mapping[str, Metric]
    breakdowns: Mapping[str, str]
    opcodes: Opcodes
    peaks: Mapping[int, Mapping[str, float]]
    peak_grounds: Mapping[int, str]
    stalls: Mapping[str, Mapping[str, Any]]

    @functools.cached_property
    def raw_names(self) -> frozenset[str]:
        """Every raw metric that some source of a metric reads."""
        return frozenset(named(_text(self.metrics)))

    @functools.cached_property
    def signal_names(self) -> frozenset[str]:
        """Every raw metric that some source of a signal reads."""
        return frozenset(named(_text(self.signals)))

    @functools.cached_property
    def instance_names(self) -> frozenset[str]:
        """Every raw metric whose instances some source reads."""
        return frozenset(instanced(_text({**self.metrics, **self.signals})))


def _text(metrics: Mapping[str, Metric]) -> str:
    """Return all expressions of ``metrics``, to be searched at once."""
    return "\n".join(source.expr for metric in metrics.values() for source in metric.sources)


@functools.cache
def load() -> Catalog:
    """Return the catalog that ships with ncukit.

    Raises:
        NcukitError: a data file breaks a rule of the format (a damaged installation).

    >>> load().metrics["dram_bytes"].unit
    'byte'
    """
    metrics = {m.id: m for family in FAMILIES for m in _family(family)}
    signals = {m.id: m for m in _family("signals")} if (DATA / "signals.json").exists() else {}
    opcodes = _read("opcodes")
    peaks = _read("peaks")
    catalog = Catalog(
        metrics,
        signals,
        _read("breakdowns"),
        Opcodes(
            tuple((name, pattern) for name, pattern in opcodes["classes"]),
            frozenset(opcodes["tensor"]["opcodes"]),
            {name: (m, n, k) for name, (m, n, k) in opcodes["tensor"]["shapes"].items()},
        ),
        {int(cc): row for cc, row in peaks["flop_per_cycle_per_sm"].items()},
        {int(cc): text for cc, text in peaks["ground"].items()},
        _read("stalls"),
    )
    return catalog


def validate(catalog: Catalog) -> list[str]:
    """Return what is wrong with ``catalog``: units, references, conditions, ranges; empty when sound."""
    faults: list[str] = []
    everything = {**catalog.metrics, **catalog.signals}
    for metric in everything.values():
        if metric.unit not in UNITS:
            faults.append(f"{metric.id}: unknown unit {metric.unit!r}")
        if not metric.sources:
            faults.append(f"{metric.id}: no source")
        for source in metric.sources:
            try:
                references = source.expression.refs
            except ValueError as error:
                faults.append(f"{metric.id}: {error}")
                continue
            faults += [
                f"{metric.id}: unknown reference @{ref}" for ref in references if ref not in everything
            ]
            if source.quality not in ("exact", "derived", "estimate"):
                faults.append(f"{metric.id}: unknown quality {source.quality!r}")
    faults += [f"breakdowns: unknown metric {id}" for id in catalog.breakdowns if id not in everything]
    return faults


def _read(name: str) -> Any:
    try:
        return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NcukitError(f"cannot read the catalog file {name}.json: {error}", "reinstall ncukit") from error


def _family(name: str) -> list[Metric]:
    content = _read(name)
    return [_metric(content["family"], entry) for entry in content["metrics"]]


def _metric(family: str, entry: dict[str, Any]) -> Metric:
    bounds = entry.get("range")
    return Metric(
        id=entry["id"],
        family=family,
        unit=entry["unit"],
        meaning=entry["meaning"],
        direction=entry.get("direction", "neutral"),
        range=None if bounds is None else (bounds[0], bounds[1]),
        kind=entry.get("kind", "number"),
        sources=tuple(_source(source) for source in entry["sources"]),
        collected_by=entry["collected_by"],
        sections=tuple(entry.get("sections", ())),
        absent=entry.get("absent", ""),
        absent_on=tuple((low, high) for low, high in entry.get("absent_on", ())),
        note=entry.get("note", ""),
    )


def _source(entry: dict[str, Any]) -> Source:
    cc = entry.get("cc")
    return Source(
        entry["expr"],
        entry.get("quality", "exact"),
        None if cc is None else (cc[0] if cc[0] is not None else 0, cc[1] if cc[1] is not None else 999),
        entry.get("note", ""),
        entry.get("collected_by", ""),
    )
