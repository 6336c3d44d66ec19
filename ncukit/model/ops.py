"""Operators of a torch trace, and what traces of several ranks say together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from ncukit.model.trace import Candidate, Columns, Trace, TraceFile
from ncukit.record import dataclass

# ---- What a trace of torch's profiler holds beyond the GPU's work, and what was concluded about operators
#  Times are whole nanoseconds on the clock of the trace, so that totals are exact.

Source = Literal["py-spy", "cProfile", "torch"]


@dataclass(frozen=True, eq=False)
class TorchTrace:
    """A trace of torch's profiler: the GPU's work as in a trace of nsys, and what only torch sees.

    operators: thread external name shapes types sequence (names are positions in ``trace.names``)
    memory: thread device (-1 the CPU) bytes (negative: freed) allocated reserved [byte], after the event
    frames: thread name (Python functions, where the profiler recorded stacks)
    ``head`` holds what stands beside the events: versions, ``distributedInfo``, ``deviceProperties``.
    """

    trace: Trace
    operators: Columns
    memory: Columns
    frames: Columns
    head: Mapping[str, Any] = field(default_factory=dict)
    events: int = 0

    @property
    def recorded(self) -> Mapping[str, bool]:
        """Whether shapes, allocations and Python stacks are in the trace."""
        shapes = self.operators["shapes"]
        return {
            "shapes": bool((shapes >= 0).any()) if len(shapes) else False,
            "memory": len(self.memory) > 0,
            "stacks": len(self.frames) > 0,
        }


@dataclass(frozen=True)
class KernelUse:
    """One GPU kernel as an operator launched it: ``total`` [ns] of ``n`` launches."""

    name: str
    short: str
    n: int
    total: int


@dataclass(frozen=True)
class Operator:
    """All calls of one operator with the same input shapes and dtypes [ns].

    ``device_self`` are kernels, copies and memory sets that the operator launched itself, ``device_total``
    also those of operators inside it.  A call inside a call of the same operator, shapes and dtypes counts
    once in the totals.  ``waits`` [ns] is the time in which a call of CUDA inside made the CPU wait.
    """

    name: str
    shapes: str
    types: str
    calls: int
    cpu_total: int
    cpu_self: int
    device_total: int
    device_self: int
    kernels: tuple[KernelUse, ...] = ()
    kernel_launches: int = 0
    copies: int = 0
    copy_bytes: int = 0
    copy_time: int = 0
    memsets: int = 0
    waits: int = 0
    wait_calls: int = 0
    allocated: int = 0
    """Bytes that it allocated itself, on all devices."""
    freed: int = 0


@dataclass(frozen=True)
class Attribution:
    """How the GPU's work [ns] found its operator: by the call that launched it, or by External id.

    ``by_call`` + ``by_id`` + ``outside`` is all of it; ``outside`` was launched by no traced operator.
    """

    work: int
    by_call: int
    by_id: int
    outside: int
    n: int
    n_outside: int
    without_call: int
    """Pieces of work whose launch call is not in the trace."""


@dataclass(frozen=True)
class Spike:
    """A rise of an allocator: ``bytes`` [byte] at ``at`` [ns after the first event], in which operator."""

    device: int
    at: int
    bytes: int
    allocated: int
    reserved: int
    operator: str
    grew: int = 0
    """By how much the memory that the allocator holds rose: it asked the driver."""


@dataclass(frozen=True)
class DeviceMemory:
    """An allocator over the trace [byte]: ``peak`` allocated and reserved, rises of what it holds."""

    device: int
    events: int
    peak_allocated: int | None
    peak_reserved: int | None
    peak_at: int
    peak_operator: str
    first_allocated: int | None
    last_allocated: int | None
    growths: int
    spikes: tuple[Spike, ...] = ()


@dataclass(frozen=True)
class Utilisation:
    """How busy a GPU was: ``busy`` [%] is the union of its kernels over the region.

    ``low`` and ``high`` [%] are what a tool that samples like ``nvidia-smi`` could have shown: the share of
    each window of ``window`` [ns] in which some kernel ran; None where the region is shorter than a window.
    ``occupancy`` [%] is the profiler's estimate, weighted by time.  ``seen`` are the percentages that NVML
    told meanwhile, the number of nvidia-smi; ``unseen`` says why there are none.
    """

    device: int
    span: int
    busy: float
    gaps: int
    gap_time: int
    longest_gap: int
    window: int
    low: float | None
    high: float | None
    occupancy: float | None
    seen: tuple[int, ...] = ()
    unseen: str = "only a run with --host asks NVML"


@dataclass(frozen=True)
class Stay:
    """Time [ns] that a thread was in ``stack``, the innermost function last; on its sampler's clock."""

    start: int
    end: int
    stack: tuple[str, ...]


@dataclass(frozen=True)
class Counted:
    """A function as cProfile counted it: its own time [ns], and with what it calls."""

    name: str
    calls: int
    own: int
    total: int


@dataclass(frozen=True)
class HostFrame:
    """A Python function on the host: time [ns] itself and with what it calls, and its part in launch gaps.

    ``gap`` is None where the samples carry no time (cProfile), or no GPU worked.
    """

    name: str
    self_time: int
    total: int
    gap: int | None
    samples: int


