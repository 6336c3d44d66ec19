"""One experiment with one control changed, and what a probe found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field, fields
from typing import Any, Literal, Self

from ncukit.record import dataclass

# ---- What a probe found, or why it found nothing

PROBE_SCHEMA = "ncukit.probe/1"


@dataclass(frozen=True)
class Probed:
    """One probe: "done" with a ``result``, "unavailable" here with the reason, or "failed".

    Numbers of ``result`` are base SI: bytes, seconds, hertz, FLOP/s, byte/s.
    """

    name: str
    state: Literal["done", "unavailable", "failed"]
    result: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)


# ---- One experiment: a single control changed, everything else fixed; what was predicted, and what was
# observed
# The JSON form is ``experiment.json`` (schema ``ncukit.experiment/1``), in base SI units.

EXPERIMENT_SCHEMA = "ncukit.experiment/1"

SideName = Literal["baseline", "variant"]
SIDES: tuple[SideName, SideName] = ("baseline", "variant")
Direction = Literal["lower", "higher"]
Outcome = Literal["better", "worse", "not-shown"]
Moved = Literal["as-predicted", "not-moved", "opposite", "unknown"]
Code = Literal[
    "supported",
    "partly-supported",
    "mechanism-only",
    "mechanism-unmoved",
    "improved",
    "not-shown",
    "worse",
    "wrong-result",
]
"""What an experiment came to; see `ncukit.judge.conclusion`."""


@dataclass(frozen=True)
class Control:
    """The one thing that differs: ``kind`` "kernel" (workload), "parameter" or "command"."""

    kind: Literal["kernel", "parameter", "command"]
    name: str
    baseline: str
    variant: str

    def of(self, side: SideName) -> str:
        """Return its value on ``side``."""
        return self.baseline if side == "baseline" else self.variant


@dataclass(frozen=True)
class Prediction:
    """The direction in which the hypothesis says that ``metric`` moves."""

    metric: str
    direction: Direction


@dataclass(frozen=True)
class Goal:
    """A number of each repetition that the experiment is about, and which way is better."""

    metric: str
    better: Direction = "lower"
    unit: str = "s"


@dataclass(frozen=True)
class Correctness:
    """Whether the result of a side is right: ``error`` is the largest in units of ``tolerance``."""

    side: SideName
    state: Literal["passed", "failed", "not-checked"]
    against: str
    detail: str
    tolerance: float | None = None
    error: float | None = None
    elements: int | None = None


@dataclass(frozen=True)
class Repetition:
    """One fresh process: ``values`` by metric, ``apart`` [s] is what it spent before them.

    ``order`` counts processes from 1 in the order in which they ran; ``pair`` is the pair it belongs to.
    ``reported`` is what else a command said of itself.
    """

    side: SideName
    pair: int
    order: int
    values: Mapping[str, float]
    samples: int | None = None
    apart: Mapping[str, float] = field(default_factory=dict)
    clocks: Mapping[str, Any] = field(default_factory=dict)
    reported: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Spread:
    """Values of one side over its repetitions: ``iqr`` is the distance between the quartiles."""

    n: int
    median: float
    iqr: float
    min: float
    max: float


@dataclass(frozen=True)
class Effect:
    """What the control did to one metric: ``ratio`` is variant over baseline, with its interval.

    ``needed`` are the repetitions a side after which a difference like the observed one would be shown
    (None: not within reason); ``detectable`` [%] is the smallest that these repetitions would show.
    """

    metric: str
    unit: str
    better: Direction
    baseline: Spread
    variant: Spread
    ratio: float
    low: float
    high: float
    confidence: float
    outcome: Outcome
    needed: int | None = None
    detectable: float | None = None

    @property
    def change(self) -> float:
        """Change of the variant [% of the baseline]."""
        return 100 * (self.ratio - 1)


@dataclass(frozen=True)
class Observed:
    """A metric of the profiled pair beside its prediction; for diagnosis only, never as a benchmark."""

    metric: str
    direction: Direction
    moved: Moved
    unit: str = ""
    baseline: float | None = None
    variant: float | None = None
    change: float | None = None
    """[% of the baseline], or points where the metric is a percentage."""
    noise: float | None = None
    source: str = ""
    """Which profile it is from; where ``moved`` is unknown, why."""


@dataclass(frozen=True)
class Profiled:
    """The profiled pair: folders of the runs inside the experiment's, and in words what came of it."""

    state: Literal["done", "partial", "not-done"]
    detail: str
    runs: tuple[str, ...] = ()
    summary: str = ""


@dataclass(frozen=True)
class Conclusion:
    """What may be said: ``claim`` in one sentence, ``text`` in the conditional, ``cautions`` against both."""

    code: Code
    claim: str
    text: str
    cautions: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExperimentRecord:
    """Everything recorded of an experiment.

    ``conditions`` were the same on both sides; ``differences`` are what differed besides the control.
    """

    created: str
    version: str
    hypothesis: str
    control: Control
    predictions: tuple[Prediction, ...]
    conditions: Mapping[str, Any]
    goals: tuple[Goal, ...]
    correctness: tuple[Correctness, ...] = ()
    repetitions: tuple[Repetition, ...] = ()
    effects: tuple[Effect, ...] = ()
    observed: tuple[Observed, ...] = ()
    profiled: Profiled = field(default_factory=lambda: Profiled("not-done", "not reached"))
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    conclusion: Conclusion | None = None
    directory: str | None = None
    schema: str = EXPERIMENT_SCHEMA

    def side(self, name: SideName) -> tuple[Repetition, ...]:
        """Return the repetitions of one side."""
        return tuple(one for one in self.repetitions if one.side == name)

    def effect(self, metric: str) -> Effect | None:
        """Return the effect on ``metric``."""
        return next((effect for effect in self.effects if effect.metric == metric), None)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        data = asdict(self)
        for effect, made in zip(data["effects"], self.effects, strict=True):
            effect["change"] = made.change
        return {"schema": data.pop("schema"), **data}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the record that ``data`` holds; fields that a later version added are left out.

        Raises:
            KeyError, TypeError: ``data`` is no experiment.
        """
        known = {f.name: data[f.name] for f in fields(cls) if f.name in data}
        for name, kind in _PARTS.items():
            known[name] = tuple(_made(kind, part) for part in known.get(name, ()))
        known["control"] = _made(Control, known["control"])
        if known.get("profiled"):
            found = _made(Profiled, known["profiled"])
            known["profiled"] = Profiled(**{**vars(found), "runs": tuple(found.runs)})
        if known.get("conclusion"):
            said = _made(Conclusion, known["conclusion"])
            known["conclusion"] = Conclusion(**{**vars(said), "cautions": tuple(said.cautions)})
        for name in ("differences", "notes"):
            known[name] = tuple(known.get(name, ()))
        return cls(**known)


def _effect(data: Mapping[str, Any]) -> dict[str, Any]:
    ends = {"low": data["low"] or 0.0, "high": float("inf") if data["high"] is None else data["high"]}
    return {**data, **ends, "baseline": Spread(**data["baseline"]), "variant": Spread(**data["variant"])}


def _made(kind: Any, data: Mapping[str, Any]) -> Any:
    given = _effect(data) if kind is Effect else data
    return kind(**{f.name: given[f.name] for f in fields(kind) if f.name in given})


_PARTS: Mapping[str, Any] = {
    "predictions": Prediction,
    "goals": Goal,
    "correctness": Correctness,
    "repetitions": Repetition,
    "effects": Effect,
    "observed": Observed,
}
