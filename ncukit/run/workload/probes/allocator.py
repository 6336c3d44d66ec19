"""The caching allocator of torch: what is allocated, what is only reserved, and what grows from step to step.

Memory is compared at the boundaries of equal steps.  High reserved memory is the cache at work and no leak;
only allocated memory that grows with every step is a suspect, and even that may be meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from ncukit.errors import NcukitError

WARM_UP = 3
"""Steps before the first boundary: autotuning, workspaces and lazy set-up allocate there."""
GROWING = 0.8
"""Share of the steps that must grow, for growth to be more than an event."""
MUCH = 0.25
"""Share of reserved memory that is not allocated from which it is worth a word."""

Trend = Literal["flat", "grows", "steps", "shrinks"]


@dataclass(frozen=True)
class Boundary:
    """The allocator between two steps [byte], after all work of the step is done.

    ``split`` is reserved but not allocated, inside blocks that are in use; ``retries`` counts allocations
    that worked only after the cache was emptied.
    """

    allocated: int
    reserved: int
    split: int = 0
    segments: int = 0
    peak: int = 0
    retries: int = 0
    out_of_memory: int = 0


@dataclass(frozen=True)
class Judgement:
    """What the boundaries say; growth [byte per step]."""

    allocated: Trend
    reserved: Trend
    allocated_per_step: float
    reserved_per_step: float
    says: tuple[str, ...]


def judge(boundaries: Sequence[Boundary]) -> Judgement:
    """Return what the allocator's numbers at the boundaries of equal steps say.

    >>> judge([Boundary(100, 400)] * 5).allocated
    'flat'
    >>> judge([Boundary(100 + 10 * i, 400) for i in range(5)]).allocated_per_step
    10.0
    """
    if len(boundaries) < 2:
        raise NcukitError("memory at one boundary says nothing about growth", "give --steps 2 or more")
    allocated, reserved = ([getattr(b, name) for b in boundaries] for name in ("allocated", "reserved"))
    steps, last = len(boundaries) - 1, boundaries[-1]
    found = _trend(allocated), _trend(reserved)
    per_step = (allocated[-1] - allocated[0]) / steps, (reserved[-1] - reserved[0]) / steps
    says = [_allocated(found[0], per_step[0], steps)]
    if last.reserved and (idle := last.reserved - last.allocated) > MUCH * last.reserved:
        says.append(
            f"{100 * idle / last.reserved:.0f} % of the reserved memory is not allocated: the allocator "
            "keeps it for reuse. That is no leak; other processes cannot use it"
        )
        if last.split > MUCH * last.reserved:
            says.append(
                "most of that lies inside blocks that are in use: many sizes fragment the cache "
                "(test: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True)"
            )
    if found[1] == "grows" and found[0] != "grows":
        says.append(
            "reserved memory grows although allocated memory does not: each step asks for sizes that the "
            "cache does not hold (changing shapes), so nothing is reused"
        )
    if last.retries > boundaries[0].retries:
        says.append("allocations worked only after the cache was emptied, which waits for the GPU each time")
    if last.out_of_memory:
        says.append(f"{last.out_of_memory} allocations failed for lack of memory")
    return Judgement(*found, *per_step, tuple(says))


def _trend(values: Sequence[int]) -> Trend:
    """Return how ``values`` go: "grows" with most steps, "steps" up now and then, "shrinks", or "flat"."""
    changes = [b - a for a, b in pairwise(values)]
    total = values[-1] - values[0]
    if total > 0:
        often = sum(change > 0 for change in changes) >= max(2, GROWING * len(changes))
        return "grows" if often else "steps"
    return "shrinks" if total < 0 else "flat"


def _allocated(trend: Trend, per_step: float, steps: int) -> str:
    if trend == "grows":
        return (
            f"allocated memory grows with every step, by {per_step:,.0f} bytes: something keeps tensors of "
            "past steps (a list of losses with their graph, a cache, hooks). Whether it is meant, only the "
            "program knows; --snapshot shows who allocated them"
        )
    if trend == "steps":
        return (
            f"allocated memory grew by {per_step * steps:,.0f} bytes in few of {steps} steps: an event, not "
            "a pattern; compare again with more --steps"
        )
    return "allocated memory is the same at both boundaries: nothing accumulates"


def probe(run: Callable[[], Any] | None, steps: int, snapshot: Path | None) -> dict[str, Any]:
    """Return the allocator at the boundaries of ``steps`` calls of ``run``, after warm-up.

    Raises:
        NcukitError: there is no GPU, or no workload to run.
    """
    import torch

    if not torch.cuda.is_available():
        raise NcukitError(
            "torch sees no CUDA GPU, and its CPU allocator keeps no such statistics",
            "on a CPU, compare the process's resident memory at the same boundaries instead",
        )
    if run is None:
        raise NcukitError(
            "there is no workload whose steps could be compared", "add --script FILE --kernel NAME"
        )
    for _ in range(WARM_UP):
        run()
    found = [_boundary(torch)]
    torch.cuda.reset_peak_memory_stats()
    for _ in range(steps):
        run()
        found.append(_boundary(torch))
    if snapshot is not None:
        _save(torch, snapshot)
    return {
        "state": "done",
        "result": {
            "backend": str(torch.cuda.get_allocator_backend()),
            "warm_up": WARM_UP,
            "steps": steps,
            "first": asdict(found[0]),
            "last": asdict(found[-1]),
            "boundaries": [asdict(b) for b in found],
            "judgement": asdict(judge(found)),
            "snapshot": None if snapshot is None else str(snapshot),
        },
    }


def boundary(stats: Mapping[str, int]) -> Boundary:
    """Return what ``torch.cuda.memory_stats()`` says."""
    return Boundary(
        stats.get("allocated_bytes.all.current", 0),
        stats.get("reserved_bytes.all.current", 0),
        stats.get("inactive_split_bytes.all.current", 0),
        stats.get("segment.all.current", 0),
        stats.get("allocated_bytes.all.peak", 0),
        stats.get("num_alloc_retries", 0),
        stats.get("num_ooms", 0),
    )


def _boundary(torch: Any) -> Boundary:
    import gc

    torch.cuda.synchronize()
    gc.collect()  # so that the boundaries are comparable: cycles are freed at any time otherwise
    return boundary(torch.cuda.memory_stats())


def _save(torch: Any, path: Path) -> None:
    import json

    from ncukit.run.workload.script import plain

    beside = path.with_name(f".{path.name}.part")
    beside.write_text(json.dumps(plain(torch.cuda.memory_snapshot())), encoding="utf-8")
    beside.replace(path)
