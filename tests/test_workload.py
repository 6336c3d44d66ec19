"""The measured child: one execution, correctness before timing, a clock that says which it is, marks."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ncukit.errors import UsageError
from ncukit.run.workload import Case, timing, workload
from ncukit.run.workload.correctness import compare, tolerance_of
from ncukit.run.workload.script import parameters, parse_parameters
from ncukit.run.workload.timing import Stopwatch, summarise
from tests.fakes.driver import build
from tests.runs import CHILD, WORKLOAD

HAVE_TORCH = importlib.util.find_spec("torch") is not None


@dataclass(frozen=True)
class Ran:
    code: int
    result: dict[str, Any]
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def child(tmp_path: Path) -> Run:
    """Run the child on a script; ``env`` adds variables."""

    def run(
        text: str, *options: str, step: str = "time", env: dict[str, str] | None = None, call: str = "gemm"
    ) -> Ran:
        script = tmp_path / "work.py"
        script.write_text(text)
        result = tmp_path / "result.json"
        command = [
            sys.executable,
            str(CHILD),
            step,
            str(script),
            "--call",
            call,
            "--result",
            str(result),
            *options,
        ]
        variables = {**os.environ, "RUNS": str(tmp_path / "runs"), **(env or {})}
        done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=60, check=False)
        return Ran(done.returncode, json.loads(result.read_text()), done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables under which programs find a stand-in for the CUDA driver."""
    found = build(tmp_path_factory.mktemp("libcuda"))
    if found is None:
        pytest.skip("no C compiler for a stand-in driver")
    return found


# ---- one execution, what is called ---------------------------------------------------------------


@pytest.mark.parametrize("step", ["time", "region"])
def test_the_script_runs_once_in_each_child(child: Run, tmp_path: Path, step: str) -> None:
    assert child(WORKLOAD, step=step).code == 0
    assert len((tmp_path / "runs").read_text().split()) == 1


def test_the_region_is_called_as_often_as_told_after_exactly_the_given_warm_up(
    child: Run, tmp_path: Path
) -> None:
    ran = child(WORKLOAD, "--warmup", "7", "--calls", "3", step="region")
    assert ran.result["warmup"]["calls"] == 7
    assert len((tmp_path / "runs.calls").read_text().split()) == 7 + 3
    assert (ran.result["opened"], ran.result["closed"]) == (True, True)


def test_the_calls_of_checking_and_timing_before_the_region_are_counted_alike(
    child: Run, tmp_path: Path
) -> None:
    ran = child(WORKLOAD, "--repeat", "5")
    calls = len((tmp_path / "runs.calls").read_text().split())
    assert calls == ran.result["warmup"]["calls"] + 5 * ran.result["calls_per_sample"]


def test_parameters_replace_defaults(child: Run) -> None:
    assert child(WORKLOAD, "--param", "n=8").result["params"] == {"n": 8, "scale": 2}


def test_an_unknown_parameter_is_a_clear_end(child: Run) -> None:
    ran = child(WORKLOAD, "--param", "x=8")
    assert ran.code == 88
    assert "unexpected keyword argument 'x'" in ran.result["error"]["message"]


def test_a_plain_function_is_the_region_itself(child: Run) -> None:
    ran = child("def gemm():\n    return 1\n", "--repeat", "3")
    assert (ran.code, ran.result["n"]) == (0, 3)


def test_a_plain_function_may_return_a_case(child: Run) -> None:
    ran = child("import ncukit\ndef gemm():\n    return ncukit.Case(run=lambda: 2, reference=lambda: 2)\n")
    assert ran.result["correctness"]["state"] == "passed"


def test_a_result_instead_of_a_case_is_refused(child: Run) -> None:
    ran = child("import ncukit\n@ncukit.workload(n=1)\ndef gemm(n):\n    return [n]\n")
    assert ran.code == 88
    assert "returned list, not a Case" in ran.result["error"]["message"]


