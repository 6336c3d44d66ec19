"""Whether the difference between two sides is larger than what repeating either of them does."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter, mul
from random import Random

from ncukit.errors import UsageError
from ncukit.model.experiment import Effect, Goal, Moved, Observed, Outcome, Prediction, Spread
from ncukit.model.trace import Timeline

# ---- Quantiles of Student's t, which the standard library lacks


def cdf(t: float, degrees: int) -> float:
    """Return P(T <= t) for whole ``degrees`` of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).

    >>> round(cdf(2.776445, 4), 6), cdf(0.0, 7)
    (0.975, 0.5)
    """
    angle = math.atan2(t, math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = 0.0 if degrees == 1 else term
    for k in range(3 if odd else 2, degrees - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    inside = 2 * (angle + sine * total) / math.pi if odd else sine * total
    return 0.5 + inside / 2


@functools.cache
def quantile(probability: float, degrees: int) -> float:
    """Return the t that T stays below with ``probability`` (above 0.5), by bisection.

    >>> round(quantile(0.975, 9), 4), round(quantile(0.975, 1), 3)
    (2.2622, 12.706)
    """
    low, high = 0.0, 1.0
    while cdf(high, degrees) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if cdf(middle, degrees) < probability else (low, middle)
    return (low + high) / 2


# ---- Is the difference between two sides larger than what repeating either of them does?
#  Each repetition is a fresh process; repetition i of both sides ran next to each other (A B, B A, A B,
# ...), so d_i = log(variant_i / baseline_i) is free of slow drift, and without an effect d_i is as likely
# positive as negative, however skewed the noise of a single repetition is.  The ratio is exp(m), where m is
# the mean of the middle half of the d_i: repetitions that something else disturbed do not decide.  Its
# standard error s is that of a trimmed mean, from the winsorised variance (Yuen 1974); its interval the
# symmetric studentised bootstrap over pairs (Hall 1988): exp(m -+ c s), where c is the 95 % quantile of
# |t*| over resampled pairs. Where pairs are few or repeat each other that quantile is a poor guess, so it
# is held between Student's t at 95 % and at 99 %.  The plain percentile bootstrap finds a difference in
# some 17 % of A/A experiments with 5 pairs and in 10 % with 10; this one in at most 5 %, under normal,
# lognormal and heavy-tailed noise.
#
# Limits: pairs must be independent, so a machine that slows down in the middle costs power, and one that
# always slows the second process of a pair is balanced only for an even number of pairs.  Fewer than
# `FEWEST` pairs show nothing.  The interval of one metric does not know that others were tested too.  To
# test a machine, run an A/A experiment, the same name as baseline and variant: it must end with "not shown"
# in 19 of 20 cases.

CONFIDENCE, POWER = 0.95, 0.8
CAUTIOUS = 0.99
"""The confidence whose Student's t is the most that the bootstrap may ask for."""
TRIMMED = 0.25
"""Share of the pairs left out at either end."""
RESAMPLES = 2000
FEWEST = 5
"""Pairs below this say nothing about their own spread: too few are left in the middle."""
MANY = 10
"""Pairs up to which the bootstrap asks for about as much as it may."""
REASONABLE = 10_000
"""More repetitions than this nobody runs."""

Take = Callable[[Sequence[float]], tuple[float, ...]]


def effect(goal: Goal, baseline: Sequence[float], variant: Sequence[float]) -> Effect:
    """Return what the control did to ``goal``, from repetitions in the order of their pairs.

    Raises:
        UsageError: the sides have different numbers of repetitions, or a value is not above 0.

    >>> slower = effect(Goal("time"), [1.00, 1.01, 0.99, 1.00, 1.02], [1.21, 1.20, 1.19, 1.22, 1.21])
    >>> slower.outcome, round(slower.ratio, 2)
    ('worse', 1.2)
    """
    logs = pairs(baseline, variant)
    mean, error = location(logs)
    reach = _reach(logs, mean, error)
    low, high = mean - reach, mean + reach
    shown = low > 0 or high < 0
    outcome: Outcome = "not-shown"
    if shown:
        outcome = "better" if (mean < 0) == (goal.better == "lower") else "worse"
    return Effect(
        metric=goal.metric,
        unit=goal.unit,
        better=goal.better,
        baseline=spread(baseline),
        variant=spread(variant),
        ratio=math.exp(mean),
        low=_exp(low),
        high=_exp(high),
        confidence=CONFIDENCE,
        outcome=outcome,
        needed=None if shown else needed(mean, error, len(logs)),
        detectable=detectable(error, len(logs)),
    )


