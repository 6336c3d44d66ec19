"""`ncukit experiment` from end to end: every process really runs; the GPU's tools are stand-ins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import ncukit
from ncukit.api import read_experiment
from ncukit.errors import ReportError, UsageError
from ncukit.run.bench import ExperimentOptions, control_of, goal, orders, prediction
from ncukit.schemas import text as schema_text
from tests.runs import Lab, Outcome, gemm, with_driver

SCRIPT = """
import os, time, ncukit

WAIT = float(os.environ.get("WAIT", "0.001"))

def note(name):
    with open(os.environ["RUNS"], "a") as file:
        file.write(f"{name} {os.getpid()}\\n")

def fetch(blocks, waits):
    for _ in range(waits):
        time.sleep(WAIT)      # a device that takes its time to answer
    return [block * block for block in range(blocks)]

@ncukit.workload(blocks=20)
def by_five(blocks):
    note("by_five")
    return ncukit.Case(run=lambda: fetch(blocks, 5), reference=lambda: [b ** 2 for b in range(blocks)])

@ncukit.workload(blocks=20)
def by_four(blocks):
    note("by_four")
    return ncukit.Case(run=lambda: fetch(blocks, 4))

@ncukit.workload(blocks=20)
def forgetful(blocks):
    note("forgetful")
    return ncukit.Case(run=lambda: fetch(blocks - 1, 4) + [0])

@ncukit.workload(error=0.0)
def exact(error):
    return ncukit.Case(run=lambda: [1.0, 2.0 + error])

@ncukit.workload(error=0.0)
def off_by_a_millionth(error):
    return ncukit.Case(run=lambda: [1.0, 2.000002])

@ncukit.workload(error=0.0)
def off_by_a_bit(error):
    return ncukit.Case(run=lambda: [1.0, 2.0000000000000004])

@ncukit.workload(error=0.0)
def not_a_number(error):
    return ncukit.Case(run=lambda: [float("nan"), 2.0])

@ncukit.workload(n=1000)
def sums(n):
    return ncukit.Case(run=lambda: sum(range(n)))

@ncukit.workload(n=10)
def changes_its_script(n):
    with open(__file__, "a") as file:
        file.write("# more\\n")
    return ncukit.Case(run=lambda: n)
"""

COMMAND = """
import json, sys
side, file = sys.argv[1], "count-" + sys.argv[1]
count = len(open(file).read()) if __import__("os").path.exists(file) else 0
open(file, "a").write("x")
latency = {"old": 0.100, "new": 0.080, "wrong": 0.05, "silent": 0}[side] + 0.0005 * (count * 7 % 5)
print("loading ...")
if side != "silent":
    print(json.dumps({
        "latency": latency, "tokens_per_second": 1 / latency, "requests": 32, "setup_time": 0.5,
        "tokens": [1, 2, 3 + (side == "wrong")], "probabilities": [0.25, 1e-9 * (side == "new")],
        "dtype": "torch.float16", "quality": {"score": 0.5},
    }))
