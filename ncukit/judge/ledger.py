"""Evidence for and against a call, and the facts about a launch that its diagnosis keeps."""

from __future__ import annotations

import functools
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from ncukit.judge.facts import Call, Facts
from ncukit.judge.wording import Unknown, Worded, Wording, basis
from ncukit.media import word
from ncukit.model import Evidence
from ncukit.model.diagnosis import Confidence, LaunchFacts
from ncukit.record import dataclass
from ncukit.run.tools.names import same_again

if TYPE_CHECKING:
    from ncukit.model import Kernel
    from ncukit.model.kernel import Series
    from ncukit.model.shares import Leaders, MemoryLinks, Occupancy, OccupancyCurve, Shares, Split
    from ncukit.model.source import SourceView


# ---- From a call to evidence for and against, confidence, experiment, worded by ``data/verdicts.toml``

DATA = Path(__file__).resolve().parent / "data"
PROGRAM = "./your_program"

NEEDED = {"high": 3, "medium": 2}
"""Independent measurements that must agree for a confidence."""

EXPECT_NOTHING = "No other unit is near its limit: the gain is set by how much of this work goes away."
"""What to expect where the runner-up gives no bound."""

_RANK: tuple[Confidence, ...] = ("low", "medium", "high")


@functools.cache
def entries() -> Mapping[str, Mapping[str, Any]]:
    """Return the entries of ``data/verdicts.toml`` by name."""
    return Worded.of(DATA / "verdicts.toml")


@dataclass(frozen=True)
class Ledger:
    """Evidence for and against, and how much of it is independent, or speaks against the verdict."""

    supporting: tuple[Evidence, ...]
    against: tuple[Evidence, ...]
    independent: int
    contradictions: int

    def confidence(self, cap: Confidence) -> Confidence:
        """Return high for three independent measurements without contradiction, medium for two, else low."""
        if self.independent >= NEEDED["high"] and not self.contradictions:
            found: Confidence = "high"
        else:
            found = "medium" if self.independent >= NEEDED["medium"] else "low"
        return min(found, cap, key=_RANK.index)


def ledger(call: Call, wording: Wording) -> Ledger:
    """Return the rows of ``call``'s entry that this launch can fill."""
    supporting: dict[str, Evidence] = {}
    against: dict[str, Evidence] = {}
    independent = contradictions = 0
    for row in _rows(call.entry, "for"):
        if (quoted := _row(row, wording, row.get("text"))) and quoted.metric not in supporting:
            supporting[quoted.metric] = quoted
            independent += row.get("counts", True)
    for quoted, opened in counter_evidence(_rows(call.entry, "against"), wording):
        if quoted.metric not in supporting and quoted.metric not in against:
            against[quoted.metric] = quoted
            contradictions += opened
    return Ledger(tuple(supporting.values()), tuple(against.values()), independent, contradictions)


def counter_evidence(rows: Iterable[Mapping[str, Any]], wording: Wording) -> Iterator[tuple[Evidence, bool]]:
    """Yield what this launch says to each row, and whether that speaks against the conclusion."""
    for row in rows:
        opened = _open(row, wording)
        quoted = _row(row, wording, row.get("open") if opened else row.get("text"))
        if quoted is not None:
            yield quoted, opened


def claim(call: Call, wording: Wording) -> str:
    """Return the first claim of the entry whose placeholders are all known, else class and limiter."""
    for text in entries()[call.entry]["claim"]:
        try:
            return wording.fill(text)
        except Unknown:
            continue
    return f"The launch is {call.cls}{f' ({call.limiter})' if call.limiter else ''}."


def run(facts: Facts) -> tuple[str, ...]:
    """Return the commands that measure the changed kernel and compare it with this report."""
    kernel = facts.kernel
    which = same_again(kernel.name, kernel.index, kernel.raw.workload)
    before = word(PurePath(kernel.file).name or "before.ncu-rep")
    return (
        f"ncu --set full --import-source on {which} -o after {PROGRAM}",
        f"ncukit compare {before} after.ncu-rep",
    )


