"""Where to look next: down while the layer above says that the time is there, and no further than pays."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ncukit import advise as of_file
from ncukit import cli, demo_reports, demo_traces
from ncukit.errors import ReportError, UsageError
from ncukit.judge.advice import SMALL, STEPS, advise
from ncukit.judge.layers import Known, amdahl
from ncukit.judge.ledger import FactsOnDemand
from ncukit.model import Check, Diagnosis, Finding, Roofline, Verdict
from ncukit.model.diagnosis import Experiment
from ncukit.model.kernel import Code
from ncukit.model.run import Run, StepRecord
from ncukit.model.trace import KernelTime, Match, Spread, Timeline
from ncukit.render.advice import advice_data
from ncukit.render.advice import of_run as advice_of_run
from ncukit.render.commands import collect_failed
from ncukit.render.run.load import RunPage
from ncukit.render.text.advice import advice_text
from ncukit.schemas import text as schema_text
from ncukit.trace.launch_choice import choose_launch
from ncukit.trace.nsys import open_trace
from ncukit.trace.region import describe
from ncukit.trace.scope import whole
from tests.builders import kernel
from tests.diagnoses import failed, undetermined
from tests.nsys_builder import Builder

SCHEMA = Draft202012Validator(json.loads(schema_text("ncukit.advice/1")))
EXPERIMENT = Experiment("Use wider loads", "change", "Loads are narrow", "expect", "watch", "disproved")
LAUNCH = "cudaLaunchKernel_v7000"


def traced(path: Path, *, busy: int, rest: int, n: int = 40, names: tuple[str, ...] = ("gemm",)) -> Known:
    """Return what a trace says in which each of ``names`` runs for ``busy`` ns, then nothing for ``rest``."""
    built, now = Builder(), 0
    for _ in range(n):
        for name in names:
            built.kernel(name, now + 5, now + 5 + busy, call=(LAUNCH, now, now + 5))
            now += busy + rest
    scope = whole(open_trace(built.write(path / "trace.sqlite")))
    timeline = describe(scope)
    return Known(timeline=timeline, choice=choose_launch(scope, timeline=timeline), trace="trace.sqlite")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """Kernels fill the region."""
    return traced(tmp_path_factory.mktemp("full"), busy=100_000, rest=100, names=("gemm", "copy"))


@pytest.fixture(scope="module")
def gaps(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """The GPU waits for launches."""
    return traced(tmp_path_factory.mktemp("gaps"), busy=2_000, rest=20_000)


def dram(percent: float, *findings: Finding, checks: tuple[Check, ...] = ()) -> Diagnosis:
    """Return a launch limited by DRAM, which it uses to ``percent`` of peak."""
    made = kernel(dram_throughput_pct=percent, kernel_duration=1e-3, compute_capability=90)
    verdict = Verdict("memory-bound", "dram", "high", "DRAM is the limit", experiment=EXPERIMENT)
    return Diagnosis(made, Roofline(checks=checks), verdict, findings, facts=FactsOnDemand(made))


def latency() -> Diagnosis:
    made = kernel(dram_throughput_pct=20.0, kernel_duration=1e-3, compute_capability=90)
    verdict = Verdict("latency-bound", "dependency", "medium", "Warps wait", experiment=EXPERIMENT)
    return Diagnosis(made, Roofline(), verdict, facts=FactsOnDemand(made))


def taking(share: float, known: Known, diagnosis: Diagnosis) -> Known:
    """Return ``known`` with a launch whose kernel takes ``share`` [%] of the region."""
    spread = Spread(1, 1, 1.0, 1, 1)
    time = KernelTime("k", "k", "compute", spread, spread, 1, share, amdahl(share), 1)
    return replace(known, diagnosis=diagnosis, match=Match(time, None, ("name",)), report="k.ncu-rep")


WASTE = Finding("uncoalesced", "memory", "Half of each sector is not used", "high", gain_pct=40.0)
AT_LINE = replace(WASTE, source="gemm.cu:95")


# From above to below


def test_nothing_known_begins_at_the_top() -> None:
    found = advise(Known())
    assert (found.id, found.layer, found.stop) == ("start", "operations", False)
    assert found.commands[0].startswith("ncukit ops ")


def test_a_gpu_that_waits_sends_up_to_the_operations(gaps: Known) -> None:
    found = advise(gaps)
    assert (found.id, found.layer, found.stop) == ("launch-bound", "operations", False)
    assert found.bound is not None
    assert found.bound.factor == gaps.timeline.region.bound  # type: ignore[union-attr]
    assert found.bound.factor > 5  # type: ignore[operator]


def test_a_program_without_torch_is_not_sent_to_operations_of_torch(gaps: Known) -> None:
    plain = gaps.timeline
    assert plain is not None
    found = advise(gaps)
    assert found.commands == (f"ncukit timeline {gaps.trace}",)
    assert "First to try: replay the launches as one CUDA graph." in found.because
    torch = replace(plain, kernels=(replace(plain.kernels[0], name="void at::native::fill(int)"),))
    assert advise(replace(gaps, timeline=torch)).commands == ("ncukit ops MODEL.py --kernel STEP",)


def test_a_kernel_is_not_changed_first_where_the_gpu_waits(gaps: Known) -> None:
    found = advise(taking(9.0, gaps, latency()))
    assert found.layer == "operations"
    assert "The kernel takes 9.0 % of the region: without it the region would be at most 9.9 % faster" in (
        found.because
    )


def test_kernels_that_fill_the_region_send_down_to_the_longest(full: Known) -> None:
    found = advise(full)
    assert (found.id, found.layer, found.stop) == ("profile-top", "kernel", False)
    (command,) = found.commands
    assert command.startswith("ncu --set full --import-source on --kernel-name-base function ")
    assert "--kernel-name 'regex:^gemm$' --launch-skip " in command
    assert command.endswith(" --launch-count 1 -o profile ./your_program")
    assert found.bound is not None
    assert found.bound.share == pytest.approx(50, abs=1)
    assert found.bound.factor == pytest.approx(2, abs=0.1)


def test_in_a_run_the_commands_name_its_script(full: Known) -> None:
    run = Run("", "", {"source": "/somewhere/my_kernel.py", "call": "step"}, {})
    (command,) = advise(replace(full, run=run, source="my_kernel.py")).commands
    assert command == "ncukit profile my_kernel.py --kernel step --gpu-kernel gemm"


@pytest.mark.parametrize(
    ("directory", "commands"),
    [
        ("runs/one", ["ncukit ops src/gemm.py --kernel step", "ncukit profile --resume runs/one -- PROGRAM"]),
        ("", ["ncukit ops gemm.py --kernel step", "ncukit profile --resume one -- PROGRAM"]),
    ],
    ids=["in a terminal", "on a page"],
)
def test_commands_say_where_a_run_lies_only_in_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str, commands: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    target = {"source": str(tmp_path / "src" / "gemm.py"), "call": "step"}
    broken = StepRecord("time", "failed", failure={"code": "app-failed", "message": "x", "hint": "y"})
    said = [
        advice_of_run(RunPage(tmp_path / "runs" / "one", Run("", "", target, {}, steps=steps)), directory)
        for steps in ((), (broken,))
    ]
    assert [command for found in said for command in found.commands if command in commands] == commands
    assert not any(str(tmp_path) in command for found in said for command in found.commands)


def test_many_small_kernels_send_up_not_down(tmp_path: Path) -> None:
    many = traced(tmp_path, busy=10_000, rest=10, n=6, names=tuple(f"k{i}" for i in range(40)))
    found = advise(many)
    assert (found.id, found.layer) == ("many-small", "operations")
    assert found.bound is not None
    assert found.bound.share < SMALL


def test_without_a_computing_kernel_there_is_none_to_look_at(full: Known) -> None:
    bare = replace(full.timeline, kernels=()) if full.timeline else None
    found = advise(replace(full, timeline=bare))
    assert (found.id, found.stop, found.layer) == ("no-kernel", True, "operations")


def test_kernels_of_an_amd_gpu_are_not_sent_to_tools_of_nvidia(full: Known) -> None:
    assert full.timeline is not None
    devices = tuple(replace(device, name="AMD Instinct MI300X") for device in full.timeline.devices)
    found = advise(replace(full, timeline=replace(full.timeline, devices=devices)))
    assert (found.id, found.layer, found.stop) == ("not-nvidia", "operations", False)
    assert "rocprofv3" in found.because
    assert not any(command.startswith(("ncu ", "nsys ")) for command in found.commands)


def test_an_undetermined_region_is_traced_again(full: Known) -> None:
    assert full.timeline is not None
    region = replace(full.timeline.region, cls="undetermined", missing=("a steady region",))
    idle = tuple(replace(d, busy=d.span // 10) for d in full.timeline.devices)
    found = advise(replace(full, timeline=replace(full.timeline, region=region, devices=idle)))
    assert (found.id, found.layer) == ("undetermined-region", "timeline")
    assert found.missing == ("a steady region",)


def test_a_report_alone_asks_whether_its_time_matters() -> None:
    found = advise(Known(diagnosis=latency(), report="k.ncu-rep"))
    assert (found.id, found.layer) == ("share-unknown", "timeline")
    assert found.commands[-1] == "ncukit advise k.ncu-rep --timeline run.nsys-rep"


def test_a_launch_that_the_trace_does_not_hold_is_said(full: Known) -> None:
    found = advise(replace(full, diagnosis=latency(), report="k.ncu-rep"))
    assert found.id == "not-in-trace"


def test_missing_counters_are_collected(full: Known) -> None:
    found = advise(taking(50.0, full, undetermined()))
    assert (found.id, found.layer) == ("collect", "kernel")
    assert found.missing
    assert "--kernel-name transposeMatrix" in found.commands[0]


def test_a_failed_launch_is_measured_again(full: Known) -> None:
    found = advise(taking(50.0, full, failed()))
    assert found.id == "measure-again"
    (command,) = found.commands
    assert "--replay-mode application" in command, "the same command would fail the same way"
    assert command == collect_failed(failed().kernel)


def test_a_failed_step_of_a_run_is_mended_first(full: Known) -> None:
    failure = {"code": "permission", "message": "no permission", "hint": "ask the administrator"}
    run = Run("", "", {}, {}, steps=(StepRecord("counters", "failed", failure=failure),))
    found = advise(replace(full, run=run, directory="reports/gemm"))
    assert (found.id, found.layer) == ("step-failed", "kernel")
    assert found.because == "No permission. Ask the administrator."
    assert found.commands[0] == "ncukit profile --resume reports/gemm -- PROGRAM"
    own = advise(replace(full, run=run, directory="reports/gemm", own=True))
    assert own.commands[0] == "ncukit profile --resume reports/gemm"


def test_the_kernel_that_matters_sends_down_to_its_line(full: Known) -> None:
    found = advise(replace(taking(50.0, full, dram(60.0, AT_LINE)), launches=3))
    assert (found.id, found.layer, found.stop) == ("source-line", "source", False)
    assert found.title == "Look at gemm.cu:95"
    assert found.commands == ("ncukit report k.ncu-rep --launch 1 --open",)


def test_without_lines_the_verdicts_experiment_is_next(full: Known) -> None:
    found = advise(taking(50.0, full, latency()))
    assert (found.id, found.title) == ("kernel-experiment", "Use wider loads")
    assert "-lineinfo" in found.missing[0]
    assert found.bound is not None
    assert found.bound.factor == 2.0


def test_with_lines_but_none_at_fault_the_change_is_tried(full: Known) -> None:
    found = latency()
    code = Code((0,), ("FFMA",), ("gemm.cu",), ((0, 95),))
    lined = replace(found, kernel=replace(found.kernel, raw=replace(found.kernel.raw, code=code)))
    advice = advise(taking(50.0, full, lined))
    assert (advice.id, advice.missing) == ("kernel-experiment", ())
    assert advice.commands == ("ncukit experiment MY_KERNEL.py --baseline OLD --variant NEW",)


# When to stop


def test_stop_at_the_ceiling_of_the_unit() -> None:
    found = advise(Known(diagnosis=dram(90.0)))
    assert (found.id, found.stop) == ("at-ceiling", True)
    assert "90.0 % of peak, and the best kernels reach 92 %" in found.because


def test_what_the_best_kernels_reach_is_not_said_of_one_that_exceeds_it() -> None:
    found = advise(Known(diagnosis=dram(95.0)))
    assert found.id == "at-ceiling"
    assert "best kernels" not in found.because


@pytest.mark.parametrize(
    ("cls", "limiter", "metric"),
    [
        ("memory-bound", "l1", "l1_throughput_pct"),
        ("memory-bound", "l2", "l2_throughput_pct"),
        ("compute-bound", "lsu-issue", "pipe_lsu_pct"),
    ],
)
def test_a_full_cache_is_no_end_because_data_can_stay_closer(
    cls: str, limiter: str, metric: str, full: Known
) -> None:
    """A naive matrix product fills L1; tiled in registers it is many times as fast."""
    made = kernel(**{metric: 100.0}, kernel_duration=1e-3, compute_capability=75)
    verdict = Verdict(cls, limiter, "high", "It is full", experiment=EXPERIMENT)
    diagnosis = Diagnosis(made, Roofline(), verdict, facts=FactsOnDemand(made))
    assert advise(Known(diagnosis=diagnosis)).stop is False
    found = advise(taking(50.0, full, diagnosis))
    assert found.stop is False
    assert found.bound is not None
    assert found.bound.factor == 2.0


def test_well_below_the_ceiling_is_no_end() -> None:
    assert not advise(Known(diagnosis=dram(80.0))).stop


def test_a_unit_full_of_needless_work_is_no_ceiling(full: Known) -> None:
    assert advise(Known(diagnosis=dram(90.0, WASTE))).stop is False
    again = Check("model-bytes", False, "DRAM moved 3 times the compulsory bytes")
    assert advise(Known(diagnosis=dram(90.0, checks=(again,)))).stop is False
    harmless = Check("model-bytes", True, "DRAM moved the compulsory bytes")
    assert advise(Known(diagnosis=dram(90.0, checks=(harmless,)))).stop is True


def test_stop_where_the_share_is_too_small_and_name_the_kernel_that_is_not(full: Known) -> None:
    found = advise(taking(2.0, full, latency()))
    assert (found.id, found.stop, found.layer) == ("small-share", True, "kernel")
    assert "takes 2.0 % of the region: without it the region would be at most 2.0 % faster" in found.because
    assert "gemm takes 50" in found.because
    assert found.bound is not None
    assert found.bound.factor == pytest.approx(1 / 0.98)


def test_stop_where_what_is_left_to_the_ceiling_is_too_small(full: Known) -> None:
    """A fifth of the region, but the best that can happen to it is worth 2.6 %."""
    found = advise(taking(20.0, full, dram(80.0)))
    assert (found.id, found.stop) == ("small-share", True)
    assert found.bound is not None
    assert found.bound.share == pytest.approx(20 * (1 - 80 / 92))


def test_a_large_kernel_away_from_its_ceiling_goes_on(full: Known) -> None:
    assert advise(taking(60.0, full, dram(60.0))).stop is False


# All of them


def test_each_step_answers_or_passes_on() -> None:
    assert [len(list(step(Known()))) for step in STEPS] == [0] * (len(STEPS) - 1) + [1]


@given(st.floats(0, 100), st.floats(0, 100))
def test_amdahl_is_never_below_one_and_grows_with_the_share(a: float, b: float) -> None:
    low, high = (amdahl(share) for share in sorted((a, b)))
    assert low is None or low >= 1
    assert high is None or (low is not None and low <= high)


@given(st.floats(0, 99.9), st.floats(0, 100))
def test_amdahl_is_the_ratio_of_the_times(share: float, left: float) -> None:
    bound = amdahl(share, left)
    assert bound == pytest.approx(100 / (100 - share + share * left / 100))


def every(full: Known, gaps: Known) -> list[Known]:
    return [
        *(Known(), full, gaps, taking(2.0, full, latency()), taking(50.0, full, dram(60.0, AT_LINE))),
        *(Known(diagnosis=dram(90.0)), taking(50.0, full, failed()), taking(50.0, full, undetermined())),
    ]


def test_every_answer_fits_its_schema_and_80_columns(full: Known, gaps: Known) -> None:
    for known in every(full, gaps):
        found = advise(known)
        SCHEMA.validate(json.loads(json.dumps(advice_data(found), allow_nan=False)))
        text = advice_text(found)
        assert text.startswith("STOP" if found.stop else "NEXT")
        assert max(map(len, text.splitlines())) <= 80
        assert not found.stop or found.bound or found.evidence or found.layer


# Files


@pytest.mark.parametrize("path", [*demo_reports(), *demo_traces()], ids=lambda path: path.name)
def test_every_sample_has_an_answer(path: Path) -> None:
    SCHEMA.validate(json.loads(json.dumps(advice_data(of_file(path)), allow_nan=False)))


def test_a_copy_at_the_speed_of_dram_is_done() -> None:
    (copy,) = (path for path in demo_reports() if path.stem == "copy-dram")
    assert of_file(copy).id == "at-ceiling"


def test_a_report_and_its_trace_are_judged_together() -> None:
    (trace,) = demo_traces()
    report = next(path for path in demo_reports() if path.stem == trace.stem)
    found = of_file(report, timeline=trace)
    assert found.id == "transfer-bound"
    assert "The kernel takes 38.3 % of the region" in found.because


def test_every_real_torch_trace_has_an_answer_or_a_reason(shared: Path) -> None:
    """Traces of CPU-only runs hold no GPU work, which is a reason."""
    answers = {path.name: answer(path) for path in sorted((shared / "reports" / "torch").iterdir())}
    assert all(answers.values())
    assert sum(found.startswith(("ncukit ops ", "ncu ", "nsys ")) for found in answers.values()) >= 4, answers


def answer(path: Path) -> str:
    try:
        return of_file(path).commands[0]
    except ReportError as error:
        return error.hint


def test_what_is_no_report_trace_or_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    for path in (tmp_path / "note.txt", tmp_path / "missing.ncu-rep", tmp_path):
        with pytest.raises(ReportError):
            of_file(path)


def test_an_experiment_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text("{}")
    with pytest.raises(UsageError, match="is an experiment, not a run"):
        of_file(tmp_path)


def test_options_that_do_not_fit_are_usage_errors(tmp_path: Path) -> None:
    (trace,), report = demo_traces(), demo_reports()[0]
    with pytest.raises(UsageError):
        of_file(trace, timeline=trace)
    with pytest.raises(UsageError):
        of_file(report, range="step")


def test_the_command_prints_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["ncukit", "advise", str(demo_traces()[0]), "--json"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    found: Any = json.loads(capsys.readouterr().out)
    SCHEMA.validate(found)


def test_the_layer_of_a_timeline_alone(gaps: Known) -> None:
    assert isinstance(gaps.timeline, Timeline)
    assert gaps.busy == pytest.approx(100 * 2 / 22, abs=1)
