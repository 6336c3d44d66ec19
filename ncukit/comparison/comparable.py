"""Whether a metric means the same on both sides, and what a change must exceed to be one."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ncukit.metrics import load
from ncukit.metrics.catalog import DATA
from ncukit.model import Kernel
from ncukit.model.comparison import Comparable, Sample
from ncukit.record import dataclass

# ---- What a change must exceed to be one: the spread of repeats, else a stated floor

FLOOR, FLOOR_POINTS = 2.0, 1.0
"""[%] and [points] below which one pass each shows no change: two passes of one kernel differ by that."""

SHORT = 10e-6
"""[s] Launches under this have noisy clocks and shares (METRICS, trap 1)."""
SHORT_FLOOR, SHORT_FLOOR_POINTS = 10.0, 5.0
"""The floors of such launches."""

FEW = 5
"""Repeats below this understate the spread: the floor holds as well."""

_SETTLED = frozenset(
    {
        *("compute_capability", "sm_count", "max_warps_per_sm", "memory_bus_width", "l2_cache_size"),
        *("ecc_enabled", "replay_passes", "sm_clock_max", "dram_clock_max"),
    }
)
"""Context that is read, not measured."""
_MEASURED = frozenset({"occupancy_gap_pct"})
"""Launch statistics that contain a measurement."""


def settled(id: str) -> bool:
    """Return whether ``id`` is a setting: any difference is a change."""
    metric = load().metrics[id]
    return id in _SETTLED or (metric.family == "launch" and id not in _MEASURED)


def noise(id: str, base: Sample, other: Sample) -> tuple[float, str]:
    """Return what a change of ``id`` must exceed [% of the base, or points], and where that is from.

    The spread is the whole range of the repeats of one side, relative to its value; the larger side counts.
    """
    if settled(id):
        return 0.0, "a setting, not a measurement"
    points = load().metrics[id].unit == "%"
    floor, words = _floor(base, other, points=points)
    widths = [_width(id, sample, points=points) for sample in (base, other)]
    known = [width for width in widths if width is not None]
    if not known:
        return floor, words
    most = max(base.repeats, other.repeats)
    spread = f"spread of {base.repeats} and {other.repeats} repeats"
    if most >= FEW:
        return max(known), spread
    return max(floor, *known), f"{spread}, at least {words}" if max(known) < floor else spread


def spread_of(kernels: Sequence[Kernel]) -> Mapping[str, tuple[float, float]]:
    """Return the smallest and the largest value of each metric over repeats; nothing for a single launch."""
    if len(kernels) < 2:
        return {}
    found: dict[str, tuple[float, float]] = {}
    for id in kernels[0].metrics:
        values = [n for kernel in kernels if (n := kernel.number(id)) is not None]
        if len(values) > 1:
            found[id] = (min(values), max(values))
    return found


def _width(id: str, sample: Sample, *, points: bool) -> float | None:
    ends = sample.spread.get(id)
    value = sample.kernel.number(id)
    if ends is None or value is None:
        return None
    width = ends[1] - ends[0]
    if points:
        return width
    return 100 * width / abs(value) if value else (0.0 if not width else float("inf"))


def _floor(base: Sample, other: Sample, *, points: bool) -> tuple[float, str]:
    short = any(s.duration is not None and s.duration < SHORT for s in (base, other))
    floor = (SHORT_FLOOR_POINTS if short else FLOOR_POINTS) if points else SHORT_FLOOR if short else FLOOR
    unit = "points" if points else "%"
    why = ", as launches under 10 µs are noisy" if short else ""
    return floor, f"a floor of {floor:g} {unit}{why}"


# ---- Whether a metric means the same on both sides, by the rules of ``metrics/data/comparable.json``

SAME_GPU = "the same GPU"
OTHER_GPU = "another GPU"
MAYBE_OTHER_GPU = "what may be another GPU"


@dataclass(frozen=True)
class Judged:
    """How one metric of two launches compares, why, and the metric that is its peak ("" for none)."""

    comparable: Comparable
    why: str = ""
    peak: str = ""


@dataclass(frozen=True)
class Sides:
    """The two launches whose metrics are judged."""

    base: Kernel
    other: Kernel

    @functools.cached_property
    def capabilities(self) -> tuple[int | None, int | None]:
        """Compute capabilities times ten."""
        return _capability(self.base), _capability(self.other)

    @property
    def same_architecture(self) -> bool:
        """Whether both GPUs have the same, known compute capability."""
        base, other = self.capabilities
        return base is not None and base == other

    @property
    def same_gpu(self) -> bool:
        """Whether both launches ran on the same kind of GPU."""
        return (
            self.same_architecture
            and self.base.gpu == self.other.gpu
            and self.base.number("sm_count") == self.other.number("sm_count")
        )

    @property
    def elsewhere(self) -> str:
        """Where the other launch ran, in words: a report may not name its GPU."""
        if self.same_gpu:
            return SAME_GPU
        sms = {self.base.number("sm_count"), self.other.number("sm_count")}
        named = self.base.gpu and self.other.gpu
        surely = named or (None not in self.capabilities and not self.same_architecture)
        return OTHER_GPU if surely or (len(sms) == 2 and None not in sms) else MAYBE_OTHER_GPU

    def differ(self, between: str) -> bool:
        """Return whether the sides differ as a rule asks: between any two, GPUs, or architectures."""
        return {
            "any": True,
            "gpus": not self.same_gpu,
            "architectures": not self.same_architecture,
        }[between]


def judge(id: str, sides: Sides) -> Judged:
    """Return how metric ``id`` of ``sides`` compares: the first rule that holds, else the same meaning."""
    for rule in _rules(id):
        if not sides.differ(rule["between"]) or not _split(rule, sides):
            continue
        found = _condition(rule, id, sides)
        if found is not None:
            why = rule["why"]
            for name, text in found.items():
                why = why.replace(f"{{{name}}}", text)
            return Judged(rule["as"], why, rule.get("of", "").replace("{self}", id))
    return Judged("same")


def reading_of(id: str) -> tuple[str, str]:
    """Return why a change of ``id`` is neither good nor bad (else ""), and what must be the same first."""
    data = _data()
    why = next((why for pattern, why in data["no_reading"].items() if fnmatchcase(id, pattern)), "")
    same = next((same for pattern, same in data["reading_if_same"].items() if fnmatchcase(id, pattern)), "")
    return why, same


def class_words(comparable: Comparable) -> str:
    """Return a class in words.

    >>> class_words("share")
    'comparable as a share of its own peak'
    """
    words: str = _data()["classes"][comparable]
    return words


@functools.cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads((DATA / "comparable.json").read_text(encoding="utf-8"))
    return data


@functools.lru_cache(maxsize=1024)
def _rules(id: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(rule for rule in _data()["rules"] if any(fnmatchcase(id, p) for p in rule["metrics"]))


def _split(rule: Mapping[str, Any], sides: Sides) -> bool:
    """Return whether exactly one of the sides is in the rule's set of capabilities; True without a set."""
    if "split" not in rule:
        return True
    base, other = (cc in rule["split"] for cc in sides.capabilities)
    return base != other


