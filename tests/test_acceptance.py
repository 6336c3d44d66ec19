"""The acceptance run: its plan, its judgement, and the whole of it with stand-ins for the tools."""

from __future__ import annotations

import json
import sys
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scripts import gpu_acceptance
from scripts.acceptance import judge
from scripts.acceptance.carry import carry
from scripts.acceptance.outcome import Check, Outcome, Row
from scripts.acceptance.plan import FIRST, FULL, Step, plan
from scripts.acceptance.table import archive, markdown
from scripts.kernels import FOLDER, workloads
from tests.runs import WORKLOAD, Lab, gemm, with_driver

# ---- the plan


def test_every_workload_is_profiled_once_and_the_telling_ones_first() -> None:
    names = [step.name for step in plan(FOLDER)]
    profiled = [name.removeprefix("profile ") for name in names if name.startswith("profile ")]
    assert profiled[: len(FIRST)] == list(FIRST)
    assert sorted(profiled) == sorted(path.stem for path in workloads())
    assert len(names) == len(set(names))


def test_three_are_measured_in_full_and_no_clock_is_touched() -> None:
    steps = [step for step in plan(FOLDER) if step.name.startswith("profile ")]
    full = [step.name for step in steps if step.words[step.words.index("--preset") + 1] == "full"]
    assert sorted(full) == sorted(f"profile {name}" for name in FULL)
    for step in plan(FOLDER):
        if step.words[0] == "profile":
            assert step.words[step.words.index("--clock-control") + 1] == "none", step.name
            assert "{run}" in step.words


def test_every_command_of_the_plan_is_understood(lab: Lab) -> None:
    """With --help behind it each command is parsed as far as its name."""
    for words in {step.words[0] for step in plan(FOLDER) if not step.program}:
        assert lab(words, "--help").code == 0, words


# ---- judging


def outcome(document: Mapping[str, Any], code: int = 0, folder: Path | None = None) -> Outcome:
    return Outcome(("ncukit",), code, 1.0, json.dumps(document), "", folder)


def run_directory(folder: Path, *, verdict: str = "memory-bound:dram", flops: float = 2e9) -> Path:
    cls, _, limiter = verdict.partition(":")
    kernel = {
        "verdict": {"class": cls, "limiter": limiter or None},
        "findings": [{"id": "busiest-unit"}, {"id": "tail"}],
        "metrics": {
            "flops_total": {"value": flops},
            "dram_bytes": {"value": 3e8},
            "kernel_duration": {"value": 1.5e-4},
        },
    }
    (folder / "metrics.json").write_text(json.dumps({"kernels": [kernel]}))
    timing = {"median": 1e-4, "timer": "cuda-events", "model": {"flop": 2e9, "bytes": 2e8}}
    (folder / "timing.json").write_text(json.dumps(timing))
    return folder


EXPECT = {"verdict": ["memory-bound:dram", "balanced"], "findings": ["tail|small-grid"], "absent": ["spills"]}
PROVEN = {"isolation": {"verdict": "proven"}, "steps": [{"name": "counters", "seconds": 4.0}]}


def found(checks: tuple[Check, ...]) -> dict[str, tuple[str, bool | None]]:
    return {check.what: (check.found, check.met) for check in checks}


def test_a_run_as_expected_meets_everything(tmp_path: Path) -> None:
    checks = found(judge.profiled(EXPECT)(outcome(PROVEN, folder=run_directory(tmp_path))))
    assert checks == {
        "exit code": ("0", True),
        "verdict": ("memory-bound:dram", True),
        "finding": ("tail", True),
        "no finding": ("not found", True),
        "the launch captured is the launch chosen": ("proven", True),
        "flops_total / model": ("1.000", True),
        "dram_bytes / model": ("1.500", True),
        "clean time of a call / profiled kernel": ("100.00 / 150.00 us (cuda-events)", None),
        "seconds of each step": ("counters 4.0", None),
    }


