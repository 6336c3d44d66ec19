"""`ncukit profile` from end to end, against stand-ins for driver, nsys and ncu; every child really runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from ncukit import advise
from ncukit.schemas import text as schema_text
from tests.conftest import follows_its_schema
from tests.fakes import driver
from tests.fakes.scenarios import NCU
from tests.runs import RUN, WORKLOAD, Lab, Outcome, furnished, gemm, wait_for, whole, with_driver

ORDER = ["timing", "timeline", "choice", "counters", "report"]


def profile(lab: Lab, *words: str) -> Outcome:
    """Profile the workload, quickly."""
    return lab(*RUN, *words)


# ---- all goes well -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, stands: Path) -> tuple[Lab, Outcome]:
    """One run in which all goes well; tests only look at it."""
    with pytest.MonkeyPatch.context() as patch:
        lab = furnished(tmp_path_factory.mktemp("done"), patch, stands)
        patch.setenv("MY_API_KEY", "abc123def456")
        lab.script("import os\nassert 'MY_API_KEY' not in os.environ\n" + WORKLOAD)
        return lab, profile(lab, "--json")


def test_a_run_says_where_to_look_next_with_its_own_script(done: tuple[Lab, Outcome]) -> None:
    _, ran = done
    assert ran.folder is not None
    found = advise(ran.folder)
    assert (found.id, found.layer) == ("kernel-experiment", "kernel")
    script = ran.record["target"]["source"]
    assert found.commands == (f"ncukit profile {script} --kernel gemm --preset full",)
    assert found.bound is not None
    assert found.bound.share > 90  # of the region that the run marked
    page = (ran.folder / "report.html").read_text(encoding="utf-8")
    assert "Where to look next" in page
    assert "ncukit profile work.py --kernel gemm --preset full" in page  # it may be shared


def test_one_command_gives_the_run_directory_and_the_page(done: tuple[Lab, Outcome]) -> None:
    _, ran = done
    assert ran.code == 0, ran.err
    assert ran.folder is not None
    names = {path.name for path in whole(ran.folder)}
    assert names >= {
        *("run.json", "timing.json", "timeline.nsys-rep", "timeline.sqlite", "profile.ncu-rep"),
        *("metrics.json", "report.html"),
    }
    record = ran.record
    assert (record["status"], record["error"]) == ("complete", None)
    assert [step["name"] for step in record["steps"]] == ORDER
    assert record["isolation"]["verdict"] == "proven"
    assert record["gpu"]["name"] == "NVIDIA H100 Test"
    page = (ran.folder / "report.html").read_text()
    for part in ("Clean time", "Proof of isolation", "sm90_gemm_f16", "strip-data", "CUDA events", "Verdict"):
        assert part in page, part
    assert "No timeline." not in page
    assert "There is no timeline" not in page


def test_each_child_runs_the_script_once(done: tuple[Lab, Outcome]) -> None:
    bodies = done[0].bodies()
    assert len(bodies) == 3  # clean timing, nsys, ncu
    assert len(set(bodies)) == 3


def test_the_children_under_profilers_warm_up_as_often_as_clean_timing_did(done: tuple[Lab, Outcome]) -> None:
    lab, ran = done
    assert ran.folder is not None
    warm = json.loads((ran.folder / "timing.json").read_text())["warmup"]
    for tool in ("nsys", "ncu"):
        (line,) = lab.calls(tool)
        assert line[line.index("--warmup") + 1] == str(warm)
        assert line[line.index("--calls") + 1] == "10"


def test_marks_are_set_in_the_children_and_told_to_the_tools(done: tuple[Lab, Outcome]) -> None:
    lab, _ = done
    (nsys,), (ncu,) = lab.calls("nsys"), lab.calls("ncu")
    assert "--capture-range=cudaProfilerApi" in nsys
    assert ncu[ncu.index("--profile-from-start") + 1] == "off"
    assert ncu[ncu.index("--nvtx-include") + 1] == "ncukit"
    assert ncu[ncu.index("--launch-skip") + 1] == "0"
    words = [line.split()[0] for line in lab.marks()]
    assert words.count("start") == 2  # under nsys and under ncu, each once


def test_defaults_of_the_tools_are_given_explicitly(done: tuple[Lab, Outcome]) -> None:
    """A configuration file of the user, and defaults that differ between versions, change nothing."""
    (line,) = done[0].calls("ncu")
    given = (("--config-file", "off"), ("--target-processes", "all"), ("--clock-control", "base"))
    for option, value in (*given, ("--cache-control", "all"), ("--kernel-name-base", "function")):
        assert line[line.index(option) + 1] == value


def test_the_record_follows_its_schema(done: tuple[Lab, Outcome]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    _, ran = done
    assert ran.folder is not None
    printed = json.loads(ran.out)
    validator = jsonschema.Draft202012Validator(json.loads(schema_text("ncukit.run/1")))
    assert list(validator.iter_errors(printed)) == []
    assert list(validator.iter_errors(ran.record)) == []
    assert printed["page"].endswith("report.html")
    timing = jsonschema.Draft202012Validator(json.loads(schema_text("ncukit.timing/1")))
    assert list(timing.iter_errors(json.loads((ran.folder / "timing.json").read_text()))) == []


def test_secrets_stay_out_of_children_and_their_names_are_listed(done: tuple[Lab, Outcome]) -> None:
    _, ran = done
    assert ran.record["environment"]["withheld"] == ["MY_API_KEY"]
    for path in whole(ran.folder or Path()):
        assert b"abc123def456" not in path.read_bytes(), path


def test_what_a_name_means_is_printed(done: tuple[Lab, Outcome]) -> None:
    assert "gemm is a workload (line " in done[1].err


def test_the_page_can_be_made_again(bare: Lab, done: tuple[Lab, Outcome]) -> None:
    shutil.copytree(done[1].folder or Path(), "copy")
    for name in ("report.html", "metrics.json"):
        Path("copy", name).unlink()
    again = bare("report", "--run", "copy")
    assert again.code == 0, again.err
    assert "Proof of isolation" in Path("copy", "report.html").read_text()
    assert Path("copy", "metrics.json").exists()
    assert bare("report", "--run", "copy", "-o", "other.html").code == 0
    assert not (bare.folder / "runs").exists()  # nothing ran


def test_dry_run_prints_every_command_and_runs_none(lab: Lab) -> None:
    ran = lab("profile", "work.py", "--kernel", "gemm", "--dry-run")
    assert ran.code == 0
    lines = [line for line in ran.out.splitlines() if not line.startswith("#")]
    assert len(lines) == 3
    assert all("work.py" in line for line in lines)
    assert not (lab.folder / "runs").exists()
    assert not (lab.folder / "reports").exists()
    rows = follows_its_schema(lab("profile", "work.py", "--kernel", "gemm", "--dry-run", "--json").out)[
        "steps"
    ]
    assert [row["step"] for row in rows] == ["timing", "timeline", "counters"]


LAUNCHES = """
launch = json.loads(os.environ["LAUNCH"])      # its work grows with n, as that of the kernel does
n = int(next((a for a in open("/proc/self/cmdline").read().split("\\0") if a.startswith("n=")), "n=64")[2:])
launch["metrics"] |= {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 1e6 * n**3,
                      "dram__bytes.sum": 1e6 * n**2, "launch__grid_size": 128}
