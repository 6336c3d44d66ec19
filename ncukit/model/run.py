"""One run of `ncukit profile`: its steps, what was chosen, whether that was captured, the clean time.

The JSON form is ``run.json`` (schema ``ncukit.run/1``), in base SI units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field, fields
from typing import Any, Literal, Self

from ncukit.model.trace import LaunchChoice
from ncukit.record import dataclass

RUN_SCHEMA = "ncukit.run/1"
TIMING_SCHEMA = "ncukit.timing/1"

State = Literal["planned", "done", "partial", "failed", "skipped"]
Proof = Literal["proven", "denied", "unknown"]


@dataclass(frozen=True)
class OutputFile:
    """A file of the run directory: ``size`` [byte]."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class StepRecord:
    """One step: what was run, what came of it; ``seconds`` [s] is the command alone.

    ``partial`` steps left a file and a failure; ``failure`` has code, message, hint and the evidence.
    """

    name: str
    state: State = "planned"
    command: tuple[str, ...] = ()
    exit_code: int | None = None
    seconds: float | None = None
    files: tuple[OutputFile, ...] = ()
    failure: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    attempts: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing of it has to be done again."""
        return self.state in ("done", "skipped")


@dataclass(frozen=True)
class Compared:
    """One property of the launch, as chosen in the trace and as captured by ncu; ``same`` None: unknown."""

    name: str
    chosen: str | None
    captured: str | None
    same: bool | None


@dataclass(frozen=True)
class Isolation:
    """Whether ncu captured the launch that was chosen; ``index`` is its position in the report, from 0."""

    verdict: Proof
    words: str
    compared: tuple[Compared, ...] = ()
    index: int = 0
    nth: int | None = None
    """Position of the chosen launch among those that match, from 0."""
    matches: int | None = None
    repeated: bool = False
    """The capture was repeated because another configuration was captured first."""


@dataclass(frozen=True)
class Chosen:
    """The launch that the trace says deserves ncu.

    ``first_fits``: the first match of the region has the same name and configuration, so nothing need be
    skipped; ``range`` is the NVTX range that the trace showed, None where it showed none.
    """

    choice: LaunchChoice
    first_fits: bool
    range: str | None = None
    kernels: int = 0
    """Launches that the trace holds."""


@dataclass(frozen=True)
class Run:
    """Everything recorded of a run; what was not known is None."""

    created: str
    version: str
    target: Mapping[str, Any]
    options: Mapping[str, Any]
    tools: Mapping[str, Any] = field(default_factory=dict)
    gpu: Mapping[str, Any] | None = None
    driver: Mapping[str, Any] = field(default_factory=dict)
    git: Mapping[str, Any] | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    clock_control: str | None = None
    """As it was in the end: "none" where clocks could not be locked."""
    cache_control: str | None = None
    steps: tuple[StepRecord, ...] = ()
    launch: Mapping[str, Any] | None = None
    """The launch that was chosen, as in ``ncukit.timeline/1``."""
    isolation: Isolation | None = None
    notes: tuple[str, ...] = ()
    points: tuple[Mapping[str, Any], ...] = ()
    """Of a sweep: parameters and folder of each point."""
    status: Literal["running", "complete", "incomplete", "failed"] = "running"
    error: Mapping[str, Any] | None = None
    seal: str | None = None
    """See `ncukit.run.directory`."""
    schema: str = RUN_SCHEMA

    def step(self, name: str) -> StepRecord | None:
        """Return the record of step ``name``."""
        return next((step for step in self.steps if step.name == name), None)

    def file(self, name: str) -> OutputFile | None:
        """Return the file ``name`` of a finished step."""
        return next((f for step in self.steps for f in step.files if f.name == name), None)

    def as_dict(self) -> dict[str, Any]:
        """Return the run as JSON data."""
        data = asdict(self)
        return {"schema": data.pop("schema"), **data}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the run that ``data`` holds; fields that a later version added are left out.

        Raises:
            KeyError, TypeError: ``data`` is no run.
        """
        known = _known(cls, data)
        known["steps"] = tuple(_step(step) for step in known.get("steps", ()))
        if (proof := known.get("isolation")) is not None:
            rows = tuple(Compared(**_known(Compared, row)) for row in proof["compared"])
            known["isolation"] = Isolation(**{**_known(Isolation, proof), "compared": rows})
        for name in ("notes", "points"):
            known[name] = tuple(known.get(name, ()))
        return cls(**known)


@dataclass(frozen=True)
class Timing:
    """A time without any profiler: durations [s], and everything that says what the time is worth.

    ``timer`` is "cuda-events" (GPU time), "host-synchronised" or "host" (no GPU time), or "process" (a whole
    program by the host's clock).
    """

    timer: str
    n: int
    median: float
    iqr: float
    min: float
    max: float
    samples: tuple[float, ...] = ()
    calls_per_sample: int = 1
    warmup: int | None = None
    settled: bool | None = None
    l2_flush: bool | None = None
    correctness: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    clocks: Mapping[str, Any] = field(default_factory=dict)
    marks: Mapping[str, Any] = field(default_factory=dict)
    device: Mapping[str, Any] | None = None
    model: Mapping[str, Any] | None = None
    frameworks: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    schema: str = TIMING_SCHEMA

    @property
    def is_gpu_time(self) -> bool:
        """Whether the GPU's own clock measured it."""
        return self.timer == "cuda-events"

    def as_dict(self) -> dict[str, Any]:
        """Return the timing as JSON data."""
        data = asdict(self)
        return {"schema": data.pop("schema"), **data}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the timing that ``data`` holds.

        Raises:
            KeyError, TypeError: ``data`` is no timing.
        """
        known = _known(cls, data)
        for name in ("samples", "notes"):
            known[name] = tuple(known.get(name, ()))
        return cls(**known)


def _known(cls: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    return {f.name: data[f.name] for f in fields(cls) if f.name in data}


def _step(data: Mapping[str, Any]) -> StepRecord:
    files = tuple(OutputFile(**_known(OutputFile, file)) for file in data.get("files", ()))
    known = _known(StepRecord, data)
    for name in ("command", "notes"):
        known[name] = tuple(known.get(name, ()))
    return StepRecord(**{**known, "files": files})