def test_the_script_sees_its_own_arguments_and_folder(child: Run, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 5\n")
    text = "import sys, beside\nassert sys.argv[1:] == ['--steps', '3']\ndef gemm(): return beside.VALUE\n"
    assert child(text, "--", "--steps", "3").code == 0


def test_modules_named_like_those_of_the_harness_are_the_scripts_own(child: Run, tmp_path: Path) -> None:
    for name in ("timing", "device", "steps", "correct", "script"):
        (tmp_path / f"{name}.py").write_text("MINE = True\n")
    assert child("import timing, device, steps, correct, script\ndef gemm(): return timing.MINE\n").code == 0


def test_a_failing_script_shows_its_own_traceback_only(child: Run) -> None:
    ran = child("import nosuchmodule\ndef gemm(): ...\n")
    assert ran.code == 1
    assert ran.err.rstrip().endswith("ModuleNotFoundError: No module named 'nosuchmodule'")
    assert "child.py" not in ran.err
    assert "importlib" not in ran.err


def test_a_script_that_ends_itself_is_not_taken_for_done(child: Run) -> None:
    ran = child("raise SystemExit(0)\n")
    assert ran.code == 88
    assert "SystemExit" in ran.result["error"]["message"]


def test_decorated_functions_stay_what_they_are() -> None:
    @workload(m=4)
    def gemm(m: int, k: int = 2) -> Case:
        return Case(run=lambda: m * k)

    assert gemm(3).run() == 6
    assert parameters(gemm) == {"m": 4, "k": 2}


def test_a_workload_with_an_unknown_keyword_is_refused() -> None:
    with pytest.raises(UsageError, match="gives 'x', which gemm does not take"):

        @workload(x=1)
        def gemm(m: int) -> Case: ...


def test_a_case_needs_something_to_run() -> None:
    with pytest.raises(UsageError, match="cannot be called"):
        Case(run=3)  # type: ignore[arg-type]


def test_parameters_are_read_as_python_reads_them() -> None:
    assert parse_parameters(["m=4", "t=fp16", "s=(1,2)", "e=1e-3"]) == {
        "m": 4,
        "t": "fp16",
        "s": (1, 2),
        "e": 1e-3,
    }


# ---- correctness ---------------------------------------------------------------------------------


def test_a_wrong_result_ends_before_anything_is_timed(child: Run) -> None:
    text = "import ncukit\ndef gemm():\n    return ncukit.Case(lambda: [1.0, 3.0], lambda: [1.0, 2.0])\n"
    ran = child(text)
    assert ran.code == 87
    assert ran.result["correctness"]["detail"] == "the result[1] is 3.0, the reference 2.0"
    assert "median" not in ran.result


def test_checking_can_be_left_out(child: Run) -> None:
    text = "import ncukit\ndef gemm():\n    return ncukit.Case(run=lambda: 1.0, reference=lambda: 2.0)\n"
    ran = child(text, "--no-check")
    assert (ran.code, ran.result["correctness"]["state"]) == (0, "not-checked")


@pytest.mark.parametrize(
    ("result", "reference", "passed"),
    [
        (1.0, 1.0 + 1e-12, True),
        (1.0, 1.001, False),
        (3, 3, True),
        (3, 4, False),
        (float("nan"), float("nan"), False),
        (float("inf"), float("inf"), True),
        (float("inf"), float("-inf"), False),
        ([1.0, 2.0], [1.0], False),
        ({"a": 1}, {"b": 1}, False),
        ((1.0, [2.0]), (1.0, [2.0]), True),
        (None, 1.0, False),
        ("a", "a", True),
    ],
)
def test_numbers_and_containers(result: Any, reference: Any, passed: bool) -> None:
    assert compare(result, reference).passed is passed


@pytest.mark.parametrize(
    ("dtype", "error", "passed"),
    [
        ("float64", 1e-12, True),
        ("float64", 1e-6, False),
        ("float32", 1e-5, True),
        ("float32", 1e-3, False),
        ("float16", 1e-3, True),
        ("float16", 2e-2, False),
        ("int32", 0, True),
        ("int32", 1, False),
    ],
)
def test_the_tolerance_is_what_the_data_type_allows(dtype: str, error: float, passed: bool) -> None:
    numpy = pytest.importorskip("numpy")
    reference = numpy.arange(1, 1001, dtype="float64")
    result = (reference * (1 + error) if dtype != "int32" else reference + error).astype(dtype)
    found = compare(result, reference)
    assert found.passed is passed
    if not passed:
        assert "element (" in found.detail
        assert "elements differ" in found.detail


def test_cancelled_elements_carry_the_error_of_the_whole_sum() -> None:
    numpy = pytest.importorskip("numpy")
    reference = numpy.array([1000.0] * 99 + [1e-6])
    result = reference.astype("float32")
    result[-1] = 2e-6  # relative error 1, but nothing beside the rest
    assert compare(result, reference).passed


@pytest.mark.parametrize("place", [0, 500, 999])
def test_one_nan_is_enough(place: int) -> None:
    numpy = pytest.importorskip("numpy")
    reference = numpy.ones(1000)
    result = reference.copy()
    result[place] = float("nan")
    found = compare(result, reference)
    assert not found.passed
    assert f"({place},)" in found.detail
    reference[place] = float("nan")
    assert not compare(result, reference).passed


def test_shapes_must_agree() -> None:
    numpy = pytest.importorskip("numpy")
    assert "shape (2, 3), the reference (3, 2)" in compare(numpy.ones((2, 3)), numpy.ones((3, 2))).detail


def test_an_explicit_tolerance_wins() -> None:
    numpy = pytest.importorskip("numpy")
    assert compare(numpy.full(4, 1.05), numpy.ones(4), 0.1).passed


def test_integers_are_exact_whatever_is_declared() -> None:
    logits_and_tokens = ([1.0], [7, 8])
    assert compare(([1.05], [7, 8]), logits_and_tokens, 0.1).passed
    assert not compare(([1.05], [7, 9]), logits_and_tokens, 0.9).passed


def test_every_floating_type_has_a_tolerance() -> None:
    for name in ("torch.bfloat16", "torch.float8_e4m3fn", "torch.float8_e5m2", "complex64", "torch.float16"):
        assert 0 < tolerance_of(name) < 1
    assert tolerance_of("torch.bfloat16") > tolerance_of("torch.float16") > tolerance_of("torch.float32")


@pytest.mark.skipif(not HAVE_TORCH, reason="torch is not installed")
def test_torch_on_the_cpu_is_checked_and_timed_by_a_clock_that_is_not_called_gpu_time(child: Run) -> None:
    text = """
import torch, ncukit
@ncukit.workload(n=64)
def gemm(n):
    a, b = torch.randn(n, n), torch.randn(n, n)
    return ncukit.Case(run=lambda: (a @ b).half(), reference=lambda: a.double() @ b.double(),
                       model=ncukit.models.gemm(n, n, n, dtype="fp16"))
"""
    ran = child(text, "--repeat", "3")
    assert ran.code == 0, ran.err
    assert ran.result["correctness"]["state"] == "passed"
    assert ran.result["correctness"]["tolerance"] == 5e-3
    assert (ran.result["timer"], ran.result["device"], ran.result["l2_flush"]) == ("host", None, None)
    assert ran.result["model"]["flop"] == {"tensor_fp16": 2 * 64**3}
    assert "torch" in ran.result["frameworks"]


# ---- timing --------------------------------------------------------------------------------------


def test_the_median_ignores_slow_first_calls() -> None:
    found = summarise([11.3, 11.2, 9.1, 8.8, 8.8, 8.79, 8.80, 8.79])
    assert (found.n, found.median, found.min, found.max) == (8, 8.8, 8.79, 11.3)
    assert found.iqr == pytest.approx(0.8275)


def test_one_sample_has_no_spread() -> None:
    assert summarise([2.0]).iqr == 0.0


def test_warm_up_ends_when_two_successive_timings_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, steps = [0.0], iter([5.0, 0.3, 0.2, 0.101, 0.1, 0.1, 0.1])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])

    def run() -> None:
        clock[0] += next(steps)

    found = Stopwatch(run).warm_up()
    assert (found.calls, found.settled) == (5, True)


