"""What a trace holds, and what was concluded from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from ncukit.model.diagnosis import Confidence, Evidence, Experiment
from ncukit.record import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


# ---- What a trace of nsys holds: rows of events as columns of integers, nothing concluded yet
#  Times are nanoseconds on the clock of the trace, which may begin below zero.

UNKNOWN = -1
"""In a column: the trace does not say."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows of one kind: equally long columns of 64-bit integers, ordered by start.

    Every kind has ``start`` and ``end`` [ns].  Names are positions in ``Trace.names``.
    """

    columns: Mapping[str, Ints]

    def __len__(self) -> int:
        return len(self.columns["start"])

    def __getitem__(self, name: str) -> Ints:
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    @property
    def duration(self) -> Ints:
        """Length of each row [ns]."""
        return self.columns["end"] - self.columns["start"]

    def take(self, rows: NDArray[np.bool_] | Ints) -> Columns:
        """Return the rows of a mask or of positions, all columns."""
        return Columns({name: column[rows] for name, column in self.columns.items()})

    def names(self) -> Iterator[str]:
        """Yield the names of the columns."""
        yield from self.columns


@dataclass(frozen=True)
class Gpu:
    """A GPU of the machine: ``bandwidth`` [byte/s] of its memory; what the trace does not say is None."""

    id: int
    name: str | None = None
    compute_capability: str | None = None
    sms: int | None = None
    bandwidth: float | None = None
    uuid: str | None = None


@dataclass(frozen=True)
class CounterSeries:
    """One sampled GPU metric of the trace, over all its samples."""

    name: str
    n: int
    mean: float
    max: int


@dataclass(frozen=True)
class TraceFile:
    """Where a trace came from: ``size`` [byte], the tool that wrote it, the schema of its export.

    ``synthetic`` says how a trace was made that nobody recorded; None for a recorded one.
    """

    path: str
    size: int
    format: str
    tool: str | None = None
    schema: str | None = None
    synthetic: str | None = None


@dataclass(frozen=True, eq=False)
class Trace:
    """All events of a trace.

    kernels: device context stream process correlation name short registers grid_x..z block_x..z
        static_shared dynamic_shared [byte] graph_node
    copies: device context stream process correlation bytes kind source target (memory kinds)
        source_device target_device graph_node
    memsets: device context stream process correlation bytes graph_node
    graphs: device context stream process correlation graph (whole executions, contents not traced)
    calls: thread correlation name class returned (CUDA runtime and driver calls)
    syncs: device context stream process correlation kind
    ranges: thread end_thread name domain style open (style 59 push/pop, 60 start/end)
    overheads: thread (what nsys itself did in the program's threads)
    """

    file: TraceFile
    kernels: Columns
    copies: Columns
    memsets: Columns
    graphs: Columns
    calls: Columns
    syncs: Columns
    ranges: Columns
    overheads: Columns
    names: tuple[str, ...]
    gpus: Mapping[int, Gpu] = field(default_factory=dict)
    processes: Mapping[int, str] = field(default_factory=dict)
    threads: Mapping[int, str] = field(default_factory=dict)
    counters: tuple[CounterSeries, ...] = ()
    started: int | None = None
    """Start of the session [ns since 1970], where the trace says so."""
    notes: tuple[str, ...] = ()
    """What was odd about reading it."""

    @property
    def gpu_work(self) -> int:
        """Number of kernels, copies, memory sets and graph executions on GPUs."""
        return len(self.kernels) + len(self.copies) + len(self.memsets) + len(self.graphs)


# ---- What was concluded from a trace: where the time of a region went, and which launch deserves ncu
# Times are whole nanoseconds, so that totals are exact; shares are percent of the region.

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
