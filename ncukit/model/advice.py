"""Which layer to look at next, the command for it, and when to stop.

The layers, from above: framework operation, CPU/GPU timeline, one kernel, source line.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from ncukit.model.finding import Evidence
from ncukit.record import dataclass

ADVICE_SCHEMA = "ncukit.advice/1"

Layer = Literal["operations", "timeline", "kernel", "source"]


@dataclass(frozen=True)
class Bound:
    """How much faster the region could be at most (Amdahl's law): ``factor``, None without bound.

    ``share`` [%] of the region is what could vanish; ``of`` says what that is.
    """

    factor: float | None
    share: float
    of: str


@dataclass(frozen=True)
class Advice:
    """What to do next: look at ``layer``, or ``stop`` (then ``layer`` is where to go on, if anywhere).

    ``id`` names the branch; ``title`` and ``because`` are for people; ``commands`` are shell commands in
    order, in which words in capitals stand for what is not known; ``missing`` would make the advice surer.
    """

    id: str
    stop: bool
    layer: Layer | None
    title: str
    because: str
    commands: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    bound: Bound | None = None
    until: str = ""
    """When to stop there."""
    missing: tuple[str, ...] = field(default=())
    bound_said: bool = False
    """Whether ``because`` tells already how much faster the region would be."""
