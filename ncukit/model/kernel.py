"""One launch in neutral metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ncukit.model.raw import RawKernel
from ncukit.model.shown import Shown
from ncukit.model.value import Value
from ncukit.record import dataclass


@dataclass(frozen=True)
class Kernel(Shown):
    """One launch, translated.

    ``metrics`` holds every id of the catalog; ``signals`` holds what only the rules need (same form);
    ``breakdowns`` holds, per neutral metric that is a maximum, its members as (raw name, percent).
    A failed launch keeps its device and launch values; everything else of it is unknown.

    >>> from ncukit.model import RawKernel
    >>> k = Kernel("a.ncu-rep", RawKernel(0, "f", "f(int)", "_Z1fi"), {"x": Value("x", 3, "inst")})
    >>> k.number("x"), k.number("y"), k.name
    (3, None, 'f')
    """

    file: str
    raw: RawKernel
    metrics: Mapping[str, Value]
    signals: Mapping[str, Value] = field(default_factory=dict)
    breakdowns: Mapping[str, tuple[tuple[str, float], ...]] = field(default_factory=dict)
    failed: str | None = None
    """Why the launch has no valid measurement; None for a good one."""

    def __repr__(self) -> str:
        known = sum(value.known for value in self.metrics.values())
        gpu = f" on {self.gpu}" if self.gpu else ""
        return f"<Kernel {self.name}{gpu}, launch {self.index + 1}: {known} of {len(self.metrics)} metrics>"

    @property
    def index(self) -> int:
        """Position in the report, from 0."""
        return self.raw.index

    @property
    def name(self) -> str:
        """Function name without template arguments and parameters."""
        return self.raw.function

    @property
    def demangled(self) -> str:
        """Full demangled name."""
        return self.raw.demangled

    @property
    def gpu(self) -> str | None:
        """Marketing name of the device."""
        return self._text("gpu_name")

    @property
    def compute_capability(self) -> str | None:
        """Compute capability as NVIDIA writes it: "8.6", "10.0"."""
        cc = self.number("compute_capability")
        return None if cc is None else f"{int(cc) // 10}.{int(cc) % 10}"

    def number(self, id: str) -> float | None:
        """Return metric or signal ``id`` as a number that a rule may use, else None."""
        value = self.metrics.get(id) or self.signals.get(id)
        return None if value is None else value.number

    def _text(self, id: str) -> str | None:
        value = self.metrics.get(id)
        return value.value if value is not None and isinstance(value.value, str) else None
