"""What must hold for every input: expressions, units of print, matching, records through JSON.

Intervals are held against counting in test_timeline.py, bounds of the roofline in test_roofline.py, numbers
as they are shown in test_numbers.py.
"""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ncukit.comparison.baseline import side_of
from ncukit.comparison.pairs import match
from ncukit.metrics.evaluation import Missing, Undefined
from ncukit.metrics.expression import compile_expression
from ncukit.model import Value
from ncukit.model.comparison import Sample
from ncukit.model.experiment import (
    Control,
    Correctness,
    Effect,
    ExperimentRecord,
    Goal,
    Observed,
    Prediction,
    Probed,
    Repetition,
    Spread,
)
from ncukit.model.run import Compared, Isolation, OutputFile, Run, StepRecord, Timing
from ncukit.model.work import WorkModel
from ncukit.report import printed
from ncukit.roofline import attainable
from ncukit.schemas.check import fault
from tests.compared import launch

FINITE = st.floats(allow_nan=False, allow_infinity=False)
AMOUNT = st.floats(0, 1e30)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.sampled_from(["a.sum", "b.avg", "c.max", "gone"])
RAW = {"a.sum": 6, "b.avg": 0.25, "c.max": 0}


# ---- the expression language ----

Tree = tuple[Any, ...]
TREES: st.SearchStrategy[Tree] = st.recursive(
    st.one_of(
        st.tuples(st.just("number"), st.integers(0, 999)),
        st.tuples(st.just("number"), st.decimals(0, 999, places=3).map(float)),
        st.tuples(st.just("raw"), NAMES),
    ),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from("+-*/"), inner, inner),
        st.tuples(st.just("neg"), inner),
        st.tuples(st.sampled_from(["max", "min"]), inner, inner),
        st.tuples(st.just("opt"), inner),
    ),
    max_leaves=12,
)


class Launch:
    """A launch with a few raw metrics, one of which is 0 and one missing."""

    raw, instances = RAW, {}

    def ref(self, id: str) -> float:
        raise Missing(id)

    def call(self, function: str, argument: str) -> float:
        raise Missing(function)


def written(tree: Tree) -> str:
    """Return the expression of ``tree``, with brackets around every operation."""
    match tree:
        case ("number", value):
            return str(value)
        case ("raw", name):
            return f"{{{name}}}"
        case ("neg", inner):
            return f"(-{written(inner)})"
        case ("opt", inner):
            return f"opt({written(inner)})"
        case ("max" | "min" as name, a, b):
            return f"{name}({written(a)}, {written(b)})"
        case (operator, a, b):
            return f"({written(a)} {operator} {written(b)})"
    raise AssertionError(tree)


def reference(tree: Tree) -> float:
    """Return the value of ``tree`` by Python's own arithmetic.

    Raises:
        Missing, Undefined: as the language does.
    """
    match tree:
        case ("number", value):
            return float(value)
        case ("raw", name):
            if name not in RAW:
                raise Missing(name)
            return float(RAW[name])
        case ("neg", inner):
            return -reference(inner)
        case ("opt", inner):
            try:
                return reference(inner)
            except Missing:
                return 0.0
        case ("max" | "min" as name, a, b):
            both = (reference(a), reference(b))
            return max(both) if name == "max" else min(both)
        case ("/", a, b):
            upper, lower = reference(a), reference(b)
            if lower == 0:
                raise Undefined("zero")
            return upper / lower
        case (operator, a, b):
            one, other = reference(a), reference(b)
            return {"+": one + other, "-": one - other, "*": one * other}[operator]
    raise AssertionError(tree)


@given(TREES)
def test_an_expression_is_what_python_computes(tree: Tree) -> None:
    compiled = compile_expression(written(tree))
    try:
        expected: float | type = reference(tree)
    except (Missing, Undefined) as error:
        expected = type(error)
    if isinstance(expected, type):
        with pytest.raises((Missing, Undefined)):
            compiled.evaluate(Launch())
    else:
        assert compiled.evaluate(Launch()) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(TREES)