open(os.environ["NCUKIT_FAKE_LAUNCHES"], "w").write(json.dumps([launch]))
"""


def test_a_sweep_has_one_run_a_point_and_one_trajectory(lab: Lab) -> None:
    zero = {f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum": 0 for op in FLOATS}
    launch = gemm(metrics=zero)
    lab.env(LAUNCH=json.dumps(launch), NCUKIT_FAKE_LAUNCHES=str(lab.folder / "launches.json"))
    lab.script("import json, os\n" + LAUNCHES + WORKLOAD)
    ran = profile(lab, "--param", "n=8,16", "-o", "runs_of/sweep")
    assert ran.code == 0, ran.err
    folder = lab.folder / "runs_of" / "sweep"
    record = json.loads((folder / "run.json").read_text())
    assert [point["params"] for point in record["points"]] == [{"n": "8"}, {"n": "16"}]
    for name in ("n=8", "n=16"):
        assert json.loads((folder / name / "run.json").read_text())["status"] == "complete"
        assert (folder / name / "report.html").exists()
    page = (folder / "report.html").read_text()
    assert "[n=8]" in page
    assert "[n=16]" in page
    figures = re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)
    assert figures is not None
    traces = json.loads(figures[1])["roof"]["data"]
    (way,) = [t for t in traces if t.get("line", {}).get("dash") == "dot" and len(t["x"]) == 2]
    assert way["x"][0] < way["x"][1]  # in the order of the sweep


FLOATS = ("dadd", "dmul", "dfma", "fadd", "fmul", "hadd", "hmul", "hfma")


# ---- other targets -------------------------------------------------------------------------------

SCRIPT = """
import os, sys
with open(os.environ["RUNS"], "a") as file:
    file.write(f"{os.getpid()}\\n")
