"""What was concluded from a trace: where the time of a region went, and which launch deserves ncu.

Times are whole nanoseconds, so that totals are exact; shares are percent of the region.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from ncukit.model.finding import Confidence, Evidence, Experiment
from ncukit.model.trace import CounterSeries, TraceFile
from ncukit.record import dataclass

KernelKind = Literal["compute", "helper", "collective"]
Direction = Literal["h2d", "d2h", "d2d", "peer", "h2h", "unknown"]


CAUSE_WORDS: Mapping[str, str] = {
    "kernel": "kernels run",
    "communication": "only collectives run",
    "transfer": "only copies or memory sets run",
    "synchronisation": "the GPU ran dry because the CPU had waited for it",
    "launch": "the GPU waits for the next launch",
    "input": "the GPU waits while the launching thread is outside CUDA, in long pauses",
    "allocator": "the GPU waits while the CPU allocates or frees memory",
    "setup": "the GPU waits while the CPU loads modules, makes contexts, streams or graphs",
    "profiler": "the GPU waits while nsys itself works in the launching thread",
    "dependency": "work was launched in time but did not start (events, stream order, driver batching)",
    "foreign": "only kernels from outside the range run",
    "unknown": "the GPU is idle and the CUDA calls were not traced",
}
"""Causes of the time of a region, in words: "For 40 % of the time ..."."""


@dataclass(frozen=True)
class Spread:
    """Durations [ns] of a group: ``iqr`` is the distance between its quartiles."""

    n: int
    total: int
    median: float
    min: int
    max: int
    iqr: float = 0.0


@dataclass(frozen=True)
class StreamTime:
    """Kernels of one stream of one device: ``busy`` [ns] is their union, so never above the span."""

    device: int
    context: int
    stream: int
    n: int
    busy: int


@dataclass(frozen=True)
class DeviceTime:
    """Where the region's time went on one GPU [ns].

    ``span`` = ``busy`` (some kernel of the region runs) + ``copy`` (no kernel, a copy or memory set runs) +
    ``empty`` (nothing runs) + ``foreign`` (only kernels launched outside the region run).
    ``sum`` adds the durations of all kernels, so it exceeds ``busy`` where they overlap.
    """

    id: int
    name: str | None
    compute_capability: str | None
    start: int
    span: int
    busy: int
    sum: int
    copy: int
    empty: int
    foreign: int
    launches: int
    copies: int
    copy_busy: int
    """Union of all copies and memory sets, also those beside kernels."""
    longest_gap: tuple[int, int] = (0, 0)
    """Start and length of the longest stretch in which nothing ran."""
    streams: tuple[StreamTime, ...] = ()


@dataclass(frozen=True)
class ShapeTime:
    """Launches of one kernel with one grid, block, registers and shared memory [byte per block].

    ``steady`` is None where all of them were warm-up or autotuning.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    static_shared: int
    dynamic_shared: int
    launches: Spread
    steady: Spread | None
    first: int
    """Start of its first launch [ns], of the first steady one if there is any."""


@dataclass(frozen=True)
class KernelTime:
    """All launches of one kernel in the region; ``steady`` leaves out warm-up and autotuning."""

    name: str
    short: str
    kind: KernelKind
    launches: Spread
    steady: Spread
    busy: int
    """Union of its launches on the region's main device [ns]."""
    share: float
    """``busy`` of the region [%]."""
    bound: float | None
    """How much faster the region could at most be if this kernel took no time (Amdahl); None: no bound."""
    configurations: int
    """Different grids, blocks, registers and shared memory."""
    other_threads: int = 0
    """Launches that came from other threads than the chosen range."""
    tuning: int = 0
    """Launches left out as autotuning."""
    warmup: int = 0
    """Launches left out as warm-up."""
    shapes: tuple[ShapeTime, ...] = ()
    """Its configurations, the longest total first; those that take the least time may be left out."""


@dataclass(frozen=True)
class Match:
    """The traced kernel that a profiled launch belongs to, and what shows it.

    ``shape`` are the traced launches of the same grid and block, None where there is none.  ``by`` names what
    is equal: "name" or "function name", then "grid and block", "registers".
    """

    kernel: KernelTime
    shape: ShapeTime | None
    by: tuple[str, ...]

    @property
    def launches(self) -> Spread:
        """Durations of the traced launches that are nearest: steady ones of the same shape, if there are."""
        if self.shape is None:
            return self.kernel.steady
        return self.shape.steady or self.shape.launches