def test_an_expression_says_everything_that_it_may_read(tree: Tree) -> None:
    def names(part: Any) -> set[str]:
        if not isinstance(part, tuple):
            return set()
        return {part[1]} if part[0] == "raw" else set().union(*map(names, part))

    compiled = compile_expression(written(tree))
    assert {*compiled.raws, *compiled.optional} == names(tree)


@given(st.text(max_size=40))
def test_any_text_compiles_or_is_refused_as_no_expression(text: str) -> None:
    with contextlib.suppress(ValueError):
        compile_expression(text)


@given(
    st.integers(1, 6), st.sampled_from("+-*/"), st.integers(1, 6), st.sampled_from("+-*/"), st.integers(1, 6)
)
def test_operators_bind_as_in_python(a: int, first: str, b: int, second: str, c: int) -> None:
    text = f"{a} {first} {b} {second} {c}"
    assert compile_expression(text).evaluate(Launch()) == pytest.approx(eval(text))


# ---- units as ncu prints them ----


@given(st.sampled_from(["", *"KMGTPE"]), st.sampled_from(["byte", "hz", "bit"]), st.floats(1e-3, 1e6))
def test_a_prefix_changes_the_number_and_never_the_quantity(prefix: str, base: str, number: float) -> None:
    factor, unit = printed.base_unit(prefix + base)
    assert unit == base
    assert factor == Decimal(1000) ** ["", *"KMGTPE"].index(prefix)
    assert printed.scaled(number, factor) == pytest.approx(number * float(factor), rel=1e-15)


@given(st.sampled_from(["", *"KMGTPE"]), st.sampled_from([("nsecond", 1e9), ("usecond", 1e6), ("second", 1)]))
def test_a_rate_is_per_second_however_it_is_printed(prefix: str, time: tuple[str, float]) -> None:
    unit, per_second = time
    factor, base = printed.base_unit(f"{prefix}byte/{unit}")
    assert base == "byte/s"
    assert float(factor) == pytest.approx(1000.0 ** ["", *"KMGTPE"].index(prefix) * per_second)


@given(st.integers(-(10**12), 10**12))
def test_a_printed_number_is_read_back_in_both_locales(number: int) -> None:
    assert printed.printed_value(f"{number:,}") == number
    assert printed.printed_value(f"{number:,}".replace(",", "."), comma=True) == number


# ---- roofline ----


@given(AMOUNT, st.floats(1, 1e16), st.floats(1, 1e14), st.floats(1, 100))
def test_more_intensity_peak_or_bandwidth_never_lowers_the_bound(
    intensity: float, peak: float, bandwidth: float, more: float
) -> None:
    bound = attainable(intensity, peak, bandwidth)
    assert 0 <= bound <= peak
    assert bound <= intensity * bandwidth
    assert attainable(intensity * more, peak, bandwidth) >= bound
    assert attainable(intensity, peak * more, bandwidth) >= bound
    assert attainable(intensity, peak, bandwidth * more) >= bound


# ---- matching ----

LAUNCHES = st.lists(
    st.tuples(
        st.sampled_from(["gemm", "copy", "reduce"]), st.integers(1, 2), st.sampled_from([(), ("step",)])
    ),
    max_size=6,
)


def samples(described: list[tuple[str, int, tuple[str, ...]]]) -> list[Sample]:
    """Return one sample a launch, as many as there are."""
    made = [launch(name, n, nvtx=nvtx, grid_size=grid) for n, (name, grid, nvtx) in enumerate(described)]
    return list(side_of(made, "x.ncu-rep", apart=True).samples) if made else []