assert __name__ == "__main__" and sys.argv[1:] == ["--steps", "3"], sys.argv
try:
    import triton
except ImportError:
    class triton:
        jit = staticmethod(lambda f: f)

@triton.jit
def add_kernel(x, y): ...
"""


def test_a_gpu_kernel_s_name_runs_the_script_once_as_main_and_filters(lab: Lab) -> None:
    lab.script(SCRIPT)
    fill, add = (
        {"name": "void fill(float*)", "repeat": 9},
        {"name": "add_kernel", "repeat": 4, "grid": [8, 1, 1]},
    )
    lab.launches(fill, add)
    ran = lab("profile", "work.py", "--kernel", "add_kernel", "--", "--steps", "3")
    assert ran.code == 0, ran.err
    assert len(set(lab.bodies())) == len(lab.bodies()) == 3
    (nsys,), (ncu,) = lab.calls("nsys"), lab.calls("ncu")
    assert not any("capture-range=cuda" in word for word in nsys)
    assert "--nvtx-include" not in ncu
    assert ncu[ncu.index("--profile-from-start") + 1] == "on"
    assert ran.record["launch"]["short"] == "add_kernel"
    timing = json.loads(((ran.folder or Path()) / "timing.json").read_text())
    assert timing["timer"] == "process"
    assert "no GPU time" in ((ran.folder or Path()) / "report.html").read_text()


def test_a_command_runs_as_it_is(lab: Lab) -> None:
    lab.launches({"name": "void saxpy(float*)", "repeat": 5})
    ran = lab("profile", "--gpu-kernel", "saxpy", "--", "sh", "-c", "exit 0")
    assert ran.code == 0, ran.err
    assert ran.record["target"]["kind"] == "command"
    assert ran.record["launch"]["short"] == "saxpy"


def test_without_a_name_the_kernel_with_the_most_time_is_measured(lab: Lab) -> None:
    lab.launches(
        {"name": "void fill(float*)", "repeat": 9}, {"name": "big(float*)", "repeat": 4, "duration": 900_000}
    )
    ran = lab("profile", "--", "sh", "-c", "exit 0")
    assert ran.record["launch"]["short"] == "big"


def test_a_name_that_matches_no_kernel_lists_the_nearest_with_their_share(lab: Lab) -> None:
    ran = lab("profile", "work.py", "--kernel", "gemm", "--gpu-kernel", "gemn", "--repeat", "3")
    assert ran.code == 5
    assert ran.record["error"]["code"] == "nothing-profiled"
    assert "sm90_gemm_f16 (" in ran.err
    assert " %)" in ran.err
    assert lab.calls("ncu") == []


CUDA = """
#include <cstdio>
int main(int argc, char **argv) { std::printf("ran %d\\n", argc); return 0; }
"""


def test_a_cuda_file_is_compiled_into_the_run_directory(lab: Lab, nvcc: Path) -> None:
    lab.script(CUDA, "k.cu")
    lab.launches({"name": "k(int)", "repeat": 3})
    ran = lab("profile", "k.cu", "--arch", "sm_90", "--nvcc", str(nvcc), "--", "7")
    assert ran.code == 0, ran.err
    compiled = ran.step("compile")
    assert {"-lineinfo", "-O3", "-arch=sm_90"} <= set(compiled["command"])
    assert ((ran.folder or Path()) / "program").exists()
    assert "ran 2" in ((ran.folder or Path()) / "logs" / "timing.log").read_text()


def test_the_compiler_s_errors_are_shown_as_they_are(lab: Lab, nvcc: Path) -> None:
    lab.script("int main() { return nosuch; }", "k.cu")
    ran = lab("profile", "k.cu", "--arch", "sm_90", "--nvcc", str(nvcc), "--json")
    assert ran.code == 3
    assert json.loads(ran.out)["error"]["code"] == "compile-failed"
    assert 'k.cu(1): error: identifier "nosuch" is undefined' in ran.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nosuch.py",), 4, "there is no file nosuch.py"),
        (("broken.py",), 4, "line 1 is not valid Python"),
        (("needs.py", "--kernel", "f"), 2, "f (needs.py, line 1) needs m to be called"),
        (("work.py", "--kernel", "gemm", "--preset", "all"), 2, "--preset all does not exist"),
        (
            ("work.py", "--skip-nsys", "--kernel", "gemm", "--skip-ncu", "--skip-time"),
            2,
            "nothing is left to do",
        ),
        (("--skip-nsys", "--", "sh"), 2, "nothing says which kernel"),
        ((), 2, "there is nothing to profile"),
        (("--resume", "nowhere"), 4, "there is no run.json"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_runs(
    lab: Lab, words: tuple[str, ...], code: int, said: str
) -> None:
    lab.script("def f(:", "broken.py")
    lab.script("def f(m): ...", "needs.py")
    ran = lab("profile", *words)
    assert ran.code == code
    assert said in ran.err
    assert ran.err.count("\n") == 2  # error and hint
    assert lab.runs() == []
    assert not (lab.folder / "runs").exists()


# ---- something fails -----------------------------------------------------------------------------


def test_without_a_driver_two_lines_say_so_and_the_timing_is_kept(bare: Lab) -> None:
    bare.script()
    ran = profile(bare)
    assert ran.code == 3
    assert [line.split(":")[0] for line in ran.err.splitlines()[-2:]] == ["error", "hint"]
    assert ran.record["error"]["code"] == "no-driver"
    assert ran.record["status"] == "failed"
    timing = json.loads(((ran.folder or Path()) / "timing.json").read_text())
    assert timing["timer"] == "host"
    assert bare.calls("nsys") == bare.calls("ncu") == []  # looked for before nsys starts
    assert not ((ran.folder or Path()) / "report.html").exists()


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("import nosuch_module\n", "interpreter"),
        ("raise ValueError('x')\n", "app-failed"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "app-failed"),
        ("raise RuntimeError('Found no NVIDIA driver on your system.')\n", "no-driver"),
        ("raise SystemExit(0)\n", "app-failed"),
    ],
)
def test_a_failing_script_is_told_apart_before_any_profiler_runs(lab: Lab, script: str, code: str) -> None:
    """With its own traceback, and the interpreter is not the profiler's fault."""
    lab.script(script + WORKLOAD)
    ran = lab("profile", "work.py", "--kernel", "gemm", "--json")
    assert ran.code == 3
    assert json.loads(ran.out)["error"]["code"] == code
    assert lab.calls("nsys") == lab.calls("ncu") == []