def _condition(rule: Mapping[str, Any], id: str, sides: Sides) -> dict[str, str] | None:
    """Return what the rule's sentence needs, where its condition holds; else None."""
    match rule.get("when"):
        case "members-differ":
            return _members(id, sides)
        case "members-unknown":
            known = id in sides.base.breakdowns and id in sides.other.breakdowns
            return None if known else {}
        case "sources-differ":
            base, other = (kernel.metrics[id] for kernel in (sides.base, sides.other))
            return {} if base.known and other.known and base.quality != other.quality else None
        case "one-uses":
            return _used_by_one(rule["ids"], sides)
        case _:
            limits = (sides.base.number("max_warps_per_sm"), sides.other.number("max_warps_per_sm"))
            return {"warps": " and ".join("unknown" if n is None else f"{n:.0f}" for n in limits)}


def _members(id: str, sides: Sides) -> dict[str, str] | None:
    base, other = (
        {name for name, _ in kernel.breakdowns.get(id, ())} for kernel in (sides.base, sides.other)
    )
    if not base or not other or base == other:
        return None
    words = [
        f"{len(names)} only in the {side} (such as `{min(names)}`)"
        for side, names in (("base", base - other), ("other", other - base))
        if names
    ]
    return {"members": ", ".join(words)}


def _used_by_one(ids: list[str], sides: Sides) -> dict[str, str] | None:
    for id in ids:
        base, other = bool(sides.base.number(id)), bool(sides.other.number(id))
        if base != other:
            return {"used": f"`{id}`, the {'base' if base else 'other'} alone"}
    return None


def _capability(kernel: Kernel) -> int | None:
    cc = kernel.number("compute_capability")
    return None if cc is None else int(cc)
