"""Which unit comes first in a launch, and which comes next for a reason of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ncukit.diagnose.call import Call
from ncukit.diagnose.facts import Facts
from ncukit.diagnose.steps import decide
from ncukit.diagnose.steps.full import independent
from ncukit.model.shares import Leaders, Share, Shares


def leaders(facts: Facts) -> Leaders | None:
    """Return the first units of a launch as its verdict sees them; None where no unit was measured.

    >>> from ncukit.model import Kernel, RawKernel, Value
    >>> dram = Value("dram_throughput_pct", 91.5, "%")
    >>> leaders(Facts.of(Kernel("", RawKernel(0, "f", "f", "f"), {dram.id: dram}))).first.unit.id
    'dram'
    """
    return of_call(facts.shares, decide(facts))


def of_call(shares: Shares, call: Call) -> Leaders | None:
    """Return the first units as ``call`` sees them: what limits, alone or together, or the busiest."""
    ranked = by_percent(shares)
    if call.cls == "balanced":
        return Leaders(call.others[0], call.others[1], (), True)
    if call.share is None:
        if not ranked:
            return None
        return Leaders(ranked[0], ranked[1] if len(ranked) > 1 else None, (), False)
    second = next((s for s in ranked if independent(s, call.share)), None)
    others = (s for s in ranked if s.unit.id != call.share.unit.id)
    more = tuple(s for s in others if second is not None and s is not second and s.percent > second.percent)
    return Leaders(call.share, second, more, True)


def by_percent(shares: Shares) -> Sequence[Share]:
    """Return the units that can limit a kernel, largest share of peak first."""
    return sorted(shares.ranked(), key=lambda s: -s.percent)
