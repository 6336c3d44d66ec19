"""The acceptance run: its plan, its judgement, and the whole of it with stand-ins for the tools."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scripts import gpu_acceptance
from scripts.acceptance import judge
from scripts.acceptance import plan as planning
from scripts.acceptance.adopt import BEGIN, END, adopt
from scripts.acceptance.carry import carry, environment
from scripts.acceptance.measured import Measured
from scripts.acceptance.outcome import Check, Outcome, Row
from scripts.acceptance.plan import FIRST, FULL, SMALLER, Step, plan
from scripts.acceptance.scrub import Scrub
from scripts.acceptance.table import archive, markdown
from scripts.kernels import FOLDER, workloads
from tests.conftest import CHECKOUT
from tests.runs import WORKLOAD, Lab, gemm

NOTHING = Scrub([], [])

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


def test_every_profile_of_the_plan_is_understood_to_the_last_word(bare: Lab) -> None:
    """With --dry-run before its words nothing runs, but every option and every parameter is looked at."""
    for tool in ("ncu", "nsys"):
        bare.without(tool)  # which need not be asked what they can do
    for step in plan(FOLDER):
        if step.words[0] == "profile":
            words = [word.replace("{run}", "run") for word in step.words]
            ran = bare("profile", "--dry-run", *words[1:])
            assert ran.code == 0, (step.name, ran.err)
            steps = {one["step"]: one["command"] for one in json.loads(ran.out)["steps"]}
            assert "counters" in steps
            if words[1].endswith(".cu"):
                assert steps["timing"][1:] == words[words.index("--") + 1 :]


def test_what_is_made_smaller_is_a_parameter_of_its_workload() -> None:
    for name, changed in SMALLER.items():
        declared = (FOLDER / f"{name}.py").read_text(encoding="utf-8").partition("@ncukit.workload(")[2]
        for text in changed:
            parameter, value = text.split("=")
            default = re.search(rf"\b{parameter}=(\d+)", declared)
            assert default is not None
            assert int(value) < int(default[1])


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
MODEL = {"flop": 2e9, "bytes": 2e8}
PROVEN = {"isolation": {"verdict": "proven"}, "steps": [{"name": "counters", "seconds": 4.0}]}


def found(checks: tuple[Check, ...]) -> dict[str, tuple[str, bool | None]]:
    return {check.what: (check.found, check.met) for check in checks}


def test_a_run_as_expected_meets_everything(tmp_path: Path) -> None:
    directory = run_directory(tmp_path)
    checks = found(judge.profiled(EXPECT, MODEL)(outcome(PROVEN, folder=directory)))
    assert checks == {
        "exit code": ("0", True),
        "verdict": ("memory-bound:dram", True),
        "finding": ("tail", True),
        "no finding": ("not found", True),
        "the launch captured is the launch chosen": ("proven", True),
        "flops_total / model": ("1.000", True),
        "dram_bytes / model": ("1.500", True),
        "clean against profiled time": (
            "a call 100.00 us (cuda-events), the launch under ncu 150.00 us",
            None,
        ),
        "seconds of each step": ("counters 4.0", None),
    }


def test_another_verdict_and_too_little_work_are_not_met(tmp_path: Path) -> None:
    folder = run_directory(tmp_path, verdict="latency-bound:tail", flops=1e9)
    checks = found(judge.profiled({**EXPECT, "absent": ["tail"]}, MODEL)(outcome(PROVEN, folder=folder)))
    assert checks["verdict"] == ("latency-bound:tail", False)
    assert checks["flops_total / model"] == ("0.500", False)
    assert checks["no finding"] == ("found", False)


def test_a_header_says_what_cannot_be_compared_and_what_may_differ(tmp_path: Path) -> None:
    folder = run_directory(tmp_path, flops=9e9)
    expect = {**EXPECT, "counted": {"flop": None, "bytes": [2, 3]}}
    checks = found(judge.profiled(expect, MODEL)(outcome(PROVEN, folder=folder)))
    assert checks["flops_total / model"] == ("4.500", None)
    assert checks["dram_bytes / model"] == ("1.500", False)


@pytest.mark.parametrize(("launches", "said"), [(10, None), (30, "a call makes 3 launches"), (0, "a trace")])
def test_a_launch_is_held_against_the_model_only_where_it_is_the_whole_call(
    tmp_path: Path, launches: int, said: str | None
) -> None:
    folder = run_directory(tmp_path)
    if launches:
        (folder / "timeline.json.gz").write_bytes(torch_trace(launches))
    timeline = {"name": "timeline", "state": "done", "command": ["child.py", "trace", "--calls", "10"]}
    record = {**PROVEN, "steps": [timeline], "launch": {"name": "void f<int>(int*)"}}
    other = Measured.of(outcome(record, folder=folder)).other_launches
    assert other is None if said is None else said in str(other)
    checks = found(judge.profiled(EXPECT)(outcome(record, folder=folder)))
    assert checks["flops_total / model"][1] is (True if said is None else None)


def torch_trace(launches: int) -> bytes:
    import gzip

    args = {"device": 0, "context": 1, "stream": 7, "grid": [1, 1, 1], "block": [32, 1, 1]}
    work = {"ph": "X", "cat": "kernel", "name": "void f<int>(int*)", "pid": 0, "tid": 7, "dur": 5.0}
    events = [{**work, "ts": 10.0 * i, "args": {**args, "correlation": i}} for i in range(launches)]
    return gzip.compress(json.dumps({"traceEvents": events}).encode())


@pytest.mark.parametrize("code", judge.NOT_MEASURED)
def test_counters_that_may_not_be_read_are_a_result_of_their_own(code: str) -> None:
    steps = [{"name": "timeline", "state": "done"}, {"name": "counters", "failure": {"code": code}}]
    run = {"error": {"code": code}, "page": "report.html", "steps": steps}
    row = Row.of("x", outcome(run, 5), judge.profiled(EXPECT)(outcome(run, 5)))
    assert row.state == "not measured"
    assert found(row.checks)["counters"] == (f"not measured ({code})", None)
    for other in (outcome(run, 3), outcome({**run, "page": None}, 5)):
        assert Row.of("x", other, judge.profiled(EXPECT)(other)).state == "not met"


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


def test_a_sweep_without_counters_is_not_measured() -> None:
    points = [{"error": {"code": "permission"}}] * 2
    row = Row.of("x", outcome({"points": points}, 5), judge.swept(2)(outcome({"points": points}, 5)))
    assert row.state == "not measured"


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
    return Step(name, ("-S", "-c", text), limit, judged or judge.ends_with(0), program=True, least=1.0)


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
    rows = list(carry(steps, tmp_path, 4.0))
    assert time.monotonic() - began < 20
    assert [row.state for row in rows] == ["not met", "timed out", "failed", "met", "timed out", "not run"]
    assert "KeyError" in rows[2].note
    assert rows[5].note == "the budget was spent"


def test_a_step_runs_elsewhere_so_no_path_stays_relative(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"PYTHONPATH": "site::/abs", "NCUKIT_NCU": "bin/ncu", "NCUKIT_NSYS": "nsys", "HOME": "x"}
    found = environment(given)
    assert found["PYTHONPATH"].split(os.pathsep) == [str(CHECKOUT), f"{Path.cwd()}/site", "/abs"]
    assert (found["NCUKIT_NCU"], found["NCUKIT_NSYS"]) == (f"{Path.cwd()}/bin/ncu", "nsys")
    assert found["HOME"] == "x"


def test_what_stops_the_script_leaves_the_archive(tmp_path: Path) -> None:
    """The stand-in for a time limit from outside: SIGTERM in the middle of a step."""
    text = (
        f"import sys; sys.path.insert(0, {str(CHECKOUT)!r})\n"
        "from scripts import gpu_acceptance as g\nfrom tests.test_acceptance import step\n"
        "g.plan = lambda *_, **__: [step('short', 'print(1)'), step('long', 'import time; time.sleep(60)')]\n"
        "sys.exit(g.main(['--keep', 'all', '-o', 'out.tgz']))"
    )
    process = subprocess.Popen([sys.executable, "-c", text], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "short" in process.stderr.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    process.stderr.close()
    with tarfile.open(tmp_path / "out.tgz") as file:
        rows = json.loads(file.extractfile("table.json").read())["rows"]  # type: ignore[union-attr]
    assert [row["name"] for row in rows] == ["short"]


def test_the_archive_holds_table_and_logs_and_stays_below_its_limit(tmp_path: Path) -> None:
    rows = list(carry([step("a|b", "print('said')")], tmp_path, 20.0))
    for number, size in enumerate((400_000, 900_000, 1_500_000)):
        folder = tmp_path / "runs" / str(number)
        (folder / "logs").mkdir(parents=True)
        (folder / "logs" / "ncu.log").write_text("==ERROR== said")
        (folder / "profile.ncu-rep").write_bytes(os.urandom(size))
    target = tmp_path / "acceptance.tar.gz"
    taken = archive(target, tmp_path, rows, "about", scrub=NOTHING)
    assert taken[:3] == ["table.md", "table.json", "logs/01.err"]
    assert "runs/0/logs/ncu.log" in taken
    assert [name for name in taken if name.endswith(".ncu-rep")] == [
        f"runs/{number}/profile.ncu-rep" for number in range(3)
    ]
    assert r"| a\|b | met |" in markdown(rows, "about")
    small = archive(target, tmp_path, rows, "about", scrub=NOTHING, limit=1_700_000)
    assert [name for name in small if name.endswith(".ncu-rep")] == [
        "runs/0/profile.ncu-rep",
        "runs/1/profile.ncu-rep",
    ]
    assert target.stat().st_size < 1_700_000
    with tarfile.open(target) as file:
        assert {(member.uname, member.uid) for member in file.getmembers()} == {("", 0)}


def test_names_and_folders_are_taken_out_and_a_report_stays_readable(tmp_path: Path) -> None:
    from ncukit import read

    sample = next((CHECKOUT / "reports" / "samples").glob("copy-dram*.ncu-rep"))
    data = sample.read_bytes()
    kernel = next(iter(read(sample).kernels()))
    source = kernel.name.encode()
    scrub = Scrub([(f"/{kernel.name}", "RUN"), ("/somewhere/long", "CHECKOUT")], [kernel.name])
    clean = scrub.data(data)
    assert source in data
    assert len(clean) == len(data)
    (tmp_path / "clean.ncu-rep").write_bytes(clean)
    assert next(iter(read(tmp_path / "clean.ncu-rep").kernels())).name == "x" * len(kernel.name)
    assert scrub.text("/somewhere/long/a /somewhere/longer") == "CHECKOUT/a /somewhere/longer"


def test_this_machine_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "gpu-node-7.example")
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ann"))
    scrub = Scrub.here(tmp_path, Path("/srv/checkout"))
    text = f"{tmp_path}/runs/01 /srv/checkout/kernels /home/ann/x gpu-node-7 ann annotate"
    assert scrub.text(text) == "RUN/runs/01 CHECKOUT/kernels HOME/x xxxxxxxxxx xxx annotate"
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    assert Scrub.here(tmp_path, Path("/srv/checkout")).text("root cause") == "root cause"


# ---- taking it into the repository


def archived(folder: Path, size: int = 1000) -> Path:
    run = {
        "gpu": {"name": "NVIDIA H200"},
        "driver": {"kernel": "580.1"},
        "tools": {"ncu": {"version": "2025.3.1"}},
        "steps": [{"name": "counters", "command": ["ncu", "--set", "full"]}],
    }
    for number, name in enumerate(("gemm_naive", "softmax", "big"), 1):
        directory = folder / "runs" / f"{number:02}"
        directory.mkdir(parents=True)
        (directory / "run.json").write_text(json.dumps(run))
        (directory / "profile.ncu-rep").write_bytes(name.encode() * (size if name == "big" else 1))
    rows = [
        Row(f"profile {name}", "met", 1.0, (), folder=folder / "runs" / f"{number:02}")
        for number, name in enumerate(("gemm_naive", "softmax", "big"), 1)
    ]
    target = folder / "a.tgz"
    archive(target, folder, [Row("doctor", "met"), *rows], "One H200.", scrub=NOTHING)
    return target


def test_measured_reports_and_the_table_take_their_places(tmp_path: Path) -> None:
    target, samples, page = archived(tmp_path, 500_000), tmp_path / "samples", tmp_path / "measured.md"
    samples.mkdir()
    for path in (page, samples / "README.md"):
        path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    for _ in range(2):  # once more changes nothing
        assert adopt(target, samples, page) == ["gemm-naive-h200.ncu-rep", "softmax-h200.ncu-rep"]
        assert (samples / "measured" / "softmax-h200.ncu-rep").read_bytes() == b"softmax"
        readme, text = (samples / "README.md").read_text(), page.read_text()
        assert (
            "| `measured/softmax-h200.ncu-rep` | NVIDIA H200 | 580.1 | 2025.3.1 | `ncu --set full` |"
            in readme
        )
        assert "big" not in readme
        assert "| profile big | met |" in text
        for found in (readme, text):
            assert "old" not in found
            assert (found.startswith("before\n"), found.endswith("after\n")) == (True, True)


def test_nothing_is_adopted_where_its_place_is_missing(tmp_path: Path) -> None:
    target, page = archived(tmp_path), tmp_path / "measured.md"
    page.write_text("no mark")
    with pytest.raises(ValueError, match="has no <!-- measured: begin -->"):
        adopt(target, tmp_path, page)
    assert not (tmp_path / "measured").exists()


@pytest.mark.parametrize("name", ["docs/measured.md", "reports/samples/README.md"])
def test_the_places_are_there(name: str) -> None:
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    assert text.index(BEGIN) < text.index(END)


# ---- its programs


PRINTED = """\
  void at::native::vectorized_elementwise_kernel<(int)4, T1, T2>(int, T2, T3) (%d, 1, 1)x(128, 1, 1), CC 9.0
    Section: Command line profiler metrics
    ----------------- ----------- ------------
    Metric Name       Metric Unit Metric Value
    ----------------- ----------- ------------
    launch__grid_size                   %s
    ----------------- ----------- ------------