def test_warm_up_that_never_settles_ends_at_a_limit_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, n = [0.0], [0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])

    def run() -> None:
        n[0] += 1
        clock[0] += 1.0 + n[0] % 2

    found = Stopwatch(run).warm_up()
    assert not found.settled
    assert found.calls < 60


def test_long_calls_are_repeated_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])

    def run() -> None:
        clock[0] += 20.0

    samples, share = Stopwatch(run).samples(20.0)
    assert (len(samples), share) == (3, 1)


def test_a_gpu_is_timed_by_its_own_events_with_a_flushed_l2(
    child: Run, driver: dict[str, str], tmp_path: Path
) -> None:
    ran = child(WORKLOAD, "--repeat", "5", env={**driver, "NCUKIT_FAKE_STATE": str(tmp_path)})
    assert (ran.result["timer"], ran.result["l2_flush"], ran.result["n"]) == ("cuda-events", True, 5)
    assert ran.result["device"]["name"] == "NVIDIA H100 Test"
    assert ran.result["device"]["cc"] == [9, 0]
    assert (tmp_path / "marks.txt").read_text().count("flush") >= 5


def test_the_l2_can_be_left_warm_and_then_short_calls_share_a_sample(
    child: Run, driver: dict[str, str], tmp_path: Path
) -> None:
    ran = child(WORKLOAD, "--repeat", "5", "--no-flush", env={**driver, "NCUKIT_FAKE_STATE": str(tmp_path)})
    assert ran.result["l2_flush"] is False
    assert ran.result["calls_per_sample"] > 1
    assert "flush" not in (tmp_path / "marks.txt").read_text()


