"""Points and ceilings of one launch, those that were measured too, and checks that they fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncukit.errors import ReportFormatError, UsageError
from ncukit.metrics import load
from ncukit.model import Check, Kernel, Point, Quality, Roof, Roofline, Value
from ncukit.model.experiment import PROBE_SCHEMA
from ncukit.model.shares import TOLERANCE
from ncukit.record import dataclass
from ncukit.schemas.check import read_document

# ---- Consistency checks: which assumption is suspect when point and roof do not fit

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


# ---- Ceilings that were measured on a GPU, from the file of ``ncukit probe copy matmul -o FILE``
#  They lie below the peaks of the counters and the data sheet, and show what good code reaches there.


@dataclass(frozen=True)
class Measured:
    """Measured ceilings of the GPU called ``device``, from ``path``."""

    path: str
    device: str
    roofs: tuple[Roof, ...]

    def on(self, roofline: Roofline, gpu: str | None) -> Roofline:
        """Return ``roofline`` with these ceilings, or with the reason why they are not those of ``gpu``."""
        if gpu is not None and gpu != self.device:
            why = f"Measured ceilings are of {self.device}, and this launch ran on {gpu}: not drawn."
            return replace(roofline, missing=(*roofline.missing, why))
        return replace(roofline, measured=self.roofs)


def read_measured(path: str | Path) -> Measured:
    """Return the ceilings in the file of ``ncukit probe copy matmul -o FILE``.

    Raises:
        ReportNotFound: there is no such file.
        ReportFormatError: it is another file, or damaged.
        UsageError: it holds no ceiling of a GPU.
    """
    path = Path(path)
    again = "make it with: ncukit probe copy matmul -o FILE"
    data = read_document(path, PROBE_SCHEMA, again)
    try:
        done = [
            p["result"] for p in data["probes"] if p["state"] == "done" and p["name"] in ("copy", "matmul")
        ]
        gpus = [result for result in done if result["measured"] == "cuda"]
        roofs = tuple(roof for result in gpus for roof in _roofs(result))
        names = {str(result["device"]["name"]) for result in gpus}
    except (KeyError, TypeError, ValueError) as error:
        raise ReportFormatError(path, f"{path} is damaged: {error}", again) from error
    if not roofs:
        what = "those of a CPU only" if done else "no ceiling"
        raise UsageError(f"{path} holds {what}", "measure on the GPU of the report: ncukit probe copy matmul")
    if len(names) > 1:
        raise UsageError(f"{path} mixes ceilings of {' and '.join(sorted(names))}", again)
    return Measured(str(path), names.pop(), roofs)


def _roofs(result: Mapping[str, Any]) -> Iterator[Roof]:
    if "bandwidth" in result:
        note = "measured: a large copy, read and written, without a profiler"
        yield Roof("bandwidth", str(result["level"]), float(result["bandwidth"]), "exact", note)
    for precision, rate in result.get("rates", {}).items():
        note = "measured: a large square matrix product, without a profiler"
        yield Roof("compute", str(precision), float(rate), "exact", note)


# ---- Points and ceilings of one launch, at the clocks of the run
# Williams, Waterman, Patterson: Roofline (CACM 52(4), 2009); hierarchical form: Yang, Kurth, Williams
# (2020). Work of each precision is counted on its own path and judged by the roof of the same path: FP32
# work never under a tensor roof, nor the other way round.

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


@dataclasses.dataclass
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
