"""Counters against an analytic model: which assumption is suspect where they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ncukit.model import Check, Kernel, Value
from ncukit.model.work import Ratio, WorkModel
from ncukit.roofline.place import PRECISIONS

SAME = 1.02
"""Factor within which counters and model agree: rounding, and the first elements of each sum."""

PADDED = 1.1
"""FLOPs over the model from which more than a padded last tile was executed."""

REDUNDANT = 1.5
"""DRAM bytes over the compulsory ones from which data was moved again: good tiled kernels stay below."""


def compare(model: WorkModel, kernel: Kernel, *, launches: int = 1) -> tuple[Check, ...]:
    """Return what the counters of ``kernel`` say to ``model``: FLOPs, precision, DRAM bytes, duration.

    ``launches`` is how many the modelled region has: one of several may do less than the model says.

    >>> from ncukit.model import RawKernel, Value
    >>> model = WorkModel("copy", {}, "fp32", read=1e9, written=1e9)
    >>> moved = {"dram_bytes": Value("dram_bytes", 4.5e9, "byte", "exact")}
    >>> compare(model, Kernel("", RawKernel(0, "f", "f()", ""), moved))[0].message[:55]
    'DRAM moved 2.25 times the compulsory bytes of the model'
    """
    if kernel.failed:
        return ()
    parts = (_flops, _bytes, _time)
    return tuple(check for part in parts for check in part(model, kernel, launches))


ABOVE = {
    "flops": "tiles padded beyond the shape, work done twice, or functions such as exp that compile to FLOPs",
    "dram_bytes": "the same data fetched again, partly used sectors, spills, or more arrays than modelled",
    "dram_read_bytes": "inputs fetched again, sectors used in part, or spills read back",
    "dram_write_bytes": "results written in parts, spills, or dirty lines that were in the L2 before",
}
"""What more than the model needs can mean."""


def ratios(model: WorkModel, kernel: Kernel) -> tuple[Ratio, ...]:
    """Return FLOPs and DRAM bytes that the counters of ``kernel`` hold over those of ``model``.

    >>> from ncukit.model import RawKernel
    >>> model = WorkModel("copy", {}, "fp32", read=1e9, written=1e9)
    >>> moved = {"dram_bytes": Value("dram_bytes", 4.5e9, "byte", "exact")}
    >>> [r.ratio for r in ratios(model, Kernel("", RawKernel(0, "f", "f()", ""), moved))]
    [2.25, None, None]
    """
    found = [Ratio(_flop_value(model, kernel), model.total_flop, ABOVE["flops"])] if model.flop else []
    if model.memory == "dram":
        moved = (
            ("dram_bytes", model.bytes),
            ("dram_read_bytes", model.read),
            ("dram_write_bytes", model.written),
        )
        found += [
            Ratio(kernel.metrics.get(id) or _unknown(id, "byte"), needed, ABOVE[id])
            for id, needed in moved
            if needed
        ]
    return tuple(found)


def _flop_value(model: WorkModel, kernel: Kernel) -> Value:
    """Return the FLOPs that the counters hold, unknown where those of a precision of the model are."""
    for precision in model.flop:
        value = kernel.metrics.get(f"flops_{precision}") or _unknown(f"flops_{precision}", "FLOP")
        if value.number is None:
            return Value("flops", None, "FLOP", reason=f"{value.id} is unknown: {value.reason}")
    counted = _counted(kernel)
    ids = tuple(f"flops_{p}" for p, flop in counted.items() if flop)
    return Value(
        "flops", sum(counted.values()), "FLOP", "derived", ids or tuple(f"flops_{p}" for p in model.flop)
    )


def _unknown(id: str, unit: str) -> Value:
    return Value(id, None, unit, reason="not in the report")


def _flops(model: WorkModel, kernel: Kernel, launches: int) -> Iterable[Check]:
    if not model.flop:
        return
    counted = _counted(kernel)
    done = sum(counted.values())
    ratio = done / model.total_flop
    unknown = [p for p in model.flop if kernel.number(f"flops_{p}") is None]
    numbers = f"{_si(done, 'FLOP')} of {_si(model.total_flop, 'FLOP')}"
    if unknown and ratio < 1 / SAME:
        yield Check("model-flops", None, f"Not compared: {_why(kernel, f'flops_{unknown[0]}')}.")
        return
    if ratio < 1 / SAME:
        yield _less(
            "model-flops",
            f"The counters hold {ratio:.3g} times the FLOPs of the model ({numbers})",
            "suspect the model's shape, work that was skipped (sparsity, early exit), another algorithm, or "
            "a unit whose operations are not counted",
            launches,
        )
    elif ratio > PADDED and model.exact:
        yield Check(
            "model-flops",
            False,
            f"The counters hold {ratio:.3g} times the FLOPs of the model ({numbers}): suspect tiles padded "
            "beyond the shape, work done twice, or a model that leaves part of it out.",
        )
    else:
        beyond = "" if ratio < PADDED else "; functions such as exp compile to operations of their own"
        message = f"Counted FLOPs are {ratio:.3g} times those of the model ({numbers}){beyond}."
        yield Check("model-flops", True, message)
    if launches == 1 and done:
        yield _precision(model, counted)


def _precision(model: WorkModel, counted: Mapping[str, float]) -> Check:
    """Compare where most of the work was done with where the model puts it."""
    ran = max(counted, key=lambda p: counted[p])
    meant = max(model.flop, key=lambda p: model.flop[p])
    share = 100 * counted[ran] / sum(counted.values())
    if ran == meant:
        return Check("model-precision", True, f"{share:.3g} % of the FLOPs are {ran}, as modelled.")
    return Check(
        "model-precision",
        False,
        f"{share:.3g} % of the FLOPs are {ran}, not {meant} as modelled: the roof of {ran} is the one that "
        f"holds{_hint(ran, meant)}.",
    )


def _hint(ran: str, meant: str) -> str:
    if meant.startswith("tensor_") and not ran.startswith("tensor_"):
        return "; the tensor cores were not used"
    if ran == "tensor_tf32":
        return "; TF32 keeps 10 bits of mantissa, FP32 has 23"
    return ""


def _bytes(model: WorkModel, kernel: Kernel, launches: int) -> Iterable[Check]:
    if model.memory != "dram":
        yield Check(
            "model-bytes", None, "Not compared: the model counts bytes over links, not those of DRAM."
        )
        return
    moved = kernel.number("dram_bytes")
    if moved is None:
        yield Check("model-bytes", None, f"Not compared: {_why(kernel, 'dram_bytes')}.")
        return
    ratio = moved / model.bytes
    numbers = f"{_si(moved, 'B')} of {_si(model.bytes, 'B')}"
    found = f"DRAM moved {ratio:.3g} times the compulsory bytes of the model"
    if moved * SAME < _floor(model, kernel):
        yield _less(
            "model-bytes",
            f"{found} ({numbers})",
            f"suspect data that was in the L2{_l2(kernel)} already, L2 compression, or the model's shape",
            launches,
        )
    elif ratio > REDUNDANT:
        yield Check(
            "model-bytes",
            False,
            f"{found} ({numbers}{_directions(model, kernel)}): the same data is fetched again, or sectors "
            "are only partly used.",
        )
    elif moved * SAME < model.bytes:
        yield Check(
            "model-bytes",
            True,
            f"{found} ({numbers}): what was written last can still be in the L2{_l2(kernel)} when the launch "
            "ends.",
        )
    else:
        yield Check("model-bytes", True, f"{found} ({numbers}).")


def _time(model: WorkModel, kernel: Kernel, launches: int) -> Iterable[Check]:
    """Compare the duration with what bytes and FLOPs need at the peaks of the run."""
    duration, bandwidth = kernel.number("kernel_duration"), kernel.number("peak_dram_bandwidth")
    if launches > 1 or not duration:
        return
    dram = bandwidth and model.memory == "dram"
    needs = [(_floor(model, kernel) / bandwidth, "bytes", "DRAM bandwidth")] if bandwidth and dram else []
    for precision, flop in model.flop.items():
        if peak := kernel.number(f"peak_flop_rate_{precision}"):
            needs.append((flop / peak, "FLOPs", f"{precision} rate"))
    if not needs:
        return
    needed, what, roof = max(needs)
    if needed > SAME * duration:
        yield Check(
            "model-time",
            False,
            f"The {what} of the model need {needed * 1e6:.2f} µs at peak {roof}, but the launch took "
            f"{duration * 1e6:.2f} µs: suspect the shape in the model"
            f"{', or data that was in a cache' if what == 'bytes' else ', another precision, or the peak'}.",
        )
    else:
        yield Check(
            "model-time",
            True,
            f"The launch took {duration / needed:.3g} times what the model needs at peak {roof} "
            f"({needed * 1e6:.2f} µs).",
        )


def _less(id: str, found: str, suspect: str, launches: int) -> Check:
    """Return the check of counters below the model: no fault where other launches share the work."""
    if launches > 1:
        return Check(id, None, f"{found}: the model describes all {launches} launches of the region.")
    return Check(id, False, f"{found}: {suspect}.")


def _counted(kernel: Kernel) -> dict[str, float]:
    """Return the known FLOPs by precision, without packed-half counts that are only an upper bound."""
    values = {p: kernel.metrics[f"flops_{p}"] for p in PRECISIONS if f"flops_{p}" in kernel.metrics}
    return {
        p: v.number
        for p, v in values.items()
        if v.number is not None and not (p == "fp16" and v.quality == "estimate")
    }


def _floor(model: WorkModel, kernel: Kernel) -> float:
    """Return the fewest DRAM bytes that are plausible: the L2 may keep what was written last."""
    return model.read + max(0.0, model.written - (kernel.number("l2_cache_size") or 0.0))


def _directions(model: WorkModel, kernel: Kernel) -> str:
    read, written = kernel.number("dram_read_bytes"), kernel.number("dram_write_bytes")
    if read is None or written is None or not model.read or not model.written:
        return ""
    return f"; reads {read / model.read:.3g} times, writes {written / model.written:.3g} times"


def _l2(kernel: Kernel) -> str:
    capacity = kernel.number("l2_cache_size")
    return f" ({_si(capacity, 'B')})" if capacity else ""


def _why(kernel: Kernel, id: str) -> str:
    value = kernel.metrics.get(id)
    return f"{id} is unknown ({value.reason if value is not None and value.reason else 'not in the report'})"


def _si(value: float, unit: str) -> str:
    """Return ``value`` with a decimal prefix.

    >>> _si(28672, "B"), _si(2e12, "FLOP"), _si(12, "B")
    ('28.7 kB', '2 TFLOP', '12 B')
    """
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
