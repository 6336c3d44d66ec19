"""What may be said: of the goal, of the mechanism that the hypothesis named, and against both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ncukit.judge.conclusion import cautions, conclude, wrong
from ncukit.judge.effect import UNITS, effect, traced, watched
from ncukit.model.experiment import (
    Control,
    Correctness,
    Effect,
    ExperimentRecord,
    Goal,
    Observed,
    Prediction,
    Repetition,
)
from ncukit.render.experiment.json import experiment_data
from ncukit.render.experiment.text import experiment_text
from ncukit.trace.nsys import open_trace
from ncukit.trace.region import analyse
from tests.nsys_builder import LAUNCH, Builder

MODE = Control("parameter", "mode", "eager", "graph")
TOKEN, TAIL = Goal("time_per_output_token"), Goal("p95_latency")
NOISE = [1.00, 1.01, 0.99, 1.005, 0.995, 1.0, 1.01, 0.99]
FEWER_GAPS = Prediction("gap_time", "lower")
REPETITIONS = len(NOISE)


def decoded(goal: Goal, factor: float) -> Effect:
    """Return the effect on a goal of a variant that takes ``factor`` times as long, in noise of 1 %."""
    variant = [factor * value for value in NOISE[::-1]]
    return effect(goal, [1e-3 * v for v in NOISE], [1e-3 * v for v in variant])


def gaps(before: float, after: float) -> Observed:
    """Return the gaps [s] that separate traces of both sides show."""
    return watched(FEWER_GAPS, {"gap_time": before}, {"gap_time": after}, "one trace of each side")


# The four conclusions of the decode case


def test_supported_when_gaps_shrink_and_every_goal_is_better() -> None:
    said = conclude(MODE, [decoded(TOKEN, 0.7), decoded(TAIL, 0.8)], [gaps(20e-3, 2e-3)])
    assert said.code == "supported"
    assert said.claim == "Supported: time_per_output_token is 30.0 % lower, and gap_time moved as predicted."
    assert "would be" in said.text
    assert "if mode changed from eager to graph" in said.text
    assert "only if they hold" in said.text


def test_smaller_gaps_alone_do_not_support_it() -> None:
    said = conclude(MODE, [decoded(TOKEN, 1.001), decoded(TAIL, 1.0)], [gaps(20e-3, 2e-3)])
    assert said.code == "mechanism-only"
    assert "gap_time moved as predicted, but no difference of time_per_output_token is shown" in said.claim
    assert "repetitions of each side would be needed" in said.text or "No number of repetitions" in said.text


def test_noise_that_hides_everything_is_no_number_of_thirteen_digits() -> None:
    wild = effect(TOKEN, [1.0, 9.0, 0.2, 30.0, 2.0], [5.0, 0.1, 40.0, 0.3, 9.0])
    said = conclude(MODE, [wild], []).text
    assert (wild.outcome, wild.high > 1e4) == ("not-shown", True)
    assert "might change by anything from less than 1/100 to more than 100 times" in said
    assert "in four of five cases" not in said


def test_an_unchanged_tail_is_said() -> None:
    said = conclude(MODE, [decoded(TOKEN, 0.7), decoded(TAIL, 1.0)], [gaps(20e-3, 2e-3)])
    assert said.code == "partly-supported"
    assert "p95_latency is not shown to change" in said.claim


@pytest.mark.parametrize(("factor", "words"), [(1.0, "no difference of"), (0.7, "not for the reason named")])
def test_gaps_that_persist_contradict_it_whatever_became_of_the_time(factor: float, words: str) -> None:
    said = conclude(MODE, [decoded(TOKEN, factor), decoded(TAIL, factor)], [gaps(20e-3, 19.5e-3)])
    assert said.code == "mechanism-unmoved"
    assert "gap_time did not move" in said.claim
    assert words in said.claim


# The others


def test_gaps_that_grow_moved_the_other_way() -> None:
    assert gaps(10e-3, 20e-3).moved == "opposite"
    said = conclude(MODE, [decoded(TOKEN, 0.7)], [gaps(10e-3, 20e-3)])
    assert said.code == "mechanism-unmoved"
    assert "moved the other way" in said.claim


def test_a_worse_tail_is_said_too() -> None:
    said = conclude(MODE, [decoded(TOKEN, 0.7), decoded(TAIL, 1.5)], [gaps(20e-3, 2e-3)])
    assert said.code == "partly-supported"
    assert "p95_latency is worse" in said.claim


def test_without_a_profiled_pair_the_reason_is_not_tested() -> None:
    unknown = Observed("gap_time", "lower", "unknown", source="no GPU")
    said = conclude(MODE, [decoded(TOKEN, 0.7)], [unknown])
    assert said.code == "improved"
    assert said.text.endswith("Whether gap_time moved is unknown: no GPU.")
    assert conclude(MODE, [decoded(TOKEN, 0.7)]).code == "improved"


def test_worse_is_worse_whatever_moved() -> None:
    assert conclude(MODE, [decoded(TOKEN, 1.2)], [gaps(20e-3, 2e-3)]).code == "worse"


def test_no_difference_says_how_many_repetitions_would_show_it() -> None:
    noisy = effect(TOKEN, [1.0, 1.2, 0.9, 1.1, 0.95], [0.85, 1.25, 0.85, 1.0, 0.93])
    said = conclude(MODE, [noisy])
    assert said.code == "not-shown"
    assert f"About {noisy.needed} repetitions of each side would be needed" in said.text


def test_a_side_against_itself_is_called_that() -> None:
    same = Control("kernel", "kernel", "gemm", "gemm")
    assert any("A/A" in caution for caution in conclude(same, [decoded(TOKEN, 1.0)]).cautions)


def test_what_was_not_checked_is_a_caution() -> None:
    unchecked = Correctness("variant", "not-checked", "nothing", "the case has no reference")
    assert conclude(MODE, [decoded(TOKEN, 0.7)], (), [unchecked]).cautions == (
        "the result of the variant was not checked: the case has no reference",
    )


def test_a_wrong_result_ends_it() -> None:
    said = wrong([Correctness("variant", "failed", "its reference", "element (0,) is nan")])
    assert said.code == "wrong-result"
    assert "element (0,) is nan" in said.text


# What a trace offers


def test_gaps_and_kernel_durations_come_from_the_trace(tmp_path: Path) -> None:
    builder = Builder()
    for start in (0, 100_000, 200_000):
        builder.kernel("step()", start, start + 40_000, call=(LAUNCH, start - 10_000, start - 5_000))
    timeline = analyse(open_trace(builder.write(tmp_path / "trace.sqlite")))
    found = traced(timeline)
    assert found["kernel_time"] == pytest.approx(120e-6)
    assert found["kernel_launches"] == 3
    assert found["kernel_median"] == pytest.approx(40e-6)
    assert found["gap_time"] == pytest.approx(120e-6)
    assert found["gpu_busy_pct"] + found["gap_share_pct"] == pytest.approx(100)
    assert traced(timeline, 3)["gap_time"] == pytest.approx(40e-6)
    assert found.keys() <= UNITS.keys()


def test_a_side_without_a_trace_is_unknown_never_zero() -> None:
    found = watched(FEWER_GAPS, {"gap_time": 1e-3}, {}, "variant: nsys failed")
    assert (found.moved, found.variant, found.source) == ("unknown", None, "variant: nsys failed")
    lacking = watched(FEWER_GAPS, {"gap_time": 1e-3}, {"kernel_time": 1e-3}, "two traces")
    assert lacking.source == "not in the trace of the variant"


def test_counts_have_no_noise() -> None:
    fewer = watched(Prediction("launch_calls", "lower"), {"launch_calls": 100}, {"launch_calls": 99}, "")
    assert fewer.moved == "as-predicted"


# What speaks against it


def record(*repetitions: Repetition) -> ExperimentRecord:
    """Return the record of an experiment of which nothing but its repetitions matters."""
    held = {"load": [0.0], "cpus": 64}
    return ExperimentRecord("", "", "", MODE, (), held, (TOKEN,), repetitions=repetitions)


def ran(clock: float = 1e9, throttled: tuple[str, ...] = (), pairs: int = 6) -> ExperimentRecord:
    """Return an experiment whose variant ran at ``clock`` [Hz]."""
    found: list[Repetition] = []
    for pair in range(1, pairs + 1):
        for side, hz in (("baseline", 1e9), ("variant", clock)):
            facts = {"sm_clock": hz, "temperature": 50, "throttled": throttled if side == "variant" else ()}
            clocks = {"before": facts, "after": facts}
            found.append(Repetition(side, pair, len(found) + 1, {}, clocks=clocks))  # type: ignore[arg-type]
    return record(*found)


def test_steady_conditions_have_no_cautions() -> None:
    assert cautions(ran()) == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (ran(clock=0.95e9), "SM clock differed: 1,000 MHz for the baseline, 950 MHz for the variant"),
        (ran(throttled=("power cap",)), "throttled during the variant: power cap"),
        (ran(pairs=4), "fewer than 5"),
        (ran(pairs=7), "odd number of pairs"),
        (
            replace(ran(), differences=("dtype: fp16 and fp32",)),
            "the sides differ in dtype",
        ),
        (replace(ran(), conditions={"load": [40.0], "cpus": 64}), "other programs were busy"),
    ],
)
def test_each_flaw_is_a_caution(found: ExperimentRecord, words: str) -> None:
    (caution,) = cautions(found)
    assert words in caution


# The record


def test_a_record_comes_back_as_it_was() -> None:
    effects = (decoded(TOKEN, 0.7), decoded(TAIL, 1.0))
    observed = (gaps(20e-3, 2e-3),)
    whole = replace(
        ran(),
        effects=effects,
        observed=observed,
        predictions=(FEWER_GAPS,),
        conclusion=conclude(MODE, effects, observed, (), ["one"]),
        differences=("x",),
    )
    assert experiment_data(ExperimentRecord.from_dict(experiment_data(whole))) == experiment_data(whole)


def test_the_terminal_shows_the_conclusion_first_and_in_ascii_too() -> None:
    effects = (decoded(TOKEN, 0.7),)
    whole = replace(ran(), goals=(), effects=effects, conclusion=conclude(MODE, effects))
    text = experiment_text(whole, color=False, encoding="ascii", width=120)
    assert text.isascii()
    assert text.index("lower; why is not tested") < text.index("DIAGNOSIS")


# The decode case from traces of both modes


def decoding(tmp_path: Path, name: str, *, between: int, kernel: int = 20_000) -> dict[str, float]:
    """Return what a trace of eight steps of ten kernels [ns] shows, with a gap ``between`` two kernels."""
    builder = Builder()
    at = 0
    for _ in range(80):
        builder.kernel("step()", at, at + kernel, call=(LAUNCH, at - 10_000, at - 5_000))
        at += kernel + between
    return traced(analyse(open_trace(builder.write(tmp_path / f"{name}.sqlite"))))


@pytest.mark.parametrize(
    ("between", "token", "tail", "code"),
    [
        (500, 0.7, 0.7, "supported"),
        (500, 1.0, 1.0, "mechanism-only"),
        (500, 0.7, 1.0, "partly-supported"),
        (29_000, 0.7, 0.7, "mechanism-unmoved"),
    ],
    ids=["supported", "gaps smaller, tokens not", "tail unchanged", "gaps persist"],
)
def test_each_conclusion_of_the_decode_case_comes_out_of_traces(
    tmp_path: Path, between: int, token: float, tail: float, code: str
) -> None:
    eager = decoding(tmp_path, "eager", between=30_000)
    graph = decoding(tmp_path, "graph", between=between)
    source = "one trace of each side"
    observed = [
        watched(FEWER_GAPS, eager, graph, source),
        watched(Prediction("gpu_busy_pct", "higher"), eager, graph, source),
    ]
    said = conclude(MODE, [decoded(TOKEN, token), decoded(TAIL, tail)], observed)
    assert said.code == code
    assert eager["kernel_time"] == graph["kernel_time"], "the kernels are the same"
