"""What a step of the elimination answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ncukit.diagnose.shares import Share
from ncukit.model.finding import Confidence


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
    """Return the call that names ``share``'s unit."""
    cls, limiter = str(share.unit.cls), share.unit.limiter
    return Call(cls, limiter, f"{cls}/{limiter or 'unknown'}", share, cap=cap)


def latency(limiter: str | None, variant: str = "", *, cap: Confidence = "high", **words: str) -> Call:
    """Return a latency-bound call; ``variant`` picks its wording."""
    entry = "/".join(filter(None, ("latency-bound", limiter or "unknown", variant)))
    return Call("latency-bound", limiter, entry, cap=cap, words=words)