@given(LAUNCHES, LAUNCHES)
def test_every_launch_is_in_exactly_one_place(base: list[Any], other: list[Any]) -> None:
    left, right = samples(base), samples(other)
    pairs, rest, more = match(left, right)
    assert sorted(map(id, [*(p.base for p in pairs), *(u.sample for u in rest)])) == sorted(map(id, left))
    assert sorted(map(id, [*(p.other for p in pairs), *(u.sample for u in more)])) == sorted(map(id, right))
    assert all(one.reason for one in [*rest, *more])


@given(LAUNCHES, LAUNCHES)
def test_matching_is_the_same_from_the_other_side(base: list[Any], other: list[Any]) -> None:
    left, right = samples(base), samples(other)
    there, back = match(left, right)[0], match(right, left)[0]
    assert {(id(p.base), id(p.other), p.by) for p in there} == {(id(p.other), id(p.base), p.by) for p in back}


@given(LAUNCHES)
def test_a_side_matches_itself_launch_by_launch(described: list[Any]) -> None:
    found = samples(described)
    pairs, rest, more = match(found, found)
    assert [(p.base, p.other) for p in pairs] == [(one, one) for one in found]
    assert not rest
    assert not more


@given(LAUNCHES, st.permutations(range(6)))
def test_the_order_of_different_launches_does_not_matter(described: list[Any], order: list[int]) -> None:
    assume(len(set(described)) == len(described))
    left, right = samples(described), samples(described)
    shuffled = [right[n] for n in order if n < len(right)]
    pairs, rest, more = match(left, shuffled)
    assert all(p.base.kernel.raw.index == p.other.kernel.raw.index for p in pairs)
    assert (len(pairs), rest, more) == (len(left), [], [])


# ---- records through JSON ----

FILES = st.builds(OutputFile, TEXT, st.integers(0), TEXT)
FAILURES = st.fixed_dictionaries({"code": TEXT, "message": TEXT, "hint": TEXT, "evidence": st.none() | TEXT})
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
STEPS = st.builds(
    StepRecord,
    st.sampled_from(["compile", "timing", "driver", "timeline", "choice", "counters", "report"]),
    st.sampled_from(["planned", "done", "partial", "failed", "skipped"]),
    TEXTS,
    st.none() | st.integers(-64, 255),
    st.none() | AMOUNT,
    st.lists(FILES, max_size=2).map(tuple),
    st.none() | FAILURES,
    TEXTS,
    st.integers(0, 5),
)
TARGETS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["workload", "function", "script", "cuda", "command"]),
        "name": TEXT,
        "meaning": TEXT,
        "args": st.lists(TEXT, max_size=2),
        "params": st.dictionaries(TEXT, TEXT, max_size=2),
    }
)
RUNS = st.builds(
    Run,
    TEXT,
    TEXT,
    TARGETS,
    st.fixed_dictionaries({"range": st.none() | TEXT, "allow_collective": st.booleans()}),
    steps=st.lists(STEPS, max_size=3).map(tuple),
    isolation=st.none()
    | st.builds(
        Isolation,
        st.sampled_from(["proven", "denied", "unknown"]),
        TEXT,
        st.lists(
            st.builds(Compared, TEXT, st.none() | TEXT, st.none() | TEXT, st.none() | st.booleans())
        ).map(tuple),
        st.integers(0, 9),
    ),
    notes=TEXTS,
    status=st.sampled_from(["running", "complete", "incomplete", "failed"]),
    error=st.none() | FAILURES,
)
TIMINGS = st.builds(
    Timing,
    st.sampled_from(["cuda-events", "host-synchronised", "host", "process"]),
    st.integers(1, 10**6),
    AMOUNT,
    AMOUNT,
    AMOUNT,
    AMOUNT,
    st.lists(AMOUNT, max_size=4).map(tuple),
    params=st.dictionaries(TEXT, TEXT | st.integers(), max_size=3),
    settled=st.none() | st.booleans(),
    notes=TEXTS,
)
SIDES = st.sampled_from(["baseline", "variant"])
BETTER = st.sampled_from(["lower", "higher"])
SPREADS = st.builds(Spread, st.integers(1, 99), AMOUNT, AMOUNT, AMOUNT, AMOUNT)
EFFECTS = st.builds(
    Effect,
    TEXT,
    TEXT,
    BETTER,
    SPREADS,
    SPREADS,
    st.floats(1e-6, 1e6),
    st.floats(1e-6, 1),
    st.floats(1, 1e6),
    st.floats(0, 1),
    st.sampled_from(["better", "worse", "not-shown"]),
)
EXPERIMENTS = st.builds(
    ExperimentRecord,
    TEXT,
    TEXT,
    TEXT,
    st.builds(Control, st.sampled_from(["kernel", "parameter", "command"]), TEXT, TEXT, TEXT),
    st.lists(st.builds(Prediction, TEXT, BETTER), max_size=2).map(tuple),
    st.dictionaries(TEXT, TEXT, max_size=2),
    st.lists(st.builds(Goal, TEXT, BETTER, TEXT), max_size=2).map(tuple),
    st.lists(
        st.builds(Correctness, SIDES, st.sampled_from(["passed", "failed", "not-checked"]), TEXT, TEXT),
        max_size=2,
    ).map(tuple),
    st.lists(
        st.builds(Repetition, SIDES, st.integers(1, 9), st.integers(1, 9), st.dictionaries(TEXT, AMOUNT)),
        max_size=3,
    ).map(tuple),
    st.lists(EFFECTS, max_size=2).map(tuple),
    st.lists(
        st.builds(
            Observed, TEXT, BETTER, st.sampled_from(["as-predicted", "not-moved", "opposite", "unknown"])
        ),
        max_size=2,
    ).map(tuple),
)
MODELS = st.builds(
    WorkModel,
    TEXT,
    st.dictionaries(st.sampled_from(["fp32", "fp64", "tensor_fp16"]), AMOUNT, max_size=3),
    TEXT,
    AMOUNT,
    AMOUNT,
    TEXTS,
    TEXTS,
    st.booleans(),
)