def test_another_verdict_and_too_little_work_are_not_met(tmp_path: Path) -> None:
    folder = run_directory(tmp_path, verdict="latency-bound:tail", flops=1e9)
    checks = found(judge.profiled({**EXPECT, "absent": ["tail"]})(outcome(PROVEN, folder=folder)))
    assert checks["verdict"] == ("latency-bound:tail", False)
    assert checks["flops_total / model"] == ("0.500", False)
    assert checks["no finding"] == ("found", False)


@pytest.mark.parametrize("code", judge.NOT_MEASURED)
def test_counters_that_may_not_be_read_are_a_result_of_their_own(code: str) -> None:
    run = {"error": {"code": code}, "page": "report.html"}
    row = Row.of("x", outcome(run, 5), judge.profiled(EXPECT)(outcome(run, 5)))
    assert row.state == "met"  # it ended as it must
    assert found(row.checks)["counters"] == (f"not measured ({code}); a page from timing and trace", None)
    assert Row.of("x", outcome(run, 3), judge.profiled(EXPECT)(outcome(run, 3))).state == "not met"


def test_without_counters_nothing_is_taken_for_met() -> None:
    checks = judge.profiled(EXPECT)(outcome({"error": {"code": "no-driver"}}, 3))
    assert not any(check.met for check in checks)


@pytest.mark.parametrize(
    ("inside", "after", "met"),
    [([16, 20, 24], [20], True), ([16, 20, 24], [16], False), ([16, 20, 24], [], None), ([], [], None)],
)
def test_what_ncu_skips_is_read_off_the_grids(inside: list[int], after: list[int], met: bool | None) -> None:
    (check,) = judge.skipped(outcome({"inside": inside, "after_one": after}))
    assert check.met is met


def test_an_error_must_have_its_own_code() -> None:
    wrong = outcome({"error": {"code": "wrong-result"}}, 3)
    assert [check.met for check in judge.refuses("wrong-result", 3)(wrong)] == [True, True]
    assert [check.met for check in judge.refuses("app-failed", 3)(wrong)] == [True, False]


def test_a_sweep_has_all_its_points() -> None:
    assert judge.swept(2)(outcome({"points": [{}, {}]}))[1].met
    assert judge.swept(6)(outcome({"points": [{}, {}]}))[1].met is False


@pytest.mark.parametrize(("code", "met"), [("improved", True), ("not-shown", False), ("worse", False)])
def test_the_tiled_product_must_be_shown_to_be_faster(code: str, met: bool) -> None:
    record = {"conclusion": {"code": code, "claim": "words"}}
    assert found(judge.compared(outcome(record)))["conclusion"] == (code, met)
    assert found(judge.compared(outcome({"error": {"code": "app-failed"}}, 3)))["conclusion"] == (
        "none",
        False,
    )


def test_a_probe_without_a_result_is_not_met_and_says_why() -> None:
    probes = [
        {"name": "copy", "state": "done", "result": {"bandwidth": 3e12}, "reason": ""},
        {"name": "device", "state": "unavailable", "result": {}, "reason": "no driver"},
    ]
    checks = found(judge.probes(outcome({"probes": probes})))
    assert checks["probe copy"] == ("bandwidth 3000000000000.0", True)
    assert checks["probe device"] == ("unavailable: no driver", False)


# ---- carrying it out


def step(name: str, text: str, limit: float = 30.0, judged: Any = None) -> Step:
    return Step(name, ("-c", text), limit, judged or judge.ends_with(0), program=True)


def test_it_goes_on_after_each_kind_of_failure_and_lists_what_the_budget_leaves_out(tmp_path: Path) -> None:
    def broken(_: Outcome) -> tuple[Check, ...]:
        raise KeyError("checks")

    steps = [
        step("fails", "raise SystemExit(3)"),
        step("hangs", "import time; time.sleep(60)", limit=0.5),
        step("cannot be judged", "print(1)", judged=broken),
        step("goes well", "print(1)"),
        step("takes the rest", "import time; time.sleep(60)"),
        step("is left over", "print(1)"),
    ]
    began = time.monotonic()
    rows = list(carry(steps, tmp_path, 8.0, lambda _: None))
    assert time.monotonic() - began < 20
    assert [row.state for row in rows] == ["not met", "timed out", "failed", "met", "timed out", "not run"]
    assert "KeyError" in rows[2].note
    assert rows[5].note == "the budget was spent"