@dataclass(frozen=True)
class CopyTime:
    """Copies of one direction between two kinds of memory; ``bandwidth`` [byte/s] achieved while copying."""

    direction: Direction
    source: str
    target: str
    n: int
    bytes: int
    total: int
    bandwidth: float | None
    median_bytes: float
    hidden: int
    """Time in which kernels of the same device ran beside [ns]."""
    fix: str


@dataclass(frozen=True)
class CallTime:
    """One CUDA call by name; ``idle`` [ns] is the part in which no GPU worked (waiting calls only)."""

    name: str
    kind: str
    calls: Spread
    idle: int | None = None


@dataclass(frozen=True)
class LaunchTime:
    """Getting kernels onto the GPU: latency [ns] from the start of the launch call to that of the kernel."""

    kernels: int
    traced: int
    """Kernels whose launch call is in the trace."""
    calls: int
    cpu: int
    """Time in launch calls, nested calls once [ns]."""
    latency: Spread | None
    graph_kernels: int = 0


@dataclass(frozen=True)
class GraphTime:
    """Executions of one CUDA graph that was traced as a whole."""

    graph: int
    runs: Spread


@dataclass(frozen=True)
class RangeTime:
    """All instances of one NVTX range: CPU time, and the kernels launched inside."""

    name: str
    domain: str
    style: Literal["push/pop", "start/end"]
    instances: Spread
    kernels: int
    kernel_time: int
    other_threads: int
    """Of those kernels, the ones that other threads of the process launched."""
    open: int = 0
    """Instances that had not ended when the trace did."""
    attributed: bool = True
    """False where the trace lacks the launch calls, so that kernels cannot be attributed."""


@dataclass(frozen=True)
class Region:
    """What limits the region: the class, its share of the time, and the experiment that could disprove it.

    ``shares`` [%] splits the whole time of the main device by cause; they add up to 100.
    """

    cls: str
    share: float | None
    shares: Mapping[str, float]
    confidence: Confidence
    claim: str
    evidence: tuple[Evidence, ...] = ()
    against: tuple[Evidence, ...] = ()
    experiment: Experiment | None = None
    bound: float | None = None
    """How much faster the region could be at most without this cause; None: without bound."""
    missing: tuple[str, ...] = ()
    undecidable: tuple[tuple[str, str], ...] = ()
    """Classes that no single trace can decide, each with the reason."""


@dataclass(frozen=True)
class Launch:
    """One launch of a trace, as ncu can be told to find it: n-th (from 0) of ``matches`` launches."""

    name: str
    short: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    static_shared: int
    dynamic_shared: int
    device: int
    stream: int
    process: int
    start: int
    duration: int
    nth: int
    matches: int
    in_graph: bool = False


@dataclass(frozen=True)
class Candidate:
    """A kernel that was considered for ncu: its total and share, and why it was not chosen."""

    name: str
    kind: KernelKind
    n: int
    total: int
    share: float
    why_not: str


@dataclass(frozen=True)
class LaunchChoice:
    """The launch that deserves ncu, the options that select exactly it, and the reasons."""

    launch: Launch
    selection: tuple[str, ...]
    """Options of ncu."""
    reasons: tuple[str, ...]
    runners_up: tuple[Candidate, ...] = ()
    cautions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """What a trace says about a region (the whole trace, or one NVTX range)."""

    file: TraceFile
    range: str | None
    windows: tuple[tuple[int, int], ...]
    """Start and end [ns] of each stretch that belongs to the region on the main device."""
    main_device: int | None
    devices: tuple[DeviceTime, ...]
    kernels: tuple[KernelTime, ...]
    copies: tuple[CopyTime, ...]
    calls: tuple[CallTime, ...]
    launches: LaunchTime
    ranges: tuple[RangeTime, ...]
    graphs: tuple[GraphTime, ...]
    region: Region
    collectives: tuple[KernelTime, ...] = ()
    memsets: Spread | None = None
    counters: tuple[CounterSeries, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def kernel_total(self) -> int:
        """Sum of the durations of all kernels of the region, on all devices [ns]."""
        return sum(kernel.launches.total for kernel in self.kernels)

    @property
    def waits(self) -> tuple[CallTime, ...]:
        """The calls in which the CPU waited for a GPU."""
        return tuple(call for call in self.calls if call.kind == "wait")
