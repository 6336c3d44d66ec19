"""The steps of the elimination, in order: the first that answers decides.

Each step is a function from `Facts` to a `Call`, or None to pass the question on.
"""

from __future__ import annotations

from collections.abc import Callable

from ncukit.diagnose.call import Call
from ncukit.diagnose.facts import Facts
from ncukit.diagnose.steps import between, full, grid, hidden, idle, latency, measured

Step = Callable[[Facts], Call | None]

STEPS: tuple[Step, ...] = (
    measured.failed,
    grid.serial,
    grid.small,
    grid.over_at_once,
    idle.empty_sms,
    full.debug_build,
    full.full_unit,
    full.issue_bound,
    between.several_or_one,
    measured.undetermined,
    hidden.hot_address,
    hidden.system_memory,
    latency.synchronisation,
    latency.block_turnover,
    latency.few_warps,
    latency.dependency,
    latency.unknown,
)


def decide(facts: Facts) -> Call:
    """Return the answer of the first step that has one; the last always has."""
    for step in STEPS:
        if (call := step(facts)) is not None:
            return call
    raise AssertionError("the last step always answers")