def through_json(data: Any) -> Any:
    return json.loads(json.dumps(data, allow_nan=False))


def follows(data: Any, schema: str) -> str | None:
    from ncukit.schemas import text

    return fault(data, json.loads(text(schema)))


@given(RUNS)
def test_a_run_survives_json_and_follows_its_schema(run: Run) -> None:
    data = through_json(run.as_dict())
    assert follows(data, "ncukit.run/1") is None
    assert Run.from_dict(data) == run
    assert Run.from_dict({**data, "later": 1}) == run


@given(TIMINGS)
def test_a_timing_survives_json_and_follows_its_schema(timing: Timing) -> None:
    data = through_json(timing.as_dict())
    assert follows(data, "ncukit.timing/1") is None
    assert Timing.from_dict(data) == timing


@given(EXPERIMENTS)
def test_an_experiment_survives_json(record: ExperimentRecord) -> None:
    data = through_json(record.as_dict())
    assert ExperimentRecord.from_dict(data) == record
    assert through_json(ExperimentRecord.from_dict(data).as_dict()) == data


@given(MODELS)
def test_a_model_of_work_survives_json(model: WorkModel) -> None:
    assert WorkModel.from_dict(through_json(asdict(model))) == model


@given(st.builds(Probed, TEXT, st.sampled_from(["done", "unavailable", "failed"]), notes=TEXTS))
def test_a_probe_is_json_as_it_is(probed: Probed) -> None:
    data = through_json(probed.as_dict())
    assert Probed(**{**data, "notes": tuple(data["notes"])}) == probed


@given(st.none() | FINITE | TEXT, st.none() | TEXT)
def test_a_value_is_json_and_unknown_is_never_a_number(value: Any, reason: str | None) -> None:
    made = Value("x", value, "byte", "exact" if value is not None else None, reason=reason)
    data = through_json(made.as_dict())
    assert data["value"] == value
    assert made.known == (data["value"] is not None)
    assert made.number is None or math.isfinite(made.number)
