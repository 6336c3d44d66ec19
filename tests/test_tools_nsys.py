"""Command lines of nsys: whole lists, accepted by the real tool; a run is judged by its file."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncukit.errors import ToolError, UsageError
from ncukit.run.tools import nsys as nsys_tool
from ncukit.run.tools.capabilities import Probe, probe
from ncukit.run.tools.failures import stamp
from ncukit.run.tools.nsys import NsysOptions, argv
from ncukit.run.tools.process import run

OPTIONS = NsysOptions(("python", "a.py"), Path("/r/timeline"))
NEWEST = frozenset(
    {
        option for option, _, _ in nsys_tool._table(replace(OPTIONS, capture="nvtx", range="r"))
    }  # all there are
)


def tool(*without: str) -> Probe:
    return Probe(
        "nsys", Path("/opt/nsys"), "2023.4.4.54", {"profile": NEWEST - set(without), "export": frozenset()}
    )


def test_the_shortest_line_gives_every_default_that_ever_changed() -> None:
    assert argv(OPTIONS, tool("--cuda-event-trace")) == (
        *(
            "/opt/nsys",
            "profile",
            "--trace=cuda,nvtx",
            "--sample=none",
            "--cpuctxsw=none",
            "--backtrace=none",
        ),
        *("--cuda-graph-trace=node", "--cuda-memory-usage=false", "--trace-fork-before-exec=false"),
        *(
            "--capture-range=none",
            "--kill=none",
            "--wait=primary",
            "--stop-on-exit=true",
            "--show-output=true",
        ),
        *(
            "--stats=false",
            "--export=none",
            "--force-overwrite=false",
            "--output=/r/timeline",
            "python",
            "a.py",
        ),
    )


def test_a_marked_region_does_not_end_the_program() -> None:
    line = argv(replace(OPTIONS, capture="profiler-api"), tool())
    assert "--capture-range=cudaProfilerApi" in line
    assert "--capture-range-end=stop" in line
    assert "--kill=none" in line


def test_an_nvtx_range_needs_its_variable() -> None:
    options = replace(OPTIONS, capture="nvtx", range="ncukit")
    assert {"--capture-range=nvtx", "--nvtx-capture=ncukit"} <= set(argv(options, tool()))
    assert options.environment == {"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"}
    assert OPTIONS.environment == {}


def test_a_percent_sign_in_a_path_is_no_macro() -> None:
    assert "--output=/r/50%%/t" in argv(replace(OPTIONS, output=Path("/r/50%/t")), tool())


def test_options_that_this_nsys_does_not_have_are_left_out() -> None:
    line = " ".join(argv(OPTIONS, tool("--cuda-event-trace", "--wait", "--kill", "--cuda-graph-trace")))
    assert not any(name in line for name in ("--cuda-event-trace", "--wait", "--kill", "--cuda-graph-trace"))


def test_a_capture_that_this_nsys_cannot_do_is_an_error() -> None:
    with pytest.raises(ToolError, match="--capture-range") as error:
        argv(replace(OPTIONS, capture="profiler-api"), tool("--capture-range"))
    assert error.value.code == "option-unknown"


@pytest.mark.parametrize(
    "change", [{"target": ()}, {"target": ("-x",)}, {"capture": "nvtx"}, {"capture": "all", "range": "r"}]
)
def test_contradictions_are_refused_before_anything_runs(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        argv(replace(OPTIONS, **change), tool())


@pytest.fixture(scope="module")
def real(nsys: Path, tmp_path_factory: pytest.TempPathFactory) -> Probe:
    return probe(
        "nsys", nsys, environ={**os.environ, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}
    )


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"overwrite": True, "cuda_graphs": "graph"},
        {"trace": ("cuda", "nvtx", "osrt", "cublas", "cudnn")},
        {"capture": "profiler-api"},
        {"capture": "nvtx", "range": "ncukit"},
        {"capture": "nvtx", "range": "my range@lib"},
        {"output": Path("/tmp/50%/x y")},
        {"extra": ("--duration=5",)},
    ],
)
def test_the_real_nsys_accepts_every_line(change: dict[str, Any], real: Probe) -> None:
    options = replace(NsysOptions(("/nonexistent/program",), Path("/tmp/t")), **change)
    done = run(argv(options, real), timeout=30)
    for _ in range(5):
        if "Local Endpoint is not available" not in done.output:  # nsys, on a busy machine
            break
        time.sleep(1)
        done = run(argv(options, real), timeout=30)
    warned, error = done.output.split("\n")[:-1], done.output.strip().split("\n")[-1]
    assert error == "Executable not found in current directory or standard search paths"
    assert not [line for line in warned if "CUDA driver version" not in line and "node-level" not in line]
    outcome = nsys_tool.judge(done, options, None)
    assert outcome.failure is not None
    assert outcome.failure.id == "app-failed.target"


def test_a_real_trace_is_a_new_file_and_the_program_s_failure_is_told(real: Probe, tmp_path: Path) -> None:
    options = NsysOptions(("sh", "-c", "echo broken; exit 3"), tmp_path / "50%")
    outcome = nsys_tool.judge(run(argv(options, real), timeout=60), options, None)
    assert outcome.path == tmp_path / "50%.nsys-rep"
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.hint) == ("app-failed", "Its last line: broken")


def test_a_real_region_that_never_opens_is_said_though_nsys_exits_with_0(real: Probe, tmp_path: Path) -> None:
    options = NsysOptions(("sleep", "0.1"), tmp_path / "t", capture="profiler-api")
    done = run(argv(options, real), timeout=60)
    outcome = nsys_tool.judge(done, options, None)
    assert (done.returncode, outcome.path) == (0, None)
    assert outcome.failure is not None
    assert outcome.failure.id == "nothing-profiled.range"


def test_a_real_report_that_went_elsewhere_is_not_taken(real: Probe, tmp_path: Path) -> None:
    options = NsysOptions(("true",), tmp_path / "t")
    options.report.write_bytes(b"NVIDIA Tegra Profiler Report of yesterday")
    before = stamp(options.report)
    done = run(argv(options, real), env={**os.environ, "TMPDIR": str(tmp_path)}, timeout=60)
    outcome = nsys_tool.judge(done, options, before)
    assert (done.returncode, outcome.path) == (0, None)
    assert outcome.failure is not None
    assert outcome.failure.code == "stale-output"
