"""The stand-ins act as the tools do: every failure, every filter, real reports."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ncu_report
import pytest

from ncukit.errors import ToolError
from ncukit.run.tools import ncu as ncu_tool
from ncukit.run.tools import nsys as nsys_tool
from ncukit.run.tools.capabilities import Probe, probe
from ncukit.run.tools.failures import Outcome, stamp
from ncukit.run.tools.ncu import NcuOptions
from ncukit.run.tools.nsys import NsysOptions
from ncukit.run.tools.process import Completed, run
from tests import conftest
from tests.fakes import install
from tests.fakes.scenarios import NCU, NSYS

LAUNCHES = [
    {"name": "void fill<float>(float*)", "repeat": 3},
    {
        "name": "void gemm<float>(float*)",
        "grid": [32, 1, 1],
        "repeat": 2,
        "push_pop": ["warm"],
        "profiler": False,
    },
    {"name": "void gemm<float>(float*)", "grid": [64, 1, 1], "ranges": ["ncukit"]},
    {"name": "void gemm<float>(float*)", "grid": [65, 1, 1], "ranges": ["ncukit"], "registers": 40},
    {"name": "void cutlass::Kernel<Gemm<(int)8>>(T1)", "grid": [66, 1, 1], "ranges": ["ncukit"]},
]
REAL = {name: conftest.tool(name) for name in ("ncu", "nsys")}  # before the stand-ins hide them
APP = ("/bin/echo", "ran")


@dataclass(frozen=True)
class Stage:
    """A folder of its own, and the stand-ins."""

    folder: Path
    tools: Path
    monkeypatch: pytest.MonkeyPatch
    probed: dict[str, Probe]

    def ncu(self, *, timeout: float = 20, **options: Any) -> tuple[Completed, Outcome, NcuOptions]:
        chosen = NcuOptions(**{"target": APP, "output": self.folder / "profile", **options})
        before = stamp(chosen.report)
        done = run(ncu_tool.argv(chosen, self.probe("ncu")), timeout=timeout, grace=1)
        return done, ncu_tool.judge(done, chosen, before), chosen

    def nsys(self, *, timeout: float = 20, **options: Any) -> tuple[Completed, Outcome, NsysOptions]:
        chosen = NsysOptions(**{"target": APP, "output": self.folder / "timeline", **options})
        before = stamp(chosen.report)
        done = run(nsys_tool.argv(chosen, self.probe("nsys")), timeout=timeout, grace=1)
        return done, nsys_tool.judge(done, chosen, before), chosen

    def probe(self, tool: str) -> Probe:
        if "NCUKIT_FAKE_VERSION" in os.environ:
            return probe(tool, self.tools / tool)
        return self.probed[tool]

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self.monkeypatch.setenv(f"NCUKIT_FAKE_{name}", value)


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Probe]:
    folder = tmp_path_factory.mktemp("tools")
    install(folder)
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    return {tool: probe(tool, folder / tool, environ=environ) for tool in ("ncu", "nsys")}


@pytest.fixture
def stage(probed: dict[str, Probe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NCUKIT_FAKE_LAUNCHES", json.dumps(LAUNCHES))
    monkeypatch.setenv("NCUKIT_FAKE_STATE", str(tmp_path))
    return Stage(tmp_path, probed["ncu"].path.parent, monkeypatch, probed)


def kernels(report: Path) -> list[tuple[str, int, int]]:
    """Return (function, grid x, registers) of each launch in a report, read by NVIDIA's reader."""
    context = ncu_report.load_report(str(report))
    found = []
    for k in (context.range_by_idx(0) or ())[:] if len(context) else ():
        values = [int(k[name].as_uint64()) for name in ("launch__grid_dim_x", "launch__registers_per_thread")]
        found.append((k.name(), *values))
    return found


@pytest.mark.parametrize("name", NCU)
def test_each_failure_of_ncu_has_its_code(stage: Stage, name: str) -> None:
    stage.set(NCU=name)
    scenario = NCU[name]
    done, outcome, _ = stage.ncu(timeout=1.5 if scenario.hangs else 20, kernel="gemm")
    assert outcome.failure is not None, done.output
    assert outcome.failure.code == scenario.code
    assert (outcome.path is None) == (scenario.report != "whole")


@pytest.mark.parametrize("name", [name for name in NSYS if name != "no-gpu-work"])
def test_each_failure_of_nsys_has_its_code(stage: Stage, name: str) -> None:
    stage.set(NSYS=name)
    scenario = NSYS[name]
    done, outcome, _ = stage.nsys(timeout=0.5 if scenario.hangs else 20, capture="profiler-api")
    assert outcome.failure is not None, done.output
    assert outcome.failure.code == scenario.code
    assert outcome.path is None or scenario.code == "app-failed"


def test_a_hang_after_0_percent_is_stopped_in_time_with_the_program(stage: Stage) -> None:
    stage.set(NCU="timeout")
    pid = stage.folder / "pid"
    code = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(300)"
    start = time.monotonic()
    _, outcome, _ = stage.ncu(timeout=2, target=(sys.executable, "-c", code))
    assert time.monotonic() - start < 10
    assert outcome.failure is not None
    assert '0 % of "fill"' in outcome.failure.message
    assert not Path(f"/proc/{pid.read_text()}").exists()