def _rows(entry: str, side: str) -> list[Mapping[str, Any]]:
    content = entries()[entry]
    rows: list[Mapping[str, Any]] = []
    for included in content.get("include", ()):
        rows += entries()[included].get(side, ())
    return [*rows, *content.get(side, ())]


def _row(row: Mapping[str, Any], wording: Wording, text: str | None) -> Evidence | None:
    quote = wording.quote(row["metric"])
    if quote is None or text is None:
        return None
    if not row.get("min", float("-inf")) <= quote.condition <= row.get("max", float("inf")):
        return None
    if "when" in row:
        other = wording.quote(row["when"][0])
        if other is None or other.condition < row["when"][1]:
            return None
    try:
        words = wording.fill(text)
    except Unknown:
        return None
    if row["metric"] == "@limit" and quote.share is not None:
        counted = basis(wording.facts, quote.share)
        return Evidence(quote.metric, quote.value, quote.unit, words, "limit", quote.share.name, counted)
    return Evidence(quote.metric, quote.value, quote.unit, words)


def _open(row: Mapping[str, Any], wording: Wording) -> bool:
    quote = wording.quote(row["metric"])
    if quote is None or "open" not in row:
        return False
    low, high = float(row.get("open_max", float("-inf"))), float(row.get("open_min", float("inf")))
    return quote.condition <= low or quote.condition >= high


# ---- The facts about a launch that its diagnosis keeps: each is judged when first asked for, once

KEPT = 8
"""Launches, the last judged, that keep their source view: one of a large kernel takes megabytes."""

_with_view: deque[weakref.ref[Facts]] = deque()


class FactsOnDemand(LaunchFacts):
    """The facts about ``kernel``; ``facts`` are those that its diagnosis was made from, if there are any."""

    def __init__(self, kernel: Kernel, facts: Facts | None = None) -> None:
        self._kernel = kernel
        if facts is not None:
            self._facts = facts

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another process as the kernel alone."""
        return FactsOnDemand, (self._kernel,)

    @cached_property
    def _facts(self) -> Facts:
        return Facts.of(self._kernel)

    @property
    def shares(self) -> Shares:
        """How full every unit was."""
        return self._facts.shares

    @cached_property
    def leaders(self) -> Leaders | None:
        """The units that come first, as the verdict sees them; None where no unit was measured."""
        from ncukit.judge.elimination import leaders

        return leaders(self._facts)

    @cached_property
    def links(self) -> MemoryLinks:
        """What moved between the units of the memory system."""
        from ncukit.judge.memory_flow import memory_links

        return memory_links(self._facts)

    @cached_property
    def occupancy(self) -> Occupancy | None:
        """What limits the resident blocks, without curves; None when unknown."""
        from ncukit.judge.occupancy import occupancy

        return occupancy(self._kernel, curves=False)

    @cached_property
    def occupancy_curves(self) -> tuple[OccupancyCurve, ...]:
        """What other configurations would give."""
        from ncukit.judge.occupancy import occupancy

        found = occupancy(self._kernel)
        return () if found is None else found.curves

    @property
    def occupancy_lacks(self) -> tuple[str, ...]:
        """What the report lacks to tell the occupancy, in words."""
        from ncukit.judge.occupancy import missing_for_occupancy

        return tuple(missing_for_occupancy(self._kernel))

    @cached_property
    def split(self) -> Split:
        """Where the issue slots went."""
        from ncukit.judge.memory_flow import split

        return split(self._facts)

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """Counters over the time of the launch."""
        if not self._kernel.raw.series:  # most reports
            return ()
        from ncukit.judge.facts import series

        return series(self._kernel)

    @property
    def source(self) -> SourceView | None:
        """What every instruction and line cost; None where nothing was counted by instruction."""
        return self._facts.source


def keep_view(facts: Facts) -> None:
    """Let the last launches alone keep their source view, ``facts`` among them."""
    if facts.source is None:
        return
    _with_view.append(weakref.ref(facts))
    if len(_with_view) > KEPT and (oldest := _with_view.popleft()()) is not None:
        oldest.__dict__.pop("source", None)
