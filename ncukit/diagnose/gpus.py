"""What a trace tells of the GPUs and of the framework in it."""

from __future__ import annotations

import re
from collections.abc import Iterable

AMD = ("these kernels ran on an AMD GPU: ncu measures NVIDIA GPUs", "Use rocprofv3.")
"""What is wrong, and what to do."""

_TORCH = re.compile(r"\b(at|c10|torch)::|^triton_")


def is_amd(gpus: Iterable[str | None], names: Iterable[str]) -> bool:
    """Return whether a trace is of AMD GPUs: they are called so, or have no name and there are calls of HIP.

    >>> is_amd(["NVIDIA L4"], ["cudaLaunchKernel"]), is_amd([None], ["hipLaunchKernel"])
    (False, True)
    """
    if known := [gpu for gpu in gpus if gpu]:
        return all(gpu.startswith(("AMD", "Radeon")) for gpu in known)
    return any(name.startswith("hip") for name in names)


def runs_torch(kernels: Iterable[str]) -> bool:
    """Return whether kernels of PyTorch, or those that its compiler writes, are among ``kernels``.

    >>> runs_torch(["void at::native::fill(int)"]), runs_torch(["sgemm(float*)"])
    (True, False)
    """
    return any(_TORCH.search(name) for name in kernels)