@pytest.mark.parametrize("wrong", ["[x + 1 for x in data]", "[float('nan')] * n", "data[:-1]"])
def test_a_wrong_result_is_never_timed(lab: Lab, wrong: str) -> None:
    lab.script(WORKLOAD.replace("reference=lambda: [scale * x for x in data]", f"reference=lambda: {wrong}"))
    ran = lab("profile", "work.py", "--kernel", "gemm", "--json")
    assert ran.code == 3
    assert json.loads(ran.out)["error"]["code"] == "wrong-result"
    assert not ((ran.folder or Path()) / "timing.json").exists()
    assert lab.calls("nsys") == []


@pytest.mark.parametrize(
    "scenario",
    ["permission", "metric-unknown", "graph", "child", "launch-failed", "nothing", "cut", "no-driver"],
)
def test_a_failure_of_ncu_leaves_a_page_and_its_code(lab: Lab, scenario: str) -> None:
    """Timing and timeline are kept, what is missing is said.

    One of each kind: before, while and after the program runs; test_tools_fakes tells all failures apart.
    """
    lab.env(NCUKIT_FAKE_NCU=scenario)
    ran = profile(lab, "--json")
    assert ran.code == 5
    printed = json.loads(ran.out)
    assert printed["error"]["code"] == NCU[scenario].code
    assert printed["status"] == "incomplete"
    page = Path(printed["page"]).read_text()
    assert NCU[scenario].code in page
    assert "CUDA events" in page
    assert not ((ran.folder or Path()) / "profile.ncu-rep").exists()


def test_mig_clocks_are_retried_unlocked_and_that_is_said(lab: Lab) -> None:
    """Clocks of a slice of a GPU cannot be locked."""
    lab.env(NCUKIT_FAKE_NCU="mig-clocks")
    ran = profile(lab)
    assert ran.code == 0
    first, second = lab.calls("ncu")
    assert first[first.index("--clock-control") + 1] == "base"
    assert second[second.index("--clock-control") + 1] == "none"
    assert ran.record["clock_control"] == "none"
    assert any("unlocked" in note for note in ran.record["notes"])
    assert "unlocked" in ((ran.folder or Path()) / "report.html").read_text()