def test_the_program_runs_once_and_its_output_and_exit_code_are_passed_on(stage: Stage) -> None:
    count = stage.folder / "count"
    code = f"open({str(count)!r}, 'a').write('x'); print('hello'); raise SystemExit(7)"
    for run_it in (stage.ncu, stage.nsys):
        count.unlink(missing_ok=True)
        done, outcome, _ = run_it(target=(sys.executable, "-c", code))  # type: ignore[operator]
        assert count.read_text() == "x"
        assert "hello" in done.stdout
        assert done.returncode == 7
        assert outcome.failure is not None
        assert outcome.failure.code == "app-failed"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, [("fill", 1)] * 3 + [("gemm", 32)] * 2 + [("gemm", 64), ("gemm", 65), ("Kernel", 66)]),
        ({"kernel": "gemm"}, [("gemm", 32)] * 2 + [("gemm", 64), ("gemm", 65)]),
        ({"kernel": "gemm", "skip": 1, "count": 2}, [("gemm", 32), ("gemm", 64)]),
        ({"kernel": "gem"}, []),
        ({"kernel": "regex:gem"}, [("gemm", 32)] * 2 + [("gemm", 64), ("gemm", 65)]),
        ({"kernel": "regex:(?i)gemm", "kernel_base": "demangled", "skip": 4}, [("Kernel", 66)]),
        ({"kernel": "void gemm<float>(float*)", "kernel_base": "demangled", "count": 1}, [("gemm", 32)]),
        ({"kernel": "_Z4gemmv", "kernel_base": "mangled", "skip": 3}, [("gemm", 65)]),
        ({"nvtx_include": ("ncukit",)}, [("gemm", 64), ("gemm", 65), ("Kernel", 66)]),
        ({"nvtx_include": ("warm/",)}, [("gemm", 32)] * 2),
        ({"nvtx_include": ("warm",)}, []),
        ({"profile_from_start": False, "kernel": "gemm"}, [("gemm", 64), ("gemm", 65)]),
        ({"nvtx_include": ("ncukit",), "kernel": "gemm", "skip": 1, "count": 1}, [("gemm", 65)]),
    ],
)
def test_filters_let_through_what_ncu_would(
    stage: Stage, options: dict[str, Any], found: list[tuple[str, int]]
) -> None:
    _, outcome, _ = stage.ncu(**options)
    captured = [] if outcome.path is None else [(name, x) for name, x, _ in kernels(outcome.path)]
    assert captured == found


def test_skip_may_count_launches_outside_the_marks(stage: Stage) -> None:
    options = {"nvtx_include": ("ncukit",), "kernel": "gemm", "skip": 1, "count": 1}
    stage.set(SKIP="all")
    _, outcome, _ = stage.ncu(**options)
    assert outcome.path is not None
    assert kernels(outcome.path) == [("gemm", 64, 32)]


def test_another_kernel_than_the_chosen_one_can_be_captured(stage: Stage) -> None:
    stage.set(CAPTURE="fill")
    _, outcome, _ = stage.ncu(kernel="gemm", count=1)
    assert outcome.path is not None
    assert [name for name, *_ in kernels(outcome.path)] == ["fill"]


def test_a_locked_clock_fails_on_mig_and_an_unlocked_one_does_not(stage: Stage) -> None:
    stage.set(NCU="mig-clocks")
    _, locked, _ = stage.ncu()
    _, unlocked, _ = stage.ncu(clock_control="none")
    assert locked.failure is not None
    assert locked.failure.code == "mig-clocks"
    assert (unlocked.failure, unlocked.path is not None) == (None, True)


def test_a_failure_can_happen_only_the_first_time(stage: Stage) -> None:
    stage.set(NCU="busy!")
    codes = [o.failure and o.failure.code for o in (stage.ncu()[1], stage.ncu()[1])]
    assert codes == ["busy", None]
    calls = [json.loads(line) for line in (stage.folder / "calls.jsonl").read_text().splitlines()]
    assert [call[0] for call in calls] == ["ncu", "ncu"]


def test_a_report_that_exists_is_refused_and_with_force_deleted_at_the_start(stage: Stage) -> None:
    report = stage.folder / "profile.ncu-rep"
    report.write_bytes(b"NVR\0old")
    _, refused, _ = stage.ncu()
    assert refused.failure is not None
    assert (refused.failure.code, report.read_bytes()) == ("stale-output", b"NVR\0old")
    stage.ncu(kernel="nothing", overwrite=True)
    assert not report.exists()


def test_an_old_trace_is_kept_and_the_new_one_goes_elsewhere(stage: Stage) -> None:
    stage.monkeypatch.setenv("TMPDIR", str(stage.folder))
    stage.nsys()
    done, outcome, _ = stage.nsys()
    assert (done.returncode, outcome.path) == (0, None)
    assert outcome.failure is not None
    assert outcome.failure.code == "stale-output"


