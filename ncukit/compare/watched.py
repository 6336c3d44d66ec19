"""How a metric that a hypothesis named moved between the two launches of a profiled pair."""

from __future__ import annotations

import math

from ncukit.diagnose.experiment.traced import direction_of
from ncukit.model.comparison import Comparison
from ncukit.model.experiment import Observed, Prediction


def watched(prediction: Prediction, comparison: Comparison) -> Observed:
    """Return the metric's row of the pair beside its prediction; unknown, with the reason, without values.

    What a change must exceed is the noise of the comparison.
    """
    name, direction = prediction.metric, prediction.direction
    if len(comparison.pairs) != 1:
        why = f"the profiled pair has {len(comparison.pairs)} matching launches"
        return Observed(name, direction, "unknown", source=why)
    row = comparison.pairs[0].row(name)
    if row is None:
        return Observed(name, direction, "unknown", source="the profiled pair does not hold it")
    a, b = row.base.number, row.other.number
    if a is None or b is None or row.change is None:
        why = row.reason or row.why or "one side lacks it"
        return Observed(name, direction, "unknown", row.base.unit, a, b, source=why)
    moved = direction_of(prediction, b - a, beyond=row.beyond_noise)
    noise = row.noise if math.isfinite(row.noise) else None
    source = f"counters of one launch each; noise: {row.noise_from}"
    return Observed(name, direction, moved, row.base.unit, a, b, row.finite, noise, source)
