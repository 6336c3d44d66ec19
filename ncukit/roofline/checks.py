"""Consistency checks: which assumption is suspect when point and roof do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ncukit.model import Check, Kernel, Point
from ncukit.model.roofline import TOLERANCE

PIPE_TOLERANCE = 1.05
"""Achieved share of a compute roof over the busy share of its pipe: more means two conventions are mixed."""

PIPES = {"fp64": "pipe_fp64_pct", "fp32": "pipe_fma_pct"}
"""Precision -> busy share of the pipe that executes it [% of active cycles]."""


def check(kernel: Kernel, points: Sequence[Point]) -> tuple[Check, ...]:
    """Return every check that could be made on ``points`` of ``kernel``; what fails names the suspect."""
    return (*_above_roof(kernel, points), *_against_pipe(kernel, points), *_dram_time(kernel))


def _above_roof(kernel: Kernel, points: Sequence[Point]) -> Iterable[Check]:
    judged = [(p, p.achieved / p.attainable) for p in points if p.attainable and p.achieved]
    above = [(p, factor) for p, factor in judged if factor > TOLERANCE]
    if judged and not above:
        yield Check("below-roof", True, "Every point lies on or below its roof.")
    for p, factor in above:
        if p.peak and p.attainable and p.attainable < p.peak:
            suspect = f"the {p.level} bandwidth or the counted bytes"
        else:
            clock = kernel.number("sm_clock")
            implied = f", or the SM ran at {clock * factor / 1e9:.3f} GHz" if clock else ""
            suspect = f"the {p.precision} peak{implied}"
        yield Check(
            "below-roof",
            False,
            f"{p.precision} at {p.level} is {100 * factor:.1f} % of its roof: suspect {suspect}.",
        )


def _against_pipe(kernel: Kernel, points: Sequence[Point]) -> Iterable[Check]:
    for precision, id in PIPES.items():
        point = next((p for p in points if p.precision == precision and p.peak and p.achieved), None)
        pipe, active = kernel.number(id), kernel.number("sm_active_pct")
        if point is None or pipe is None or active is None or not point.peak or not point.achieved:
            continue
        share, busy = 100 * point.achieved / point.peak, pipe * active / 100
        if share > PIPE_TOLERANCE * busy + 1:
            message = f"{precision} reaches {share:.1f} % of its peak, but its pipe is busy only {busy:.1f} %"
            yield Check("pipe", False, f"{message}: suspect the FLOP convention or the peak.")
        else:
            yield Check(
                "pipe", True, f"{precision}: {share:.1f} % of peak within {busy:.1f} % pipe activity."
            )


def _dram_time(kernel: Kernel) -> Iterable[Check]:
    moved, roof = kernel.number("dram_bytes"), kernel.number("peak_dram_bandwidth")
    duration = kernel.number("kernel_duration")
    if not moved or not roof or not duration:
        return
    needed = moved / roof
    if needed > TOLERANCE * duration:
        yield Check(
            "dram-time",
            False,
            f"The counted DRAM bytes need {needed * 1e6:.2f} µs at peak bandwidth, but the launch took "
            f"{duration * 1e6:.2f} µs: suspect the DRAM clock or counters of different passes.",
        )
    else:
        yield Check("dram-time", True, f"DRAM bytes fit: {100 * needed / duration:.1f} % of the duration.")
