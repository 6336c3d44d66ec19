"""One launch: as the report holds it, and in neutral metrics with their evidence."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from ncukit.model.experiment import Effect
from ncukit.model.notebook import Shown
from ncukit.record import dataclass

# ---- One neutral metric of one launch, with its evidence

Quality = Literal["exact", "derived", "estimate"]
Lack = Literal["missing", "absent", "undefined", "failed"]
"""Why there is no value: not collected, not on this GPU, nothing to divide by or no number, a failed pass."""
Status = Literal["known", "unreliable", "missing", "absent", "undefined", "failed"]


@dataclass(frozen=True)
class Value:
    """A neutral metric: a number or string with unit, quality and raw counters, or unknown with a reason.

    ``value`` is None exactly when the metric is unknown; ``reason`` then says why.  A value outside the
    metric's range stays as it is, with ``reliable`` False and the reason: no rule may use it.  What kind of
    reason it is, ``lack`` and ``noisy`` say, for the reason is only for people.

    >>> Value("dram_bytes", None, "byte", reason="not collected: MemoryWorkloadAnalysis").known
    False
    """

    id: str
    value: float | int | str | None
    unit: str
    quality: Quality | None = None
    sources: tuple[str, ...] = ()
    reason: str | None = None
    reliable: bool = True
    formula: str | None = None
    lack: Lack = "missing"
    """Of what is unknown: of which kind the reason is."""
    noisy: bool = False
    """Of what is not reliable: whether the launch was too short for it."""
    short: str = ""
    """Of what is unknown: the reason without its particulars, for a cell of a table; "" where it has none."""
    over: str = ""
    """Of a ratio that is undefined: what was divided by and is 0, as the catalog writes it."""

    @property
    def brief(self) -> str:
        """Why it is unknown, in few words.

        >>> Value("x", None, "", reason="not collected: section Occupancy", short="not collected").brief
        'not collected'
        """
        return self.short or self.reason or "not collected"

    @property
    def known(self) -> bool:
        """Whether there is a value at all, reliable or not."""
        return self.value is not None

    @property
    def status(self) -> Status:
        """Whether the value is known and may be used, else of which kind the reason is.

        >>> Value("x", None, "", lack="absent").status, Value("x", 1, "", reliable=False).status
        ('absent', 'unreliable')
        """
        return self.lack if self.value is None else "known" if self.reliable else "unreliable"

    @property
    def number(self) -> float | None:
        """The value as a number that a rule may use: None when unknown, unreliable or a string."""
        value = self.value
        return value if self.reliable and value is not None and not isinstance(value, str) else None

    def as_dict(self) -> dict[str, object]:
        """Return the pinned JSON form (schema ``ncukit.kernel/1``)."""
        return {
            "value": self.value,
            "unit": self.unit,
            "quality": self.quality,
            "sources": list(self.sources),
            "reason": self.reason,
            "status": self.status,
        }


_STORED: tuple[tuple[str, Lack], ...] = (
    ("not on this GPU", "absent"),
    ("undefined", "undefined"),
    ("not a number", "undefined"),
    ("failed pass", "failed"),
)
_PARTICULARS = re.compile(r"[:,(]")
_OVER = re.compile(r"undefined: (.*) is 0")


def stored(id: str, unit: str, reason: str) -> Value:
    """Return the unknown value that a baseline or a dataset holds: both store the words of its reason alone.

    >>> found = stored("x", "%", "undefined: l1tex__t_requests.sum is 0")
    >>> found.status, found.short, found.over
    ('undefined', 'undefined', 'l1tex__t_requests.sum')
    """
    lack: Lack = next((lack for start, lack in _STORED if reason.startswith(start)), "missing")
    over = _OVER.fullmatch(reason)
    short = _PARTICULARS.split(reason)[0].strip()
    return Value(id, None, unit, reason=reason, lack=lack, short=short, over=over[1] if over else "")


def stored_noisy(reason: str | None) -> bool:
    """Return whether a stored reason for doubt is that the launch was too short.

    >>> stored_noisy("unreliable: counters of different passes, and a kernel under 20 µs")
    True
    """
    return reason is not None and "passes" in reason


# ---- What to read of a report: all that the reading process needs to know


@dataclass(frozen=True)
class Wanted:
    """What to read of each launch; ``metrics`` None means every one.

    ``breakdowns`` are string metrics that list other metrics: those are read as well.
    ``sass`` "half" reads SASS only for launches whose opcode counts show packed-half instructions.
    ``code`` reads what is known by instruction: SASS, lines, and the instances of ``by_pc`` (raw names; one
    that ends in "*" stands for all that begin so).  ``series`` are counters of PM sampling, without the name
    of their pass.
    """

    metrics: frozenset[str] | None = frozenset()
    instances: frozenset[str] = frozenset()
    breakdowns: frozenset[str] = frozenset()
    units: bool = False
    sections: bool = False
    rules: bool = False
    nvtx: bool = False
    sources: bool = False
    sass: Literal["none", "half", "all"] = "none"
    code: bool = False
    by_pc: frozenset[str] = frozenset()
    series: frozenset[str] = frozenset()


# ---- An effect in words and numbers that a sentence can hold

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


# ---- One launch as the report holds it: native names, base units, nothing interpreted

RawValue = float | int | str
Instance = tuple[int | str | float, float | int | str]
"""(correlation id, value): a PC, an opcode or a time stamp, and what was counted there."""


@dataclass(frozen=True)
class RuleResult:
    """What one of ncu's own rules wrote into the report.

    ``speedup`` [%] is ncu's estimate; ``speedup_kind`` says of what: ``global`` (the whole kernel) or
    ``local`` (the section's own metric).  The two must never share a column.
    """

    id: str
    name: str
    section: str
    messages: tuple[tuple[str, str, str], ...]
    """(kind, title, text); kind is one of ok, optimization, warning, error, none."""
    speedup: float | None = None
    speedup_kind: Literal["global", "local"] | None = None
    focus: tuple[tuple[str, float, str], ...] = ()
    """(raw metric, value, information) that the rule looked at."""


@dataclass(frozen=True)
class Code:
    """The counted instructions of a kernel in address order; launches of the same code share one.

    ``sass`` is empty where the report holds no text.  ``lines`` are (position in ``files``, line number) by
    instruction, None without line information.  ``texts`` holds, by position in ``files``, the lines that
    the report carries, as far as they lie near a counted instruction.
    """

    pcs: tuple[int, ...]
    sass: tuple[str, ...]
    files: tuple[str, ...] = ()
    lines: tuple[tuple[int, int] | None, ...] = ()
    texts: Mapping[int, Mapping[int, str]] = field(default_factory=dict)

    @functools.cached_property
    def text(self) -> Mapping[int, str] | None:
        """PC -> SASS text; None when the report holds none."""
        return dict(zip(self.pcs, self.sass, strict=True)) if any(self.sass) else None


@dataclass(frozen=True)
class RawKernel:
    """One result of a report.

    ``metrics`` holds what was asked for *and* is in the report, as int, float (NaN kept) or str.
    """

    index: int
    function: str
    demangled: str
    mangled: str
    workload: str = "kernel"
    origin: Literal["report", "csv"] = "report"
    metrics: Mapping[str, RawValue] = field(default_factory=dict)
    instances: Mapping[str, tuple[Instance, ...]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    sections: tuple[str, ...] = ()
    rules: tuple[RuleResult, ...] = ()
    nvtx: tuple[str, ...] = ()
    source_files: Mapping[str, str] = field(default_factory=dict)
    sass: Mapping[int, str] | None = None
    """PC -> SASS text; None when it was not read or is not in the report."""
    lines: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    """PC -> (file, line), where the program was built with line information."""
    code: Code | None = None
    by_pc: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Raw counter -> {PC: what was counted there}; zeros are left out."""
    functions: tuple[int, ...] = ()
    """PCs at which functions of the kernel begin."""
    series: Mapping[str, tuple[tuple[int, ...], tuple[float, ...]]] = field(default_factory=dict)
    """Raw name -> (time stamps [ns], values) of PM sampling."""

    def __repr__(self) -> str:
        return f"<RawKernel {self.function}, launch {self.index + 1}: {len(self.metrics)} counters>"


# ---- What a report says about how it was made


@dataclass(frozen=True)
class Recorded:
    """What a file says about how it was made; None where it does not.

    ``command`` is the command line of ncu; ``clock_control`` and ``cache_control`` are those of the command,
    or ncu's defaults where it names none.
    """

    ncu: str | None = None
    driver: str | None = None
    cuda: str | None = None
    command: str | None = None
    clock_control: str | None = None
    cache_control: str | None = None
    git: str | None = None
    ranks: int | None = None
    """Processes that ran the program together."""


# ---- Values over the time of a launch, as PM sampling records them


@dataclass(frozen=True)
class Series:
    """One counter sampled at intervals: ``times`` [s] from its first sample, ``values`` [``unit``].

    ``raw`` is the counter's name in the report, ``label`` says what it is.  Sampling happens in passes of its
    own, so series are never compared number by number with counters of the launch.
    """

    id: str
    label: str
    unit: str
    raw: str
    times: tuple[float, ...]
    values: tuple[float, ...]


SETUP = re.compile(
    r"(?i)^(?:warm_?(?:ing)?_?up|init(?:_|iali[sz]e|array|data|matri|vec)|fill(?:_|Kernel|$)|memset|"
    r"distribution_elementwise|(?:cu)?rand(?:om_|om$|_|init)|generate_seed|gen_sequenced|seed_)"
)
FILLS = re.compile(r"FillFunctor|fill_kernel|curand_|(?:uniform|normal)_and_transform")
"""Names of kernels that prepare the input: those of torch, cuRAND and thrust, and what people call theirs."""


@functools.lru_cache(maxsize=256)
def _role(name: str, demangled: str) -> Literal["main", "setup"]:
    return "setup" if SETUP.search(name) or FILLS.search(demangled) else "main"


# ---- One launch in neutral metrics


@dataclass(frozen=True)
class Kernel(Shown):
    """One launch, translated.

    ``metrics`` holds every id of the catalog; ``signals`` holds what only the rules need (same form);
    ``breakdowns`` holds, per neutral metric that is a maximum, its members as (raw name, percent).
    A failed launch keeps its device and launch values; everything else of it is unknown.

    >>> from ncukit.model import RawKernel
    >>> k = Kernel("a.ncu-rep", RawKernel(0, "f", "f(int)", "_Z1fi"), {"x": Value("x", 3, "inst")})
    >>> k.number("x"), k.number("y"), k.name
    (3, None, 'f')
    """

    file: str
    raw: RawKernel
    metrics: Mapping[str, Value]
    signals: Mapping[str, Value] = field(default_factory=dict)
    breakdowns: Mapping[str, tuple[tuple[str, float], ...]] = field(default_factory=dict)
    failed: str | None = None
    """Why the launch has no valid measurement; None for a good one."""

    def __repr__(self) -> str:
        known = sum(value.known for value in self.metrics.values())
        gpu = f" on {self.gpu}" if self.gpu else ""
        return f"<Kernel {self.name}{gpu}, launch {self.index + 1}: {known} of {len(self.metrics)} metrics>"

    @property
    def index(self) -> int:
        """Position in the report, from 0."""
        return self.raw.index

    @property
    def name(self) -> str:
        """Function name without template arguments and parameters."""
        return self.raw.function

    @property
    def demangled(self) -> str:
        """Full demangled name."""
        return self.raw.demangled

    @property
    def role(self) -> Literal["main", "setup"]:
        """Whether it prepares data, as its name says (random numbers, fills, warm-up).

        >>> from ncukit.model import RawKernel
        >>> Kernel("a.ncu-rep", RawKernel(0, "warm_up_kernel", "warm_up_kernel()", ""), {}).role
        'setup'
        """
        return _role(self.raw.function, self.raw.demangled)

    @property
    def gpu(self) -> str | None:
        """Marketing name of the device."""
        return self._text("gpu_name")

    @property
    def compute_capability(self) -> str | None:
        """Compute capability as NVIDIA writes it: "8.6", "10.0"."""
        cc = self.number("compute_capability")
        return None if cc is None else f"{int(cc) // 10}.{int(cc) % 10}"

    def number(self, id: str) -> float | None:
        """Return metric or signal ``id`` as a number that a rule may use, else None."""
        value = self.metrics.get(id) or self.signals.get(id)
        return None if value is None else value.number

    def _text(self, id: str) -> str | None:
        value = self.metrics.get(id)
        return value.value if value is not None and isinstance(value.value, str) else None
