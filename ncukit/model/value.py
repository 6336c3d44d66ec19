"""One neutral metric of one launch, with its evidence."""

from __future__ import annotations

import re
from typing import Literal

from ncukit.record import dataclass

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
