"""What the tools print when something goes wrong, word for word, and how they end."""

# ruff: noqa: E501 -- messages stay whole

from __future__ import annotations

from dataclasses import dataclass

RESOURCE = (
    "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) "
    "is concurrently collecting profiling data. See "
    "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#faq for more details."
)
PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on "
    "the target device 0. For instructions on enabling permissions and to get more information see "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)
LOCK = (
    "==ERROR== Failed to open/create lock file /tmp/nsight-compute-lock. Please check that this process has write "
    "permissions on this file. See https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#faq for more "
    "details."
)
MIG = (
    "==ERROR== Cannot lock GPU clock frequencies on MIG! Try locking the clocks externally (e.g. using 'nvidia-smi "
    "--lock-gpu-clocks=tdp,tdp') or profile without fixed frequencies (see '--clock-control')."
)
SLOW = (
    "==WARNING== Backing up device memory in system memory. Kernel replay might be slow. Consider using "
    '"--replay-mode application" to avoid memory save-and-restore.'
)
HANG = (
    "==WARNING== Launching the workload is taking more time than expected. If this continues to hang, terminate the "
    "profile and re-try by profiling the range of all related launches using '--replay-mode range'."
)
BY_DRIVER = ("", "==ERROR== An error was reported by the driver:")


@dataclass(frozen=True)
class Scenario:
    """One failure: the code that ncukit must give it, and the behaviour.

    ``before`` is printed instead of running the program; ``lines`` while it runs, after "Connected"; ``app`` is
    what the program prints.  ``killed`` says that the tool ends the program; ``rc`` None passes its code on.
    ``report`` "whole" writes a report all the same, "cut" half of one.
    """

    code: str
    lines: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    stderr: tuple[str, ...] = ()
    app: tuple[str, ...] = ()
    killed: bool = False
    hangs: bool = False
    rc: int | None = None
    report: str = "none"
    connected: bool = True


