"""Command lines of ncu: whole lists, and every one of them accepted by the real tool."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncukit.errors import ToolError, UsageError
from ncukit.run.tools import ncu as ncu_tool
from ncukit.run.tools.capabilities import Probe, probe
from ncukit.run.tools.failures import stamp
from ncukit.run.tools.names import NamePattern, nvtx_range
from ncukit.run.tools.ncu import NcuOptions, argv
from ncukit.run.tools.process import Completed, run

NEWEST = re.findall(
    r"\S+",
    """
    --config-file --target-processes --check-exit-code --replay-mode --graph-profiling --cache-control
    --clock-control --pipeline-boost-state --set --section --metrics --apply-rules --import-source --nvtx
    --source-folders --rename-kernels --kernel-name-base --kernel-name --launch-skip --launch-count --kill
    --nvtx-include --profile-from-start --verbose --force-overwrite --export
    """,
)
LATER = {
    "--config-file",
    "--graph-profiling",
    "--pipeline-boost-state",
    "--source-folders",
    "--rename-kernels",
}
LATER |= {"--verbose"}


def tool(*without: str) -> Probe:
    names = frozenset(NEWEST) - set(without)
    return Probe("ncu", Path("/opt/ncu"), "2025.3.0.0", {"": names})


OPTIONS = NcuOptions(("python", "a.py"), Path("/r/profile"))


def test_the_shortest_line_gives_every_default_that_ever_changed() -> None:
    assert argv(OPTIONS, tool("--pipeline-boost-state", "--rename-kernels")) == (
        *("/opt/ncu", "--config-file", "off", "--target-processes", "all", "--check-exit-code", "yes"),
        *(
            "--replay-mode",
            "kernel",
            "--graph-profiling",
            "node",
            "--cache-control",
            "all",
            "--clock-control",
            "base",
        ),
        *(
            "--apply-rules",
            "yes",
            "--import-source",
            "yes",
            "--kernel-name-base",
            "function",
            "--launch-skip",
            "0",
        ),
        *("--kill", "no", "--profile-from-start", "on", "--export", "/r/profile", "python", "a.py"),
    )


def test_one_isolated_launch() -> None:
    options = NcuOptions(
        ("/usr/bin/python3", "-m", "ncukit.workload", "--", "a.py"),
        Path("/r/100%/profile"),
        sections=("SpeedOfLight", "LaunchStats"),
        metrics=("a.sum", "b.avg"),
        kernel="regex:^void gemm<\\(int\\)128>\\(T1\\)$",
        kernel_base="demangled",
        skip=3,
        count=1,
        kill=True,
        nvtx_include=("ncukit",),
        profile_from_start=False,
        clock_control="none",
        cache_control="none",
        source_folders=("/src", "/more"),
        overwrite=True,
        verbose=True,
        extra=("--devices", "0"),
    )
    assert argv(options, tool()) == (
        *("/opt/ncu", "--config-file", "off", "--target-processes", "all", "--check-exit-code", "yes"),
        *(
            "--replay-mode",
            "kernel",
            "--graph-profiling",
            "node",
            "--cache-control",
            "none",
            "--clock-control",
            "none",
        ),
        *("--pipeline-boost-state", "stable", "--section", "SpeedOfLight", "--section", "LaunchStats"),
        *("--metrics", "a.sum,b.avg", "--apply-rules", "yes", "--import-source", "yes"),
        *("--source-folders", "/src,/more", "--rename-kernels", "off", "--kernel-name-base", "demangled"),
        *(
            "--kernel-name",
            "regex:^void gemm<\\(int\\)128>\\(T1\\)$",
            "--launch-skip",
            "3",
            "--launch-count",
            "1",
        ),
        *("--kill", "yes", "--nvtx", "--nvtx-include", "ncukit", "--profile-from-start", "off", "--verbose"),
        *("--force-overwrite", "--export", "/r/100%%/profile", "--devices", "0"),
        *("/usr/bin/python3", "-m", "ncukit.workload", "--", "a.py"),
    )


def test_source_is_not_imported_where_ncu_refuses_to() -> None:
    line = argv(replace(OPTIONS, replay_mode="app-range", source_folders=("/src",)), tool())
    assert line[line.index("--import-source") + 1] == "no"
    assert "--source-folders" not in line


def test_options_that_this_ncu_does_not_have_are_left_out() -> None:
    line = argv(replace(OPTIONS, verbose=True, source_folders=("/src",)), tool(*LATER))
    assert not LATER & set(line)


def test_a_name_filter_never_goes_without_its_base() -> None:
    line = argv(replace(OPTIONS, kernel="gemm"), tool())
    assert line[line.index("--kernel-name-base") + 1] == "function"
    assert line[line.index("--kernel-name") + 1] == "gemm"


def test_a_range_filter_never_goes_without_nvtx() -> None:
    line = argv(replace(OPTIONS, nvtx_include=("a", "b/")), tool())
    assert line[line.index("--nvtx") : line.index("--nvtx") + 5] == (
        "--nvtx",
        "--nvtx-include",
        "a",
        "--nvtx-include",
        "b/",
    )
    assert "--nvtx" not in argv(OPTIONS, tool())


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"graph_profiling": "graph"}, "--graph-profiling"),
        ({"replay_mode": "app-range"}, "--replay-mode"),
        ({"sections": ("X",)}, "--section"),
        ({"kill": True, "count": 1}, "--kill"),
    ],
)
def test_what_was_asked_for_and_is_missing_is_an_error(change: dict[str, Any], missing: str) -> None:
    with pytest.raises(ToolError, match=missing) as error:
        argv(replace(OPTIONS, **change), tool(missing))
    assert error.value.code == "option-unknown"


@pytest.mark.parametrize(
    "change",
    [
        {"target": ()},
        {"target": ("--help",)},
        {"count": 0},
        {"count": -1},
        {"skip": -1},
        {"kill": True},
        {"graph_profiling": "graph", "replay_mode": "range"},
        {"kernel": "gemm", "replay_mode": "range"},
    ],
)
def test_contradictions_are_refused_before_anything_runs(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        argv(replace(OPTIONS, **change), tool())


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {**os.environ, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="module")
def real(ncu: Path, cache: dict[str, str]) -> Probe:
    return probe("ncu", ncu, environ=cache)


@pytest.fixture(scope="module")
def driver(ncu: Path) -> dict[str, str]:
    libcuda = ncu.resolve().parents[3] / "libcuda"
    for folder in (ncu.parents[1] / "libcuda", libcuda):
        if folder.is_dir():
            return {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    pytest.skip(f"no user-mode driver beside {ncu}: ncu does not run a program without one")


# Nothing is profiled here, and these options say so.
EXPECTED = (
    "No (kernels|ranges|graphs) were profiled|consult the documentation for current range-based replay|"
    "Failed to create report|launched by child processes requires the --target-processes all option"
)


def accepted(options: NcuOptions, real: Probe, driver: dict[str, str]) -> str:
    """Return what the real ncu says, without the line that says that /bin/true uses no CUDA."""
    done = run(argv(replace(options, target=("/bin/true",)), real), env=driver, timeout=60)
    rest = [line for line in done.output.splitlines() if not re.search(EXPECTED, line)]
    return "\n".join(rest) if done.returncode == 0 else f"rc {done.returncode}: {done.output}"


NAMES = [
    ("gemm", "function"),
    (NamePattern("gemm").ncu_filter()),
    (NamePattern("void f<(int)128, float*>(T1::Params [2])").ncu_filter()),
    (NamePattern("*Kernel?<*>").ncu_filter()),
    (NamePattern("regex:^(void )?gemm_[0-9]{2,3}$").ncu_filter()),
    ("regex:a\\.b\\+c\\$d\\^e\\|f\\\\g", "mangled"),
    ("void f<(int)128>(T*)", "demangled"),
]
RANGES = [nvtx_range("ncukit"), nvtx_range("a b"), nvtx_range("x[0]/y,z@w+*"), nvtx_range("p", push_pop=True)]
CHANGES: list[dict[str, Any]] = [
    {},
    *({"kernel": name, "kernel_base": base, "count": 1, "skip": 2} for name, base in NAMES),
    {"nvtx_include": tuple(RANGES), "profile_from_start": False, "kill": True, "count": 1},
    *({"set": s} for s in ("basic", "full")),
    {"sections": ("SpeedOfLight", "MemoryWorkloadAnalysis"), "metrics": ("dram__bytes.sum", "regex:sm__.*")},
    *({"replay_mode": mode} for mode in ("application", "range", "app-range")),
    {"clock_control": "none", "cache_control": "none"},
    {"graph_profiling": "graph"},
    {"target_processes": "application-only", "rules": False, "import_source": False},
    {"source_folders": (".", "/tmp"), "verbose": True},
    {"overwrite": True},
]


@pytest.mark.parametrize(
    "change", CHANGES, ids=[" ".join(map(str, c)) + f"-{n}" for n, c in enumerate(CHANGES)]
)
def test_the_real_ncu_accepts_every_line(
    change: dict[str, Any], real: Probe, driver: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "50%").mkdir()
    assert accepted(replace(NcuOptions((), tmp_path / "50%" / "out"), **change), real, driver) == ""


def test_a_machine_without_a_driver_is_told_from_a_broken_program(real: Probe, tmp_path: Path) -> None:
    options = NcuOptions(("/bin/true",), tmp_path / "out", kernel="regex:gemm")
    env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = run(argv(options, real), env=env, timeout=60)
    if "failed to connect to the CUDA driver" not in done.output:
        pytest.skip("this machine has a driver")
    outcome = ncu_tool.judge(done, options, None)
    assert outcome.path is None
    assert outcome.failure is not None
    assert (outcome.failure.code, done.returncode) == ("no-driver", 1)


def test_a_program_that_never_uses_cuda_is_said_to(
    real: Probe, driver: dict[str, str], tmp_path: Path
) -> None:
    options = NcuOptions(("/bin/true",), tmp_path / "out", kernel="regex:gemm")
    outcome = ncu_tool.judge(run(argv(options, real), env=driver, timeout=60), options, None)
    assert outcome.failure is not None
    assert outcome.failure.code == "app-no-cuda"


def test_the_exit_code_of_the_program_is_told(real: Probe, driver: dict[str, str], tmp_path: Path) -> None:
    options = NcuOptions(("/bin/sh", "-c", "echo broken; exit 3"), tmp_path / "out")
    outcome = ncu_tool.judge(run(argv(options, real), env=driver, timeout=60), options, None)
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.message) == (
        "app-failed",
        "the program ended with exit code 3",
    )
    assert outcome.failure.hint == "Its last line: broken"


def test_an_existing_report_is_not_taken_for_a_new_one(
    real: Probe, driver: dict[str, str], tmp_path: Path
) -> None:
    options = NcuOptions(("/bin/true",), tmp_path / "out")
    options.report.write_bytes(b"NVR\0 from yesterday")
    before = stamp(options.report)
    outcome = ncu_tool.judge(run(argv(options, real), env=driver, timeout=60), options, before)
    assert outcome.path is None
    assert outcome.failure is not None
    assert outcome.failure.code == "stale-output"


def test_a_hang_of_the_real_ncu_is_stopped_with_all_its_processes(ncu: Path, driver: dict[str, str]) -> None:
    argv = [ncu, "--injection-path-64", "/nosuch", "/bin/sleep", "300"]
    done = run(argv, env=driver, timeout=1.5, grace=1)
    assert done.timed_out
    left = [p for p in Path("/proc").glob("[0-9]*/cmdline") if b"/nosuch" in _read(p)]
    assert left == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_chips_metrics_and_sections_can_be_asked_for(real: Probe, cache: dict[str, str]) -> None:
    chips = ncu_tool.list_chips(real, environ=cache)
    assert {"ga100", "gh100", "tu102"} <= set(chips)
    metrics = ncu_tool.query_metrics(real, "gh100", environ=cache)
    assert {"dram__bytes", "sm__throughput"} <= metrics
    assert len(metrics) > 1000
    sections = ncu_tool.list_sections(real, environ=cache)
    assert {"SpeedOfLight", "SourceCounters"} <= set(sections)
    assert "Identifier" not in sections


def test_a_chip_that_ncu_does_not_know_is_an_unsupported_gpu(real: Probe) -> None:
    with pytest.raises(ToolError, match="nosuch100") as error:
        ncu_tool.query_metrics(real, "nosuch100")
    assert error.value.code == "unsupported-gpu"


@pytest.mark.parametrize(
    ("cc", "supported"), [((9, 0), True), ((8, 0), True), ((6, 0), False), ((10, 0), False), ((99, 0), None)]
)
def test_a_gpu_is_compared_with_the_chips_of_this_ncu(cc: tuple[int, int], supported: bool | None) -> None:
    assert ncu_tool.supports(("ga100", "gh100", "tu102"), cc) is supported


def test_facts_for_advice_name_version_and_other_installs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ncu").write_text("#!/bin/sh\necho Version 2024.1.1.0\n")
        (tmp_path / name / "ncu").chmod(0o755)
    environ = {"PATH": f"{tmp_path}/a:{tmp_path}/b:/bin"}
    found = ncu_tool.facts(replace(tool(), path=tmp_path / "a" / "ncu"), environ=environ)
    assert found["version"] == "2025.3.0.0"
    assert str(tmp_path / "b" / "ncu") in found["installs"]
    assert str(tmp_path / "a" / "ncu") not in found["installs"]


def test_a_partial_report_is_kept_with_its_failure(tmp_path: Path) -> None:
    options = NcuOptions(("a",), tmp_path / "out")
    options.report.write_bytes(b"NVR\0rest")
    lines = (("stdout", '==ERROR== Failed to profile "k" in process 1'), ("stdout", "==ERROR== LaunchFailed"))
    outcome = ncu_tool.judge(Completed((), 9, lines=lines), options, None)  # type: ignore[arg-type]
    assert outcome.path == options.report
    assert outcome.failure is not None
    assert outcome.failure.code == "launch-failed"
