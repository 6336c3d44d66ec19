"""What a trace of nsys holds: rows of events as columns of integers, nothing concluded yet.

Times are nanoseconds on the clock of the trace, which may begin below zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from ncukit.record import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

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