"""


def program(folder: Path, name: str, *words: str, **variables: str) -> dict[str, Any]:
    """Return what a program of the run prints, carried out as a step is."""
    path = planning.PROGRAMS / f"{name}.py"
    row: list[Outcome] = []
    one = Step(name, (str(path), *words), 30, lambda outcome: row.append(outcome) or (), program=True)
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in variables.items():
            patch.setenv(variable, value)
        list(carry([one], folder, 40.0))
    return row[0].document()


def executable(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_grids_are_read_as_ncu_prints_them(tmp_path: Path) -> None:
    """The form is that of the real ncu; without torch its child would fail, so it is not run."""
    one, *rest = (PRINTED % (n, f"{n:,}") for n in (1032, 24, 1032, 40))
    text = f"case $* in *--launch-skip*) cat <<'.'\n{one}.\n;; *) cat <<'.'\n{''.join(rest)}.\n;; esac"
    ncu = executable(tmp_path / "ncu", text)
    found = program(tmp_path, "skipping", NCUKIT_NCU=ncu)
    assert (found["inside"], found["after_one"]) == ([24, 1032, 40], [1032])
    refused = executable(tmp_path / "refused", "echo '==ERROR== ERR_NVGPUCTRPERM - no'; exit 1")
    found = program(tmp_path, "skipping", NCUKIT_NCU=refused)
    assert found == {"inside": [], "after_one": [], "said": "==ERROR== ERR_NVGPUCTRPERM - no"}


def test_a_launch_is_timed_by_the_difference_of_two_runs(tmp_path: Path) -> None:
    made = "printf '#!/bin/sh\\nif [ $2 -gt 100 ]; then sleep 0.6; fi\\n' > $2"
    nvcc = executable(tmp_path / "nvcc", f'while [ "$1" != -o ]; do shift; done; {made}; chmod +x $2')
    found = program(tmp_path, "products", "kernels", "sm_90", "tiled", NCUKIT_NVCC=nvcc)
    assert 0.0015 < found["seconds_per_launch"] < 0.01
    assert (tmp_path / "product-tiled-sm_90").exists()


# ---- the whole, with stand-ins


HEADER = '''"""A matrix product without torch.

