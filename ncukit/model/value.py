"""One neutral metric of one launch, with its evidence."""

from __future__ import annotations

from typing import Literal

from ncukit.record import dataclass

Quality = Literal["exact", "derived", "estimate"]


@dataclass(frozen=True)
class Value:
    """A neutral metric: a number or string with unit, quality and raw counters, or unknown with a reason.

    ``value`` is None exactly when the metric is unknown; ``reason`` then says why.  A value outside the
    metric's range stays as it is, with ``reliable`` False and the reason: no rule may use it.

    >>> Value("dram_bytes", None, "byte", reason="not collected: MemoryWorkloadAnalysis").known
    False
    """

    id: str
    value: float | int | str | None
    unit: str
    quality: Quality | None = None
    sources: tuple[str, ...] = ()
    reason: str | None = None
    reliable: bool = True
    formula: str | None = None

    @property
    def known(self) -> bool:
        """Whether there is a value at all, reliable or not."""
        return self.value is not None

    @property
    def number(self) -> float | None:
        """The value as a number that a rule may use: None when unknown, unreliable or a string."""
        value = self.value
        return value if self.reliable and value is not None and not isinstance(value, str) else None

    def as_dict(self) -> dict[str, object]:
        """Return the pinned JSON form (schema ``ncukit.kernel/1``)."""
        return {
            "value": self.value,
            "unit": self.unit,
            "quality": self.quality,
            "sources": list(self.sources),
            "reason": self.reason,
        }