def test_a_report_beside_an_error_is_kept_and_incomplete(lab: Lab) -> None:
    lab.env(NCUKIT_FAKE_NCU="partial")
    ran = profile(lab)
    assert ran.code == 5
    assert ran.step("counters")["state"] == "partial"
    assert ((ran.folder or Path()) / "metrics.json").exists()


@pytest.mark.parametrize("scenario", ["timeout", "collective"])
def test_an_ncu_that_hangs_is_stopped_in_time_with_its_children(lab: Lab, scenario: str) -> None:
    lab.env(NCUKIT_FAKE_NCU=scenario)
    lab.script("import time\n" + WORKLOAD)
    began = time.monotonic()
    ran = profile(lab, "--timeout", "4", "--json")
    assert time.monotonic() - began < 40
    assert ran.code == 5
    assert json.loads(ran.out)["error"]["code"] == scenario
    assert running(lab) == []


def test_no_gpu_work_ends_with_3(lab: Lab) -> None:
    lab.launches()
    lab.env(NCUKIT_FAKE_NSYS="no-gpu-work")
    ran = profile(lab, "--json")
    assert ran.code == 3
    assert json.loads(ran.out)["error"]["code"] == "no-gpu-work"
    assert lab.calls("ncu") == []


@pytest.mark.parametrize("scenario", ["elsewhere", "timeout", "range"])
def test_when_nsys_fails_ncu_still_measures_inside_the_marks(lab: Lab, scenario: str) -> None:
    lab.env(NCUKIT_FAKE_NSYS=scenario)
    ran = profile(lab, "--timeout", "6")
    assert ran.code == 5
    assert ran.step("timeline")["state"] == "failed"
    assert ran.record["isolation"]["verdict"] == "unknown"
    assert ((ran.folder or Path()) / "profile.ncu-rep").exists()
    assert "No timeline." in ((ran.folder or Path()) / "report.html").read_text()


def test_another_kernel_than_the_chosen_one_denies_the_isolation(lab: Lab) -> None:
    lab.env(NCUKIT_FAKE_CAPTURE="fill")
    ran = profile(lab, "--json")
    assert ran.code == 5
    proof = json.loads(ran.out)["isolation"]
    assert proof["verdict"] == "denied"
    assert "name void fill(float*) instead of sm90_gemm_f16(Params)" in proof["words"]
    assert len(lab.calls("ncu")) == 1
    page = ((ran.folder or Path()) / "report.html").read_text()
    assert "denied" in page
    assert "captured another launch" in page


def test_autotuning_that_settles_elsewhere_under_ncu_is_repeated_once_and_said(lab: Lab) -> None:
    other = gemm(grid=[32, 2, 1])
    lab.launches(gemm(repeat=1, grid=[32, 2, 1], duration=1000), gemm(repeat=9))
    lab.env(NCUKIT_FAKE_CAPTURE="sm90_gemm_f16")  # always the first, which has the other grid
    ran = profile(lab)
    assert len(lab.calls("ncu")) == 2
    assert ran.record["isolation"]["repeated"] is True
    assert ran.record["isolation"]["verdict"] == "denied"
    assert any("autotuning" in note for note in ran.record["notes"])
    assert other["grid"] != gemm()["grid"]


def test_where_the_first_match_does_not_fit_all_up_to_the_chosen_are_captured(lab: Lab) -> None:
    lab.launches(gemm(repeat=1, grid=[32, 2, 1], duration=1000), gemm(repeat=9))
    for counting in ("marked", "all"):  # however ncu counts
        lab.env(NCUKIT_FAKE_SKIP=counting)
        ran = profile(lab)
        assert ran.code == 0, ran.err
        proof = ran.record["isolation"]
        assert (proof["verdict"], proof["index"], proof["nth"]) == ("proven", 1, 1)
        assert json.loads(((ran.folder or Path()) / "metrics.json").read_text())["kernels"][0]["index"] == 1


def test_a_gpu_that_this_ncu_does_not_know_is_said_before_it_runs(
    lab: Lab, ncu: Path, nsys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "SOURCE", altered_driver(lab.folder, "? 9 :", "? 10 :"))
    with_driver(lab, lab.folder / "newer")
    lab.env(NCUKIT_FAKE_REAL_NCU=str(ncu))
    ran = profile(lab, "--json")
    assert ran.code == 5
    assert json.loads(ran.out)["error"]["code"] == "unsupported-gpu"
    assert "compute capability 10.0" in ran.err
    assert lab.calls("ncu") == []


def altered_driver(folder: Path, old: str, new: str) -> Path:
    path = folder / "libcuda.c"
    path.write_text(driver.SOURCE.read_text().replace(old, new))
    return path