NCU = {
    "no-driver": Scenario(
        "no-driver",
        stderr=(
            "==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).",
        ),
        before=(
            "==ERROR== The application returned an error code (1).",
            "==WARNING== No kernels were profiled.",
        ),
        rc=1,
    ),
    "permission": Scenario("permission", (PERMISSION,), rc=1),
    "permission-vgpu": Scenario(
        "permission",
        (
            "==ERROR== The user does not have permission to access NVIDIA GPU Performance Counters on the target "
            "vGPU device 0.",
        ),
        rc=1,
    ),
    "busy": Scenario(
        "busy",
        (*BY_DRIVER, RESOURCE, '==ERROR== Failed to profile "{name}" in process {pid}'),
        killed=True,
        rc=9,
    ),
    "lock": Scenario("lock", before=(LOCK,), rc=1),
    "config": Scenario(
        "config",
        before=(
            "==ERROR== Failed to parse options: filesystem error: status: Permission denied "
            "[/afs/x/.config/NVIDIA Corporation/config.ncu-cfg]",
        ),
        rc=1,
    ),
    "driver-mismatch": Scenario(
        "driver-mismatch",
        (*BY_DRIVER, "==ERROR== Cuda driver is not compatible with Nsight Compute."),
        killed=True,
        rc=11,
    ),
    "prepare": Scenario(
        "driver-mismatch",
        (
            "==ERROR== Failed to prepare kernel for profiling",
            "==ERROR== Unknown Error on device 0.",
            '==ERROR== Failed to profile "{name}" in process {pid}',
        ),
        killed=True,
        rc=9,
    ),
    "unsupported-gpu": Scenario(
        "unsupported-gpu",
        (
            "==ERROR== Profiling is not supported on device 0. To find out supported GPUs refer --list-chips option.",
        ),
    ),
    "unsupported-wsl": Scenario(
        "unsupported-gpu",
        (
            "==ERROR== Profiling is not supported on device 0 as it uses the Windows Subsystem for Linux (WSL). Refer to "
            "https://docs.nvidia.com/nsight-compute/ReleaseNotes/#system-requirements for more details.",
        ),
    ),
    "library-not-loaded": Scenario(
        "library-not-loaded",
        (
            "",
            "==ERROR== An error was reported by the counter measurement library:",
            "==ERROR== Failed to initialize the profiler: LibraryNotLoaded. Check that a compatible driver library is "
            "loaded.",
        ),
        killed=True,
        rc=9,
    ),
    "option-unknown": Scenario(
        "option-unknown",
        before=("==ERROR== unrecognised option '--sampling-interval'. Use --help for further details.",),
        rc=1,
    ),
    "option-value": Scenario(
        "option-unknown",
        before=(
            "==ERROR== the argument for option '--clock-control' is invalid. Use --help for further details.",
        ),
        rc=1,
    ),
    "metric-unknown": Scenario(
        "metric-unknown", ("==ERROR== Failed to find metric {metric}",), killed=True, rc=9
    ),
    "section-unknown": Scenario(
        "metric-unknown",
        before=(
            "==ERROR== Option '--section X' did not match any section. Use --list-sections to see the list of "
            "available sections.",
        ),
        rc=1,
    ),
    "interpreter": Scenario(
        "interpreter",
        app=("ModuleNotFoundError: No module named 'torch'",),
        killed=True,
        rc=1,
        connected=False,
    ),
    "app-failed": Scenario("app-failed", app=("something is wrong",), killed=True, rc=3, connected=False),
    "app-no-cuda": Scenario("app-no-cuda", connected=False),
    "ended-early": Scenario(
        "app-no-cuda",
        ("==PROF== Target process {pid} terminated before first instrumented API call.",),
        connected=False,
    ),
    "child": Scenario(
        "nothing-profiled",
        (
            "==PROF== Target process 41832 terminated before first instrumented API call.",
            "==PROF== Target process 41833 terminated before first instrumented API call.",
            "==PROF== Target process 41834 terminated before first instrumented API call.",
            "==WARNING== No kernels were profiled.",
            "==WARNING== Profiling kernels launched by child processes requires the --target-processes all option.",
        ),
        connected=False,
    ),
    "graph": Scenario(
        "nothing-profiled",
        (
            "==ERROR== Kernel nodes of a graph which can have conditional nodes are not supported for profiling.",
            "==WARNING== You can profile complete CUDA graphs using --graph-profiling graph.",
        ),
    ),
    "nothing": Scenario("nothing-profiled"),
    "replay": Scenario(
        "replay",
        (
            SLOW,
            "==ERROR== Failed to save memory for replay. Could not allocate memory or file space to save context state",
            '==ERROR== Failed to profile "{name}" in process {pid}',
        ),
        killed=True,
        rc=9,
    ),
    "replay-bad-alloc": Scenario(
        "replay",
        (
            SLOW,
            "==ERROR== Unhandled C++ exception: bad allocation",
            '==ERROR== Failed to profile "{name}" in process {pid}',
        ),
        killed=True,
        rc=9,
    ),
    "launch-failed": Scenario("launch-failed", ("==ERROR== LaunchFailed",), killed=True, rc=9),
    "cupti-conflict": Scenario(
        "cupti-conflict",
        stderr=(
            "==ERROR== Another tool/injection might be loaded since CUDA_INJECTION64_PATH is set to /x/libcupti.so. To "
            "run Nsight Compute unset CUDA_INJECTION64_PATH environment variable.",
        ),
        before=(
            "==ERROR== The application returned an error code (1).",
            "==WARNING== No kernels were profiled.",
        ),
        rc=1,
    ),
    "cupti-subscriber": Scenario(
        "cupti-conflict",
        app=(
            "function cbapi->getCuptiStatus() failed with error "
            "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)",
        ),
        killed=True,
        rc=39,
    ),
    "mig-clocks": Scenario("mig-clocks", (*BY_DRIVER, MIG), killed=True, rc=9),
    "timeout": Scenario("timeout", ('==PROF== Profiling "{name}" - 0 (1/1): 0%',), hangs=True),
    "collective": Scenario("collective", ('==PROF== Profiling "{name}" - 0 (1/1): 0%', HANG), hangs=True),
    "unwritable": Scenario(
        "stale-output",
        before=(
            "==ERROR== Unable to write to file {output}. Please verify this file is not locked, and writable.",
        ),
        rc=1,
    ),
    "silent": Scenario("stale-output", ("==PROF== Report: {output}",), report="silent"),
    "cut": Scenario("stale-output", ("==PROF== Report: {output}",), report="cut"),
    "partial": Scenario(
        "tool-failed",
        ("==ERROR== UnknownError", '==ERROR== Failed to profile "{name}" in process {pid}'),
        report="whole",
    ),
    "tool-failed": Scenario(
        "tool-failed", ("==ERROR== Something nobody has seen before",), killed=True, rc=1
    ),
}

NSYS = {
    "importer": Scenario(
        "tool-missing",
        stderr=("Importer error status: The importer binary and its dependencies were not found.",),
        rc=0,
    ),
    "elsewhere": Scenario("stale-output", stderr=("Failed to create '{output}': File exists.",), rc=0),
    "option-unknown": Scenario("option-unknown", before=("unrecognised option '--nosuch'",), rc=1),
    "trace-unknown": Scenario("option-unknown", before=("Illegal --trace argument 'nosuch'.",), rc=1),
    "range": Scenario("nothing-profiled", report="silent", rc=0),
    "no-gpu-work": Scenario("no-gpu-work", report="empty"),
    "app-failed": Scenario("app-failed", app=("something is wrong",), killed=True, rc=3),
    "timeout": Scenario("timeout", hangs=True),
    "permission": Scenario("permission", stderr=(PERMISSION,), killed=True, rc=1),
    "cut": Scenario("stale-output", report="cut"),
}
