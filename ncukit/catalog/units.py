"""The units of a GPU that a launch can fill, and which member of ncu's maxima speaks of which."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping

from ncukit.catalog.load import DATA
from ncukit.record import dataclass


@dataclass(frozen=True)
class Unit:
    """One unit: what it is called, and from which share of peak [%] it counts as full.

    ``scope`` "device" units are judged against elapsed time, "sm" units against the time an SM had work;
    ``reach`` [%] is what the best kernels get out of it; ``metrics`` are the ids that measure it, best first;
    ``waits`` are the stall states its queue causes.
    """

    id: str
    label: str
    scope: str
    cls: str | None
    limiter: str | None
    full: float
    reach: float
    metrics: tuple[str, ...]
    waits: tuple[str, ...]


@dataclass(frozen=True)
class Member:
    """A family of raw members: the unit, what the member is called, and the factor by which it reads low."""

    pattern: re.Pattern[str]
    unit: str
    name: str
    factor: float
    cc: tuple[tuple[int, int], ...]

    def scale(self, cc: int | None) -> float:
        """Return what a value has to be multiplied with on compute capability ``cc`` (x 10)."""
        hit = cc is not None and any(low <= cc <= high for low, high in self.cc)
        return self.factor if hit else 1.0


@dataclass(frozen=True, eq=False)
class Units:
    """All units, and the table from raw member to unit."""

    units: Mapping[str, Unit]
    members: tuple[Member, ...]
    ignored: re.Pattern[str]

    def member(self, raw: str) -> Member | None:
        """Return what raw member ``raw`` speaks of; None for a queue or mixture that limits nothing itself.

        >>> load_units().member("lts__xbar2lts_cycles_active.avg.pct_of_peak_sustained_elapsed").unit
        'l2'
        """
        return _member(self, raw)


@functools.lru_cache(maxsize=512)
def _member(units: Units, raw: str) -> Member | None:
    if units.ignored.search(raw):
        return None
    return next((member for member in units.members if member.pattern.search(raw)), None)


@functools.cache
def load_units() -> Units:
    """Return the table that ships with ncukit."""
    content = json.loads((DATA / "units.json").read_text(encoding="utf-8"))
    units = {
        id: Unit(id, **{**entry, "metrics": tuple(entry["metrics"]), "waits": tuple(entry["waits"])})
        for id, entry in content["units"].items()
    }
    members = tuple(
        Member(
            re.compile(entry["match"]),
            entry["unit"],
            entry["name"],
            entry.get("factor", 1.0),
            tuple((low, high) for low, high in entry.get("cc", ())),
        )
        for entry in content["members"]
    )
    return Units(units, members, re.compile(content["ignored"]))