"""


@pytest.fixture
def lab(bare: Lab) -> Lab:
    """A lab without a GPU, with a script of workloads and a command."""
    return with_scripts(bare)


def with_scripts(lab: Lab) -> Lab:
    lab.script(SCRIPT)
    lab.script(COMMAND, "serve.py")
    return lab


def compared(lab: Lab, baseline: str, variant: str, *words: str, n: int = 1) -> Outcome:
    """Compare two workloads of the script, quickly."""
    sides = ("--baseline", baseline, "--variant", variant, "-n", str(n), "--samples", "1")
    return lab("experiment", "work.py", *sides, "-q", "-o", "out", *words)


def kept(folder: str = "out") -> dict[str, Any]:
    """Return the record in the folder of the experiment."""
    found: dict[str, Any] = json.loads(Path(folder, "experiment.json").read_text())
    return found


# --- two implementations of one function


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, stands: Path) -> tuple[Path, Outcome, list[str]]:
    """One experiment whose variant is a fifth faster; tests only look at it."""
    with pytest.MonkeyPatch.context() as patch:
        lab = with_scripts(Lab(tmp_path_factory.mktemp("done"), patch, stands))
        words = ("--hypothesis", "fewer waits", "--watch", "gap_time:lower", "--samples", "2", "--json")
        lab.env(WAIT="0.02")  # long beside what a busy machine adds
        sides = ("--baseline", "by_five", "--variant", "by_four", "-n", "8", "-o", "out")
        outcome = lab("experiment", "work.py", *sides, *words)
        return lab.folder / "out", outcome, (lab.folder / "runs").read_text().split("\n")[:-1]


def test_a_true_difference_of_a_fifth_is_found(done: tuple[Path, Outcome, list[str]]) -> None:
    _, outcome, _ = done
    assert outcome.code == 0, outcome.err
    data = json.loads(outcome.out)
    (effect,) = data["effects"]
    assert effect["outcome"] == "better"
    assert effect["low"] < 0.8 < effect["high"] or effect["ratio"] == pytest.approx(0.8, abs=0.05)
    assert data["conclusion"]["code"] == "improved"
    assert "would be" in data["conclusion"]["text"]


def test_every_repetition_is_a_fresh_process_and_the_sides_alternate(
    done: tuple[Path, Outcome, list[str]],
) -> None:
    _, outcome, runs = done
    data = json.loads(outcome.out)
    names = [line.split()[0] for line in runs]
    assert names[:2] == ["by_five", "by_four"]  # checked in one process, before anything is timed
    assert names[2:] == ["by_five", "by_four", "by_four", "by_five"] * 4
    pids = [line.split()[1] for line in runs]
    assert pids[0] == pids[1]
    assert len(set(pids)) == 17
    assert [one["side"] for one in data["repetitions"][:4]] == ["baseline", "variant", "variant", "baseline"]
    assert [one["order"] for one in data["repetitions"]] == list(range(1, 17))


def test_what_is_no_part_of_the_region_is_timed_apart(done: tuple[Path, Outcome, list[str]]) -> None:
    for one in json.loads(done[1].out)["repetitions"]:
        assert set(one["apart"]) == {"import", "case", "warm-up"}
        assert one["samples"] == 2
        assert one["values"]["time"] > 0.08


def test_the_record_follows_its_schema_and_is_what_is_kept(done: tuple[Path, Outcome, list[str]]) -> None:
    folder, outcome, _ = done
    data = json.loads(outcome.out)
    Draft202012Validator(json.loads(schema_text("ncukit.experiment/1"))).validate(data)
    assert json.loads((folder / "experiment.json").read_text()) == data
    assert read_experiment(folder).control.variant == "by_four"
    held = data["conditions"]
    assert held["sha256"]
    assert held["observed"]["timer"] == "host"


def test_hypothesis_prediction_and_why_it_is_not_tested_are_recorded(
    done: tuple[Path, Outcome, list[str]],
) -> None:
    data = json.loads(done[1].out)
    assert data["hypothesis"] == "fewer waits"
    assert data["predictions"] == [{"metric": "gap_time", "direction": "lower"}]
    (observed,) = data["observed"]
    assert (observed["moved"], observed["baseline"]) == ("unknown", None)
    assert data["profiled"]["state"] == "not-done"
    assert data["profiled"]["detail"] in observed["source"]


def test_the_page_says_it_all_and_loads_nothing(done: tuple[Path, Outcome, list[str]]) -> None:
    page = (done[0] / "experiment.html").read_text()
    for part in ("by_five → by_four", "would be", "fewer waits", "gap_time", "Timed apart", "Not profiled"):
        assert part in page, part
    assert "http://" not in page
    assert "https://" not in page
    assert len(page) < 200_000


# --- correctness first


def test_a_wrong_variant_stops_before_anything_is_timed(lab: Lab) -> None:
    outcome = compared(lab, "by_five", "forgetful")
    assert outcome.code == 1
    assert outcome.err.startswith(
        "error: The variant is wrong, so its time means nothing: Against the baseline"
    )
    assert "hint: " in outcome.err
    assert [line.split()[0] for line in Path("runs").read_text().splitlines()] == ["by_five", "forgetful"]
    assert kept()["conclusion"]["code"] == "wrong-result"
    assert kept()["repetitions"] == []


def test_a_wrong_baseline_stops_too(lab: Lab) -> None:
    lab.script(SCRIPT.replace("b ** 2 for b", "b ** 3 for b"))
    assert "The baseline is wrong" in compared(lab, "by_five", "by_four").err


def test_in_json_mode_the_error_is_json(lab: Lab) -> None:
    outcome = compared(lab, "by_five", "forgetful", "--json")
    assert json.loads(outcome.out)["error"]["code"] == "wrong-result"
    assert outcome.code == 1


@pytest.mark.parametrize(
    ("variant", "words", "state"),
    [
        ("off_by_a_bit", (), "passed"),
        ("off_by_a_millionth", (), "failed"),
        ("off_by_a_millionth", ("--tolerance", "1e-3"), "passed"),
        ("not_a_number", ("--tolerance", "1e30"), "failed"),
    ],
)
def test_the_tolerance_is_that_of_the_data_type_or_declared(
    lab: Lab, variant: str, words: tuple[str, ...], state: str
) -> None:
    compared(lab, "exact", variant, *words)
    checked = kept()["correctness"][-1]
    assert checked["state"] == state
    assert checked["tolerance"] == float(words[1] if words else 1e-9)


def test_not_a_number_does_not_even_equal_itself(lab: Lab) -> None:
    assert compared(lab, "not_a_number", "not_a_number").code == 1


# --- one thing changes


def test_a_parameter_can_be_the_control(lab: Lab) -> None:
    words = ("--baseline", "sums", "--control", "n=1000,3000", "-n", "1", "--samples", "1", "-q", "-o", "out")
    assert lab("experiment", "work.py", *words).code == 0
    data = kept()
    assert data["control"] == {"kind": "parameter", "name": "n", "baseline": "1000", "variant": "3000"}
    assert {one["state"] for one in data["correctness"]} == {"not-checked"}
    assert any("not checked" in caution for caution in data["conclusion"]["cautions"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--baseline", "a", "--variant", "b", "--control", "n=1,2"), "two things would differ"),
        (("--baseline", "a"), "there is nothing to compare"),
        (("--baseline", "sums", "--control", "n=1,2,3"), "has 3 values"),
        (("--baseline", "sums", "--control", "n=1,2", "-p", "n=5"), "--param n is the control"),
        (("--baseline", "sums", "--control", "m=1,2"), "no parameter 'm'"),
        (("--baseline", "sums", "--variant", "sums", "-p", "n=1,2"), "has several values"),
        (("--baseline", "sums", "--variant", "nothing"), "cannot be called"),
        (("--baseline", "sums", "--variant", "sums", "--watch", "dram_bytes"), "does not say which way"),
        (("--baseline", "sums", "--variant", "sums", "--watch", "dram_byte:lower"), "nearest: dram_bytes"),
        (("--baseline", "sums", "--variant", "sums", "--metric", "latency"), "are for whole commands"),
        (("--baseline", "sums", "--variant", "sums", "-n", "0"), "0 repeats compare nothing"),
        (("--baseline", "x", "--variant", "y", "--end-to-end", "run {}"), "no one thing to experiment with"),
    ],
)
def test_what_makes_no_experiment_is_refused(lab: Lab, words: tuple[str, ...], message: str) -> None:
    outcome = lab("experiment", "work.py", *words)
    assert outcome.code == 2
    assert message in outcome.err
    assert not list(lab.folder.glob("reports/*"))


def test_a_script_that_changes_meanwhile_ends_it(lab: Lab) -> None:
    outcome = compared(lab, "changes_its_script", "changes_its_script")
    assert (outcome.code, "the script changed during the experiment" in outcome.err) == (1, True)


def test_a_side_that_fails_says_so(lab: Lab) -> None:
    lab.script(SCRIPT + "\n@ncukit.workload\ndef broken():\n    raise ValueError('no such tile')\n")
    outcome = compared(lab, "sums", "broken")
    assert outcome.code == 3
    assert "no such tile" in outcome.err


def test_an_older_experiment_is_never_overwritten(lab: Lab) -> None:
    Path("out").mkdir()
    Path("out/mine").write_text("x")
    assert compared(lab, "sums", "sums").code == 2


# --- whole commands


def served(lab: Lab, baseline: str, variant: str, *words: str, n: int = 6) -> Outcome:
    """Compare two runs of the command."""
    import sys

    command = f"{sys.executable} serve.py {{}}"
    sides = ("--baseline", baseline, "--variant", variant, "-n", str(n), "-q", "-o", "out")
    return lab("experiment", "--end-to-end", command, *sides, *words)


def test_metrics_of_a_command_are_those_of_its_json(lab: Lab) -> None:
    metrics = (
        "--metric",
        "latency",
        "--metric",
        "tokens_per_second:higher",
        "--metric",
        "quality.score:higher",
    )
    outcome = served(lab, "old", "new", *metrics, "--same", "tokens", "--same", "probabilities")
    assert outcome.code == 0, outcome.err
    data = kept()
    assert [effect["outcome"] for effect in data["effects"]] == ["better", "better", "not-shown"]
    assert data["effects"][0]["ratio"] == pytest.approx(0.8, abs=0.01)
    assert data["effects"][0]["unit"] == "s"
    assert all(one["values"]["wall_time"] > 0 for one in data["repetitions"])
    assert all(one["apart"] == {"setup": 0.5} for one in data["repetitions"])
    assert data["conditions"]["observed"]["requests"] == 32
    assert len(Path("count-old").read_text()) == 7, "the first run of each side only warms up"


def test_values_near_zero_are_judged_by_the_data_type_that_the_command_names(lab: Lab) -> None:
    served(lab, "old", "new", "--same", "probabilities", n=1)
    assert kept()["correctness"][-1]["tolerance"] == 5e-3


def test_without_a_metric_the_duration_counts(lab: Lab) -> None:
    assert served(lab, "old", "silent", n=1).code == 0
    assert [effect["metric"] for effect in kept()["effects"]] == ["wall_time"]


def test_what_must_agree_and_does_not_ends_it(lab: Lab) -> None:
    outcome = served(lab, "old", "wrong", "--metric", "latency", "--same", "tokens")
    assert outcome.code == 1
    assert "the baseline's tokens" in outcome.err
    assert len(Path("count-old").read_text()) == 1


@pytest.mark.parametrize(
    ("variant", "metric", "message"),
    [
        ("new", "throughput", "prints no 'throughput'"),
        ("new", "dtype", "says 'torch.float16' for 'dtype'"),
        ("silent", "latency", "prints no JSON object"),
    ],
)
def test_a_metric_that_is_not_there_is_said(lab: Lab, variant: str, metric: str, message: str) -> None:
    outcome = served(lab, "old", variant, "--metric", metric)
    assert outcome.code == 1
    assert message in outcome.err


def test_a_command_without_a_place_for_the_control_is_refused(lab: Lab) -> None:
    outcome = lab("experiment", "--end-to-end", "run", "--control", "mode=eager,graph")
    assert outcome.code == 2
    assert "{mode}" in outcome.err


# --- the profiled pair, with stand-ins for driver, nsys and ncu


def test_the_profiled_pair_comes_last_and_says_what_moved(lab: Lab, stands: Path) -> None:
    with_driver(lab, stands / "lib")
    lab.launches(gemm())
    watches = ("--watch", "kernel_duration:lower", "--watch", "kernel_time:lower", "--range", "ncukit")
    outcome = compared(lab, "exact", "off_by_a_bit", *watches, n=1)
    assert outcome.code == 0, outcome.err
    data = kept()
    assert data["profiled"]["state"] == "done"
    assert data["profiled"]["runs"] == ["baseline", "variant"]
    assert all(Path("out", side, "report.html").is_file() for side in ("baseline", "variant"))
    duration, time = data["observed"]
    assert (duration["moved"], time["moved"]) == ("not-moved", "not-moved")
    assert duration["baseline"] == duration["variant"] == pytest.approx(120e-6)
    assert data["conclusion"]["code"] == "mechanism-unmoved"
    assert "for each call of ncukit" in time["source"]
    assert "the variant" in data["profiled"]["summary"]
    assert "faster" not in data["profiled"]["summary"]
    assert data["repetitions"][0]["reported"]["timer"] == "cuda-events"
    assert [line[0] for line in lab.calls("ncu") + lab.calls("nsys")] == ["ncu", "ncu", "nsys", "nsys"]


def test_commands_are_traced_for_their_gaps_without_counters(lab: Lab, stands: Path) -> None:
    with_driver(lab, stands / "lib")
    lab.launches(gemm(ranges=[]))
    outcome = served(lab, "old", "new", "--metric", "latency", "--watch", "launch_calls:lower", n=5)
    assert outcome.code == 0, outcome.err
    data = kept()
    assert data["profiled"]["state"] == "done", data["profiled"]
    assert [line[0] for line in lab.calls("ncu") + lab.calls("nsys")] == ["nsys", "nsys"]
    (calls,) = data["observed"]
    assert calls["baseline"] == calls["variant"] > 0
    assert data["conclusion"]["code"] == "mechanism-unmoved"
    assert "but not for the reason named" in data["conclusion"]["claim"]
    assert len(Path("count-new").read_text()) == 7, "one to warm up, five repetitions, one traced"


def test_a_profiler_that_fails_costs_only_the_diagnosis(lab: Lab, stands: Path) -> None:
    with_driver(lab, stands / "lib")
    lab.launches(gemm())
    lab.without("nsys")
    lab.without("ncu")
    outcome = compared(lab, "exact", "off_by_a_bit", "--watch", "gap_time:lower")
    assert outcome.code == 0, outcome.err
    data = kept()
    assert data["profiled"]["state"] == "partial"
    assert "nsys" in data["profiled"]["detail"]
    assert data["observed"][0]["moved"] == "unknown"
    assert len(data["repetitions"]) == 2


def test_no_profile_starts_no_profiler(lab: Lab, stands: Path) -> None:
    with_driver(lab, stands / "lib")
    lab.launches(gemm())
    assert compared(lab, "by_five", "by_four", "--no-profile").code == 0
    assert lab.calls("ncu") + lab.calls("nsys") == []


# --- options


def test_pairs_alternate_which_side_comes_first() -> None:
    flat = [side[0] for pair in orders(4) for side in pair]
    assert "".join(flat) == "bvvbbvvb"


def test_directions_have_two_spellings() -> None:
    assert prediction("x:down") == prediction("x:lower")
    assert goal("x:up").better == "higher"
    with pytest.raises(UsageError):
        goal("x:sideways")


def test_units_are_guessed_from_names_of_times_only() -> None:
    assert goal("p95_latency").unit == goal("time_per_output_token").unit == "s"
    assert goal("tokens_per_second").unit == goal("latency_ms").unit == ""


def test_the_library_does_what_the_command_does(lab: Lab) -> None:
    options = ExperimentOptions(repeats=1, samples=1)
    record = ncukit.experiment("work.py", baseline="sums", variant="sums", options=options, output="lib")
    assert record.conclusion is not None
    assert record.conclusion.code == "not-shown"
    assert read_experiment("lib") == record
    assert control_of("sums", "sums", options).kind == "kernel"


def test_a_folder_without_an_experiment_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ReportError):
        read_experiment(tmp_path)
    (tmp_path / "experiment.json").write_text('{"schema": "ncukit.run/1"}')
    with pytest.raises(ReportError, match="not of schema"):
        read_experiment(tmp_path)
