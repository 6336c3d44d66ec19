"""What a computation needs at least, from its shapes alone, and the time that this takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class WorkModel:
    """Analytic work of one computation: ``flop`` [FLOP] by precision, ``read`` and ``written`` [byte].

    Precisions are those of the roofline ("fp32", "tensor_fp16"); a multiply-add counts 2.  Bytes are
    compulsory: every input once, every output once, from and to DRAM.  ``notes`` say what was counted,
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
    bytes: float = field(init=False)
    """Compulsory DRAM traffic [byte]: read + written."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes", self.read + self.written)

    @property
    def total_flop(self) -> float:
        """Work of all precisions together [FLOP]."""
        return sum(self.flop.values())

    @property
    def intensity(self) -> float:
        """Arithmetic intensity at DRAM [FLOP/byte]: the highest that any implementation can have."""
        return self.total_flop / self.bytes

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WorkModel:
        """Return the model that ``dataclasses.asdict``, or JSON made of it, describes.

        >>> from dataclasses import asdict
        >>> model = WorkModel("dot", {"fp32": 2048}, "fp32", 8192, 4, notes=("2 per element",))
        >>> WorkModel.from_dict(asdict(model)) == model
        True
        """
        return cls(
            data["name"],
            dict(data["flop"]),
            data["dtype"],
            data["read"],
            data["written"],
            tuple(data.get("notes", ())),
            tuple(data.get("assumptions", ())),
            data.get("exact", True),
        )


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
