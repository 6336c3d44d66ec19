"""What advice looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.diagnose.gpus import is_amd
from ncukit.model import Diagnosis
from ncukit.record import dataclass

if TYPE_CHECKING:
    from ncukit.model.run import Run, StepRecord
    from ncukit.model.timeline import KernelTime, LaunchChoice, Match, Timeline


@dataclass(frozen=True)
class Known:
    """What is known; any of it may be missing.

    ``match`` is the launch of ``diagnosis`` in ``timeline``; ``launches`` is how many the report holds;
    ``report``, ``trace``, ``directory`` and ``source``, the program of the run, name files in commands;
    ``own`` says whether this user recorded the run.
    """

    diagnosis: Diagnosis | None = None
    timeline: Timeline | None = None
    match: Match | None = None
    choice: LaunchChoice | None = None
    run: Run | None = None
    launches: int = 1
    report: str = ""
    trace: str = ""
    directory: str = ""
    source: str = ""
    own: bool = False

    @property
    def share(self) -> float | None:
        """Share of the region that the diagnosed kernel takes [%], None where no trace says it."""
        return None if self.match is None else self.match.kernel.share

    @property
    def on_amd(self) -> bool:
        """Whether the trace is of GPUs that ncu does not measure."""
        found = self.timeline
        return found is not None and is_amd((d.name for d in found.devices), (c.name for c in found.calls))

    @property
    def top(self) -> KernelTime | None:
        """The kernel that computes longest in the region."""
        kernels = () if self.timeline is None else self.timeline.kernels
        return max((k for k in kernels if k.kind == "compute"), key=lambda k: k.share, default=None)

    @property
    def busy(self) -> float:
        """Share of the region in which some kernel runs on its main device [%]; 0 without a trace."""
        devices = () if self.timeline is None else self.timeline.devices
        main = next((d for d in devices if self.timeline and d.id == self.timeline.main_device), None)
        return 100 * main.busy / main.span if main is not None and main.span else 0.0

    @property
    def broken(self) -> StepRecord | None:
        """The step of the run that failed and left nothing, if any."""
        steps = () if self.run is None else self.run.steps
        return next((step for step in steps if step.failure is not None and step.state != "partial"), None)
