"""The numbers and words that claims and experiments are made of, and the TOML files that hold them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ncukit.judge.elimination import DEPENDENCIES, SYNC_STATES, by_percent, of_call
from ncukit.judge.facts import Call, Facts
from ncukit.judge.occupancy import AGREE, waves
from ncukit.judge.shares import COMPUTE_UNITS, states
from ncukit.media import counted, listed
from ncukit.model.diagnosis import Basis
from ncukit.model.shares import Share
from ncukit.quantity import brief, plain
from ncukit.record import dataclass

# ---- Entries of a TOML file, each parsed when it is asked for: a diagnosis needs few of them

_ENTRY = re.compile(r"^\[(?!\[)", re.MULTILINE)
_NAME = re.compile(r'\["?([^\]"\n]+)"?\]')


class Worded(Mapping[str, Mapping[str, Any]]):
    r"""The tables of ``text`` by name; what an entry holds below it (``[[name.experiment]]``) follows it.

    Raises:
        tomllib.TOMLDecodeError: when a damaged entry is asked for.

    >>> Worded("[a]\nx = 1\n[[a.b]]\ny = 2\n[c]\nz = 3")["a"]
    {'x': 1, 'b': [{'y': 2}]}
    """

    def __init__(self, text: str) -> None:
        starts = [found.start() for found in _ENTRY.finditer(text)]
        parts = [text[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
        self._texts = {_name(part): part for part in parts}
        self._parsed: dict[str, Mapping[str, Any]] = {}

    @classmethod
    def of(cls, file: Path) -> Worded:
        """Return the entries of ``file``."""
        return cls(file.read_text(encoding="utf-8"))

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        if name not in self._parsed:
            self._parsed[name] = tomllib.loads(self._texts[name])[name]
        return self._parsed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _name(part: str) -> str:
    found = _NAME.match(part)
    if found is None:
        raise ValueError(f"no name of an entry: {part[:40]!r}")
    return found[1]


# ---- The numbers and words that claims, ledger rows and experiments are made of

CONFLICT = 1.5
"""Wavefronts over the ideal from which a claim speaks of bank conflicts."""

PATTERN = 5.0
"""[%] Excess wavefronts below which conflicts are arbitration, not the address pattern."""

FULL_TIME = 95.0
"""[%] SM activity from which active and elapsed percentages need no telling apart."""

FAR = 8.0
"""Distance of the runner-up from which it is no bound: something unmeasured limits before."""

ROOM = 0.5
"""Waves below which working SMs have room for at least as many blocks again."""

LISTED = 0.5
"""[%] of warp latency from which a state is named among those that make up a sum."""

MANY = 30.0
"""[%] of the instructions from which a kind of them is said to fill the issue slots."""

KIND = 10.0
"""[%] of the instructions from which a kind of them is named."""

KINDS = {
    "integer": "integer",
    "fp32": "FP32",
    "fp16": "packed half",
    "fp64": "FP64",
    "conversion": "conversions",
    "global_memory": "global memory",
    "shared_memory": "shared memory",
}
"""Kinds of instructions, as the catalog and as sentences call them."""

_SENTENCE = re.compile(r"(?<=[.;])\s+")
_PLACE = re.compile(r"\{([\w-]+)\}")


@dataclass(frozen=True)
class Quote:
    """A number that a row quotes: its metric, the value shown, and ``condition``, which picks the row."""

    metric: str
    value: float
    unit: str
    condition: float
    share: Share | None = None
    """The unit whose share of peak the value is."""


class Unknown(Exception):
    """A placeholder that this launch cannot fill."""


class Wording:
    """Fills the placeholders of `data/verdicts.toml` for one launch and one call."""

    def __init__(self, facts: Facts, call: Call, gain: float | None = None) -> None:
        self.facts, self.call, self.gain = facts, call, gain
        self.ranked = by_percent(facts.shares)
        self.share = call.share
        self.leaders = None if call.share is None else of_call(facts.shares, call)
        self.runner = None if self.leaders is None else self.leaders.next
        self.waves = waves(facts)

    # ------------------------------------------------------------------ quotes

    def quote(self, id: str) -> Quote | None:
        """Return the number behind ``id``, a metric or one of the ``@`` names; None when unknown."""
        if id.startswith("@"):
            return _QUOTES[id[1:]](self)
        value = self.facts.number(id)
        return None if value is None else Quote(id, value, self._unit(id), value)

    def _unit(self, id: str) -> str:
        kernel = self.facts.kernel
        found = kernel.metrics.get(id) or kernel.signals.get(id)
        return "" if found is None else found.unit

    def _of(self, share: Share | None, condition: float | None = None) -> Quote | None:
        if share is None:
            return None
        return Quote(share.metric, share.value, "%", share.percent if condition is None else condition, share)

    def lead(self) -> float | None:
        """Return how far the runner-up is behind [points]."""
        if self.share is None or self.runner is None:
            return None
        return self.share.percent - self.runner.percent

    def shown_lead(self) -> float | None:
        """Return the difference of the two numbers shown [points]; None where it is no lead.

        Tensor operations are shown of the whole time and judged of the time with work.
        """
        if self.share is None or self.runner is None:
            return None
        lead = self.share.value - self.runner.value
        return lead if lead >= 0 else None

    def states(self, *names: str) -> Quote | None:
        """Return the share [%] of these stall states, quoted by the largest of them."""
        waits = self.facts.waits
        if waits is None or not waits.matter:
            return None
        top = max(names, key=lambda s: waits.of(s))
        total = waits.of(*names)
        return Quote(waits.metric(top), total, "%", total)

    def top_state(self) -> tuple[str, float] | None:
        """Return the state in which most of the latency goes, and its share [%]."""
        waits = self.facts.waits
        return None if waits is None or not waits.matter else waits.top()

    # ------------------------------------------------------------------ words

    def fill(self, text: str) -> str:
        """Return ``text`` with its placeholders filled.

        Raises:
            Unknown: one of them cannot be filled.
        """
        return _PLACE.sub(lambda match: self.word(match.group(1)), text)

    def sentences(self, text: str, otherwise: str = "") -> str:
        """Return the sentences of ``text`` that can be filled, or ``otherwise`` when there is none."""
        filled = []
        for sentence in _SENTENCE.split(text):
            try:
                filled.append(self.fill(sentence))
            except Unknown:
                continue
        return " ".join(filled) if filled else otherwise

    def word(self, key: str) -> str:
        """Return what placeholder ``key`` stands for, or raise Unknown."""
        if key in self.call.words:
            return self.call.words[key]
        if key in _WORDS:
            word = _WORDS[key](self)
            if word is None:
                raise Unknown(key)
            return word
        kernel = self.facts.kernel
        value = kernel.metrics.get(key) or kernel.signals.get(key)
        if value is None or value.number is None:
            raise Unknown(key)
        return brief(value.number, value.unit)

    def conflict(self) -> tuple[str, str] | None:
        """Return (ways, direction) of the worse shared-memory conflict that an address pattern causes."""
        pattern = self.facts.number("shared_excess_share_pct")
        if pattern is not None and pattern < PATTERN:
            return None
        ways = {d: self.facts.number(f"shared_{d}_ways") or 1.0 for d in ("load", "store")}
        worse = max(ways, key=lambda d: ways[d])
        return (f"{ways[worse]:.0f}", f"{worse}s") if ways[worse] >= CONFLICT else None


def _percent(share: Share | None) -> str | None:
    return None if share is None else brief(share.percent, "%")


def _by_fullness(full: str, otherwise: str) -> Callable[[Wording], str | None]:
    """Return ``full`` for a limit that is one, ``otherwise`` for what only is nearest to its own."""

    def word(w: Wording) -> str | None:
        shares = (w.share, *w.call.others)
        return full if any(share is not None and share.full for share in shares) else otherwise

    return word


def _named(share: Share | None) -> str | None:
    return None if share is None else share.name


def basis(facts: Facts, share: Share) -> Basis | None:
    """Return which time the quoted number of a unit is a share of; None where both are the same."""
    if share.unit.scope != "sm" or not facts.below("sm_active_pct", FULL_TIME):
        return None
    return "active" if share.value == share.percent else "elapsed"


def _basis(w: Wording) -> str:
    """Return the basis of the limit in words, with its number on the other basis where that differs."""
    counted = None if w.share is None else basis(w.facts, w.share)
    if w.share is None or counted is None:
        return ""
    if counted == "active":
        return ", while an SM has work"
    if w.share.unit.id == "tensor" or _percent(w.share) == brief(w.share.value, "%"):
        return ""
    return f", of the whole time; {_percent(w.share)} while an SM has work"


def _quoted_limit(w: Wording) -> str | None:
    """Return the number that the evidence quotes of the limit."""
    return None if w.share is None else brief(w.share.value, "%")


def _bound(w: Wording) -> str | None:
    """Return how many times as fast the launch is once the runner-up is as full as it gets."""
    if w.share is None or w.runner is None or not w.runner.elapsed:
        return None
    factor = w.runner.unit.reach / w.runner.elapsed
    return None if factor > FAR else plain(max(1.0, factor))


def _reach(w: Wording) -> str | None:
    """Return a sentence about what the best kernels get out of the runner-up, where it bounds the gain."""
    if w.runner is None or w.runner.unit.reach >= 100 or _bound(w) is None:
        return None
    return f"The best kernels reach {brief(w.runner.unit.reach, '%')} of that peak."


def _state(w: Wording) -> str | None:
    top = w.top_state()
    return None if top is None else states()[top[0]][1]


def _waited(w: Wording) -> Quote | None:
    return w.states(*w.share.unit.waits) if w.share is not None and w.share.unit.waits else None


def _wait(w: Wording) -> str | None:
    waits = w.facts.waits
    if waits is None or w.share is None or not w.share.unit.waits:
        return None
    held = sorted(((waits.of(s), states()[s][1]) for s in w.share.unit.waits), reverse=True)
    shown = [(share, raw) for share, raw in held if share >= LISTED] or held[:1]
    if len(shown) == 1:
        return f"{shown[0][1]}, the state that this unit causes"
    named = [f"{raw} {brief(share, '%')}" for share, raw in shown[:3]]
    return f"waiting that this unit causes: {listed(named)}"


def _top_wait(w: Wording) -> Quote | None:
    top = w.top_state()
    if top is None or w.facts.waits is None:
        return None
    return Quote(w.facts.waits.metric(top[0]), top[1], "%", top[1])


def _number(w: Wording, id: str, scale: Callable[[float], float], unit: str = "") -> str | None:
    value = w.facts.number(id)
    return None if not value else brief(scale(value), unit)


def _other(w: Wording, position: int) -> Share | None:
    return w.call.others[position] if len(w.call.others) > position else None


def _quoted(quote: Quote | None) -> str | None:
    return None if quote is None else brief(quote.value, quote.unit)


def _lead(w: Wording) -> Quote | None:
    return w._of(w.runner, w.lead())


def _resident(w: Wording) -> float | None:
    """Return how many blocks fit on an SM, for each that is there; of SMs with work."""
    waves, blocks = w.facts.number("waves_per_sm"), w.facts.number("blocks_per_sm")
    return None if not waves or not blocks else min(1.0, blocks) / waves


def _working_sm(w: Wording) -> Quote | None:
    """Return the issue slots of an SM with work, judged by how busy as many blocks as fit would keep it."""
    issue = w.facts.number("issue_busy_pct")
    if issue is None:
        return None
    inside = [share.percent for share in w.ranked if share.unit.scope == "sm"]
    return Quote("issue_busy_pct", issue, "%", max(issue, *inside, 0.0) * max(1.0, _resident(w) or 1.0))


def _wave_bound(w: Wording) -> str | None:
    """Return how many times the blocks fit at once, where the SMs with work have room for them."""
    if any(share.full for share in w.ranked):
        return None
    return _number(w, "waves_per_sm", lambda n: 1 / n) if w.facts.below("waves_per_sm", ROOM) else None


def _pipe(w: Wording) -> Share | None:
    """Return the busiest pipe of arithmetic or of loads and stores."""
    return next((share for share in w.ranked if share.unit.id in (*COMPUTE_UNITS, "lsu")), None)


def _mix(w: Wording) -> str:
    """Return what most instructions are, as the end of a sentence; nothing where that was not counted."""
    shares = {kind: w.facts.number(f"inst_mix_{id}_pct") for id, kind in KINDS.items()}
    known = sorted(((n, kind) for kind, n in shares.items() if n is not None and n >= KIND), reverse=True)[:3]
    if not known:
        return ""
    parts = [f"{kind} {brief(n, '%')}" for n, kind in known]
    return f" ({listed(parts)} of the instructions)"


def _expected(w: Wording) -> str | None:
    """Return how active a mean SM would be with equal blocks [%]: between two bounds where they differ."""
    if w.waves is None:
        return None
    low, high = sorted((w.waves.in_waves, w.waves.in_rounds))
    return brief(high, "%") if high - low < AGREE else f"{plain(low)} to {brief(high, '%')}"


_QUOTES: dict[str, Callable[[Wording], Quote | None]] = {
    "limit": lambda w: w._of(w.share),
    "limit-any": lambda w: w._of(w.ranked[0] if w.ranked else None),
    "lead": _lead,
    "second": lambda w: w._of(_other(w, 1)),
    "third": lambda w: w._of(_other(w, 2)),
    "waits": _waited,
    "top": lambda w: w._of(w.ranked[0] if w.ranked else None),
    "top-wait": _top_wait,
    "sync": lambda w: w.states(*SYNC_STATES),
    "working-sm": _working_sm,
    "pipe": lambda w: w._of(_pipe(w)),
}

_WORDS: dict[str, Callable[[Wording], str | None]] = {
    "name": lambda w: _named(w.share),
    "is_full": _by_fullness("is full", "is nearest to full"),
    "are_full": _by_fullness("are full", "are nearest to full"),
    "fill": _by_fullness("fill", "come nearest to filling"),
    "fills": _by_fullness("fills", "comes nearest to filling"),
    "mix": _mix,
    "pipe": lambda w: _named(_pipe(w)),
    "integer": lambda w: "Integer instructions" if w.facts.at_least("inst_mix_integer_pct", MANY) else None,
    "label": lambda w: None if w.share is None else w.share.unit.label,
    "limit": _quoted_limit,
    "pipe_unknown": lambda w: (
        "; which pipe was not collected" if w.share and w.share.unit.id == "issue" else ""
    ),
    "limit_value": lambda w: (
        None if w.share is None or w.share.value == w.share.percent else brief(w.share.value, "%")
    ),
    "basis": _basis,
    "runner": lambda w: _named(w.runner),
    "which_next": lambda w: None if w.leaders is None else w.leaders.which,
    "lead": lambda w: None if (lead := w.shown_lead()) is None else plain(lead),
    "bound": _bound,
    "reach": _reach,
    "second": lambda w: _named(_other(w, 1)),
    "third": lambda w: _named(_other(w, 2)),
    "shares": lambda w: listed([f"{s.name} {brief(s.percent, '%')}" for s in w.call.others[:3]]) or None,
    "wait": _wait,
    "top": lambda w: _percent(w.ranked[0] if w.ranked else None),
    "top_name": lambda w: _named(w.ranked[0] if w.ranked else None),
    "top_wait": _state,
    "top_wait_pct": lambda w: _quoted(_top_wait(w)),
    "sync": lambda w: _quoted(w.states(*SYNC_STATES)),
    "dependency": lambda w: _quoted(w.states(*DEPENDENCIES)),
    "ways": lambda w: None if (hit := w.conflict()) is None else hit[0],
    "direction": lambda w: None if (hit := w.conflict()) is None else hit[1],
    "gain": lambda w: None if w.gain is None else brief(w.gain, "%"),
    "blocks": lambda w: None if (n := w.facts.number("grid_size")) is None else counted(n, "block"),
    "leftover": lambda w: None if w.waves is None else counted(w.waves.leftover, "block"),
    "expected": _expected,
    "wave_bound": _wave_bound,
    "grid_bound": lambda w: _number(w, "blocks_per_sm", lambda n: 1 / n),
    "blocks_in_a_wave": lambda w: (
        None
        if not (waves := w.facts.number("waves_per_sm")) or not (blocks := w.facts.number("grid_size"))
        else f"{blocks / waves:.0f}"
    ),
    "whole_waves": lambda w: _number(w, "waves_per_sm", lambda n: float(-(-n // 1))),
    "idle": lambda w: _number(w, "sm_active_pct", lambda n: 100 - n, "%"),
}
