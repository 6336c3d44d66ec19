"""What a step of the elimination answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ncukit.model.finding import Confidence
from ncukit.model.shares import Share
from ncukit.record import dataclass

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
