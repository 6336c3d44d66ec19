"""What a run directory holds, as the judges need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ncukit
from ncukit.model.trace import Timeline
from scripts.acceptance.outcome import Outcome

GPU_TIMERS = ("cuda-events", "host-synchronised")
TRACES = ("timeline.sqlite", "timeline.json.gz")


@dataclass(frozen=True)
class Measured:
    """The record of one run, its clean timing and its kernel."""

    outcome: Outcome
    run: Mapping[str, Any]
    timing: Mapping[str, Any]
    kernel: Mapping[str, Any]

    @classmethod
    def of(cls, outcome: Outcome) -> Measured:
        """Return what the run of ``outcome`` left: its files, or what it printed."""
        kernels = outcome.file("metrics.json").get("kernels") or [{}]
        run = outcome.document() or outcome.file("run.json")
        return cls(outcome, run, outcome.file("timing.json"), kernels[0])

    def step(self, name: str) -> Mapping[str, Any]:
        """Return the record of a step, empty where it did not begin."""
        return next((step for step in self.run.get("steps", []) if step["name"] == name), {})

    def failure(self, step: str) -> str | None:
        """Return the code of the failure of a step, None where it did not fail."""
        return (self.step(step).get("failure") or {}).get("code")

    def metric(self, name: str) -> float | None:
        """Return a metric of the kernel in base units, None where it is unknown."""
        value: float | None = (self.kernel.get("metrics", {}).get(name) or {}).get("value")
        return value

    def reason(self, name: str) -> str:
        """Return why a metric is unknown."""
        known = self.kernel.get("metrics", {}).get(name) or {}
        return str(known.get("reason") or "no counters")

    @property
    def seen_without_counters(self) -> bool:
        """Whether a clean GPU time or a trace shows the GPU at work."""
        traced = self.step("timeline").get("state") in ("done", "partial")
        return traced or self.timing.get("timer") in GPU_TIMERS

    @cached_property
    def timeline(self) -> Timeline | None:
        """The timeline of the run's trace, None where there is none that can be read."""
        folder = self.outcome.folder
        trace = next((folder / name for name in TRACES if folder and (folder / name).exists()), None)
        try:
            return None if trace is None else ncukit.timeline(trace)
        except ncukit.NcukitError:
            return None

    @property
    def region(self) -> str | None:
        """The class of the traced region, None without a trace."""
        return None if self.timeline is None else self.timeline.region.cls

    @property
    def other_launches(self) -> str | None:
        """Why the captured launch is not the whole call, None where it is."""
        command = list(self.step("timeline").get("command") or ())
        if self.timeline is None or "--calls" not in command:
            return "without a trace it is unknown how many launches a call makes"
        calls = int(command[command.index("--calls") + 1])
        launches = self.timeline.launches.kernels / calls
        if launches == 1:
            return None
        name = (self.run.get("launch") or {}).get("name")
        every = sum(kernel.launches.total for kernel in self.timeline.kernels)
        own = next((kernel.launches.total for kernel in self.timeline.kernels if kernel.name == name), 0)
        share = f", the kernel has {100 * own / every:.0f} % of their time" if every else ""
        return f"a call makes {launches:g} launches{share}"