def pairs(baseline: Sequence[float], variant: Sequence[float]) -> list[float]:
    """Return log(variant / baseline) of each pair.

    Raises:
        UsageError: see `effect`.
    """
    if len(baseline) != len(variant) or not baseline:
        raise UsageError(
            f"{len(baseline)} repetitions of the baseline and {len(variant)} of the variant make no pairs",
            "repeat both sides equally often",
        )
    if not all(value > 0 and math.isfinite(value) for value in (*baseline, *variant)):
        raise UsageError("a value that is not above 0 has no ratio", "measure something positive")
    return [math.log(b / a) for a, b in zip(baseline, variant, strict=True)]


def differs(logs: Sequence[float]) -> bool:
    """Return whether the interval of `effect` leaves 1 out, without the bootstrap where it cannot matter.

    >>> differs([0.2, 0.21, 0.19, 0.2, 0.22]), differs([0.2, -0.2, 0.1, -0.1, 0.0])
    (True, False)
    """
    mean, error = location(logs)
    if len(logs) < FEWEST or abs(mean) <= _student(len(logs)) * error:
        return False
    if abs(mean) > _student(len(logs), CAUTIOUS) * error:
        return True
    return abs(mean) > _reach(logs, mean, error)


def needed(mean: float, error: float, n: int) -> int | None:
    """Return the pairs that would show a difference like ``mean`` (log ratio) in four of five experiments.

    ``error`` is its standard error with ``n`` pairs.  None: the difference is too small for any number within
    reason, or ``n`` says nothing about the spread.
    """
    if n < FEWEST:
        return FEWEST
    if not mean or not math.isfinite(error):
        return None
    noise = error * math.sqrt(n)
    low, high = n + 1, REASONABLE
    if _smallest(noise, high) > abs(mean):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _smallest(noise, middle) <= abs(mean) else (middle + 1, high)
    return low


def detectable(error: float, n: int) -> float | None:
    """Return the smallest change [%] that ``n`` pairs with this standard error show in four of five cases."""
    if n < FEWEST:
        return None
    return 100 * (_exp(_smallest(error * math.sqrt(n), n)) - 1)


def spread(values: Sequence[float]) -> Spread:
    """Return the statistics of one side."""
    if len(values) > 1:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    else:
        low = high = values[0]
    return Spread(len(values), statistics.median(values), high - low, min(values), max(values))


def location(logs: Sequence[float]) -> tuple[float, float]:
    """Return the trimmed mean of ``logs`` and its standard error; infinite for a single one.

    >>> round(location([0.1, 0.2, 0.3, 0.2, 9.0])[0], 3)
    0.233
    """
    ordered = sorted(logs)
    mean, _ = _moments(ordered, [d * d for d in ordered])
    centred = [d - mean for d in ordered]
    _, variance = _moments(centred, list(map(mul, centred, centred)))
    return mean, math.sqrt(variance)


def _moments(ordered: Sequence[float], squares: Sequence[float]) -> tuple[float, float]:
    """Return trimmed mean and squared standard error of values in order, whose squares are given."""
    n = len(ordered)
    cut = int(TRIMMED * n)
    kept = n - 2 * cut
    total = sum(ordered[cut : n - cut])
    if kept < 2:
        return total / kept, math.inf
    winsorised = total + cut * (ordered[cut] + ordered[n - cut - 1])
    around = sum(squares[cut : n - cut]) + cut * (squares[cut] + squares[n - cut - 1])
    return total / kept, max(0.0, around - winsorised * winsorised / n) / (kept * (kept - 1))


def _smallest(noise: float, n: int) -> float:
    """Return the log ratio that ``n`` pairs show with `POWER`; ``noise`` is their error times sqrt(n).

    Of few pairs the bootstrap asks for nearly the most that it may, of many for Student's t: simulated
    experiments find what is said here in 76 to 83 % of cases, for 5 to 40 pairs.
    """
    least, most = _student(n), _student(n, CAUTIOUS)
    asked = least + min(1.0, MANY / n) * (most - least)
    return (asked + quantile(POWER, _degrees(n))) * noise / math.sqrt(n)


def _degrees(n: int) -> int:
    return n - 2 * int(TRIMMED * n) - 1


def _student(n: int, confidence: float = CONFIDENCE) -> float:
    return quantile((1 + confidence) / 2, _degrees(n))


def _reach(logs: Sequence[float], mean: float, error: float) -> float:
    """Return half the width of the interval on the log scale; infinite where there are too few pairs."""
    n = len(logs)
    if n < FEWEST:
        return math.inf
    if error <= 1e-12 * abs(mean) or not error:  # the pairs agree: there is nothing to resample
        return 0.0
    found = _bootstrap(sorted(d - mean for d in logs))
    return min(max(found, _student(n)), _student(n, CAUTIOUS)) * error