Shows: the run.
Parameters: n, scale.
Model: gemm(n).
"""
EXPECT = {"verdict": ["memory-bound:dram"], "findings": ["busiest-unit"]}
'''


TORCH = """
__version__ = "stand-in"
class version: cuda = "13.0"
class cuda:
    is_available = staticmethod(lambda: True)
    get_device_name = staticmethod(lambda: "NVIDIA H100 Test")
class Sum:
    item = staticmethod(lambda: 1.0)
class ones:
    def __init__(self, *_, **__): ...
    sum = staticmethod(lambda: Sum)
"""
NVCC = """#!/bin/sh
case "$*" in *--version*) echo 'Cuda compilation tools, release 13.0, V13.0.88'; exit;; esac
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\\nexit 0\\n' > "$2"; chmod +x "$2"
"""
CUDA = """// A product.
//
// Shows: the run.
// Parameters: SIZE.
// Model: gemm(n).
// EXPECT = {
//     "gpu_kernel": "gemm", "arguments": {"n": 64}, "verdict": ["memory-bound:dram"], "findings": [],
//     "model": ["gemm", {"m": 64, "n": 64, "k": 64, "dtype": "fp32"}],
// }

"""


def profiled_row(lab: Lab, name: str, text: str) -> Row:
    """Carry out the profile step of one workload in this process and judge it."""
    kernels = lab.folder / "kernels"
    kernels.mkdir()
    (kernels / name).write_text(text)
    nvcc = lab.folder / "nvcc"
    nvcc.write_text(NVCC)
    nvcc.chmod(0o755)
    lab.env(NCUKIT_NVCC=str(nvcc))
    one = next(step for step in plan(kernels) if step.name.startswith("profile"))
    run = lab.folder / "made" / "01"
    ran = lab(*[word.replace("{run}", str(run)) for word in one.words])
    ended = Outcome((), ran.code, 1.0, ran.out, ran.err, run)
    return Row.of(one.name, ended, one.judge(ended))


@pytest.mark.parametrize(
    ("name", "text", "tools", "state", "code"),
    [
        ("k.cu", CUDA, "no nsys", "not met", "5"),
        ("k.cu", CUDA, "no nsys, library-not-loaded", "not measured", "3"),
        ("k.cu", CUDA, "permission", "not measured", "5"),
        ("gemm.py", HEADER + WORKLOAD, "library-not-loaded", "not measured", "5"),
        ("gemm.py", HEADER + WORKLOAD, "permission", "not measured", "5"),
    ],
)
def test_what_a_machine_without_nsys_or_counters_comes_to(
    lab: Lab, name: str, text: str, tools: str, state: str, code: str
) -> None:
    lab.launches(gemm() if name.endswith(".py") else {**gemm(), "ranges": []})
    scenario = tools.removeprefix("no nsys").strip(", ")
    if scenario:
        lab.env(NCUKIT_FAKE_NCU=scenario)
    if tools.startswith("no nsys"):
        lab.without("nsys")
    row = profiled_row(lab, name, text)
    checks = found(row.checks)
    assert checks["exit code"] == (code, True), row
    assert row.state == state, row
    if scenario:
        assert checks["counters"] == (f"not measured ({scenario})", None)
        page = "no page" if code == "3" else "a page from timing and trace"
        assert checks["page"][0] == page
    else:
        assert checks["the launch captured is the launch chosen"][1] is None
        assert [what for what, (_, met) in checks.items() if met is False] == ["verdict"]


def test_the_whole_run_with_stand_ins(
    lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels, site = lab.folder / "kernels", lab.folder / "site"
    for folder in (kernels, site):
        folder.mkdir()
    (site / "torch.py").write_text(TORCH)
    lab.env(PYTHONPATH="site")  # relative, as one types it
    monkeypatch.setattr(planning, "SWEPT", (1, 2))
    workload = WORKLOAD.replace("n=64, scale=2", "n=64, scale=2, m=1").replace("(n, scale)", "(n, scale, m)")
    (kernels / "gemm.py").write_text(HEADER + workload)
    code = gpu_acceptance.main(
        ["--kernels", str(kernels), "--keep", "all", "-o", "out/a.tgz", "--budget", "110", "--arch", "sm_90"]
    )
    assert code == 1  # the stand-ins' numbers are not those of a matrix product
    with tarfile.open("out/a.tgz") as file:
        names = set(file.getnames())
        table = json.loads(file.extractfile("table.json").read())  # type: ignore[union-attr]
    rows = {row["name"]: row for row in table["rows"]}
    states = {name: row["state"] for name, row in rows.items()}
    assert states == {
        "torch": "met",
        "doctor": "met",
        "probe": "not met",  # this torch cannot compute
        "profile gemm": "not met",
        "a kernel that fails": "met",
        "a kernel that is wrong": "met",
        "a name that no kernel has": "met",
        "where ncu counts --launch-skip": "not measured",
        "sweep of GEMM sizes": "met",
    }, capsys.readouterr()
    checks = {name: {c["what"]: c for c in row["checks"]} for name, row in rows.items()}
    assert checks["torch"]["torch"]["found"] == "stand-in"
    gemm_checks = checks["profile gemm"]
    assert gemm_checks["exit code"]["met"]
    assert gemm_checks["the launch captured is the launch chosen"]["met"]
    assert "counters" in gemm_checks["seconds of each step"]["found"]
    assert gemm_checks["verdict"]["met"] is False
    assert "NVIDIA H100 Test" in table["about"]
    assert {"table.md", "runs/04/profile.ncu-rep", "runs/04/report.html", "runs/04/run.json"} <= names
    text = json.dumps(table)
    assert f"{lab.folder}/all" not in text
    assert f"{CHECKOUT}/" not in text