@pytest.mark.parametrize(("tool", "code"), [("ncu", 5), ("nsys", 5)])
def test_a_missing_tool_costs_only_its_part(lab: Lab, tool: str, code: int) -> None:
    lab.without(tool)
    ran = profile(lab, "--json")
    assert ran.code == code
    assert json.loads(ran.out)["error"]["code"] == "tool-missing"
    page = ((ran.folder or Path()) / "report.html").read_text()
    assert "tool-missing" in page


def test_parts_can_be_left_out(lab: Lab) -> None:
    timed = profile(lab, "--skip-nsys", "--skip-ncu")
    assert timed.code == 0
    assert "CUDA events" in ((timed.folder or Path()) / "report.html").read_text()
    no_counters = profile(lab, "--skip-ncu")
    assert no_counters.code == 0
    assert "Launch for ncu" in ((no_counters.folder or Path()) / "report.html").read_text()
    no_time = lab("profile", "work.py", "--kernel", "gemm", "--skip-time")
    assert no_time.code == 0
    assert "not measured" in ((no_time.folder or Path()) / "report.html").read_text()


def test_one_rank_of_many_measures_a_single_pass_in_a_folder_of_its_own(lab: Lab) -> None:
    """Kernels that wait for other ranks cannot be replayed."""
    lab.env(WORLD_SIZE="4", RANK="3")
    ran = profile(lab)
    assert ran.code == 0
    assert "rank3" in str(ran.folder)
    (line,) = lab.calls("ncu")
    assert [line[i + 1] for i, word in enumerate(line) if word == "--section"] == ["LaunchStats"]
    assert any("single pass" in note for note in ran.record["notes"])


def test_a_collective_is_not_replayed_unless_allowed(lab: Lab) -> None:
    lab.launches(gemm(name="ncclDevKernel_AllReduce_Sum_f16_RING_LL(int)"))
    ran = profile(lab)
    assert (ran.code, ran.record["error"]["code"]) == (5, "collective")
    assert profile(lab, "--allow-collective").code == 0


def test_what_will_spoil_the_run_is_said_before(lab: Lab) -> None:
    """Another profiler in the process, and kernels without source lines."""
    lab.env(TRITON_DISABLE_LINE_INFO="1")
    lab.script("# import torch.profiler\n" + WORKLOAD)
    ran = profile(lab)
    assert "torch.profiler" in ran.err
    assert "TRITON_DISABLE_LINE_INFO" in ran.err


# ---- broken off, resumed, beside each other ------------------------------------------------------


def running(lab: Lab) -> list[str]:
    """Return the processes that still work on this lab's script or with its stand-ins."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if str(lab.folder) in line and state != "Z":
                found.append(line)
    return found


@pytest.mark.parametrize("stage", ["timing", "nsys", "ncu"])
def test_killed_at_any_step_only_whole_files_stay_and_resume_finishes(lab: Lab, stage: str) -> None:
    before = {"timing": 0, "nsys": 1, "ncu": 2}[stage]
    hold = f"""
import os, pathlib, time
if pathlib.Path("hold").exists() and len(open(os.environ["RUNS"]).readlines()) == {before + 1}:
    time.sleep(60)
