"""Options, targets, presets, the plan, the run directory, what identifies a run, the proof of isolation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncukit.errors import ReportError, UsageError
from ncukit.model import RawKernel
from ncukit.model.run import Run, StepRecord, Timing
from ncukit.run.capture import only_configuration_differs, prove, select
from ncukit.run.directory import RunDirectory, read_record, slug
from ncukit.run.options import STANDARD, ProfileOptions, collected, roofline_counters, sweep
from ncukit.run.plan import run_name
from ncukit.run.session import no_choice, region_calls
from ncukit.run.target import Target, differences, git_data, identity, profilers_in, resolve
from ncukit.run.tools import ncu
from ncukit.run.tools.capabilities import probe
from ncukit.run.tools.cuda import Driver
from ncukit.run.tools.nsys import NsysOptions
from ncukit.run.tools.nsys import argv as nsys_argv
from ncukit.trace.launch_choice import launch_for_ncu
from ncukit.trace.nsys import open_trace
from ncukit.trace.torch_events import read_torch_trace
from tests.builders import TARGET, raw_kernel
from tests.nsys_builder import Builder
from tests.runs import WORKLOAD

# ---- options and target --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "everything"}, "--preset everything does not exist"),
        ({"clock_control": "boost"}, "--clock-control boost does not exist"),
        ({"cache_control": "some"}, "--cache-control some does not exist"),
        ({"timeout": 0.0}, "a time-out of 0 s"),
        ({"timeout": float("nan")}, "a time-out of nan s"),
        ({"repeat": 0}, "0 samples"),
        ({"skip_time": True, "skip_nsys": True, "skip_ncu": True}, "nothing is left to do"),
    ],
)
def test_options_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ProfileOptions(**changes)


def test_a_sweep_has_a_point_for_each_combination() -> None:
    options = ProfileOptions(params=sweep(["m=1,2", "k=8", "t=fp16,bf16"]))
    assert len(options.points) == 4
    assert options.points[1] == {"m": "1", "k": "8", "t": "bf16"}
    assert ProfileOptions().points == ({},)


@pytest.mark.parametrize("pair", ["m", "=3", "m=", "m=1,,2", "1m=3", "m n=3"])
def test_a_parameter_that_is_not_a_pair_is_refused(pair: str) -> None:
    with pytest.raises(UsageError, match="is not NAME=VALUE"):
        sweep([pair])


def test_a_parameter_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="given twice"):
        sweep(["m=1", "m=2"])


def test_options_survive_json() -> None:
    options = ProfileOptions(params={"m": ("1", "2")}, env=("A",), tools={"ncu": "/x"}, preset="quick")
    assert ProfileOptions.from_dict(json.loads(json.dumps(options.as_dict()))) == options


def test_a_workload_is_run_by_the_harness_and_marked(tmp_path: Path) -> None:
    script = tmp_path / "k.py"
    script.write_text(WORKLOAD)
    target = resolve([str(script), "--fast"], ProfileOptions(kernel="gemm", params={"n": ("8",)})).at(
        {"n": "8"}
    )
    assert (target.kind, target.marked, target.pattern) == ("workload", True, None)
    line = target.child("region", tmp_path / "r.json", "--calls", "3")
    assert line[2:] == (
        *("region", str(script), "--call", "gemm", "--param", "n=8", "--result", str(tmp_path / "r.json")),
        *("--calls", "3", "--", "--fast"),
    )


def test_a_gpu_kernel_s_name_lets_the_script_run_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "k.py"
    script.write_text("import triton\n@triton.jit\ndef add_kernel(x): ...")
    target = resolve([str(script), "1"], ProfileOptions(kernel="add_kernel", tools={"python": "python3"}))
    assert (target.kind, target.marked, target.pattern) == ("script", False, "add_kernel")
    assert target.argv == ("python3", str(script), "1")


def test_of_commands_and_cuda_files_the_kernel_is_the_gpu_kernel(tmp_path: Path) -> None:
    command = resolve(["sh", "-c", "true"], ProfileOptions(kernel="gemm"))
    assert (command.kind, command.pattern, command.marked) == ("command", "gemm", False)
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k() {}")
    cuda = resolve([str(source)], ProfileOptions())
    assert (cuda.kind, cuda.pattern, cuda.name) == ("cuda", None, "k")


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        ([], {}, "there is nothing to profile"),
        (["nosuchprogram"], {}, "nosuchprogram is not a program"),
        (["sh"], {"params": {"m": ("1",)}}, "--param is for workloads"),
        (["k.py"], {"kernel": "gemm", "params": {"x": ("1",)}}, "gemm has no parameter 'x'"),
        (["k.py"], {"kernel": "gemm", "tools": {"python": "/nosuch"}}, "--python /nosuch"),
        (["k.py"], {"kernel": "other", "params": {"n": ("1",)}}, "--param needs a workload"),
        (["k.py"], {"kernel": "void cutlass::Kernel<cutlass_80_ten…"}, "was cut off"),
        (["k.py"], {"gpu_kernel": "regex:("}, "is no regular expression"),
    ],
)
def test_targets_that_cannot_be_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], options: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.py").write_text(WORKLOAD)
    with pytest.raises(UsageError, match=message):
        resolve(words, ProfileOptions(**options))


# ---- presets -------------------------------------------------------------------------------------


def test_only_sections_that_this_ncu_has_are_asked_for() -> None:
    found = collected("standard", known_sections=("SpeedOfLight", "Occupancy"))
    assert found.sections == ("SpeedOfLight", "Occupancy")
    assert collected("standard").sections == STANDARD


def test_without_the_chip_s_list_no_counter_is_named() -> None:
    assert collected("standard").metrics == ()


CHIPS = [
    ("gv100", (7, 0)),
    ("tu102", (7, 5)),
    ("ga100", (8, 0)),
    ("ga102", (8, 6)),
    ("ad102", (8, 9)),
    ("gh100", (9, 0)),
]


@pytest.mark.parametrize(("chip", "cc"), CHIPS)
def test_only_counters_that_the_chip_has_are_named(ncu: Path, chip: str, cc: tuple[int, int]) -> None:
    known = query(ncu, chip)
    names = tuple(roofline_counters(known, cc))
    assert names
    assert {name.partition(".")[0] for name in names} <= known
    tensor = [name for name in names if "ops_path_tensor" in name and name.endswith(".sum")]
    assert len(tensor) >= 2  # by data type: fp16 and its accumulators at least


def test_the_tensor_counters_are_those_of_the_chip(ncu: Path) -> None:
    hopper = set(roofline_counters(query(ncu, "gh100"), (9, 0)))
    turing = set(roofline_counters(query(ncu, "tu102"), (7, 5)))
    assert "sm__ops_path_tensor_src_fp16.sum" in hopper
    assert "sm__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32.sum" in turing
    assert not any("fp8" in name for name in turing)


def query(path: Path, chip: str) -> frozenset[str]:
    return ncu.query_metrics(probe("ncu", path), chip)


def test_one_rank_of_many_collects_a_single_pass() -> None:
    found = collected("full", ranks=4)
    assert (found.set, found.passes, found.metrics) == (None, 1, ("gpu__time_duration.sum",))
    assert "single pass" in found.note


def test_the_region_is_called_less_often_where_a_call_is_long() -> None:
    assert [region_calls(s) for s in (None, 1e-6, 0.4, 1.0, 30.0)] == [10, 10, 10, 5, 1]


# ---- which launch --------------------------------------------------------------------------------


@pytest.fixture
def traced(tmp_path: Path) -> Callable[..., Any]:
    """Choose from launches given as (name, grid), all in the marked range."""

    def choose(*launches: tuple[str, int], pattern: str | None = None, **options: Any) -> Any:
        builder, now = Builder(), 0
        for name, grid in launches:
            now += 20_000
            call = ("cudaLaunchKernel", now - 2000, now - 1000)
            builder.kernel(name, now, now + 10_000, call=call, grid=(grid, 1, 1), block=(128, 1, 1))
        builder.nvtx("ncukit", 1, now + 30_000, type=60)
        path = tmp_path / "trace.sqlite"
        path.unlink(missing_ok=True)
        builder.write(path)
        return launch_for_ncu(open_trace(path), pattern, **options)

    return choose


def test_inside_marks_nothing_is_skipped_where_the_first_match_fits(traced: Callable[..., Any]) -> None:
    chosen = traced(*[("a(int)", 1), ("b(int)", 64)] * 5)
    assert chosen.first_fits
    assert chosen.range == "ncukit"
    found = select(chosen, None, marked=True)
    assert (found.skip, found.count, found.index) == (0, 1, 0)


def test_inside_marks_all_matches_up_to_the_chosen_one_are_captured_where_it_does_not(
    traced: Callable[..., Any],
) -> None:
    chosen = traced(("a(int)", 1), *[("a(int)", 64)] * 8)
    assert not chosen.first_fits
    found = select(chosen, None, marked=True)
    assert found.skip == 0
    assert found.count == chosen.choice.launch.nth + 1
    assert found.index == chosen.choice.launch.nth > 0


def test_without_marks_the_launches_before_are_skipped(traced: Callable[..., Any]) -> None:
    chosen = traced(("a(int)", 1), *[("a(int)", 64)] * 8)
    found = select(chosen, None, marked=False)
    assert (found.skip, found.count, found.index) == (chosen.choice.launch.nth, 1, 0)


def test_every_selection_names_its_base(traced: Callable[..., Any]) -> None:
    assert select(traced(("k(int)", 1)), None, marked=True).base == "function"
    assert select(None, "gemm", marked=True).base == "demangled"
    assert select(None, None, marked=True) == select(None, None, marked=False)


AUTOTUNED = [("matmul_kernel(T*)", grid) for grid in (64, 128, 256) for _ in range(30)] + [
    ("matmul_kernel(T*)", 128)
] * 10


def test_the_winner_of_autotuning_is_chosen_not_the_tuning(traced: Callable[..., Any]) -> None:
    """Three configurations of 30 launches, then the winner ten times."""
    chosen = traced(*AUTOTUNED)
    assert chosen.choice.launch.nth >= 90
    assert chosen.choice.launch.grid == (128, 1, 1)
    assert select(chosen, None, marked=False).skip >= 90
    assert select(chosen, None, marked=False).count == 1


def test_the_initialiser_is_not_chosen_over_the_kernel(traced: Callable[..., Any]) -> None:
    """The random initialiser comes first."""
    chosen = traced(
        ("void at::native::distribution_elementwise_grid_stride_kernel<float>(int)", 8),
        *[("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)", 8)] * 40,
        *[("my_gemm(float*)", 64)] * 4,
    )
    assert chosen.choice.launch.short == "my_gemm"


def test_kernels_inside_a_graph_that_was_traced_whole_are_said_to_be_there() -> None:
    """It does not say "no CUDA work"."""
    error = UsageError("all kernels ran inside a CUDA graph", "Trace again.", code="inside-graph")
    found = no_choice(error)
    assert (found.code, found.why) == ("nothing-profiled", "graph")
    assert "CUDA graph" in found.message


def test_graphs_are_traced_node_by_node(tmp_path: Path, nsys: Path) -> None:
    options = NsysOptions(("true",), tmp_path / "t")
    assert "--cuda-graph-trace=node" in nsys_argv(options, probe("nsys", nsys))


CUTLASS = "void cutlass::Kernel<cutlass::gemm::kernel::Gemm<(int)128>>(T1::Params)"


def test_a_name_is_looked_for_in_function_and_demangled_names(traced: Callable[..., Any]) -> None:
    """All kernels of CUTLASS are called Kernel."""
    launches = [("InitializeMatrix_kernel(int)", 1), ("ReferenceGemm_kernel(int)", 4), *[(CUTLASS, 64)] * 5]
    chosen = traced(*launches, pattern="gemm")
    assert chosen.choice.launch.name == CUTLASS


# ---- the proof -----------------------------------------------------------------------------------


def captured(name: str = "a(int)", grid: int = 64, **metrics: int) -> RawKernel:
    shape = {"launch__grid_dim_x": grid, "launch__grid_dim_y": 1, "launch__grid_dim_z": 1}
    shape |= {"launch__block_dim_x": 128, "launch__block_dim_y": 1, "launch__block_dim_z": 1}
    shape |= {"launch__registers_per_thread": 32, "launch__shared_mem_per_block_static": 0}
    shape |= {"launch__shared_mem_per_block_dynamic": 0}
    return raw_kernel(name.split("(")[0], {**shape, **metrics}, demangled=name)


@pytest.fixture
def chosen(traced: Callable[..., Any]) -> Any:
    return traced(*[("a(int)", 64)] * 4)


def test_the_same_launch_is_proven(chosen: Any) -> None:
    proof = prove(chosen, [captured()], 0)
    assert proof.verdict == "proven"
    assert all(row.same for row in proof.compared)
    assert "launch 1 of 4" in proof.words


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (captured("b(int)"), "name b(int) instead of a(int)"),
        (captured(grid=32), "grid 32 × 1 × 1 instead of 64 × 1 × 1"),
        (captured(launch__block_dim_x=256), "block 256 × 1 × 1 instead of 128 × 1 × 1"),
        (captured(launch__registers_per_thread=40), "registers per thread 40 instead of 32"),
        (captured(launch__shared_mem_per_block_dynamic=1024), "dynamic shared memory"),
    ],
)
def test_any_other_launch_is_denied_in_words(chosen: Any, raw: RawKernel, what: str) -> None:
    proof = prove(chosen, [raw], 0)
    assert proof.verdict == "denied"
    assert what in proof.words
    assert only_configuration_differs(proof) is (raw.function == "a")


def test_what_one_side_does_not_tell_is_not_equal(chosen: Any) -> None:
    raw = raw_kernel("a", {"launch__grid_dim_x": 64}, demangled="a(int)")
    assert prove(chosen, [raw], 0).verdict == "unknown"


def test_without_a_choice_nothing_is_proven() -> None:
    proof = prove(None, [captured()], 0)
    assert proof.verdict == "unknown"
    assert "no timeline" in proof.words


def test_spaces_in_names_do_not_matter(traced: Callable[..., Any]) -> None:
    chosen = traced(("void f<int>(int*)", 64))
    assert prove(chosen, [captured("void f<int>(int *)")], 0).compared[0].same


def test_fewer_launches_than_asked_for_are_denied(chosen: Any) -> None:
    proof = prove(chosen, [captured()], 3)
    assert proof.verdict == "denied"
    assert "only 1 of the 4 launches" in proof.words


# ---- the run directory ---------------------------------------------------------------------------


def a_run(**changes: Any) -> Run:
    return Run("2026-01-01T00:00:00Z", "0", TARGET, ProfileOptions().as_dict(), **changes)


def test_files_appear_only_when_whole(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "run", "x")
    half = directory.scratch / "half"
    half.write_text("{")
    assert not list((tmp_path / "run").iterdir())
    assert directory.scratch.parent == tmp_path  # the same file system: renamed, not copied
    made = directory.adopt(half, "whole.json")
    assert directory.holds(made)
    (tmp_path / "run" / "whole.json").write_text("[")
    assert not directory.holds(made)
    directory.close()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_each_rank_has_a_name_of_its_own() -> None:
    target = Target("command", "train", "", None, ("python",))
    names = {run_name(target, Driver(None), {"RANK": str(rank)}) for rank in range(4)}
    assert len(names) == 4


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "run", "x")
    directory.record(a_run())
    with pytest.raises(UsageError, match="another ncukit works on"):
        RunDirectory.resume(tmp_path / "run")
    directory.close()
    again, run = RunDirectory.resume(tmp_path / "run")
    assert run.target == TARGET
    again.close()


def test_a_run_without_a_record_leaves_of_its_folder_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    for name in ("theirs", "new"):
        RunDirectory.create(tmp_path / name, "x").close()
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_an_older_run_is_never_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    with pytest.raises(UsageError, match="exists already"):
        RunDirectory.create(tmp_path / "full", "x")
    first, second = (RunDirectory.create(None, "gemm-H100") for _ in range(2))
    assert first.path != second.path
    assert first.path.parent == Path("reports")
    first.close()
    second.close()


def test_names_are_plain() -> None:
    assert slug("../../etc/passwd") == "etc-passwd"
    assert slug("a b\n<c>") == "a-b-c"
    assert len(slug("x" * 500)) == 60


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no run.json"),
        ("{", "is damaged"),
        ("[]", "holds no object"),
        ('{"schema": "x/1"}', "not of schema"),
    ],
)
def test_a_folder_without_a_run_ends_with_4(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises(ReportError, match=message) as error:
        read_record(tmp_path)
    assert error.value.exit_code == 4


def test_a_record_survives_json() -> None:
    step = StepRecord("timing", "done", ("a", "b"), 0, 1.5, (), None, ("note",), 1)
    run = a_run(steps=(step,), isolation=prove(None, [captured()], 0), notes=("x",))
    assert Run.from_dict(json.loads(json.dumps(run.as_dict()))) == run


def test_a_timing_survives_json() -> None:
    timing = Timing("host", 1, 1.0, 0.0, 1.0, 1.0, (1.0,), notes=("x",))
    assert Timing.from_dict(json.loads(json.dumps(timing.as_dict()))) == timing
    assert not timing.is_gpu_time


# ---- what makes two runs the same ----------------------------------------------------------------


def an_identity(**changes: Any) -> dict[str, Any]:
    target = {"kind": "workload", "call": "gemm", "args": [], "sha256": "a" * 64, "source": "/x/k.py"}
    data: dict[str, Any] = {
        "target": target,
        "options": {"preset": "full", "timeout": 5},
        "gpu": {"uuid": "GPU-1"},
    }
    data |= {"tools": {"ncu": {"path": "/ncu", "version": "2024.1"}}}
    return identity(*({**data, **changes}[name] for name in ("target", "options", "tools", "gpu")))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"options": {"preset": "quick", "timeout": 5}}, "the options (preset: full -> quick)"),
        (
            {"tools": {"ncu": {"path": "/ncu", "version": "2025.1"}}},
            "the tools (ncu: /ncu 2024.1 -> /ncu 2025.1)",
        ),
        ({"gpu": {"uuid": "GPU-2"}}, "the GPU (uuid: GPU-1 -> GPU-2)"),
        ({"gpu": None}, "the GPU"),
        (
            {
                "target": {
                    "kind": "workload",
                    "call": "gemm",
                    "args": [],
                    "sha256": "b" * 64,
                    "source": "/x/k.py",
                }
            },
            "the script (sha256: aaaaaaaaaaaa -> bbbbbbbbbbbb)",
        ),
        (
            {
                "target": {
                    "kind": "workload",
                    "call": "gemm",
                    "args": ["1"],
                    "sha256": "a" * 64,
                    "source": "/x/k.py",
                }
            },
            "the program or its arguments (args: none -> ['1'])",
        ),
    ],
)
def test_what_changed_is_said(changes: dict[str, Any], words: str) -> None:
    assert differences(an_identity(), an_identity(**changes)) == [words]


def test_another_time_out_is_no_other_run() -> None:
    assert differences(an_identity(), an_identity(options={"preset": "full", "timeout": 9})) == []


def test_the_revision_of_the_script_is_known_inside_a_repository(tmp_path: Path) -> None:
    import os
    import subprocess

    script = tmp_path / "k.py"
    script.write_text("x = 1\n")
    assert git_data(script, os.environ) is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    found = git_data(script, os.environ)
    assert found is not None
    assert (len(found["revision"]), found["modified"]) == (40, False)
    script.write_text("x = 2\n")
    changed = git_data(script, os.environ)
    assert changed is not None
    assert changed["modified"]


def test_profilers_in_the_script_are_seen(tmp_path: Path) -> None:
    """Two profilers in one process lose data or abort."""
    script = tmp_path / "k.py"
    script.write_text("from torch.profiler import profile\nimport triton.profiler as proton\n")
    assert profilers_in(script) == ["torch.profiler", "triton.profiler", "proton"]
    assert profilers_in(None) == []


def test_a_target_goes_through_the_record(tmp_path: Path) -> None:
    target = Target("command", "x", "text", None, ("/bin/true",), ("1",))
    assert target.argv == ("/bin/true", "1")
    assert not target.marked


# ---- torch traces --------------------------------------------------------------------------------


def torch_trace(path: Path, events: list[dict[str, Any]], **head: Any) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, **head, "traceEvents": events}))
    return path


def kernel_event(at: float, name: str = "void f<int>(int*)", correlation: int = 1) -> dict[str, Any]:
    args = {"device": 0, "context": 1, "stream": 7, "correlation": correlation, "registers per thread": 40}
    args |= {"grid": [64, 1, 1], "block": [128, 1, 1], "shared memory": 1024}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at, "dur": 10.5, "args": args}


def call_event(at: float, correlation: int = 1) -> dict[str, Any]:
    args = {"correlation": correlation}
    return {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": 9,
        "tid": 11,
        "ts": at,
        "dur": 2,
        "args": args,
    }


def test_a_torch_trace_becomes_the_same_rows_as_one_of_nsys(tmp_path: Path) -> None:
    gpu = {"id": 0, "name": "NVIDIA H100", "computeMajor": 9, "computeMinor": 0, "numSms": 132}
    events = [
        call_event(1.0),
        kernel_event(5.0),
        {"ph": "M", "name": "process_name"},
        {"ph": "X", "cat": "kernel"},
    ]
    trace = read_torch_trace(torch_trace(tmp_path / "t.json", events, deviceProperties=[gpu]))
    assert len(trace.kernels) == 1
    row = {name: int(trace.kernels[name][0]) for name in trace.kernels.names()}
    assert (row["start"], row["end"], row["registers"], row["grid_x"]) == (5000, 15_500, 40, 64)
    assert row["dynamic_shared"] == -1  # the trace has only the sum
    assert trace.names[row["short"]] == "f"
    assert trace.gpus[0].compute_capability == "9.0"
    chosen = launch_for_ncu(trace)
    assert chosen.choice.launch.name == "void f<int>(int*)"
    proof = prove(chosen, [captured("void f<int>(int*)", launch__registers_per_thread=40)], 0)
    assert proof.verdict == "proven"
    assert "not compared: static shared memory" in proof.words


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no whole trace"),
        (b"{", "no whole trace"),
        (b"\x1f\x8b\x08", "no whole trace"),
        (b"{}", "no trace of torch's profiler"),
        (b'{"traceEvents": []}', "no GPU kernel ran"),
        (None, "there is no file"),
    ],
)
def test_a_torch_trace_that_is_none_ends_with_4(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "t.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReportError, match=message):
        read_torch_trace(path)


def test_odd_events_are_counted_and_left_out(tmp_path: Path) -> None:
    odd = kernel_event(9.0)
    odd["args"]["grid"] = [1]
    trace = read_torch_trace(torch_trace(tmp_path / "t.json", [call_event(1.0), kernel_event(5.0), odd]))
    assert len(trace.kernels) == 1
    assert any("1 events could not be read" in note for note in trace.notes)


def test_real_torch_traces_are_read(shared: Path) -> None:
    from ncukit.trace.region import analyse

    traces = sorted((shared / "reports" / "torch").glob("*.json.gz"))
    cpu_only = traces.pop(1)
    with pytest.raises(ReportError, match="no GPU kernel ran"):
        read_torch_trace(cpu_only)
    assert [len(analyse(read_torch_trace(path)).kernels) > 0 for path in traces] == [True] * len(traces)
