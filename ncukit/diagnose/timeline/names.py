"""What a name says: helpers and collectives among kernels, the kinds of CUDA calls; patterns as data."""

from __future__ import annotations

import re

from ncukit.model.timeline import KernelKind

COLLECTIVE = re.compile(
    r"\bnccl|rccl|mscclpp|nvshmem|userbuffers|deep_ep|cross_device_reduce|multimem_(all|red)"
    r"|(?<!block)(?<!block_)(?<!warp)(?<!warp_)all_?reduce|all_?gather|reduce_?scatter|all_?to_?all",
    re.IGNORECASE,
)
HELPER = re.compile(
    r"FillFunctor|fill_kernel|distribution_(elementwise|nullary)|direct_copy_kernel|copy_device_to_device"
    r"|memset|memcpy|curand|(cache|l2)_?flush|flush_?(cache|l2)|InitializeMatrix|\breference_?gemm",
    re.IGNORECASE,
)

CALL_KINDS = (
    ("launch", re.compile(r"(cu(da)?|hip(Ext)?)(Module|Graph)?Launch(?!HostFunc)")),
    (
        "allocator",
        re.compile(
            r"(cuda|hip)(Malloc|Free|Host(Alloc|Register|Unregister))|cuMem(Alloc|Free|Host|Create|Map"
            r"|Unmap|Release|SetAccess|Address|Pool)"
        ),
    ),
    ("submit", re.compile(r"(cu(da)?|hip)(Mem(cpy|set|Prefetch).*Async|Memset|EventRecord|StreamWaitEvent)")),
    ("wait", re.compile(r"(cu(da)?|hip)((Device|Stream|Event|Ctx|Thread)Synchronize|Memcpy)")),
)
"""Kinds of CUDA calls, the first that matches wins; what matches none is set-up (modules, contexts, ...)."""

_SUFFIX = re.compile(r"(_pt(sz|ds))?(_v\d{4,5})?$")


def kernel_kind(name: str) -> KernelKind:
    """Return whether a kernel computes, communicates, or only fills, copies, flushes or makes random numbers.

    >>> kernel_kind("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096>)")
    'collective'
    >>> kernel_kind("block_all_reduce_sum_f32(float*, float*, int)")
    'compute'
    """
    if COLLECTIVE.search(name):
        return "collective"
    return "helper" if HELPER.search(name) else "compute"


def plain_call(name: str) -> str:
    """Return the name of a CUDA call without the suffixes of its version and its default stream.

    >>> plain_call("cudaLaunchKernel_ptsz_v7000"), plain_call("cuCtxSynchronize")
    ('cudaLaunchKernel', 'cuCtxSynchronize')
    """
    return _SUFFIX.sub("", name)


def call_kind(name: str) -> str:
    """Return the kind of a CUDA call: launch, allocator, submit, wait or setup.

    >>> call_kind("cudaMemcpyAsync"), call_kind("cudaMemcpy"), call_kind("cuModuleLoadData")
    ('submit', 'wait', 'setup')
    """
    return next((kind for kind, pattern in CALL_KINDS if pattern.match(name)), "setup")
