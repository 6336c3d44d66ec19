"""What a computation needs at least, from its shapes alone, and the time that this takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ncukit.model.kernel import Value
from ncukit.model.shares import TOLERANCE, Check
from ncukit.record import dataclass


@dataclass(frozen=True)
class WorkModel:
    """Analytic work of one computation: ``flop`` [FLOP] by precision, ``read`` and ``written`` [byte].

    Precisions are those of the roofline ("fp32", "tensor_fp16"); a multiply-add counts 2.  Bytes are
    compulsory: every input once, every output once.  ``notes`` say what was counted,
    ``assumptions`` what the counts leave out.

    >>> copy = WorkModel("copy", {}, "fp32", read=4096, written=4096)
    >>> copy.bytes, copy.intensity
    (8192, 0.0)
    """

    name: str
    flop: Mapping[str, float]
    dtype: str
    read: float
    written: float
    notes: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    exact: bool = True
    """False where functions such as exp compile to operations of their own: counters then exceed ``flop``."""
    memory: str = "dram"
    """Where the bytes move: "dram", or "link" for what is sent over the links between GPUs."""
    bytes: float = field(init=False)
    """Compulsory traffic [byte]: read + written."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes", self.read + self.written)

    @property
    def total_flop(self) -> float:
        """Work of all precisions together [FLOP]."""
        return sum(self.flop.values())

    @property
    def intensity(self) -> float:
        """Arithmetic intensity [FLOP/byte]: the highest that any implementation can have."""
        return self.total_flop / self.bytes

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WorkModel:
        """Return the model that ``dataclasses.asdict``, or JSON made of it, describes.

        Raises:
            KeyError, TypeError, ValueError: it describes none.

        >>> from dataclasses import asdict
        >>> model = WorkModel("dot", {"fp32": 2048}, "fp32", 8192, 4, notes=("2 per element",))
        >>> WorkModel.from_dict(asdict(model)) == model
        True
        """
        return cls(
            str(data["name"]),
            {str(precision): _number(flop) for precision, flop in dict(data["flop"]).items()},
            str(data["dtype"]),
            _number(data["read"]),
            _number(data["written"]),
            tuple(data.get("notes", ())),
            tuple(data.get("assumptions", ())),
            data.get("exact", True),
            data.get("memory", "dram"),
        )


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise TypeError(f"{value!r} is no amount")
    return value


@dataclass(frozen=True)
class Bound:
    """The least time [s] that arithmetic and DRAM traffic take, each at its peak.

    >>> Bound(compute_seconds=1e-3, memory_seconds=4e-3).side
    'memory-bound'
    """

    compute_seconds: float
    memory_seconds: float

    @property
    def seconds(self) -> float:
        """Time floor [s]: arithmetic and traffic overlap perfectly."""
        return max(self.compute_seconds, self.memory_seconds)

    @property
    def side(self) -> str:
        """Which of the two takes longer: "compute-bound", "memory-bound", or "balanced" at the ridge."""
        if self.compute_seconds == self.memory_seconds:
            return "balanced"
        return "compute-bound" if self.compute_seconds > self.memory_seconds else "memory-bound"


@dataclass(frozen=True)
class Ratio:
    """What a launch did, by its counters, over what its model needs at least; ``above`` explains more than 1.

    >>> Ratio(Value("dram_bytes", 3e6, "byte", "exact"), 2e6, "the same data was fetched again").ratio
    1.5
    """

    measured: Value
    modelled: float
    above: str

    @property
    def ratio(self) -> float | None:
        """Measured over modelled; None where either is unknown or the model has none."""
        number = self.measured.number
        return number / self.modelled if number is not None and self.modelled else None


