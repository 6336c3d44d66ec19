"""What repetitions show: never more than their own variation allows, and never less than is there."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncukit.errors import UsageError
from ncukit.judge.effect import FEWEST, cdf, detectable, differs, effect, location, needed, pairs, quantile
from ncukit.model.experiment import Goal

SEEDS = 2000
TIME = Goal("time")

# Noise around one: symmetric, skewed, very skewed; one run in twenty takes longer; two states of a clock.
NOISES: dict[str, Callable[[Random], float]] = {
    "normal": lambda r: 1 + 0.05 * r.gauss(0, 1),
    "lognormal": lambda r: r.lognormvariate(0, 0.05),
    "very skewed": lambda r: 1 + 0.05 * r.lognormvariate(0, 1),
    "outliers": lambda r: 1 + 0.02 * r.gauss(0, 1) + (0.5 if r.random() < 0.05 else 0),
    "coarse clock": lambda r: 1 + 0.01 * round(r.gauss(0, 0.6)),
    "two states": lambda r: 1 + 0.005 * r.gauss(0, 1) + (0.1 if r.random() < 0.3 else 0),
}


def runs(noise: str, n: int, seed: int, factor: float = 1.0) -> tuple[list[float], list[float]]:
    """Return ``n`` times of a baseline, and of a variant that takes ``factor`` times as long."""
    random, draw = Random(seed), NOISES[noise]
    return [draw(random) for _ in range(n)], [factor * draw(random) for _ in range(n)]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("n", [5, 10, 20])
def test_a_run_against_itself_shows_a_difference_in_at_most_six_percent(noise: str, n: int) -> None:
    shown = sum(differs(pairs(*runs(noise, n, seed))) for seed in range(SEEDS))
    assert shown <= 0.06 * SEEDS
    assert shown > 0, "a procedure that never shows anything would pass"


@pytest.mark.parametrize(
    ("noise", "n", "share"),
    [("normal", 5, 0.4), ("normal", 10, 0.9), ("lognormal", 10, 0.9), ("outliers", 10, 0.95)],
)
def test_a_true_difference_of_twenty_percent_is_found(noise: str, n: int, share: float) -> None:
    found = [effect(TIME, *runs(noise, n, seed, 1.2)) for seed in range(100)]
    assert sum(one.outcome == "worse" for one in found) >= 100 * share
    assert not any(one.outcome == "better" for one in found)


def test_the_interval_holds_the_true_ratio_in_nineteen_of_twenty_cases() -> None:
    found = [effect(TIME, *runs("normal", 10, seed, 1.1)) for seed in range(200)]
    held = sum(one.low <= 1.1 <= one.high for one in found)
    assert 0.94 * 200 <= held < 200


def test_drift_that_both_sides_share_costs_nothing() -> None:
    """A machine that becomes twice as slow over the experiment: pairs do not notice."""
    base, variant = runs("normal", 20, 1, 1.2)
    slower = [1 + i / 19 for i in range(20)]
    drifted = effect(TIME, *([v * s for v, s in zip(side, slower, strict=True)] for side in (base, variant)))
    assert drifted.outcome == "worse"
    assert drifted.ratio == pytest.approx(effect(TIME, base, variant).ratio)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_the_short_cut_says_what_the_interval_says(logs: list[float]) -> None:
    found = effect(TIME, [1.0] * len(logs), [math.exp(d) for d in logs])
    again = pairs([1.0] * len(logs), [math.exp(d) for d in logs])
    assert differs(again) == (found.outcome != "not-shown")


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=5, max_size=7))
@settings(max_examples=25, deadline=None)
def test_sides_and_units_are_interchangeable(values: list[tuple[float, float]]) -> None:
    a, b = ([pair[i] for pair in values] for i in (0, 1))
    forth, back = effect(TIME, a, b), effect(TIME, b, a)
    assert forth.ratio == pytest.approx(1 / back.ratio)
    assert forth.low == pytest.approx(1 / back.high, rel=1e-6)
    scaled = effect(TIME, [1e-6 * v for v in a], [1e-6 * v for v in b])
    assert scaled.high == pytest.approx(forth.high, rel=1e-6)
    assert forth.low <= forth.ratio <= forth.high


def test_values_that_repeat_are_no_reason_to_see_nothing() -> None:
    """Coarse clocks give equal pairs, whose resamples have no spread."""
    found = effect(TIME, [1.0] * 5, [2.0, 2.0, 2.0, 2.01, 1.99])
    assert found.outcome == "worse"
    assert effect(TIME, [1.0] * 5, [2.0] * 5).low == pytest.approx(2.0)


@pytest.mark.parametrize("n", range(1, FEWEST))
def test_too_few_repetitions_show_nothing_however_large_the_difference(n: int) -> None:
    found = effect(TIME, [1.0 + i / 100 for i in range(n)], [9.0] * n)
    assert (found.outcome, found.high, found.needed) == ("not-shown", math.inf, FEWEST)


def test_what_is_better_is_up_to_the_goal() -> None:
    slow, fast = [1.0, 1.01, 0.99, 1.0, 1.02], [2.0, 2.01, 1.99, 2.0, 2.03]
    assert effect(Goal("time"), slow, fast).outcome == "worse"
    assert effect(Goal("tokens_per_second", "higher", ""), slow, fast).outcome == "better"


def test_the_repetitions_that_would_be_needed_find_the_difference_in_four_of_five_cases() -> None:
    change = 0.05
    spread = 1.09 * 0.05 * math.sqrt(2)  # of pairs; a midmean has 1.19 times the variance of a mean
    n = needed(change, spread / math.sqrt(6), 6)
    assert n is not None
    assert n > 6
    hits = sum(differs(pairs(*runs("lognormal", n, seed, math.exp(change)))) for seed in range(400))
    assert 0.72 * 400 <= hits <= 0.88 * 400


@pytest.mark.parametrize("n", [5, 10, 20])
def test_what_so_many_repetitions_are_said_to_show_they_show_in_four_of_five_cases(n: int) -> None:
    """The statement of a typical experiment, held against others with that difference."""
    said = statistics.median(
        detectable(location(pairs(*runs("normal", n, seed)))[1], n) or 0 for seed in range(201)
    )
    hits = sum(
        differs([d + math.log1p(said / 100) for d in pairs(*runs("normal", n, seed))])
        for seed in range(1000, 1300)
    )
    assert 0.7 * 300 <= hits <= 0.9 * 300


def test_no_difference_at_all_needs_no_number_of_repetitions() -> None:
    found = effect(TIME, [1.0, 1.1, 0.9, 1.05, 1.0], [1.1, 1.0, 1.05, 0.9, 1.01])
    assert found.outcome == "not-shown"
    assert found.needed is None or found.needed > 100


def test_detectable_shrinks_with_repetitions() -> None:
    sizes = [detectable(0.07 / math.sqrt(n), n) for n in (5, 10, 20, 40)]
    assert None not in sizes
    assert sizes == sorted(sizes, reverse=True)  # type: ignore[type-var]
    assert detectable(0.01, 4) is None


@pytest.mark.parametrize("values", [[1.0, 0.0], [1.0, -1.0], [1.0, math.nan], [1.0, math.inf], [1.0]])
def test_what_has_no_ratio_is_refused(values: list[float]) -> None:
    with pytest.raises(UsageError):
        effect(TIME, [1.0, 1.0], values)


@pytest.mark.parametrize(
    ("degrees", "value"),
    [
        (1, 12.7062),
        (2, 4.3027),
        (3, 3.1824),
        (4, 2.7764),
        (9, 2.2622),
        (19, 2.0930),
        (30, 2.0423),
        (999, 1.9623),
    ],
)
def test_quantiles_of_student_are_those_of_the_tables(degrees: int, value: float) -> None:
    assert quantile(0.975, degrees) == pytest.approx(value, abs=5e-5)
    assert cdf(-value, degrees) == pytest.approx(0.025, abs=1e-5)