"""
    lab.script(WORKLOAD + hold)
    (lab.folder / "hold").touch()
    process = lab.start(*RUN)
    wait_for(lambda: (lab.folder / "runs").exists() and len(lab.bodies()) == before + 1, process)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (folder,) = lab.runs()
    assert [path for path in whole(folder) if path.name.startswith(".")] == []
    end = time.monotonic() + 15
    while left := running(lab):
        assert time.monotonic() < end, left
        time.sleep(0.1)
    (lab.folder / "hold").unlink()
    again = lab("profile", "--resume", str(folder))
    assert again.code == 0, again.err
    record = json.loads((folder / "run.json").read_text())
    assert record["status"] == "complete"
    assert record["isolation"]["verdict"] == "proven"
    assert len(lab.bodies()) == 3 + 1  # only what was not done ran again
    assert not list(folder.parent.glob(".*"))


def resumed(of: Lab, folder: str = "copy") -> list[str]:
    """Return the words that go on with the copy of a run that was begun in another folder."""
    return ["profile", "--resume", folder, str(of.folder / "work.py"), *RUN[2:]]


@pytest.fixture(scope="module")
def forbidden(tmp_path_factory: pytest.TempPathFactory, stands: Path) -> tuple[Lab, Outcome]:
    """A run that has no counters, to be resumed."""
    with pytest.MonkeyPatch.context() as patch:
        lab = furnished(tmp_path_factory.mktemp("forbidden"), patch, stands)
        patch.setenv("NCUKIT_FAKE_NCU", "permission")
        return lab, profile(lab)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("script", "the script (sha256"),
        ("options", "the options (preset: standard -> quick"),
        ("gpu", "the GPU (uuid"),
        ("tool", "the tools (ncu:"),
        ("arguments", "the program or its arguments"),
    ],
)
def test_another_run_is_not_resumed_and_what_changed_is_said(
    lab: Lab, forbidden: tuple[Lab, Outcome], change: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(forbidden[1].folder or Path(), "copy")
    script = forbidden[0].folder / "work.py"
    words = resumed(forbidden[0])
    if change == "script":
        script.write_text(WORKLOAD + "\n# changed\n")
    elif change == "options":
        words += ["--preset", "quick"]
    elif change == "gpu":
        monkeypatch.setattr(driver, "SOURCE", altered_driver(lab.folder, "u[i] = i;", "u[i] = 7;"))
        with_driver(lab, lab.folder / "other")
    elif change == "tool":
        lab.env(NCUKIT_FAKE_VERSION="2024.3.0.0")
    else:
        words += ["--", "more"]
    ran = lab(*words)
    script.write_text(WORKLOAD)
    assert ran.code == 2
    assert said in ran.err
    assert not (lab.folder / "runs").exists()


def test_a_failed_step_is_tried_again(lab: Lab, forbidden: tuple[Lab, Outcome]) -> None:
    shutil.copytree(forbidden[1].folder or Path(), "runs_of/copy")
    ran = lab(*resumed(forbidden[0], "runs_of/copy"))
    assert ran.code == 0, ran.err
    record = json.loads(Path("runs_of/copy/run.json").read_text())
    assert [step["state"] for step in record["steps"]] == ["done"] * 5
    assert record["error"] is None
    assert len(lab.bodies()) == 1  # timing and timeline were not repeated


def test_a_damaged_file_is_made_again(lab: Lab, done: tuple[Lab, Outcome]) -> None:
    folder = Path("copy")
    shutil.copytree(done[1].folder or Path(), folder)
    (folder / "profile.ncu-rep").write_bytes(b"NVR\0")
    assert lab(*resumed(done[0])).code == 0
    list(whole(folder))
    assert len(lab.bodies()) == 1


def test_a_stale_report_is_never_taken_for_a_new_one(lab: Lab, done: tuple[Lab, Outcome]) -> None:
    folder = Path("copy")
    shutil.copytree(done[1].folder or Path(), folder)
    record = json.loads((folder / "run.json").read_text())
    record["steps"] = []  # so that all is done again
    (folder / "run.json").write_text(json.dumps(record))
    lab.env(NCUKIT_FAKE_NCU="silent")
    assert lab(*resumed(done[0])).code == 5
    again = json.loads((folder / "run.json").read_text())
    assert again["error"]["code"] == "stale-output"
    assert again["isolation"] is None
    assert not (folder / "profile.ncu-rep").exists()
    assert not (folder / "metrics.json").exists()


def test_two_profiles_at_once_in_one_folder_do_not_touch_each_other(lab: Lab) -> None:
    words = ("profile", "work.py", "--kernel", "gemm", "--repeat", "3", "--json")
    processes = [lab.start(*words) for _ in range(2)]
    said = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    printed = [json.loads(out) for out, _ in said]
    folders = {one["directory"] for one in printed}
    assert len(folders) == 2
    for one in printed:
        assert one["isolation"]["verdict"] == "proven"
        assert {path.name for path in whole(Path(one["directory"]))} >= {"profile.ncu-rep", "report.html"}


def test_a_folder_that_holds_something_is_never_written(lab: Lab) -> None:
    (lab.folder / "mine").mkdir()
    (lab.folder / "mine" / "profile.ncu-rep").write_text("old")
    ran = lab("profile", "work.py", "--kernel", "gemm", "-o", "mine")
    assert ran.code == 2
    assert (lab.folder / "mine" / "profile.ncu-rep").read_text() == "old"


# ---- ncukit time, torch, real tools --------------------------------------------------------------


def test_time_alone_says_which_clock_it_is(lab: Lab) -> None:
    ran = lab("time", "work.py", "--kernel", "gemm", "--repeat", "5")
    assert ran.code == 0
    assert "CUDA events" in ran.out
    assert "L2 flushed" in ran.out
    assert lab.runs() == []
    lab.env(NCUKIT_FAKE_NO_CONTEXT="1")
    assert "not GPU time" in lab("time", "work.py", "--kernel", "gemm", "--repeat", "5").out
    rows = lab(
        "time", "work.py", "--kernel", "gemm", "--repeat", "5", "--param", "n=8,16", "--json"
    ).out.splitlines()
    assert [json.loads(row)["params"]["n"] for row in rows] == [8, 16]


def test_time_of_a_wrong_result_is_an_error(lab: Lab) -> None:
    lab.script(WORKLOAD.replace("reference=lambda: [scale * x for x in data]", "reference=lambda: 0"))
    ran = lab("time", "work.py", "--kernel", "gemm", "--json")
    assert ran.code == 3
    assert json.loads(ran.out)["error"]["code"] == "wrong-result"


TORCH = """
import torch, ncukit