@dataclass(frozen=True)
class Estimate:
    """A model under peaks: the roofline bound, the time floor, and whether a measured time fits.

    ``peaks`` [FLOP/s] by precision and ``bandwidth`` [byte/s] say where they come from, or why they are
    unknown; ``seconds`` [s] is a measured time.  What needs an unknown peak is None.

    >>> rate = {"fp32": Value("peak", 4e12, "FLOP/s", "exact")}
    >>> model = WorkModel("dot", {"fp32": 2e9}, "fp32", 4e9, 0)
    >>> found = Estimate(model, rate, Value("bandwidth", 1e12, "byte/s", "exact"), seconds=1e-3)
    >>> found.bound, found.ridge, found.achieved, found.consistent
    (500000000000.0, 4.0, 2000000000000.0, False)
    """

    model: WorkModel
    peaks: Mapping[str, Value]
    bandwidth: Value
    seconds: float | None = None
    ratios: tuple[Ratio, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def compute_seconds(self) -> float | None:
        """Time of the arithmetic at peak [s]: pipes overlap, so that of the longest; 0 without FLOPs.

        Precisions that share one peak (values of one id) add up.
        """
        work: dict[str, float] = {}
        rates: dict[str, float] = {}
        for precision, flop in self.model.flop.items():
            peak = self.peaks[precision]
            if not peak.number:
                return None
            work[peak.id] = work.get(peak.id, 0.0) + flop
            rates[peak.id] = peak.number
        return max((flop / rates[id] for id, flop in work.items()), default=0.0)

    @property
    def memory_seconds(self) -> float | None:
        """Time of the traffic at peak [s]."""
        return self.model.bytes / bandwidth if (bandwidth := self.bandwidth.number) else None

    @property
    def floor(self) -> Bound | None:
        """The least time; None where a peak is unknown."""
        compute, memory = self.compute_seconds, self.memory_seconds
        return None if compute is None or memory is None else Bound(compute, memory)

    @property
    def peak(self) -> float | None:
        """Peak rate of the model's mix of precisions [FLOP/s]."""
        one = {value.id: value.number for value in self.peaks.values()}
        if len(one) == 1:
            return next(iter(one.values()))
        return self.model.total_flop / self.compute_seconds if self.compute_seconds else None

    @property
    def ridge(self) -> float | None:
        """Intensity from which arithmetic is the bound [FLOP/byte]."""
        bandwidth = self.bandwidth.number
        return self.peak / bandwidth if self.peak and bandwidth else None

    @property
    def bound(self) -> float | None:
        """The roofline bound min(peak, intensity x bandwidth) [FLOP/s]; None without FLOPs."""
        floor = self.floor
        return self.model.total_flop / floor.seconds if floor and self.model.flop else None

    @property
    def achieved(self) -> float | None:
        """FLOPs of the model over the measured time [FLOP/s]."""
        return self.model.total_flop / self.seconds if self.seconds else None

    @property
    def achieved_bandwidth(self) -> float | None:
        """Bytes of the model over the measured time [byte/s]."""
        return self.model.bytes / self.seconds if self.seconds else None

    @property
    def consistent(self) -> bool | None:
        """Whether the measured time is possible; None without one, or where an unknown peak would decide."""
        if self.suspects:
            return False
        return None if self.seconds is None or self.floor is None else True

    @property
    def suspects(self) -> tuple[str, ...]:
        """What could be wrong where the measured time is too short: keys of `SUSPECTS`."""
        if self.seconds is None:
            return ()
        needs = {"traffic": self.memory_seconds, "arithmetic": self.compute_seconds}
        broken = {name for name, needed in needs.items() if needed and needed > TOLERANCE * self.seconds}
        return tuple(key for key, (sides, _) in SUSPECTS.items() if broken & sides)

    @property
    def missing(self) -> tuple[str, ...]:
        """Why the bound is unknown."""
        values = (*self.peaks.values(), self.bandwidth)
        return tuple(dict.fromkeys(value.reason or "" for value in values if not value.known))


SUSPECTS: Mapping[str, tuple[frozenset[str], str]] = {
    "bytes": (frozenset({"traffic"}), "fewer bytes moved than stated"),
    "flops": (
        frozenset({"traffic", "arithmetic"}),
        "less work was done than stated: shape, convention, skipped work",
    ),
    "timing": (
        frozenset({"traffic", "arithmetic"}),
        "the time is not that of all the work: units, an early stop of the clock",
    ),
    "memory-level": (
        frozenset({"traffic"}),
        "the bytes came from a cache, whose bandwidth is the one to take",
    ),
    "peak": (frozenset({"arithmetic"}), "the peak belongs to another precision, clock or GPU"),
}
"""What can be wrong -> the side of the roofline that was exceeded, and in words."""
