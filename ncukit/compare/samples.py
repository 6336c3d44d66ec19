"""Launches of one side as samples: repeats of one measurement become one, the rest stay apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from ncukit.compare.noise import spread_of
from ncukit.diagnose import diagnose
from ncukit.model import Diagnosis, Kernel
from ncukit.model.comparison import Sample

SAME_WORK = 0.01
"""Share by which the warp instructions of repeats may differ."""
WORK = "inst_executed"
_SHAPE = (
    *("grid_dim_x", "grid_dim_y", "grid_dim_z", "block_dim_x", "block_dim_y", "block_dim_z"),
    *("grid_size", "block_size"),
)


def shape(kernel: Kernel) -> tuple[float | None, ...]:
    """Return grid and block of a launch."""
    return tuple(kernel.number(id) for id in _SHAPE)


def samples(
    files: Sequence[Sequence[Kernel]],
    *,
    apart: bool = False,
    judge: Callable[[Kernel], Diagnosis] = diagnose,
) -> tuple[Sample, ...]:
    """Return the launches of one side, in order, repeats together.

    ``files`` holds the launches of each report of the side: one report, or reports of one program that was
    profiled several times.  Launches of one name, shape, NVTX range, registers and shared memory are repeats
    when they do the same work, or when what they do is not known.  If they do different work, the n-th of one
    file is a repeat of the n-th of another.  With ``apart`` launches of one file are never repeats.
    """
    groups: dict[Hashable, list[list[Kernel]]] = {}
    for number, kernels in enumerate(files):
        for kernel in kernels:
            rows = groups.setdefault(_key(kernel), [[] for _ in files])
            rows[number].append(kernel)
    found: list[list[Kernel]] = []
    for rows in groups.values():
        everything = [kernel for row in rows for kernel in row]
        if not apart and everything[0].failed is None and same_work(everything) is not False:
            found.append(everything)
        elif len({len(row) for row in rows if row}) == 1:
            found += [list(column) for column in zip(*(row for row in rows if row), strict=True)]
        else:
            found += [[kernel] for kernel in everything]
    made = [_sample(kernels, judge) for kernels in found]
    return tuple(sorted(made, key=lambda sample: sample.launches[0]))


def told_apart(samples: Sequence[Sample]) -> list[str]:
    """Return a name for each sample that tells it from the others: function, grid and block, launch number.

    More than the function is added only where it is needed.
    """
    names = [sample.kernel.name for sample in samples]
    shaped = [f"{name}{_shaped(sample.kernel)}" for name, sample in zip(names, samples, strict=True)]
    numbered = [f"{long}, launch {s.launches[0]}" for long, s in zip(shaped, samples, strict=True)]
    once, enough = Counter(names), Counter(shaped)
    return [
        name if once[name] == 1 else long if enough[long] == 1 else longest
        for name, long, longest in zip(names, shaped, numbered, strict=True)
    ]


def _shaped(kernel: Kernel) -> str:
    sizes = [kernel.number(id) for id in ("grid_size", "block_size")]
    if None in sizes:
        return ""
    blocks, threads = (f"{size or 0:,.0f}" for size in sizes)
    return f", {blocks} x {threads}"


def same_work(kernels: Sequence[Kernel]) -> bool | None:
    """Return whether all launches executed as many instructions; None where that is not known."""
    work = [kernel.number(WORK) for kernel in kernels]
    known = [n for n in work if n is not None]
    if len(known) < len(work):
        return None
    return max(known) - min(known) <= SAME_WORK * max(known)


def _key(kernel: Kernel) -> Hashable:
    return (
        kernel.demangled or kernel.name,
        shape(kernel),
        kernel.raw.nvtx,
        kernel.number("registers_per_thread"),
        kernel.number("shared_mem_allocated"),
        kernel.gpu,
        kernel.failed,
    )


def _sample(kernels: Sequence[Kernel], judge: Callable[[Kernel], Diagnosis]) -> Sample:
    ordered = sorted(kernels, key=lambda kernel: kernel.number("kernel_duration") or 0.0)
    median = ordered[(len(ordered) - 1) // 2]
    return Sample(
        judge(median),
        tuple(kernel.index + 1 for kernel in kernels),
        spread_of(kernels),
        len(kernels),
        same_work(kernels) if len(kernels) > 1 else None,
    )
