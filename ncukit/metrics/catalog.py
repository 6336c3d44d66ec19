"""The catalog of neutral metrics, and the tables beside it: stall states, tensor cores, products, units."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncukit.errors import NcukitError, UsageError
from ncukit.metrics.evaluation import Opcodes
from ncukit.metrics.expression import (
    STATES,
    Expression,
    compile_expression,
    instanced,
    named,
    needs_every_name,
)
from ncukit.record import dataclass

if TYPE_CHECKING:
    from ncukit.model.kernel import Quality


# ---- Load and validate the catalog

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


# ---- Which category a sampled stall state belongs to

OTHER = "other"


def category(state: str) -> str:
    """Return the stall category of a raw sampling state; one that is not known is "other".

    >>> category("long_scoreboard"), category("unheard_of")
    ('memory_dependency', 'other')
    """
    return _categories().get(state, OTHER)


@functools.cache
def _categories() -> Mapping[str, str]:
    catalog = load()
    found: dict[str, str] = {}
    for name, entry in catalog.stalls.items():
        for neutral, raw in entry["states"].items():
            found[raw] = name
            for source in catalog.metrics[f"stall_samples_{neutral}"].sources:
                for counter in source.expression.raws:
                    if counter.startswith(STATES):
                        found[counter[len(STATES) :]] = name
    return found


# ---- Which types the tensor cores of a compute capability multiply


@dataclass(frozen=True)
class TensorCores:
    """Input types of the tensor cores of ``compute_capability`` (x 10), and where that is from.

    ``note`` is about all of them, ``of_type`` about a type each.
    """

    compute_capability: int
    types: tuple[str, ...]
    source: str
    note: str = ""
    of_type: Mapping[str, str] = field(default_factory=dict)


def tensor_cores(compute_capability: int) -> TensorCores | None:
    """Return what the tensor cores of ``compute_capability`` (x 10) multiply; None where it is not known.

    Capabilities below 7.0 have no tensor cores, which is known.

    >>> "fp8" in tensor_cores(89).types, "fp8" in tensor_cores(80).types, tensor_cores(61).types
    (True, False, ())
    """
    data = json.loads((DATA / "tensor_cores.json").read_text(encoding="utf-8"))
    if compute_capability < 70:
        return TensorCores(compute_capability, (), data["source"], "tensor cores came with 7.0")
    found = data["types"].get(str(compute_capability))
    if found is None:
        return None
    types, notes = tuple(found["types"]), found.get("of_type", {})
    return TensorCores(compute_capability, types, data["source"], found.get("note", ""), notes)


# ---- Products by name: their dense peaks as data sheets state them.  An unknown product stays unknown

_MAKER = re.compile(r"^(?:nvidia|tesla|quadro)-")
_MODEL = re.compile(r"[a-z]{1,2}\d{1,4}s?|\d{4}")
_CUT = {
    "mig": "a MIG slice has only part of the GPU, which no data sheet states",
    "laptop": "a laptop GPU is not the desktop GPU of that name, and its clocks depend on the laptop",
    "max-q": "a Max-Q GPU is not the desktop GPU of that name, and its clocks depend on the laptop",
    "vgpu": "a virtual GPU has only part of the GPU, which no data sheet states",
}
"""Words in a name that say that it is less than the product that it is named after."""


@dataclass(frozen=True)
class Sku:
    """One product: ``peak`` [FLOP/s or OP/s] by precision, dense, and ``dram_bandwidth`` [byte/s], as stated.

    ``reported`` are the names under which the driver shows it, without the maker's.
    """

    id: str
    name: str
    reported: tuple[str, ...]
    compute_capability: int
    form: str
    peak: Mapping[str, float]
    dram_bandwidth: float
    source: str
    note: str = ""


@dataclass(frozen=True)
class Lookup:
    """What a name means: a product, or the reason why not and those that could be meant."""

    name: str
    sku: Sku | None
    reason: str = ""
    candidates: tuple[Sku, ...] = ()
    ambiguous: bool = False
    """The name leaves several products open: one of ``candidates`` is meant."""


@functools.cache
def skus() -> tuple[Sku, ...]:
    """Return every product whose data sheet is known.

    >>> next(sku.peak["tensor_bf16"] for sku in skus() if sku.id == "h100-sxm")
    989400000000000
    """
    rows = json.loads((DATA / "skus.json").read_text(encoding="utf-8"))["skus"]
    return tuple(Sku(**{**row, "reported": tuple(row["reported"])}) for row in rows)


def find_sku(name: str) -> Lookup:
    """Return the product called ``name``: its id ("h100-sxm") or exactly what the driver reports.

    Nothing is guessed: H100 alone may be SXM, PCIe or NVL; MIG slices and laptop GPUs are none of them.

    >>> find_sku("NVIDIA H100 80GB HBM3").sku.id, [sku.id for sku in find_sku("H100").candidates]
    ('h100-sxm', ['h100-sxm', 'h100-pcie', 'h100-nvl'])
    """
    wanted = _slug(name)
    near = tuple(sku for sku in skus() if _models(sku.id) & _models(wanted))
    for word, why in _CUT.items():
        if f"-{word}-" in f"-{wanted}-":
            return Lookup(name, None, why, near)
    for sku in skus():
        if wanted in (sku.id, *map(_slug, sku.reported)):
            return Lookup(name, sku)
    meant = tuple(sku for sku in near if set(wanted.split("-")) <= set(sku.id.split("-")))
    if len(meant) > 1:  # one alone may be the namesake of what is not listed: Quadro RTX 6000, RTX 6000 Ada
        return Lookup(name, None, f"{name} may mean {len(meant)} products", meant, ambiguous=True)
    return Lookup(name, None, f"no data sheet of a product that is called {name} is known", near)


def no_sku(found: Lookup, instead: str) -> UsageError:
    """Return the error that ``found`` is no product; ``instead`` names the options that replace a data sheet.

    >>> no_sku(find_sku("H100"), "--peak").hint
    'one of h100-sxm, h100-pcie, h100-nvl? `ncukit mfu --list` names all; --peak replaces a data sheet'
    """
    plain = {sku.id.replace("-", ""): sku.id for sku in skus()}
    near = [sku.id for sku in found.candidates]
    near = near or [plain[n] for n in get_close_matches(_slug(found.name).replace("-", ""), plain, 3, 0.8)]
    meant = f"{'one of ' if len(near) > 1 else ''}{', '.join(near)}? " if near else ""
    return UsageError(
        f"--gpu {found.name!r}: {found.reason}",
        f"{meant}`ncukit mfu --list` names all; {instead} replaces a data sheet",
    )


def _slug(name: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")
    while slug != (slug := _MAKER.sub("", slug)):
        pass
    return slug


def _models(slug: str) -> set[str]:
    """Return the words that name a model, like h100 or 4090; sizes and slices are none.

    >>> sorted(_models("h100-80gb-hbm3")), sorted(_models("geforce-rtx-4090"))
    (['h100'], ['4090'])
    """
    return {word for word in slug.split("-") if _MODEL.fullmatch(word)}


# ---- The units of a GPU that a launch can fill, and which member of ncu's maxima speaks of which


@dataclass(frozen=True)
class Unit:
    """One unit: what it is called, and from which share of peak [%] it counts as full.

    ``scope`` "device" units are judged against elapsed time, "sm" units against the time an SM had work;
    ``reach`` [%] is what the best kernels get out of it; ``metrics`` are the ids that measure it, best first;
    ``waits`` are the stall states its queue causes.
    """

    id: str
    label: str
    scope: str
    cls: str | None
    limiter: str | None
    full: float
    reach: float
    metrics: tuple[str, ...]
    waits: tuple[str, ...]


@dataclass(frozen=True)
class Member:
    """A family of raw members: the unit, what the member is called, and the factor by which it reads low."""

    pattern: re.Pattern[str]
    unit: str
    name: str
    factor: float
    cc: tuple[tuple[int, int], ...]

    def scale(self, cc: int | None) -> float:
        """Return what a value has to be multiplied with on compute capability ``cc`` (x 10)."""
        hit = cc is not None and any(low <= cc <= high for low, high in self.cc)
        return self.factor if hit else 1.0


@dataclass(frozen=True, eq=False)
class Units:
    """All units, and the table from raw member to unit."""

    units: Mapping[str, Unit]
    members: tuple[Member, ...]
    ignored: re.Pattern[str]

    def member(self, raw: str) -> Member | None:
        """Return what raw member ``raw`` speaks of; None for a queue or mixture that limits nothing itself.

        >>> load_units().member("lts__xbar2lts_cycles_active.avg.pct_of_peak_sustained_elapsed").unit
        'l2'
        """
        return _member(self, raw)


@functools.lru_cache(maxsize=512)
def _member(units: Units, raw: str) -> Member | None:
    if units.ignored.search(raw):
        return None
    return next((member for member in units.members if member.pattern.search(raw)), None)


@functools.cache
def load_units() -> Units:
    """Return the table that ships with ncukit."""
    content = json.loads((DATA / "units.json").read_text(encoding="utf-8"))
    units = {
        id: Unit(id, **{**entry, "metrics": tuple(entry["metrics"]), "waits": tuple(entry["waits"])})
        for id, entry in content["units"].items()
    }
    members = tuple(
        Member(
            re.compile(entry["match"]),
            entry["unit"],
            entry["name"],
            entry.get("factor", 1.0),
            tuple((low, high) for low, high in entry.get("cc", ())),
        )
        for entry in content["members"]
    )
    return Units(units, members, re.compile(content["ignored"]))
