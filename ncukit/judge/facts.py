"""What steps and rules ask of one launch, and what a step answers."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from ncukit.judge.shares import Waits, measure, waits
from ncukit.metrics.expression import Sampled, sampled, sampled_counter
from ncukit.model import Kernel
from ncukit.model.diagnosis import Confidence
from ncukit.model.kernel import Series
from ncukit.model.shares import Share, Shares
from ncukit.record import dataclass

if TYPE_CHECKING:
    from ncukit.model.source import HotLine, SourceView


# ---- What a step of the elimination answers

PARTS = ("l1", "lsu-issue")
"""Limiters of which only a maximum may be known."""


@dataclass(frozen=True)
class Call:
    """Class and limiter, and the entry of ``data/verdicts.toml`` that words and evidences them.

    ``share`` is the limiting unit, ``others`` the units beside it (balanced); ``cap`` is the most that can be
    trusted; ``words`` fill placeholders of the entry.
    """

    cls: str
    limiter: str | None
    entry: str
    share: Share | None = None
    others: tuple[Share, ...] = ()
    cap: Confidence = "high"
    words: Mapping[str, str] = field(default_factory=dict)


def unit_call(share: Share, *, cap: Confidence = "high") -> Call:
    """Return the call that names ``share``'s unit, less sure where the report does not tell which part."""
    cls, limiter = str(share.unit.cls), share.unit.limiter
    entry = f"{cls}/{limiter or 'unknown'}"
    if limiter in PARTS and not share.resolved:
        entry, cap = f"{entry}/part-unknown", "medium" if cap == "high" else cap
    return Call(cls, limiter, entry, share, cap=cap)


def latency(limiter: str | None, variant: str = "", *, cap: Confidence = "high", **words: str) -> Call:
    """Return a latency-bound call; ``variant`` picks its wording."""
    entry = "/".join(filter(None, ("latency-bound", limiter or "unknown", variant)))
    return Call("latency-bound", limiter, entry, cap=cap, words=words)


# ---- Counters over the time of a launch: `series`, from PM sampling

FEWEST = 3
"""Samples below which there is no course to draw."""


def series(kernel: Kernel) -> tuple[Series, ...]:
    """Return the series of ``kernel`` that the report holds and that ever differ from zero.

    The kernel must have been read with details (`ncukit.metrics.normalise.wanted`).
    """
    raw_of: dict[str, str] = {}
    for raw in sorted(kernel.raw.series, key=len):
        raw_of.setdefault(sampled_counter(raw) or raw, raw)
    found = (_one(kernel, known, raw_of) for known in sampled())
    return tuple(one for one in found if one is not None)


def _one(kernel: Kernel, known: Sampled, raw_of: dict[str, str]) -> Series | None:
    raw = next((raw_of[name] for name in known.names if name in raw_of), None)
    if raw is None:
        return None
    stamps, values = kernel.raw.series[raw]
    pairs = sorted((t, v) for t, v in zip(stamps, values, strict=False) if math.isfinite(v))
    if len(pairs) < FEWEST or not any(v for _, v in pairs):
        return None
    first = pairs[0][0]
    times = tuple((t - first) * 1e-9 for t, _ in pairs)
    return Series(known.id, known.label, known.unit, raw, times, tuple(v for _, v in pairs))


# ---- What steps and rules ask of one launch: numbers, unit shares, stall states

TINY = 5e-6
"""[s] A launch this short measures launch latency and nothing else."""

SHORT = 15e-6
"""[s] Up to here ramp-up and drain are a visible part of the launch."""

STEADY = 20e-6
"""[s] From here on a rate is that of the kernel, not of its start and end."""


@dataclass(frozen=True)
class Facts:
    """One launch as the diagnosis sees it; unreliable values are unknown here."""

    kernel: Kernel
    shares: Shares
    waits: Waits | None

    @classmethod
    def of(cls, kernel: Kernel) -> Facts:
        """Return the facts about ``kernel``."""
        return cls(kernel, measure(kernel), waits(kernel))

    def number(self, id: str) -> float | None:
        """Return metric or signal ``id`` as a number that may be used, else None."""
        return self.kernel.number(id)

    def at_least(self, id: str, limit: float) -> bool:
        """Return whether ``id`` is known and at least ``limit``."""
        value = self.kernel.number(id)
        return value is not None and value >= limit

    def below(self, id: str, limit: float) -> bool:
        """Return whether ``id`` is known and below ``limit``."""
        value = self.kernel.number(id)
        return value is not None and value < limit

    @functools.cached_property
    def usable(self) -> frozenset[str]:
        """Metrics and signals that a rule may use: numbers that are reliable; of the metrics, texts too."""
        metrics, signals = self.kernel.metrics, self.kernel.signals
        known = {id for id, v in metrics.items() if v.number is not None or isinstance(v.value, str)}
        return frozenset(known | {id for id in signals.keys() - metrics if signals[id].number is not None})

    @functools.cached_property
    def source(self) -> SourceView | None:
        """What every instruction and line cost; None where nothing was counted by instruction."""
        if self.kernel.raw.code is None:  # most reports
            return None
        from ncukit.judge.source_view import source_view

        return source_view(self.kernel)

    @property
    def hot(self) -> tuple[HotLine, ...]:
        """The lines that cost most."""
        if self.source is None:
            return ()
        from ncukit.judge.sass import hot

        return hot(self.source)

    @property
    def warp_specialised(self) -> bool:
        """Whether producer and consumer warps split the work (mbarriers, warp-group or tcgen05 MMA).

        Few resident warps are the design of such a kernel, not its fault.
        """
        return any(self.at_least(id, 1) for id in ("mbarrier_inst", "warpgroup_mma_inst", "tma_load_bytes"))
