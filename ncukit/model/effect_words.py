"""An effect in words and numbers that a sentence can hold."""

from __future__ import annotations

from ncukit.model.experiment import Effect

HUGE = 100
"""A factor beyond which noise has no number: it only says that nothing is known."""


def percent(effect: Effect) -> str:
    """Return the change of an effect with its interval, in words."""
    ends = sorted((effect.low, effect.high), key=lambda end: abs(end - 1))
    words = [changed(end) for end in ends]
    if words[0].rsplit(" ", 1)[-1] == words[1].rsplit(" ", 1)[-1]:
        words[0] = words[0].rsplit(" % ", 1)[0]
    return f"{changed(effect.ratio)} ({100 * effect.confidence:.0f} % interval {words[0]} to {words[1]})"


def changed(ratio: float) -> str:
    """Return by how much something changed, and which way.

    >>> changed(0.8), changed(float("inf"))
    ('20.0 % lower', 'without bound')
    """
    if ratio == float("inf"):
        return "without bound"
    return f"{100 * abs(ratio - 1):.1f} % {'lower' if ratio < 1 else 'higher'}"


def rounded(percent: float, sign: str = "") -> str:
    """Return about how many percent, never with an exponent.

    >>> rounded(0.0123), rounded(123.4), rounded(21.3, "+")
    ('0.012', '123', '+21')
    """
    return f"{percent:{sign},.0f}" if abs(percent) >= 10 else f"{percent:{sign}.2g}"


def sayable(goal: Effect) -> float | None:
    """Return the change [%] that the repetitions can show, None where it is beyond a factor of `HUGE`."""
    found = goal.detectable
    return found if found is not None and found <= 100 * (HUGE - 1) else None