def test_the_archive_holds_table_and_logs_and_stays_below_its_limit(tmp_path: Path) -> None:
    rows = list(carry([step("a|b", "print('said')")], tmp_path, 20.0, lambda _: None))
    for number, size in enumerate((400_000, 900_000, 1_500_000)):
        folder = tmp_path / "runs" / str(number)
        folder.mkdir(parents=True)
        (folder / "profile.ncu-rep").write_bytes(bytes(range(256)) * (size // 256))
    target = tmp_path / "acceptance.tar.gz"
    taken = archive(target, tmp_path, rows, "about")
    assert taken[:3] == ["table.md", "table.json", "logs/01.err"]
    assert [name for name in taken if name.endswith(".ncu-rep")] == [
        "runs/0/profile.ncu-rep",
        "runs/1/profile.ncu-rep",
    ]
    assert r"| a\|b | met |" in markdown(rows, "about")
    small = archive(target, tmp_path, rows, "about", limit=1_300_000)
    assert "runs/1/profile.ncu-rep" not in small
    assert target.stat().st_size < 1_300_000
    with tarfile.open(target) as file:
        assert {member.uname for member in file.getmembers()} == {""}


# ---- the whole, with stand-ins


@pytest.fixture(scope="module")
def stands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("standins")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stands: Path) -> Lab:
    return Lab(tmp_path, monkeypatch, stands)


HEADER = '''"""A matrix product without torch.

Shows: the run.
Parameters: n, scale.
Model: gemm(n).
"""
EXPECT = {"verdict": ["memory-bound:dram"], "findings": ["busiest-unit"]}
'''


def test_the_whole_run_with_stand_ins(
    lab: Lab, stands: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_driver(lab, stands / "lib")
    lab.launches({"name": "void fill(float*)", "repeat": 3}, gemm())
    kernels = lab.folder / "kernels"
    kernels.mkdir()
    workload = WORKLOAD.replace("n=64, scale=2", "n=64, scale=2, m=1").replace("(n, scale)", "(n, scale, m)")
    (kernels / "gemm.py").write_text(HEADER + workload)
    began = time.monotonic()
    monkeypatch.setattr(sys, "argv", ["gpu_acceptance.py"])
    code = gpu_acceptance.main(
        ["--kernels", str(kernels), "--keep", "all", "-o", "out.tgz", "--budget", "110", "--arch", "sm_90"]
    )
    assert time.monotonic() - began < 120
    assert code == 1  # the stand-ins' numbers are not those of a matrix product
    with tarfile.open("out.tgz") as file:
        names = set(file.getnames())
        table = json.loads(file.extractfile("table.json").read())  # type: ignore[union-attr]
    rows = {row["name"]: row for row in table["rows"]}
    assert {row["state"] for row in rows.values()} <= {"met", "not met", "not measured"}, capsys.readouterr()
    checks = {name: {c["what"]: c for c in row["checks"]} for name, row in rows.items()}
    gemm_checks = checks["profile gemm"]
    assert gemm_checks["exit code"]["met"]
    assert gemm_checks["the launch captured is the launch chosen"]["met"]
    assert "counters" in gemm_checks["seconds of each step"]["found"]
    assert gemm_checks["verdict"]["met"] is False
    assert rows["a kernel that fails"]["state"] == "met"
    assert rows["a kernel that is wrong"]["state"] == "met"
    assert rows["a name that no kernel has"]["state"] == "met"
    assert rows["doctor"]["state"] == "met"
    assert rows["sweep of GEMM sizes"]["state"] == "met"
    assert rows["probe"]["state"] == "met"
    assert "NVIDIA H100 Test" in table["about"]
    assert {"table.md", "runs/03/profile.ncu-rep", "runs/03/report.html", "runs/03/run.json"} <= names
