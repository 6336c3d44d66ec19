"""What a trace of torch's profiler says about operators: their time, their kernels, their memory.

`analyse` does all of it; the modules hold one question each.  Durations are whole nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from ncukit.diagnose.ops.attribute import owners
from ncukit.diagnose.ops.choice import deserving
from ncukit.diagnose.ops.memory import memory
from ncukit.diagnose.ops.nesting import nest
from ncukit.diagnose.ops.operators import keys, operators
from ncukit.diagnose.ops.utilisation import utilisation
from ncukit.diagnose.timeline.scope import whole
from ncukit.model.ops import Operator, Ops, TorchTrace

__all__ = ["SORTS", "Sort", "analyse", "ordered"]

Sort = Literal["device", "self-device", "cpu", "self-cpu"]
SORTS: Mapping[Sort, Callable[[Operator], tuple[int, int]]] = {
    "device": lambda o: (-o.device_total, -o.device_self),
    "self-device": lambda o: (-o.device_self, -o.device_total),
    "cpu": lambda o: (-o.cpu_total, -o.cpu_self),
    "self-cpu": lambda o: (-o.cpu_self, -o.cpu_total),
}


def analyse(trace: TorchTrace, program: Sequence[str] = ()) -> Ops:
    """Return what ``trace`` says about operators, by device time, or without a GPU by CPU time of their own.

    ``program`` are the words after ``ncukit profile`` that run the traced program, where they are known.
    """
    distinct, which = keys(trace.operators)
    made = nest(trace.operators, which)
    owned = owners(trace, made)
    found = operators(trace, made, distinct, owned)
    scope = whole(trace.trace)
    on_gpu = bool(trace.trace.gpu_work)
    rows = trace.operators
    span = int(rows["end"].max() - rows["start"].min()) if len(rows) else 0
    gpus = trace.trace.gpus
    used = sorted({*trace.trace.kernels["device"].tolist(), *trace.trace.copies["device"].tolist()})
    return Ops(
        file=trace.trace.file,
        torch=said if isinstance(said := trace.head.get("pytorch_version"), str) else None,
        sorted_by="device" if on_gpu else "cpu",
        span=span,
        operators=ordered(found, "device" if on_gpu else "self-cpu"),
        attribution=owned.attribution,
        recorded=trace.recorded,
        utilisation=utilisation(scope),
        memory=memory(trace, made),
        deserving=deserving(scope, found, program),
        gpus=tuple((gpus[d].name or "GPU without name") if d in gpus else "GPU not described" for d in used),
        notes=(*trace.trace.notes, *_notes(trace, owned.attribution.without_call)),
    )


def ordered(found: Sequence[Operator], sort: Sort) -> tuple[Operator, ...]:
    """Return operators by ``sort``, the largest first; those that are equal by name and shapes."""
    by = SORTS[sort]
    return tuple(sorted(found, key=lambda o: (*by(o), o.name, o.shapes, o.types)))


def _notes(trace: TorchTrace, without_call: int) -> list[str]:
    found = []
    if not trace.trace.gpu_work:
        found.append("nothing ran on a GPU: operators are ordered by CPU time of their own")
    if len(trace.operators) and not trace.recorded["shapes"]:
        found.append("the trace has no input shapes: record with record_shapes=True")
    if not len(trace.operators):
        found.append("the trace has no operators: record with ProfilerActivity.CPU as well")
    if without_call:
        found.append(f"GPU work whose launch call is not in the trace: {without_call:,} of the pieces")
    return found