def test_work_that_events_do_not_see_is_not_called_gpu_time(child: Run, driver: dict[str, str]) -> None:
    ran = child(WORKLOAD, "--repeat", "2", env={**driver, "NCUKIT_FAKE_LATE": "0.002"})
    assert ran.result["timer"] == "host-synchronised"
    assert "non-blocking stream" in ran.result["notes"][0]


def test_a_program_that_uses_no_gpu_is_timed_by_the_hosts_clock_even_where_there_is_one(
    child: Run, driver: dict[str, str]
) -> None:
    ran = child(WORKLOAD, "--repeat", "2", env={**driver, "NCUKIT_FAKE_NO_CONTEXT": "1"})
    assert (ran.result["timer"], ran.result["device"]) == ("host", None)


NVML = """
def nvmlInit(): ...
def nvmlShutdown(): ...
def nvmlDeviceGetHandleByUUID(uuid): return uuid
def nvmlDeviceGetClockInfo(handle, kind): return {1: 1755, 2: 2619}[kind]
def nvmlDeviceGetMaxClockInfo(handle, kind): return 1980
def nvmlDeviceGetTemperature(handle, kind): return 41
def nvmlDeviceGetPowerUsage(handle): return 350_000
def nvmlDeviceGetCurrentClocksThrottleReasons(handle): return 0x4 | 0x1
"""


def test_clocks_and_throttling_are_read_before_and_after(
    child: Run, driver: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "pynvml.py").write_text(NVML)
    ran = child(WORKLOAD, "--repeat", "2", env={**driver, "PYTHONPATH": str(tmp_path)})
    for when in ("before", "after"):
        facts = ran.result["clocks"][when]
        assert (facts["sm_clock"], facts["power"], facts["throttled"]) == (1755e6, 350.0, ["power cap"])