def asked(database: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as opened:
        return opened.execute(sql).fetchall()


def test_nsys_traces_what_ncu_would_profile(stage: Stage) -> None:
    _, outcome, _ = stage.nsys(capture="profiler-api")
    assert outcome.path is not None
    database = stage.folder / "t.sqlite"
    done = run([stage.tools / "nsys", "export", "--type=sqlite", f"--output={database}", outcome.path])
    assert done.returncode == 0, done.output
    rows = asked(
        database,
        "SELECT value, gridX, registersPerThread FROM CUPTI_ACTIVITY_KIND_KERNEL "
        "JOIN StringIds ON id = shortName ORDER BY start",
    )
    assert rows == [("gemm", 64, 32), ("gemm", 65, 40), ("Kernel", 66, 32)]


def test_a_trace_without_gpu_work_has_no_kernel_table(stage: Stage) -> None:
    stage.set(NSYS="no-gpu-work")
    _, outcome, _ = stage.nsys()
    assert outcome.path is not None
    database = stage.folder / "t.sqlite"
    run([stage.tools / "nsys", "export", "--type=sqlite", f"--output={database}", outcome.path])
    tables = [name for (name,) in asked(database, "SELECT name FROM sqlite_master")]
    assert "PROCESSES" in tables
    assert not [name for name in tables if "KERNEL" in name or "TARGET_INFO_GPU" in name]


def test_the_program_may_write_its_launches_itself(stage: Stage) -> None:
    file = stage.folder / "launches.json"
    stage.set(LAUNCHES=str(file))
    code = f"open({str(file)!r}, 'w').write('[{{\"name\": \"mine(int)\"}}]')"
    _, outcome, _ = stage.ncu(target=(sys.executable, "-c", code))
    assert outcome.path is not None
    assert [name for name, *_ in kernels(outcome.path)] == ["mine"]


@pytest.mark.parametrize(
    ("version", "has", "lacks"),
    [("2022.3.0.0", "--kernel-name", "--config-file"), ("2025.3.0.0", "--pipeline-boost-state", "--nosuch")],
)
def test_options_follow_the_version_that_is_played(stage: Stage, version: str, has: str, lacks: str) -> None:
    stage.set(VERSION=version)
    found = stage.probe("ncu")
    assert (found.version, found.has(has), found.has(lacks)) == (version, True, False)
    _, outcome, _ = stage.ncu(kernel="gemm", count=1)
    assert outcome.failure is None


def test_an_old_version_is_too_old(stage: Stage) -> None:
    stage.set(VERSION="2020.3.0.0")
    with pytest.raises(ToolError) as error:
        stage.probe("ncu")
    assert error.value.code == "tool-too-old"


def test_progress_and_passes_are_printed_as_ncu_does(stage: Stage) -> None:
    stage.set(PASSES="40")
    done, _, _ = stage.ncu(kernel="gemm", count=1)
    assert '==PROF== Profiling "gemm" - 0 (1/1): 0%....50%....100% - 40 passes' in done.stdout


@pytest.fixture
def checked(stage: Stage) -> Callable[[str], Path]:
    """The stand-ins with the real tools behind them."""

    def choose(name: str) -> Path:
        if (real := REAL[name]) is None:
            pytest.skip(f"no real {name} to check the stand-in's arguments")
        stage.set(**{f"REAL_{name.upper()}": str(real)})
        return real

    return choose


def test_the_real_tools_check_the_arguments_of_the_stand_ins(
    stage: Stage, checked: Callable[[str], Path]
) -> None:
    checked("ncu")
    done, outcome, options = stage.ncu(kernel="regex:(")
    assert outcome.failure is not None
    assert outcome.failure.code == "option-unknown"
    assert "Unmatched marking parenthesis" in done.output
    done, outcome, _ = stage.ncu(kernel="gemm", count=1)
    assert (outcome.failure, outcome.path) == (None, options.report)
    checked("nsys")
    _, outcome, _ = stage.nsys(trace=("nosuch",))
    assert outcome.failure is not None
    assert outcome.failure.code == "option-unknown"
    assert stage.nsys()[1].failure is None


def test_the_real_ncu_reads_what_the_stand_in_wrote(stage: Stage, ncu: Path) -> None:
    _, outcome, _ = stage.ncu(kernel="gemm", skip=3, count=1)
    assert outcome.path is not None
    done = run([ncu, "--import", outcome.path, "--page", "raw"])
    assert "gemm" in done.stdout
    assert "(65, 1, 1)" in done.stdout


def test_questions_go_to_the_real_ncu(stage: Stage, checked: Callable[[str], Path]) -> None:
    checked("ncu")
    assert "gh100" in ncu_tool.list_chips(stage.probe("ncu"))


def test_the_stand_ins_can_be_replaced_in_one_place(tmp_path: Path) -> None:
    variables = install(tmp_path / "x", ncu=Path("/real/ncu"))
    assert variables["NCUKIT_FAKE_REAL_NCU"] == "/real/ncu"
    assert run([variables["NCUKIT_NCU"], "--version"]).stdout.endswith("Version 2024.1.1.0 (public-release)")
    assert replace(NCU["busy"], code="x").code == "x"
