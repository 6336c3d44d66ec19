"""Why warps waited: one measurement of the stall states, counters or samples, never mixed."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Literal

from ncukit.catalog import load
from ncukit.model import Kernel
from ncukit.model.source import ENOUGH_SAMPLES
from ncukit.model.split import ISSUE_GUARD
from ncukit.record import dataclass

WORKING = ("selected", "not_selected")
"""States in which the warp could go on."""


@dataclass(frozen=True)
class Waits:
    """Shares [%] of warp latency by stall state, from ``source``.

    ``issued`` is the issue rate [warp/cycle per scheduler]; None when it was not collected.
    """

    source: Literal["counters", "samples"]
    shares: Mapping[str, float]
    issued: float | None
    disagreement: float | None = None
    """Total variation [%] between counters and samples, where both were collected."""

    def of(self, *states: str) -> float:
        """Return the share [%] of these states together."""
        return sum(self.shares.get(state, 0.0) for state in states)

    def metric(self, state: str) -> str:
        """Return the neutral metric that this measurement of ``state`` came from."""
        return f"stall_{'cycles' if self.source == 'counters' else 'samples'}_{state}"

    @property
    def matter(self) -> bool:
        """Whether stalls may be spoken of: only when schedulers often have no warp to issue."""
        return self.issued is None or self.issued < ISSUE_GUARD

    def top(self) -> tuple[str, float]:
        """Return the largest state in which warps really wait, and its share [%]."""
        waiting = {state: share for state, share in self.shares.items() if state not in WORKING}
        state = max(waiting, key=lambda s: waiting[s])
        return state, waiting[state]


@functools.cache
def states() -> Mapping[str, tuple[str, str]]:
    """Return state -> (its category, NVIDIA's name)."""
    return {
        state: (category, raw)
        for category, entry in load().stalls.items()
        for state, raw in entry["states"].items()
    }


def advice(state: str) -> str:
    """Return what to try against ``state``, as catalog, counters or sampling spell it; or nothing.

    >>> advice("no_instructions") == advice("no_instruction") == advice("instruction_fetch") != ""
    True
    """
    for known, (category, raw) in states().items():
        if state in (known, raw, f"{raw}s", raw.removesuffix("_stall")):
            return str(load().stalls[category].get("advice", {}).get(known, ""))
    return ""


def waits(kernel: Kernel) -> Waits | None:
    """Return the stall states of ``kernel``: counters where they are, else samples, else None."""
    counted = _shares(kernel, "stall_cycles_")
    sampled = _shares(kernel, "stall_samples_")
    total = kernel.number("pc_samples")
    if sampled is not None and total is not None and total < ENOUGH_SAMPLES:
        sampled = None
    issued = kernel.number("warps_issued_per_scheduler")
    if issued is None and (slots := kernel.number("issue_busy_pct")) is not None:
        issued = slots / 100
    if counted is None:
        return None if sampled is None else Waits("samples", sampled, issued)
    apart = None if sampled is None else _variation(counted, sampled)
    return Waits("counters", counted, issued, apart)


def _shares(kernel: Kernel, prefix: str) -> dict[str, float] | None:
    amounts = {state: n for state in states() if (n := kernel.number(prefix + state)) is not None}
    total = sum(amounts.values())
    if not amounts.keys() - set(WORKING):
        return None
    return {state: 100 * n / total for state, n in amounts.items()} if total > 0 else None


def _variation(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    return sum(abs(a.get(state, 0.0) - b.get(state, 0.0)) for state in states()) / 2
