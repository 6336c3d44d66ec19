"""What advice is built from: what it looks at, how much can be gained, the commands that it names."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ncukit import media
from ncukit.model import Diagnosis, Finding
from ncukit.model.diagnosis import Bound
from ncukit.model.shares import Share
from ncukit.record import dataclass
from ncukit.run.tools.names import after_failure, same_again
from ncukit.trace.scope import is_amd, runs_torch

if TYPE_CHECKING:
    from ncukit.model.run import Run, StepRecord
    from ncukit.model.trace import KernelTime, LaunchChoice, Match, Timeline


# ---- What advice looks at


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


# ---- How much can be gained at most, and whether a launch is at its ceiling

CEILING = 95.0
"""[%] of what the best kernels get out of a unit: from here on a launch is at its ceiling."""
WASTED = 5.0
"""[%] Estimated gain of a finding from which a full unit is full of work that could be left out."""


def amdahl(share: float, left: float = 0.0) -> float | None:
    """Return how much faster all is at most when ``share`` [%] of it shrinks to ``left`` [%] of itself.

    None is without bound.

    >>> amdahl(50), round(amdahl(50, 60), 2), amdahl(100)
    (2.0, 1.25, None)
    """
    rest = 1 - share / 100 * (1 - left / 100)
    return 1 / rest if rest > 1e-9 else None


FLOORS = ("dram", "tensor", "fp32", "fp64", "fp16")
"""Limiters whose unit does the work itself; a full cache or load/store pipe is one of several ways to it."""


def limiting(diagnosis: Diagnosis) -> Share | None:
    """Return how full the unit is that limits the launch; None where none does, or others could take over."""
    limiter = diagnosis.verdict.limiter
    if limiter not in FLOORS or diagnosis.verdict.cls not in ("memory-bound", "compute-bound"):
        return None
    some = [s for s in diagnosis.facts.shares.units.values() if s.unit.limiter == limiter]
    return max(some, key=lambda s: s.fullness, default=None)


def at_ceiling(diagnosis: Diagnosis) -> Share | None:
    """Return the unit that limits the launch if it is as full as units get, with work that is needed."""
    full = limiting(diagnosis)
    if full is None or full.fullness < CEILING or wasteful(diagnosis) or exceeds_model(diagnosis):
        return None
    return full


def wasteful(diagnosis: Diagnosis) -> Finding | None:
    """Return the finding that promises most, if it is enough to doubt that a full unit does needed work."""
    some = [f for f in diagnosis.findings if f.severity in ("high", "medium") and (f.gain_pct or 0) >= WASTED]
    return max(some, key=lambda f: f.gain_pct or 0, default=None)


def exceeds_model(diagnosis: Diagnosis) -> bool:
    """Return whether the counters hold clearly more work or bytes than the analytic model."""
    checks = diagnosis.roofline.checks
    return any(check.ok is False and check.id in ("model-bytes", "model-flops") for check in checks)


def of_region(known: Known) -> Bound | None:
    """Return what the region gains at most without the cause that limits it."""
    region = None if known.timeline is None else known.timeline.region
    return (
        None
        if region is None or region.share is None
        else Bound(region.bound, region.share, f"what makes it {region.cls}")
    )


def of_top(known: Known) -> Bound | None:
    """Return what the region gains at most without the kernel that takes most of it."""
    top = known.top
    return None if top is None else Bound(top.bound, top.share, top.short)


def of_kernel(known: Known) -> Bound | None:
    """Return what the region gains at most when this kernel reaches its ceiling.

    Where the ceiling is not known, or the unit is full of work that could be left out: when it vanishes.
    """
    share = known.share
    if share is None or known.diagnosis is None:
        return None
    full = limiting(known.diagnosis)
    left = 0.0 if full is None else min(100.0, full.fullness)
    if full is None or wasteful(known.diagnosis) is not None or exceeds_model(known.diagnosis):
        return Bound(amdahl(share), share, "this kernel")
    gone = share * (1 - left / 100)
    return Bound(amdahl(gone), gone, "what this kernel is away from its ceiling")


# ---- The commands that advice names; words in capitals stand for what is not known

PROGRAM = "./your_program"


def profile(known: Known) -> str:
    """Return the command that measures the launch that the trace chose."""
    source = _source(known)
    if source and known.choice is not None:
        return (
            f"ncukit profile {source}{_call(known)} --gpu-kernel {media.argument(known.choice.launch.short)}"
        )
    if known.choice is None:
        return f"ncukit timeline {word(known.trace, 'TRACE')}"
    chosen = shlex.join(known.choice.selection)
    return f"ncu --set full --import-source on {chosen} -o profile {PROGRAM}"


def ops(known: Known) -> str:
    """Return the command that shows the operations of the framework."""
    source = _source(known)
    if source.removesuffix("'").endswith(".py"):
        return f"ncukit ops {source}{_call(known)}"
    if known.timeline is not None and known.timeline.file.format == "torch":
        return f"ncukit ops {word(known.trace, 'TRACE')}"
    found = known.timeline
    if found is not None and not known.on_amd and not runs_torch(kernel.name for kernel in found.kernels):
        return f"ncukit timeline {word(known.trace, 'TRACE')}"
    return "ncukit ops MODEL.py --kernel STEP"


def trace(known: Known) -> tuple[str, ...]:
    """Return the commands that trace the program and ask again."""
    record = f"nsys profile -t cuda,nvtx,osrt -o run {PROGRAM}"
    if not known.report:
        return record, "ncukit advise run.nsys-rep"
    return record, f"ncukit advise {word(known.report, 'REPORT')} --timeline run.nsys-rep"


def collect(known: Known) -> str:
    """Return the command that measures the launch again, with everything."""
    source, which = _source(known), ""
    if source:
        return f"ncukit profile {source}{_call(known)} --preset full"
    if known.diagnosis is not None:
        kernel = known.diagnosis.kernel
        result = (kernel.name, kernel.index, kernel.raw.workload)
        if kernel.failed:
            return f"ncu {after_failure(*result)} -o again {PROGRAM}"
        which = f" {same_again(*result)}"
    return f"ncu --set full --import-source on{which} -o again {PROGRAM}"


def go_on(known: Known) -> str:
    """Return the command that goes on with the run; the program of a stranger's run is to be given."""
    command = f"ncukit profile --resume {word(known.directory, 'RUNDIR')}"
    return command if known.own else f"{command} -- PROGRAM"


def trial(known: Known) -> str:
    """Return the command that holds one change against what there is."""
    return f"ncukit experiment {_source(known) or 'MY_KERNEL.py'} --baseline OLD --variant NEW"


def page(known: Known) -> str:
    """Return the command that shows the launch with its source lines."""
    if known.directory:
        return f"ncukit report --run {word(known.directory, 'RUNDIR')} --open"
    one = known.diagnosis if known.launches > 1 else None
    chosen = "" if one is None else f" --launch {one.kernel.index + 1}"
    return f"ncukit report {word(known.report, 'REPORT')}{chosen} --open"


def word(text: str, placeholder: str) -> str:
    """Return ``text`` for a shell, ``placeholder`` where it is not known or cannot be pasted."""
    return media.word(text, placeholder) if text else placeholder


def _source(known: Known) -> str:
    """Return the file of the run's target for a shell; empty where there is none."""
    return media.word(known.source, "PROGRAM.py") if known.source else ""


def _call(known: Known) -> str:
    """Return the option that names what the run called of its file; empty where it ran as it is."""
    call = None if known.run is None else known.run.target.get("call")
    return f" --kernel {media.argument(str(call))}" if call else ""
