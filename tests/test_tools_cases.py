"""Real problems of people who automate the tools, one test each, with their input."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ncukit.run.tools import ncu as ncu_tool
from ncukit.run.tools.capabilities import Probe, probe, profilers, rank
from ncukit.run.tools.failures import Context, Failure, classify, failure, notes
from ncukit.run.tools.names import NamePattern
from ncukit.run.tools.ncu import NcuOptions, argv
from ncukit.run.tools.nsys import NsysOptions
from ncukit.run.tools.nsys import argv as nsys_argv
from ncukit.run.tools.process import Completed, run
from tests.fakes.scenarios import LOCK, MIG, PERMISSION, RESOURCE, SLOW
from tests.tools_printed import EXIT, NO_DRIVER, NOTHING

ALL = Probe(
    "ncu",
    Path("ncu"),
    "2024.1.1.0",
    {"": frozenset(o for o, *_ in ncu_tool._table(NcuOptions((), Path("o"))))},
)
OPTIONS = NcuOptions(("app",), Path("out"))


def cause(*lines: str, code: int = 0, **context: object) -> Failure:
    done = Completed((), code, lines=tuple(("stdout", line) for line in lines))
    found = classify(done, Context(**context))  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize("text", [PERMISSION, PERMISSION.replace(" 0. For", ". For")])
def test_c01_counters_forbidden_in_a_container_and_on_bare_metal(text: str) -> None:
    container, bare = (cause(text, code=1, place=place) for place in ("container", "bare"))
    assert container.code == bare.code == "permission"
    assert "--cap-add=SYS_ADMIN" in container.hint
    assert "provider" in container.hint
    assert "modprobe.d" in bare.hint
    assert "--skip-ncu" in container.hint  # timing and timeline are still to be had


def test_c03_counters_busy() -> None:
    found = cause(RESOURCE, code=9)
    assert found.code == "busy"
    assert "dcgmi profile --pause" in found.hint
    assert "--resume" in found.hint


def test_c05_lock_file_of_another_user(tmp_path: Path) -> None:
    lock = tmp_path / "nsight-compute-lock"
    lock.touch()
    found = cause(LOCK.replace("/tmp/nsight-compute-lock", str(lock)), code=1)
    assert found.code == "lock"
    assert lock.owner() in found.message
    assert "TMPDIR" in found.hint
    assert "nobody else profiles this GPU" in found.hint


def test_c06_unreadable_user_configuration() -> None:
    text = "filesystem error: status: Permission denied [/afs/x/.config/NVIDIA Corporation/config.ncu-cfg]"
    found = cause(f"==ERROR== Failed to parse options: {text}", code=1)
    assert found.code == "config"
    line = argv(OPTIONS, ALL)
    assert line[line.index("--config-file") + 1] == "off"


def test_c07_driver_and_ncu_do_not_match() -> None:
    lines = (
        "==ERROR== An error was reported by the driver:",
        "==ERROR== Cuda driver is not compatible with Nsight Compute.",
        "==PROF== Connected to process 2305223 (/usr/bin/python3)",
        EXIT.format(11),
    )
    facts = {"version": "2025.1", "driver": "535.183", "installs": "/usr/local/cuda-12.2/bin/ncu"}
    found = cause(*lines, code=11, facts=facts)
    assert found.code == "driver-mismatch"
    assert "2025.1" in found.message
    assert "535.183" in found.message
    assert "/usr/local/cuda-12.2/bin/ncu" in found.hint


def test_c08_gpu_too_old_or_too_new_for_this_ncu() -> None:
    assert cause("==ERROR== Invalid chip gb100", code=1).code == "unsupported-gpu"
    assert (
        cause("Skipping launch in process 7: unsupported architecture 53", NOTHING).code == "unsupported-gpu"
    )
    chips = ("ad102", "ga100", "gh100", "tu117")
    assert [ncu_tool.supports(chips, cc) for cc in ((6, 0), (9, 0), (10, 0))] == [False, True, False]


def test_c09_child_with_the_wrong_python() -> None:
    lines = ("ModuleNotFoundError: No module named 'torch'", EXIT.format(1), NOTHING)
    found = cause(*lines, code=1, facts={"python": "/usr/bin/python3"})
    assert found.code == "interpreter"
    assert "'torch'" in found.message
    assert "/usr/bin/python3" in found.hint


def test_c10_no_driver_is_not_the_program_s_fault(ncu: Path, tmp_path: Path) -> None:
    assert cause(NO_DRIVER, EXIT.format(1), NOTHING, code=1).code == "no-driver"
    env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = run([ncu, "--config-file", "off", "-k", "regex:gemm", "/bin/true"], env=env, timeout=60)
    if "stub libcuda" not in done.output:
        pytest.skip("this machine has a driver")
    found = classify(done)
    assert found is not None
    assert found.code == "no-driver"


def test_c11_kernels_in_child_processes() -> None:
    early = [f"==PROF== Target process {n} terminated before first instrumented API call." for n in (1, 2, 3)]
    hint = "Profiling kernels launched by child processes requires the --target-processes all option."
    found = cause(*early, NOTHING, f"==WARNING== {hint}")
    assert (found.code, found.why) == ("nothing-profiled", "child")
    assert "1 (no CUDA), 2 (no CUDA), 3 (no CUDA)" in found.hint
    line = argv(OPTIONS, ALL)
    assert line[line.index("--target-processes") + 1] == "all"


def test_c12_every_cutlass_kernel_is_called_kernel() -> None:
    names = [
        ("Kernel", "void cutlass::Kernel<cutlass::gemm::kernel::Gemm<GemmShape<(int)128>>>(T1::Params)"),
        ("ReferenceGemm_kernel", "void ReferenceGemm_kernel(int)"),
        ("InitializeMatrix_kernel", "void InitializeMatrix_kernel(float*)"),
    ]
    pattern = NamePattern("gemm")
    assert [function for function, demangled in names if pattern.matches(function, demangled)] == [
        "Kernel",
        "ReferenceGemm_kernel",
    ]
    assert pattern.ncu_filter() == ("regex:(?i)gemm", "demangled")


def test_c15_name_base_and_filter_are_independent() -> None:
    for base in ("function", "demangled", "mangled"):
        line = argv(replace(OPTIONS, kernel="k", kernel_base=base), ALL)
        assert line[line.index("--kernel-name-base") + 1] == base
        assert "--kernel-name" in line
    text = (
        "==ERROR== the argument for option '--kernel-name-base' is invalid. Use --help for further details."
    )
    assert cause(text, code=1).code == "option-unknown"


def test_c20_range_filters_need_nvtx() -> None:
    line = argv(replace(OPTIONS, nvtx_include=("ncukit",)), ALL)
    assert line.index("--nvtx") < line.index("--nvtx-include")
    assert cause("==ERROR== --nvtx-include requires --nvtx", code=1).code == "option-unknown"


def test_c22_graphs_are_traced_node_by_node() -> None:
    options = frozenset({"--trace", "--cuda-graph-trace", "--force-overwrite", "--output"})
    line = nsys_argv(
        NsysOptions(("app",), Path("o")), Probe("nsys", Path("nsys"), "2023.4", {"profile": options})
    )
    assert "--cuda-graph-trace=node" in line


@pytest.mark.parametrize(
    "text",
    [
        "Kernel nodes of a graph which can have conditional nodes are not supported for profiling.",
        "You can profile complete CUDA graphs using --graph-profiling graph.",
        "Profiling during a stream capture on the same context is not supported on this driver.",
    ],
)
def test_c23_graphs_that_ncu_cannot_replay(text: str) -> None:
    found = cause(f"==ERROR== {text}", NOTHING)
    assert (found.code, found.why) == ("nothing-profiled", "graph")
    assert "--graph-profiling graph" in found.hint


def test_c25_each_rank_writes_its_own_report() -> None:
    ranks = [rank({"RANK": str(n), "WORLD_SIZE": "4"}) for n in range(4)]
    assert len({r.suffix for r in ranks if r}) == 4


@pytest.mark.parametrize(
    "text",
    [
        "cbapi->getCuptiStatus() failed with error CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)",
        "error: cuptiActivityRegisterTimestampCallback)(cupti_timestamp_cb) = 39",
    ],
)
def test_c26_two_cupti_clients_in_one_process(text: str) -> None:
    found = cause(text, EXIT.format(39), code=39)
    assert found.code == "cupti-conflict"
    assert "ncu" in found.message
    assert "torch.profiler" in found.message
    assert profilers("from torch.profiler import profile") == ("torch.profiler",)


@pytest.mark.parametrize(
    "text",
    [MIG, MIG.replace("Cannot lock GPU clock frequencies on MIG!", "Failed to lock GPU clock frequencies!")],
)
def test_c29_mig_cannot_lock_clocks(text: str) -> None:
    found = cause(text, EXIT.format(9), code=9)
    assert found.code == "mig-clocks"
    assert "--clock-control none" in found.hint


def test_c60_option_names_move_between_versions(ncu: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    found = probe("ncu", ncu, environ=environ)
    done = run([ncu, "--sampling-interval", "0", "/bin/true"], timeout=60)
    assert found.has("--sampling-interval") == (done.returncode == 0)
    if done.returncode:
        assert cause(*done.output.splitlines(), code=done.returncode).code == "option-unknown"


def test_c65_reports_of_nsys_that_fail_with_exit_code_0() -> None:
    text = (
        "ERROR: Report 'x' encountered an internal error: Module threw exception No module named 'nsysstats'"
    )
    found = cause(text, tool="nsys")
    assert (found.code, found.why) == ("tool-missing", "broken")


def test_c71_replay_launch_and_preparation_have_four_verdicts() -> None:
    assert classify(SLOW) is None
    assert [n.code for n in notes(SLOW)] == ["replay"]
    save = cause("Could not allocate memory or file space to save context state")
    launch = cause("==ERROR== LaunchFailed", EXIT.format(9), code=9)
    prepare = cause(
        "==ERROR== Failed to prepare kernel for profiling",
        "==ERROR== Unknown Error on device 0.",
        '==ERROR== Failed to profile "x" in process 1',
    )
    assert [f.id for f in (save, launch, prepare)] == ["replay", "launch-failed", "driver-mismatch.prepare"]
    assert "--replay-mode application" in save.hint
    assert "compute-sanitizer" in launch.hint
    assert prepare.evidence == "==ERROR== Failed to prepare kernel for profiling"


def test_c72_no_source_lines_is_a_note() -> None:
    text = (
        "==WARNING== No source files were imported. Check that the target application was compiled with "
        "-lineinfo."
    )
    assert classify(text) is None
    assert "TRITON_DISABLE_LINE_INFO" in notes(text)[0].message


def test_advice_for_what_ncukit_finds_itself() -> None:
    assert failure("no-gpu-work").code == "no-gpu-work"
    assert failure("wrong-result").message == "the result differs from the reference"