@ncukit.workload(n=32)
def gemm(n):
    a, b = torch.randn(n, n), torch.randn(n, n)
    return ncukit.Case(run=lambda: a @ b, reference=lambda: a.double() @ b.double(),
                       model=ncukit.models.gemm(n, n, n, dtype="fp16"))
"""


def test_a_torch_workload_runs_through_with_its_analytic_model(lab: Lab, ncu: Path, nsys: Path) -> None:
    """The real tools check the command lines."""
    pytest.importorskip("torch")
    lab.env(NCUKIT_FAKE_REAL_NCU=str(ncu), NCUKIT_FAKE_REAL_NSYS=str(nsys))
    lab.script(TORCH)
    ran = profile(lab)
    assert ran.code == 0, ran.err
    (line,) = lab.calls("ncu")
    metrics = line[line.index("--metrics") + 1]
    assert "sm__ops_path_tensor_src_fp16.sum" in metrics
    page = ((ran.folder or Path()) / "report.html").read_text()
    assert "gemm(m=32, n=32, k=32)" in page
    assert ran.record["isolation"]["verdict"] == "proven"


def test_the_real_tools_without_a_driver_end_in_two_lines(bare: Lab, ncu: Path, nsys: Path) -> None:
    bare.script()
    ran = bare(
        "profile", "work.py", "--kernel", "gemm", "--repeat", "3", "--ncu", str(ncu), "--nsys", str(nsys)
    )
    assert ran.code == 3
    assert ran.err.splitlines()[-2].startswith("error: ")
    assert ran.record["error"]["code"] == "no-driver"
    assert ran.record["tools"]["ncu"]["version"].startswith("20")
    assert ((ran.folder or Path()) / "timing.json").exists()


def test_the_profiler_of_torch_stands_in_where_there_is_no_nsys(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trace that torch would write on a GPU; the child that writes it is tested with a real torch."""
    lab.without("nsys")
    lab.script("import sys\nsys.path.insert(0, '.')\nimport torch\n" + WORKLOAD)
    lab.script(TORCH_STANDIN, "torch.py")
    ran = profile(lab)
    assert ran.code == 0, ran.err
    assert ((ran.folder or Path()) / "timeline.json.gz").exists()
    assert ran.record["isolation"]["verdict"] == "proven"
    assert any("profiler of torch instead" in note for note in ran.record["notes"])
    page = ((ran.folder or Path()) / "report.html").read_text()
    assert "a timeline (torch)" in page


TORCH_STANDIN = """
import json
__version__ = "0"
class version: cuda = None
class cuda:
    @staticmethod
    def is_available(): return True
class profiler:
    class ProfilerActivity:
        CPU, CUDA = 0, 1
    class profile:
        def __init__(self, activities): ...
        def __enter__(self): return self
        def __exit__(self, *_): ...
        def export_chrome_trace(self, path):
            args = {"device": 0, "context": 1, "stream": 7, "registers per thread": 168,
                    "grid": [64, 2, 1], "block": [384, 1, 1], "shared memory": 200000}
            events = []
            for i in range(10):
                call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9}
                call |= {"ph": "X", "ts": 200.0 * i, "dur": 5, "args": {"correlation": i}}
                work = {"cat": "kernel", "name": "sm90_gemm_f16(Params)", "pid": 0, "tid": 7}
                work |= {"ph": "X", "ts": 200.0 * i + 9, "dur": 120.0, "args": {**args, "correlation": i}}
                events += [call, work]
            with open(path, "w") as file:
                json.dump({"traceEvents": events}, file)
import sys
sys.modules["torch.profiler"] = profiler
class Tensor: ...
"""
