"""What a user can ask of a run, and what ncu collects for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, Literal

from ncukit.errors import UsageError
from ncukit.metrics import Metric, load
from ncukit.record import dataclass

# ---- What a user can ask of a run

Preset = Literal["quick", "standard", "full"]
PRESETS: tuple[Preset, ...] = ("quick", "standard", "full")
TIMEOUT = 1800.0
"""[s] after which a step is stopped, unless the user says otherwise."""


@dataclass(frozen=True)
class ProfileOptions:
    """Everything about a run besides its target; the same for the command line and the library.

    ``params`` holds a value, or several for a sweep, per name; ``timeout`` [s] is for each step; ``env`` are
    variables that children get although they look like secrets; ``tools`` are paths by name (ncu, nsys,
    nvcc, python); only launches inside the NVTX range ``range`` are looked at, where one is named.

    Raises:
        UsageError: a value that does not exist, or options that contradict each other.
    """

    kernel: str | None = None
    gpu_kernel: str | None = None
    params: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    preset: Preset = "standard"
    skip_time: bool = False
    skip_nsys: bool = False
    skip_ncu: bool = False
    skip_check: bool = False
    l2_flush: bool = True
    repeat: int | None = None
    timeout: float = TIMEOUT
    clock_control: Literal["base", "none"] = "base"
    cache_control: Literal["all", "none"] = "all"
    replay_mode: Literal["kernel", "application"] = "kernel"
    graph_profiling: Literal["node", "graph"] = "node"
    allow_collective: bool = False
    range: str | None = None
    arch: str = "native"
    env: tuple[str, ...] = ()
    clean_env: bool = False
    tools: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        allowed: dict[str, tuple[str, ...]] = {
            "preset": PRESETS,
            "clock_control": ("base", "none"),
            "cache_control": ("all", "none"),
            "replay_mode": ("kernel", "application"),
            "graph_profiling": ("node", "graph"),
        }
        for name, values in allowed.items():
            if (given := getattr(self, name)) not in values:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"{option} {given} does not exist", f"there is: {', '.join(values)}")
        if not self.timeout > 0:
            raise UsageError(
                f"a time-out of {self.timeout:g} s ends everything", "give --timeout SECONDS above 0"
            )
        if self.range == "":
            raise UsageError("an NVTX range without a name", "give --range NAME")
        if self.repeat is not None and self.repeat < 1:
            raise UsageError(f"{self.repeat} samples time nothing", "give --repeat 1 or more")
        if self.skip_time and self.skip_nsys and self.skip_ncu:
            raise UsageError("nothing is left to do", "leave out one of --skip-time, --skip-nsys, --skip-ncu")

    @property
    def points(self) -> tuple[dict[str, str], ...]:
        """The parameters of each point of the sweep, the last name fastest; one point without a sweep."""
        found: list[dict[str, str]] = [{}]
        for name, values in self.params.items():
            found = [{**point, name: value} for point in found for value in values]
        return tuple(found)

    def as_dict(self) -> dict[str, Any]:
        """Return the options as JSON data."""
        params = {name: list(values) for name, values in self.params.items()}
        return {**asdict(self), "params": params, "env": list(self.env), "tools": dict(self.tools)}

    def words(self) -> list[str]:
        """Return the words of the command line that ask for the same.

        >>> ProfileOptions(kernel="gemm", params={"n": ("8", "16")}, l2_flush=False, skip_ncu=True).words()
        ['--kernel', 'gemm', '--param', 'n=8,16', '--skip-ncu', '--no-l2-flush']
        """
        found: list[str] = []
        plain = type(self)()
        for name in self.__dataclass_fields__:
            option, value = f"--{name.replace('_', '-')}", getattr(self, name)
            if name == "params":
                found += [
                    w for key, values in value.items() for w in ("--param", f"{key}={','.join(values)}")
                ]
            elif name == "tools":
                found += [w for tool, path in value.items() for w in (f"--{tool}", path)]
            elif name == "env":
                found += [w for variable in value for w in (option, variable)]
            elif value == getattr(plain, name):
                continue
            elif isinstance(value, bool):
                found.append(option if value else f"--no-{option[2:]}")
            else:
                found += [option, str(value)]
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ProfileOptions:
        """Return the options that ``data`` (from `as_dict`) holds; what it lacks has its default."""
        known = {name: value for name, value in data.items() if name in cls.__dataclass_fields__}
        known["params"] = {name: tuple(values) for name, values in known.get("params", {}).items()}
        known["env"] = tuple(known.get("env", ()))
        return cls(**known)


def sweep(pairs: list[str]) -> dict[str, tuple[str, ...]]:
    """Return ``["m=1024,2048", "k=64"]`` as names with their values; commas inside brackets do not part.

    Raises:
        UsageError: a pair is not NAME=VALUE, or a name comes twice.

    >>> sweep(["m=1024,2048", "shape=(1,2)"])
    {'m': ('1024', '2048'), 'shape': ('(1,2)',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip()
        values = tuple(_split(text))
        if not equals or not name.isidentifier() or not all(values):
            raise UsageError(
                f"--param {pair} is not NAME=VALUE", "write --param m=4096, or m=1024,2048 to sweep"
            )
        if name in found:
            raise UsageError(f"--param {name} is given twice", f"write --param {name}=A,B to sweep")
        found[name] = values
    return found


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def script_path(text: str) -> Path | None:
    """Return the Python or CUDA source that ``text`` names by its suffix, None for a command."""
    return Path(text) if text.endswith((".py", ".cu")) else None


# ---- What ncu collects: sections by preset, and by name the counters that this chip has and sections lack

QUICK = ("SpeedOfLight", "SpeedOfLight_RooflineChart", "LaunchStats", "Occupancy")
STANDARD = (
    *QUICK,
    *("ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Chart"),
    *("MemoryWorkloadAnalysis_Tables", "SchedulerStats", "WarpStateStats", "InstructionStats"),
    *("SourceCounters", "WorkloadDistribution"),
)
RANKS = ("LaunchStats",)
"""For one rank of many: a single pass, for the others wait while a pass is replayed."""
SINGLE_PASS = ("gpu__time_duration.sum",)

PASSES = {"quick": 15, "standard": 40, "full": 50, "ranks": 1}
"""Replay passes that these take on GPUs of 2018 to 2025: the upper end of what reports of them show."""
_ROOFLINE = "SpeedOfLight_Hierarchical"
"""The sections for these four charts cost many passes; the counters that are needed of them cost few."""
_ALWAYS = ("device__", "launch__", "gpu__", "profiler__", "sass__", "smsp__pcsamp")
"""Raw metrics that come without being asked for, or that only a section brings."""

PASS_COST = 0.02
"""[s] that a pass of a short kernel takes, with saving and restoring what it writes."""
COSTLY = 120.0
"""[s] from which the estimate is worth a line before the run."""


@dataclass(frozen=True)
class Collected:
    """What ncu is asked for; ``passes`` is an estimate for each launch."""

    set: str | None
    sections: tuple[str, ...]
    metrics: tuple[str, ...]
    passes: int
    note: str = ""


def collected(
    preset: Preset,
    *,
    known_sections: Collection[str] = (),
    known_metrics: Collection[str] = (),
    cc: tuple[int, int] | None = None,
    ranks: int = 1,
) -> Collected:
    """Return what to collect; what is known of the tool and the chip leaves out what they lack.

    Without ``known_metrics`` no counter is named: a name that the chip does not have ends the whole run.

    >>> collected("full").set, collected("quick").sections[0], collected("full", ranks=4).passes
    ('full', 'SpeedOfLight', 1)
    """
    if ranks > 1:
        text = f"one of {ranks} ranks: a single pass, for the others wait while a kernel is replayed"
        return Collected(None, _known(RANKS, known_sections), SINGLE_PASS, PASSES["ranks"], text)
    named = tuple(roofline_counters(known_metrics, cc)) if known_metrics else ()
    if preset == "full":
        return Collected("full", (), named, PASSES[preset])
    sections = QUICK if preset == "quick" else STANDARD
    return Collected(None, _known(sections, known_sections), named, PASSES[preset])


def roofline_counters(known: Collection[str], cc: tuple[int, int] | None) -> Iterable[str]:
    """Yield the raw counters of the roofline that ``known`` (base names) has and no cheap section brings.

    For each neutral metric its first source that is valid on ``cc`` and complete on the chip is taken.
    """
    number = None if cc is None else cc[0] * 10 + cc[1]
    found: dict[str, None] = {}
    for metric in load().metrics.values():
        if metric.family == "roofline" and metric.collected_by.startswith(_ROOFLINE):
            found |= dict.fromkeys(_first_complete(metric, known, number))
    return tuple(sorted(name for name in found if not name.startswith(_ALWAYS)))


def estimate(passes: int, launches: int, kernel: float | None, program: float | None) -> float:
    """Return about how long ncu will take [s]; ``kernel`` [s] is one launch, ``program`` [s] all the rest.

    >>> round(estimate(40, 1, 0.001, 3.0), 2)
    3.84
    """
    return (program or 0.0) + passes * launches * ((kernel or 0.0) + PASS_COST)


def _first_complete(metric: Metric, known: Collection[str], cc: int | None) -> tuple[str, ...]:
    for source in metric.sources:
        expression = source.expression
        if not source.valid_on(cc) or not expression.raws:
            continue
        raws = [name for name in sorted(expression.raws) if not name.startswith(_ALWAYS)]
        if raws and all(_base(name) in known for name in raws):
            extra = [name for name in sorted(expression.optional) if _base(name) in known]
            return (*raws, *extra)
    return ()


def _base(name: str) -> str:
    return name.partition(".")[0]


def _known(sections: tuple[str, ...], known: Collection[str]) -> tuple[str, ...]:
    return tuple(section for section in sections if not known or section in known)
