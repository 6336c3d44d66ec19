"""The next experiment for each class of a region, as data: one change, and what would disprove it."""

from __future__ import annotations

from collections.abc import Mapping

from ncukit.model.finding import Experiment
from ncukit.quantity import faster

AGAIN = (
    "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node -o after YOUR_PROGRAM",
    "ncukit timeline after.nsys-rep",
)

ALLOCATE = {
    False: "Allocate all buffers once, before the loop, and use them again; in streams cudaMallocAsync takes "
    "them from a pool.",
    True: "Allocate all buffers before the loop, or let the caching allocator keep them "
    "(PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, no empty_cache()).",
}
"""How to allocate once, by whether PyTorch runs."""

TITLES = {
    "launch-bound": "Replay the launches as one CUDA graph",
    "synchronisation-bound": "Take the waits out of the loop",
    "transfer-bound": "Pin the memory and copy beside the kernels",
    "input-bound": "Feed the region one cached input",
    "communication-bound": "Run the region without its collectives",
    "allocator-bound": "Allocate once, before the loop",
    "kernel-bound": "Profile the longest kernel with ncu",
}

_EXPERIMENTS: Mapping[str, Mapping[str, str]] = {
    "launch-bound": {
        "change": "Capture the region once and replay it (torch.cuda.CUDAGraph, torch.compile(mode="
        "'reduce-overhead'), cudaStreamBeginCapture). Where shapes change, fuse the short kernels instead.",
        "why": "The GPU is without work {share:.1f} % of the time because the next launch comes late.",
        "watch": "empty gaps of the device, then the clean time",
        "disproved_if": "the empty share falls but the clean time does not, or a graph does not lower it",
        "cost": "static shapes and addresses inside the graph",
    },
    "synchronisation-bound": {
        "change": "Remove the synchronising calls inside the loop (.item(), .cpu(), print of a tensor, "
        "cudaDeviceSynchronize, blocking copies), and synchronise once after it.",
        "why": "After each wait the GPU stays dry until the CPU has prepared the next work: {share:.1f} % of "
        "the time.",
        "watch": "waits and empty gaps, then the clean time",
        "disproved_if": "the waits are gone and the empty share stays, or the results change",
        "cost": "values arrive later on the CPU; more memory is in flight",
    },
    "transfer-bound": {
        "change": "{fix}.",
        "why": "For {share:.1f} % of the time a copy or memory set runs and no kernel does.",
        "watch": "the copy share of the gaps and the bandwidth of the copies, then the clean time",
        "disproved_if": "the copies run beside kernels, or faster, and the clean time stays",
        "cost": "pinned memory, and one more buffer",
    },
    "input-bound": {
        "change": "Build one input before the loop and use it in every iteration (a diagnosis, not a fix).",
        "why": "The launching thread is outside CUDA for {share:.1f} % of the time, in long pauses.",
        "watch": "the clean time of the loop with the cached input",
        "disproved_if": "the clean time stays: then the CPU is busy with something else, not with input",
        "cost": "none; if confirmed: more loader workers, prefetching, preprocessing on the GPU",
    },
    "communication-bound": {
        "change": "Run the same region with one GPU, or with the collectives replaced by no-ops.",
        "why": "For {share:.1f} % of the time only collectives run. They contain the wait for slower ranks, "
        "which one rank's trace cannot tell from transfer.",
        "watch": "the clean time without the collectives; the start of the same collective on every rank",
        "disproved_if": "the clean time without them falls by much less than their share",
        "cost": "wrong results in the test run; if confirmed: overlap, larger buckets, fewer bytes",
    },
    "allocator-bound": {
        "change": "{allocate}",
        "why": "The GPU is without work {share:.1f} % of the time while the CPU allocates or frees memory.",
        "watch": "calls of {allocating} inside the region, then the clean time",
        "disproved_if": "the calls are gone and the empty share stays",
        "cost": "memory stays reserved",
    },
    "kernel-bound": {
        "change": "Measure {kernel} with ncu before changing anything.",
        "why": "Kernels run {share:.1f} % of the time: only faster kernels make the region faster.",
        "watch": "the clean time of the region",
        "disproved_if": "the kernel gets faster by its own time and the region does not",
        "cost": "ncu runs the launch again for each pass",
    },
}


def experiment(cls: str, share: float, bound: float | None, facts: Mapping[str, str]) -> Experiment | None:
    """Return the experiment for class ``cls``, None where none is known.

    ``share`` [%] and ``bound`` (the most that the region could gain) fill the words, ``facts`` the names.
    """
    words = _EXPERIMENTS.get(cls)
    if words is None:
        return None
    said = {key: text.format(share=share, **facts) for key, text in words.items()}
    most = "" if bound is None else f"{faster(bound)}, if all of it goes and nothing else gets worse"
    if cls == "kernel-bound":
        most = f"{facts['kernel_bound']} if it took no time"
    return Experiment(title=TITLES[cls], expect=most, run=AGAIN if cls != "kernel-bound" else (), **said)
