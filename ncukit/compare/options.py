"""What a caller can ask of a comparison: shared by the command line and the library."""

from __future__ import annotations

from pathlib import Path

from ncukit.compare import baseline
from ncukit.compare.gates import Gate
from ncukit.compare.match import Steering
from ncukit.compare.side import Choice
from ncukit.model import Kernel
from ncukit.record import dataclass
from ncukit.tools.names import NamePattern


@dataclass(frozen=True)
class CompareOptions:
    """How two sides are read and matched, and which gates decide.

    ``match`` holds "BASE=OTHER" and the word "order"; ``kernel`` restricts to kernels of that name;
    ``fail_on`` holds gates as text, ``gates`` those that are parsed already; ``elements`` holds numbers of
    output elements; ``lines`` reads source lines; ``baselines`` is the folder of named baselines.
    """

    match: tuple[str, ...] = ()
    kernel: str | None = None
    fail_on: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()
    allow_unknown: bool = False
    beyond_noise: bool = False
    elements: tuple[float, ...] = ()
    lines: bool = True
    baselines: Path = baseline.FOLDER
    isolate: bool = True

    @property
    def steering(self) -> Steering:
        """How launches are matched."""
        return Steering.of(self.match)

    @property
    def choice(self) -> Choice:
        """What is read of each side."""
        pattern = None if self.kernel is None else NamePattern(self.kernel)

        def keep(kernel: Kernel) -> bool:
            return pattern is None or pattern.matches(kernel.name, kernel.demangled)

        return Choice(
            keep,
            apart=self.steering.in_order,
            lines=self.lines,
            isolate=self.isolate,
            baselines=self.baselines,
        )