def _bootstrap(centred: Sequence[float]) -> float:
    """Return the quantile of |t*| over the resamples that have a spread: one value alone has no t."""
    squares = list(map(mul, centred, centred))
    found = []
    for take in _resamples(len(centred)):
        mean, variance = _moments(take(centred), take(squares))
        if variance > 1e-12 * mean * mean:
            found.append(mean * mean / variance)
    if not found:
        return math.inf
    found.sort()
    return math.sqrt(found[min(math.ceil(CONFIDENCE * (len(found) + 1)), len(found)) - 1])


@functools.cache
def _resamples(n: int) -> tuple[Take, ...]:
    """Return what takes ``n`` of ``n`` in order with replacement, often; always the same: results repeat.

    Each is there with its mirror image, so that exchanging the sides mirrors the interval.
    """
    random, places = Random(n), range(n)  # noqa: S311 - a fixed seed, no secret
    chosen = [sorted(random.choices(places, k=n)) for _ in range(RESAMPLES // 2)]
    mirrored = [[n - 1 - place for place in reversed(one)] for one in chosen]
    return tuple(itemgetter(*one) for one in (*chosen, *mirrored))


def _exp(value: float) -> float:
    return math.inf if value > 700 else math.exp(value)


# ---- What a trace offers to be watched: gaps and kernel durations of a region

UNITS: Mapping[str, str] = {
    "gap_time": "s",
    "gap_share_pct": "%",
    "gpu_busy_pct": "%",
    "kernel_time": "s",
    "kernel_median": "s",
    "kernel_launches": "",
    "launch_calls": "",
    "copy_time": "s",
}
"""Metrics of a trace by name, with their units: of the region, on its main device.

All but ``kernel_median`` and the shares are of one call of the region.  A gap is time in which nothing runs
on the device; ``kernel_time`` adds up all kernels, ``kernel_median`` is the median launch of the kernel with
the most time; ``launch_calls`` are calls of the CPU that launch something.
"""
FLOOR, FLOOR_POINTS = 10.0, 5.0
"""[%] and [points] that one trace of each side must differ by: a single trace has no spread of its own."""
COUNTED = frozenset({"kernel_launches", "launch_calls"})
"""Counted, not timed: any difference is one."""


def traced(timeline: Timeline, calls: int = 1) -> dict[str, float]:
    """Return the metrics of ``timeline`` for one of ``calls`` of the region; times [s], shares [%]."""
    main = next((d for d in timeline.devices if d.id == timeline.main_device), None)
    found: dict[str, float] = {
        "kernel_time": timeline.kernel_total / 1e9 / calls,
        "kernel_launches": timeline.launches.kernels / calls,
        "launch_calls": timeline.launches.calls / calls,
        "copy_time": sum(copy.total for copy in timeline.copies) / 1e9 / calls,
    }
    if timeline.kernels:
        found["kernel_median"] = timeline.kernels[0].steady.median / 1e9
    if main is not None:
        found["gap_time"] = main.empty / 1e9 / calls
        if main.span:
            found["gap_share_pct"] = 100 * main.empty / main.span
            found["gpu_busy_pct"] = 100 * main.busy / main.span
    return found


def watched(
    prediction: Prediction, baseline: Mapping[str, float], variant: Mapping[str, float], source: str
) -> Observed:
    """Return how a metric of two traces moved, beside what was predicted.

    ``source`` says where they are from; of a trace without any metrics, why it has none.
    """
    name, unit = prediction.metric, UNITS[prediction.metric]
    a, b = baseline.get(name), variant.get(name)
    if a is None or b is None:
        lacks = f"not in the trace of the {'baseline' if a is None else 'variant'}"
        why = lacks if baseline and variant else source
        return Observed(name, prediction.direction, "unknown", unit, a, b, source=why)
    points = unit == "%"
    noise = 0.0 if name in COUNTED else FLOOR_POINTS if points else FLOOR
    change = b - a if points else 100 * (b - a) / a if a else (0.0 if b == a else None)
    moved = direction_of(prediction, b - a, beyond=b != a and (change is None or abs(change) > noise))
    return Observed(name, prediction.direction, moved, unit, a, b, change, noise, source)


def direction_of(prediction: Prediction, difference: float, *, beyond: bool) -> Moved:
    """Return what a difference says about a prediction; ``beyond`` says whether it exceeds its noise."""
    if not beyond:
        return "not-moved"
    return "as-predicted" if (difference < 0) == (prediction.direction == "lower") else "opposite"
