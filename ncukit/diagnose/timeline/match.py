"""Which traced kernel a launch that ncu measured belongs to: by name, then grid and block, then registers."""

from __future__ import annotations

from collections.abc import Sequence

from ncukit.model import Kernel
from ncukit.model.timeline import KernelTime, Match, ShapeTime, Timeline
from ncukit.tools.names import spelled

Shape = tuple[tuple[int, int, int], tuple[int, int, int]]


class Matcher:
    """Finds the launches that ncu measured among the kernels of a timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._named: dict[str, KernelTime] = {}
        self._functions: dict[str, list[KernelTime]] = {}
        for kernel in timeline.kernels:
            self._named.setdefault(spelled(kernel.name), kernel)
            self._functions.setdefault(kernel.short, []).append(kernel)

    def find(self, kernel: Kernel) -> Match | None:
        """Return the traced kernel of the launch ``kernel``, None where the trace does not hold it.

        Its whole name decides; where no kernel has it, the function name does, if only one kernel has that
        name, or only one of them has the launch's grid and block.
        """
        shape, registers = shape_of(kernel), kernel.number("registers_per_thread")
        if (named := self._named.get(spelled(kernel.demangled))) is not None:
            return _match(named, shape, registers, "name")
        same = self._functions.get(kernel.name, [])
        if len(same) > 1:
            same = [k for k in same if shape is not None and _of_shape(k.shapes, shape)]
        return _match(same[0], shape, registers, "function name") if len(same) == 1 else None


def shape_of(kernel: Kernel) -> Shape | None:
    """Return grid and block of a launch that ncu measured, None where they are not in the report."""
    sizes = [kernel.number(f"{what}_dim_{axis}") for what in ("grid", "block") for axis in "xyz"]
    if None in sizes:
        return None
    x, y, z, a, b, c = (int(size or 0) for size in sizes)
    return (x, y, z), (a, b, c)


def _of_shape(shapes: Sequence[ShapeTime], shape: Shape) -> list[ShapeTime]:
    return [s for s in shapes if (s.grid, s.block) == shape]


def _match(kernel: KernelTime, shape: Shape | None, registers: float | None, by: str) -> Match:
    """Return the match with the shape of most launches; the same registers win."""
    same = _of_shape(kernel.shapes, shape) if shape is not None else []
    if not same:
        return Match(kernel, None, (by,))
    if exact := [s for s in same if s.registers == registers]:
        return Match(kernel, exact[0], (by, "grid and block", "registers"))
    return Match(kernel, same[0], (by, "grid and block"))