@dataclass(frozen=True)
class Host:
    """What Python did on the launching thread, from ``source``; ``interval`` [ns] between two samples."""

    source: Source
    span: int
    interval: int | None
    frames: tuple[HostFrame, ...]
    gap_time: int | None
    covered: int | None
    """Part of the gaps in which some frame was seen [ns]."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Deserving:
    """The kernel that deserves ncu: which operator launches it, what share of device time [%] it takes.

    ``command`` is what profiles it; ``why_not`` says why there is none.
    """

    kernel: str = ""
    short: str = ""
    operator: str = ""
    share: float | None = None
    command: str = ""
    reasons: tuple[str, ...] = ()
    others: tuple[Candidate, ...] = ()
    why_not: str = ""


@dataclass(frozen=True)
class Ops:
    """Operators of a traced program, the longest device time first; without a GPU the longest CPU time."""

    file: TraceFile
    torch: str | None
    sorted_by: Literal["device", "cpu"]
    span: int
    operators: tuple[Operator, ...]
    attribution: Attribution
    recorded: Mapping[str, bool]
    utilisation: tuple[Utilisation, ...] = ()
    memory: tuple[DeviceMemory, ...] = ()
    deserving: Deserving = Deserving()
    host: Host | None = None
    gpus: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    """What was compared with the totals of torch itself, in words."""

    @property
    def cpu_self(self) -> int:
        """Sum of the operators' own CPU time, over all threads [ns]."""
        return sum(operator.cpu_self for operator in self.operators)


# ---- What traces of several ranks say together: collectives, who came late to them, and why
# Times are whole nanoseconds on the clock of the reference rank.

Cause = Literal["compute", "copy", "host"]


@dataclass(frozen=True)
class Clock:
    """How the clock of a rank was set: ``offset`` [ns] is added to its times.

    It is the median difference of the ends of ``n`` collectives; nine of ten ends then agree within
    ``spread`` [ns].  ``offset`` is None where no collective links the rank to the others.
    """

    rank: int
    offset: int | None
    spread: int
    n: int


@dataclass(frozen=True)
class Arrival:
    """One rank at one collective [ns]: ``before`` is how its time since its last collective was spent."""

    rank: int
    start: int
    end: int
    wait: int
    """From its own start to that of the last rank."""
    before: Mapping[Cause, int]


@dataclass(frozen=True)
class Collective:
    """One collective of several ranks: ``late`` [ns] is by how much the ``last`` came after the usual other.

    ``transfer`` [ns] is from the last start to the last end: what was left when nobody waited any more.
    ``bytes`` is the message of the reference rank, None where the traces do not say.  ``why`` is the cause
    of which the last rank had most more than the others, None where the clocks cannot show that it was late.
    """

    name: str
    group: str
    number: int
    bytes: int | None
    arrivals: tuple[Arrival, ...]
    last: int
    late: int
    transfer: int
    why: Cause | None = None
    excess: Mapping[Cause, int] = field(default_factory=dict)

    @property
    def waited(self) -> int:
        """Sum over ranks of the time in which they waited for the last [ns]."""
        return sum(arrival.wait for arrival in self.arrivals)


@dataclass(frozen=True)
class CollectiveKind:
    """All collectives of one name and group [ns], over all ranks that took part."""

    name: str
    group: str
    ranks: int
    n: int
    matched: int
    median: float
    """Duration of one on one rank, waiting included."""
    transfer: float | None
    waited: int | None
    """None where no other rank was matched: nothing shows for whom it waited."""


@dataclass(frozen=True)
class RankTime:
    """Where the time of one rank went [ns].

    ``span`` = ``compute`` + ``exposed`` (communication while nothing computed) + ``copy`` (only copies) +
    ``empty``.  ``hidden`` is communication beside compute, part of ``compute``.  ``waiting`` is the part of
    its collectives in which some rank had not come yet, None where none was matched with another rank's.
    """

    rank: int
    file: str
    gpu: str | None
    span: int
    compute: int
    communication: int
    hidden: int
    exposed: int
    copy: int
    empty: int
    waiting: int | None


@dataclass(frozen=True)
class LateRank:
    """A rank that came last to ``times`` collectives of ``n``: made others wait ``caused`` [ns] in all.

    ``why`` names the cause with the largest excess, ``excess`` [ns] sums each of them over those collectives.
    """

    rank: int
    times: int
    n: int
    late: int
    caused: int
    why: Cause | None
    excess: Mapping[Cause, int]


@dataclass(frozen=True)
class Setting:
    """One fact about NCCL, and where it was found."""

    name: str
    value: str
    source: str
    note: str = ""


@dataclass(frozen=True)
class NcclLog:
    """What NCCL said with ``NCCL_DEBUG=INFO``."""

    path: str
    version: str | None
    settings: tuple[Setting, ...]
    transports: Mapping[str, int]
    warnings: tuple[str, ...]
    ranks: int | None


@dataclass(frozen=True)
class Ranks:
    """Traces of several ranks, put beside each other."""

    folder: str
    reference: int
    world_size: int | None
    ranks: tuple[RankTime, ...]
    clocks: tuple[Clock, ...]
    kinds: tuple[CollectiveKind, ...]
    collectives: tuple[Collective, ...]
    late: tuple[LateRank, ...]
    settings: tuple[Setting, ...] = ()
    transports: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def aligned(self) -> bool:
        """Whether the clocks of all ranks were set."""
        return all(clock.offset is not None for clock in self.clocks)
