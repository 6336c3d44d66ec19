"""Launches that belong together: by verdict, for the whole file, and by kernel, for the table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from ncukit.model import Diagnosis
from ncukit.record import dataclass
from ncukit.render.cells import Cells
from ncukit.render.words import shorten, signature


@dataclass(frozen=True)
class Launch:
    """One launch of the file with what the page needs of it; ``duration`` [s] is None where unknown."""

    cells: Cells
    diagnosis: Diagnosis

    @property
    def n(self) -> int:
        """Number from 1, in file order."""
        return self.cells.launch

    @property
    def setup(self) -> bool:
        """Whether it only prepares data: then it comes last."""
        return self.diagnosis.kernel.role == "setup"

    @property
    def duration(self) -> float | None:
        """Profiled duration [s]."""
        return self.cells.number("kernel_duration")

    @property
    def weight(self) -> float:
        """Duration for sorting: an unknown one counts as none."""
        return self.duration or 0.0


@dataclass(frozen=True)
class Group:
    """Launches of one kind, the longest first."""

    launches: tuple[Launch, ...]

    @property
    def first(self) -> Launch:
        """The longest of them."""
        return self.launches[0]

    @property
    def total(self) -> float:
        """Profiled time of all together [s]."""
        return sum(launch.weight for launch in self.launches)

    @property
    def time(self) -> float | None:
        """The same to be shown [s]: None where no launch has a duration."""
        return self.total if any(launch.duration is not None for launch in self.launches) else None


def by_verdict(launches: Sequence[Launch]) -> list[Group]:
    """Return the launches by class and limiter: the most time first, then the most launches."""
    return _grouped(launches, lambda launch: (launch.diagnosis.verdict.cls, launch.diagnosis.verdict.limiter))


def by_kernel(launches: Sequence[Launch]) -> list[Group]:
    """Return the launches by demangled name: the most time first."""
    return _grouped(launches, lambda launch: launch.cells.kernel.demangled)


def names(groups: Sequence[Group], length: int = 70) -> list[str]:
    """Return a short name for each kernel: the function, with what tells two of the same function apart."""
    functions = [group.first.cells.kernel.name for group in groups]
    short = []
    for group in groups:
        kernel = group.first.cells.kernel
        rest = signature(kernel.name, kernel.demangled) if functions.count(kernel.name) > 1 else ""
        short.append(
            shorten(f"{shorten(kernel.name, 48)}{shorten(rest, length)}" or "kernel without a name", length)
        )
    return short


def share(part: float | None, whole: float) -> float | None:
    """Return ``part`` of ``whole`` [%], or None where nothing was measured."""
    return 100 * part / whole if whole and part is not None else None


def _order(launch: Launch) -> tuple[bool, float]:
    """Sort set-up last, and the longest first."""
    return launch.diagnosis.kernel.role == "setup", -(launch.duration or 0.0)


def _grouped(launches: Sequence[Launch], key: Callable[[Launch], Hashable]) -> list[Group]:
    groups: dict[Hashable, list[Launch]] = {}
    for launch in launches:
        groups.setdefault(key(launch), []).append(launch)
    made = [Group(tuple(sorted(some, key=_order))) for some in groups.values()]
    return sorted(made, key=lambda group: (group.first.setup, -group.total, -len(group.launches)))