def test_without_nvml_the_reason_stands_there(child: Run, driver: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError\n")
    ran = child(WORKLOAD, "--repeat", "2", env={**driver, "PYTHONPATH": str(tmp_path)})
    assert "nvidia-ml-py is not installed" in ran.result["clocks"]["before"]["reason"]


# ---- marks ---------------------------------------------------------------------------------------


def test_the_profilers_switch_is_thrown_once_around_the_region_without_torch(
    child: Run, driver: dict[str, str], tmp_path: Path
) -> None:
    ran = child(
        WORKLOAD,
        "--warmup",
        "3",
        "--calls",
        "2",
        step="region",
        env={**driver, "NCUKIT_FAKE_STATE": str(tmp_path)},
    )
    assert ran.result["marks"]["profiler"] == "libcuda cuProfilerStart"
    words = [line.split()[0] for line in (tmp_path / "marks.txt").read_text().splitlines()]
    assert words == ["stop", "start", "stop"]  # the first is the question whether the switch works


NVTX = """
import os
def say(text):
    with open(os.environ["MARKS"], "a") as file:
        file.write(text + "\\n")
def start_range(message): say("open " + message); return 7
def end_range(id): say(f"close {id}")
__version__ = "0.2.11"
"""


def test_the_region_is_an_nvtx_start_end_range_where_nvtx_is_present(child: Run, tmp_path: Path) -> None:
    (tmp_path / "nvtx.py").write_text(NVTX)
    marks = tmp_path / "marks"
    ran = child(WORKLOAD, step="region", env={"PYTHONPATH": str(tmp_path), "MARKS": str(marks)})
    assert ran.result["marks"]["nvtx"] == "nvtx 0.2.11"
    assert marks.read_text().split("\n")[:2] == ["open ncukit", "close 7"]


def test_a_real_nsys_sees_the_range(child: Run, nsys: Path, tmp_path: Path) -> None:
    nvtx = pytest.importorskip("nvtx")
    if nvtx.__file__ and importlib.metadata.version("nvtx") != "0.2.11":
        pytest.skip("nsys 2023.4 loses the ranges of nvtx after 0.2.11")
    script, out = tmp_path / "work.py", tmp_path / "trace"
    script.write_text(WORKLOAD)
    words = [
        sys.executable,
        str(CHILD),
        "region",
        str(script),
        "--call",
        "gemm",
        "--result",
        str(tmp_path / "r"),
    ]
    trace = [str(nsys), "profile", "-t", "cuda,nvtx", "--sample=none", "--cpuctxsw=none", "-o", str(out)]
    env = {**os.environ, "RUNS": str(tmp_path / "runs")}
    subprocess.run([*trace, *words], check=True, capture_output=True, env=env, timeout=60)
    export = [str(nsys), "export", "--type", "sqlite", "-o", f"{out}.sqlite", f"{out}.nsys-rep"]
    subprocess.run(export, check=True, capture_output=True, timeout=60)
    query = "SELECT eventType, coalesce(text, value) FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId"
    with closing(sqlite3.connect(f"{out}.sqlite")) as database:
        rows = database.execute(query).fetchall()
    assert (60, "ncukit") in rows  # a start/end range in the default domain


def test_missing_marks_are_said(child: Run, tmp_path: Path) -> None:
    (tmp_path / "nvtx.py").write_text("raise ImportError\n")
    ran = child(WORKLOAD, step="region", env={"PYTHONPATH": str(tmp_path)})
    assert ran.result["marks"]["nvtx"] is None
    assert any("no NVTX range" in text for text in ran.result["marks"]["missing"])
    assert any("no cudaProfilerStart" in text for text in ran.result["marks"]["missing"])


def test_a_failing_region_is_closed_and_told(child: Run, tmp_path: Path) -> None:
    text = "N = 0\ndef gemm():\n    global N\n    N += 1\n    assert N < 5, 'broken'\n"
    ran = child(text, "--warmup", "4", "--calls", "3", step="region")
    assert ran.code == 1
    assert (ran.result["opened"], ran.result["closed"]) == (True, False)
    assert "AssertionError: broken" in ran.err


@pytest.mark.skipif(not HAVE_TORCH, reason="torch is not installed")
def test_torchs_profiler_writes_a_trace_of_the_region(child: Run, tmp_path: Path) -> None:
    text = "import torch\na = torch.ones(4, 4)\ndef gemm():\n    return a @ a\n"
    ran = child(text, "--trace", str(tmp_path / "trace.json"), "--calls", "2", step="trace")
    assert ran.code == 0, ran.err
    assert "traceEvents" in json.loads((tmp_path / "trace.json").read_text())
