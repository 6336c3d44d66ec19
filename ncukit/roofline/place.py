"""Points and ceilings of one launch, at the clocks of the run.

Williams, Waterman, Patterson: Roofline (CACM 52(4), 2009); hierarchical form: Yang, Kurth, Williams (2020).
Work of each precision is counted on its own path and judged by the roof of the same path: FP32 work never
under a tensor roof, nor the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ncukit.catalog import load
from ncukit.model import Kernel, Point, Quality, Roof, Roofline, Value
from ncukit.roofline.checks import check

PRECISIONS = (
    "fp64",
    "fp32",
    "fp16",
    "tensor_fp64",
    "tensor_tf32",
    "tensor_bf16",
    "tensor_fp16",
    "tensor_fp8",
    "tensor_fp4",
    "tensor_int8",
    "tensor_int4",
)
LEVELS = {"dram": "dram_bytes", "l2": "bytes_l2", "l1": "bytes_l1"}
"""Memory level -> metric of its traffic [byte]."""

NOISY_CLOCK = 10e-6
"""[s] Below this the measured DRAM clock is noise: the nominal one makes the roof."""

IDIOM_SHARE = 0.01
"""Packed-half work that is only an upper bound is ignored below this share of peak: it is constant loads."""

_RANK: dict[Quality, int] = {"exact": 0, "derived": 1, "estimate": 2}


def attainable(intensity: float, peak: float, bandwidth: float) -> float:
    """Return the roofline bound [per second] at arithmetic intensity ``intensity`` [per byte].

    >>> attainable(2.0, 100.0, 10.0), attainable(50.0, 100.0, 10.0)
    (20.0, 100.0)
    """
    return min(peak, intensity * bandwidth)


def place(kernel: Kernel) -> Roofline:
    """Return the points and ceilings of ``kernel``, and what is missing for more.

    Without floating point (or integer tensor) work the instruction roofline takes its place: warp
    instructions per second over warp instructions per byte, under the issue roof.
    """
    if kernel.failed:
        return Roofline(missing=(f"No point: {kernel.failed}.",))
    duration = kernel.number("kernel_duration")
    if not duration:
        return Roofline(missing=("No point: the duration was not collected (section SpeedOfLight).",))
    ceilings = _Ceilings(kernel, duration)
    points: list[Point] = []
    missing: list[str] = []
    work = [(p, kernel.metrics[f"flops_{p}"]) for p in PRECISIONS if f"flops_{p}" in kernel.metrics]
    for precision, flops in work:
        if flops.number and not _idiom(kernel, precision, flops):
            points += ceilings.points(precision, flops)
    if not points:
        unknown = next((v for p, v in work if p in ("fp32", "fp64") and v.value is None), None)
        if unknown is not None:
            missing.append(f"No FLOP point: floating-point work is unknown ({unknown.reason}).")
        instructions = kernel.metrics.get("inst_executed")
        if instructions is not None and instructions.number:
            points += ceilings.points("inst", instructions)
    missing += ceilings.missing
    roofs = ceilings.roofs(points)
    return Roofline(tuple(points), roofs, check(kernel, points), tuple(dict.fromkeys(missing)))


def aggregate(points: Sequence[Point]) -> tuple[float | None, float | None]:
    """Return intensity [per byte] and rate [per second] of several launches together.

    The intensity is the sum of the work over the sum of the bytes, the rate the sum of the work over the sum
    of the times: never the mean of ratios.  A launch without bytes or rate makes the result unknown.

    >>> p = Point("fp32", "dram", 1e6, 1e6, 1.0, 1e9, None, None, None, "exact")
    >>> q = Point("fp32", "dram", 4e9, 1e8, 40.0, 1e12, None, None, None, "exact")
    >>> round(aggregate([p, q])[0], 1)
    39.6
    """
    if not points:
        return None, None
    work = sum(p.flop for p in points)
    traffic = [p.bytes for p in points if p.bytes]
    times = [p.flop / p.achieved for p in points if p.achieved]
    return (
        work / sum(traffic) if len(traffic) == len(points) else None,
        work / sum(times) if len(times) == len(points) else None,
    )


@dataclass
class _Ceiling:
    value: float
    quality: Quality
    note: str = ""
    nominal: bool = False


class _Ceilings:
    """The roofs that one launch is judged by."""

    def __init__(self, kernel: Kernel, duration: float) -> None:
        self.kernel, self.duration = kernel, duration
        self.missing: list[str] = []
        self.bandwidths = {level: self._bandwidth(level) for level in LEVELS}

    def points(self, precision: str, work: Value) -> list[Point]:
        """Return the point of ``work`` at every memory level whose traffic is known."""
        flop = work.number
        assert flop is not None
        peak = self._peak(precision)
        if peak is None:
            self.missing.append(f"No {_word(precision)} roof: its peak is unknown on this GPU.")
        points = []
        for level, id in LEVELS.items():
            traffic = self.kernel.metrics[id]
            if not traffic.number:
                why = traffic.reason or "it is 0"
                self.missing.append(f"No {level.upper()} point: {traffic.id} is not usable ({why}).")
                continue
            roof = self.bandwidths[level]
            intensity = flop / traffic.number
            bound = attainable(intensity, peak.value, roof.value) if peak and roof else None
            points.append(
                Point(
                    precision,
                    level,
                    flop,
                    traffic.number,
                    intensity,
                    flop / self.duration,
                    bound,
                    peak.value if peak else None,
                    roof.value if roof else None,
                    _worst(work.quality, traffic.quality),
                    tuple(dict.fromkeys((*work.sources, *traffic.sources))),
                    _worst(peak.quality, roof.quality) if peak and roof else None,
                )
            )
        return points

    def roofs(self, points: Sequence[Point]) -> tuple[Roof, ...]:
        """Return the compute roofs of the precisions that have points, and the known bandwidths."""
        compute = ((p, self._peak(p)) for p in dict.fromkeys(point.precision for point in points))
        roofs = [Roof("compute", p, peak.value, peak.quality, peak.note) for p, peak in compute if peak]
        for level, roof in self.bandwidths.items():
            if roof is not None:
                roofs.append(Roof("bandwidth", level, roof.value, roof.quality, roof.note, roof.nominal))
        return tuple(roofs)

    def _bandwidth(self, level: str) -> _Ceiling | None:
        value = self.kernel.metrics[f"peak_{level}_bandwidth"]
        if level == "dram" and self.duration < NOISY_CLOCK and (nominal := self._nominal_dram()):
            return nominal
        if not value.number:
            self.missing.append(f"No {level.upper()} roof: {value.reason or 'its peak reads 0'}.")
            return None
        return _Ceiling(value.number, value.quality or "estimate")

    def _nominal_dram(self) -> _Ceiling | None:
        width, clock = self.kernel.number("memory_bus_width"), self.kernel.number("dram_clock_max")
        if not width or not clock or not self.kernel.number("peak_dram_bandwidth"):
            return None
        note = f"nominal: the DRAM clock of a launch under {NOISY_CLOCK * 1e6:.0f} µs is noise"
        return _Ceiling(width / 4 * clock, "estimate", note, nominal=True)

    def _peak(self, precision: str) -> _Ceiling | None:
        if precision == "inst":
            value = self.kernel.metrics["peak_inst_rate"]
            return _Ceiling(value.number, value.quality or "derived", "issue slots") if value.number else None
        metric = self.kernel.metrics.get(f"peak_flop_rate_{precision}")
        if metric is not None and metric.number:
            return _Ceiling(metric.number, metric.quality or "estimate", self._note(metric))
        return self._table(precision)

    def _table(self, precision: str) -> _Ceiling | None:
        cc, sms = self.kernel.number("compute_capability"), self.kernel.number("sm_count")
        clock = self.kernel.number("sm_clock")
        each = load().peaks.get(int(cc or 0), {}).get(precision)
        if not each or not sms or not clock:
            return None
        return _Ceiling(each * sms * clock, "estimate", "device table")

    def _note(self, metric: Value) -> str:
        if metric.quality != "estimate":
            return ""
        cc = int(self.kernel.number("compute_capability") or 0)
        return f"device table, blind to product cuts: {load().peak_grounds.get(cc, '')}".rstrip(": ")


def _idiom(kernel: Kernel, precision: str, flops: Value) -> bool:
    """Return whether packed-half "work" is only an upper bound and too small to be real."""
    if precision != "fp16" or flops.quality != "estimate":
        return False
    rate, peak = kernel.number("flop_rate_fp16"), kernel.number("peak_flop_rate_fp16")
    return rate is None or peak is None or rate < IDIOM_SHARE * peak


def _word(precision: str) -> str:
    """Return a precision in words: FP32, tensor BF16, instruction issue."""
    if precision == "inst":
        return "issue"
    *tensor, dtype = precision.split("_")
    return " ".join((*tensor, dtype.upper()))


def _worst(*qualities: Quality | None) -> Quality:
    return max((q for q in qualities if q is not None), key=_RANK.__getitem__, default="estimate")
