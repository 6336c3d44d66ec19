"""How much of a change in duration goes with each row: three accounts, each with its own words.

*Issue*: duration = instructions x warp cycles per instruction / (active warps x schedulers x SMs x active
share x clock).  The logarithm of the duration changes by the sum of the terms' logarithms, so each term has a
share and the shares add up to what the counters measure.  The warp cycles are the sum of the stall reasons,
which get their parts by the logarithmic mean (LMDI; B. W. Ang, Energy Policy 32, 2004): no rest remains.

*Busy*: share of peak x duration is the time that a unit was busy; *needs*: quantity / peak is the time that
the traffic or the work takes at least.  Their change is compared with the change in duration.  More than
100 % means that something else took over the limit; less than 0 that this row pulled the other way.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ncukit.model import Kernel
from ncukit.model.comparison import Row

ISSUE_RATE = "warp_cycles_per_issued_instruction"
_DATA = Path(__file__).resolve().parent / "data" / "accounts.json"


def explain(rows: Mapping[str, Row], base: Kernel, other: Kernel) -> dict[str, tuple[float, str]]:
    """Return, for each row that has an account, its share of the change in duration [%] and the words for it.

    Nothing where the duration is unknown or did not move beyond the noise.
    """
    duration = rows["kernel_duration"]
    before, after = duration.base.number, duration.other.number
    if not before or not after or not duration.beyond_noise:
        return {}
    found: dict[str, tuple[float, str]] = {}
    for id, share, words in (*_busy(rows, before, after), *_needs(rows, base, other), *_issue(rows)):
        found.setdefault(id, (share, words))
    return found


def logarithmic_mean(a: float, b: float) -> float:
    """Return the logarithmic mean of two positive numbers: (b - a) / ln(b / a).

    >>> round(logarithmic_mean(1.0, 2.0), 4), logarithmic_mean(3.0, 3.0)
    (1.4427, 3.0)
    """
    return a if a == b else (b - a) / math.log(b / a)


@functools.cache
def _accounts() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(_DATA.read_text(encoding="utf-8"))
    return data


def _busy(rows: Mapping[str, Row], before: float, after: float) -> Iterator[tuple[str, float, str]]:
    for id, unit in _accounts()["busy"].items():
        row = rows[id]
        if row.comparable == "no" or row.base.number is None or row.other.number is None:
            continue
        busy = row.other.number * after - row.base.number * before
        yield id, busy / (after - before), f"busy time of {unit} against the change in duration"


def _needs(rows: Mapping[str, Row], base: Kernel, other: Kernel) -> Iterator[tuple[str, float, str]]:
    duration = rows["kernel_duration"]
    moved = (duration.other.number or 0.0) - (duration.base.number or 0.0)
    for id, (capacity, unit) in _accounts()["needs"].items():
        row = rows[id]
        ends = [_capacity(kernel, capacity) for kernel in (base, other)]
        if row.comparable == "no" or row.base.number is None or row.other.number is None or not all(ends):
            continue
        least = row.other.number / (ends[1] or 1.0) - row.base.number / (ends[0] or 1.0)
        yield id, 100 * least / moved, f"least time at {unit} against the change in duration"


def _capacity(kernel: Kernel, id: str) -> float | None:
    if id != "sm_cycles":
        return kernel.number(id)
    clock, sms = kernel.number("sm_clock"), kernel.number("sm_count")
    return clock * sms if clock and sms else None


def _issue(rows: Mapping[str, Row]) -> Iterator[tuple[str, float, str]]:
    """Yield the terms of the issue account, where all of them are known."""
    whole = _log(rows["kernel_duration"])
    terms = {id: (sign, _log(rows[id])) for id, sign in _accounts()["issue"].items()}
    if not whole or any(change is None for _, change in terms.values()):
        return
    for id, (sign, change) in terms.items():
        assert change is not None
        yield id, 100 * sign * change / whole, "term of instructions x warp cycles / (warps x SMs x clock)"
    cycles = rows[ISSUE_RATE]
    mean = logarithmic_mean(cycles.base.number or 1.0, cycles.other.number or 1.0)
    for id, row in rows.items():
        if id.startswith("stall_cycles_") and row.base.number is not None and row.other.number is not None:
            part = (row.other.number - row.base.number) / mean
            yield id, 100 * part / whole, "part of the warp cycles per instruction"


def _log(row: Row) -> float | None:
    base, other = row.base.number, row.other.number
    return math.log(other / base) if base and other and base > 0 and other > 0 else None
