"""Can the two be compared, and which rows go with the change in time?"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ncukit.comparison.comparable import FEW, FLOOR, OTHER_GPU, SHORT, SHORT_FLOOR, Sides
from ncukit.comparison.pairs import SAME_WORK, WORK, Match
from ncukit.comparison.rows import signed
from ncukit.media import listed, sentence
from ncukit.model import Kernel
from ncukit.model.comparison import Fact, Row, Side
from ncukit.quantity import brief
from ncukit.trace.intervals import kernel_kind

# ---- How much of a change in duration goes with each row: three accounts, each with its own words
#  *Issue*: duration = instructions x warp cycles per instruction / (active warps x schedulers x SMs x
# active share x clock).  The logarithm of the duration changes by the sum of the terms' logarithms, so each
# term has a share and the shares add up to what the counters measure.  The warp cycles are the sum of the
# stall reasons, which get their parts by the logarithmic mean (LMDI; B. W. Ang, Energy Policy 32, 2004): no
# rest remains.
#
# *Busy*: share of peak x duration is the time that a unit was busy; *needs*: quantity / peak is the time
# that the traffic or the work takes at least.  Their change is compared with the change in duration.  More
# than 100 % means that something else took over the limit; less than 0 that this row pulled the other way.

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


# ---- Can the two be compared: eight facts, each with its consequence, told before any number

CLOCKS = 0.03
"""Share by which clocks may differ: more than that and durations differ by themselves."""
UNNAMED = "unknown GPU"
SHARES = "Rates compare as shares of their own peaks."
GROUPS = (
    ("flops_fp32", "FLOPs"),
    ("l1_hit_rate_pct", "hit rates"),
    ("dram_read_bytes", "DRAM reads and writes"),
    ("warps_issued_per_scheduler", "issue rate"),
    ("warp_cycles_per_issued_instruction", "stall reasons"),
    ("pc_samples", "stall samples"),
    ("inst_mix_integer_pct", "instruction mix"),
)
"""One metric that shows whether a group of counters was collected, and the name of the group."""


def facts(match: Match, sides: Sides, rows: Mapping[str, Row], base: Side, other: Side) -> tuple[Fact, ...]:
    """Return the facts about two matched samples, those that matter for the numbers first."""
    found = (
        _gpu(sides),
        _clocks(sides, rows),
        _caches(base, other),
        _tool(base, other),
        _collected(sides, rows),
        _shape(rows),
        _work(sides, rows),
        _kernel(match),
        _spread(match),
    )
    peers = _peers(sides, base, other)
    return (*found, peers) if peers else found


def verdict_on(facts: tuple[Fact, ...]) -> str:
    """Return in one sentence whether the two can be compared."""
    doubts = [fact for fact in facts if fact.status in ("warn", "bad")]
    if any(fact.status == "bad" for fact in doubts):
        bad = [fact for fact in doubts if fact.status == "bad"]
        return f"No: {listed([f'{fact.name.lower()}, {fact.word}' for fact in bad])}."
    gpus = next((fact for fact in doubts if fact.id == "gpu"), None)
    if gpus is not None:
        why = "other GPUs" if gpus.word == "differs" else f"GPUs {gpus.word}"
        return f"In part: {why}. Each row says what it can be compared as, and why not."
    if doubts:
        return f"With care: {listed([f'{fact.name.lower()} {fact.word}' for fact in doubts])}."
    unknown = [fact.name.lower() for fact in facts if fact.status == "no" and fact.id != "spread"]
    return "Yes" + (f", as far as is known; not known: {listed(unknown)}." if unknown else ".")


def _gpu(sides: Sides) -> Fact:
    names = [_device(kernel) for kernel in (sides.base, sides.other)]
    if sides.same_gpu and sides.base.gpu is None:
        text = f"Neither side names its GPU; both have {names[0].removeprefix(f'{UNNAMED}, ')}."
        return Fact("gpu", "GPU", "no", "not named", text)
    if sides.same_gpu:
        return Fact("gpu", "GPU", "ok", "same", f"{names[0]}.")
    if None in sides.capabilities:
        return Fact("gpu", "GPU", "no", "unknown", f"Base: {names[0]}. Other: {names[1]}.")
    if sides.elsewhere != OTHER_GPU:
        which = "base" if sides.base.gpu is None else "other side"
        text = f"The {which} does not name it: {names[0]}, then {names[1]}. {SHARES}"
        return Fact("gpu", "GPU", "warn", "not known to be the same", text)
    how = "architecture" if not sides.same_architecture else "GPU of the same architecture"
    text = f"Another {how}: {names[0]}, then {names[1]}. {SHARES}"
    return Fact("gpu", "GPU", "warn", "differs", text)


def _device(kernel: Kernel) -> str:
    cc, sms = kernel.compute_capability, kernel.number("sm_count")
    parts = [kernel.gpu or UNNAMED, f"CC {cc}" if cc else "", f"{sms:.0f} SMs" if sms else ""]
    return ", ".join(part for part in parts if part)


def _clocks(sides: Sides, rows: Mapping[str, Row]) -> Fact:
    words, off, known = [], False, False
    for domain, name in (("sm", "SM"), ("dram", "DRAM")):
        row = rows[f"{domain}_clock"]
        a, b = row.base.number, row.other.number
        if a is None or b is None:
            words.append(f"{name} clock not known on both sides.")
            continue
        known = True
        words.append(f"{name} {brief(a, 'hz')} and {brief(b, 'hz')} ({signed(100 * (b / a - 1))}).")
        off = off or abs(b / a - 1) > CLOCKS
    text = " ".join(words)
    if not known:
        return Fact("clocks", "Clocks", "no", "unknown", text)
    if any((k.number("kernel_duration") or 1.0) < SHORT for k in (sides.base, sides.other)):
        return Fact("clocks", "Clocks", "warn", "noisy", text + " Under 10\u202fµs clocks are noise.")
    if off and sides.same_gpu:
        words_ = " Durations differ by this alone; compare shares of peak and cycles."
        return Fact("clocks", "Clocks", "warn", "differ", text + words_)
    return Fact("clocks", "Clocks", "ok", "each its own" if not sides.same_gpu else "close", text)


def _caches(base: Side, other: Side) -> Fact:
    a, b = base.recorded, other.recorded
    said = [
        f"{side}: caches {_caches_word(r.cache_control)}, clock control {r.clock_control or 'not recorded'}"
        for side, r in (("base", a), ("other", b))
    ]
    if {a.cache_control, b.cache_control, a.clock_control, b.clock_control} == {None}:
        text = "Not recorded on either side. By default ncu flushes the caches and locks the clocks."
        return Fact("caches", "Cache and clock modes", "no", "not recorded", text)
    if None in (a.cache_control, b.cache_control, a.clock_control, b.clock_control):
        text = f"{said[0]}; {said[1]}. By default ncu flushes the caches and locks the clocks."
        return Fact("caches", "Cache and clock modes", "no", "not recorded", text)
    if (a.cache_control, a.clock_control) != (b.cache_control, b.clock_control):
        text = f"{said[0]}; {said[1]}. Hit rates, DRAM bytes and durations differ by this alone."
        return Fact("caches", "Cache and clock modes", "warn", "differ", text)
    text = f"Both: {said[0].removeprefix('base: ')}."
    return Fact("caches", "Cache and clock modes", "ok", "same", text)


def _caches_word(control: str | None) -> str:
    return {"all": "flushed", "none": "not flushed", None: "not recorded"}.get(control, str(control))


def _tool(base: Side, other: Side) -> Fact:
    a, b = base.recorded, other.recorded
    drivers = _drivers(a.driver, b.driver)
    if a.ncu is None and b.ncu is None:
        return Fact("tool", "ncu", "no", "unknown", "Neither side says which ncu made it.")
    if a.ncu is None or b.ncu is None:
        text = f"ncu {a.ncu or 'unknown'} and {b.ncu or 'unknown'}.{drivers}"
        return Fact("tool", "ncu", "no", "unknown", text)
    if a.ncu != b.ncu:
        text = f"ncu {a.ncu} and {b.ncu}: sections, rules and some counters differ between versions.{drivers}"
        return Fact("tool", "ncu", "warn", "differs", text)
    return Fact("tool", "ncu", "ok", "same", f"ncu {a.ncu}.{drivers}")


def _drivers(base: str | None, other: str | None) -> str:
    if base == other:
        return f" Driver {base}." if base else ""
    return f" Drivers {base or 'unknown'} and {other or 'unknown'}."


def _collected(sides: Sides, rows: Mapping[str, Row]) -> Fact:
    lacks = [[name for id, name in GROUPS if not getattr(rows[id], side).known] for side in ("base", "other")]
    only = [[name for name in lacks[i] if name not in lacks[1 - i]] for i in (0, 1)]
    words = [
        f"{side} lacks {listed(names)}" for side, names in zip(("base", "other"), only, strict=True) if names
    ]
    passes = [k.number("replay_passes") for k in (sides.base, sides.other)]
    count = _passes(passes)
    both = [name for name in lacks[0] if name in lacks[1]]
    tail = f" Neither has {listed(both)}." if both else ""
    if any(only):
        text = f"{sentence('; '.join(words))}: those rows are unknown, not changed.{tail}{count}"
        return Fact("collected", "Collected", "warn", "differs", text)
    sections = [set(k.raw.sections) for k in (sides.base, sides.other)]
    if sections[0] != sections[1] and all(sections):
        text = f"{len(sections[0])} and {len(sections[1])} sections, the same groups of counters.{tail}"
        return Fact("collected", "Collected", "ok", "alike", f"{text}{count}")
    return Fact("collected", "Collected", "ok", "same", f"The same groups of counters.{tail}{count}")


def _passes(passes: list[float | None]) -> str:
    if passes == [None, None]:
        return ""
    return f" Passes: {' and '.join('unknown' if n is None else f'{n:.0f}' for n in passes)}."


def _shape(rows: Mapping[str, Row]) -> Fact:
    named = (
        ("grid_size", "blocks"), ("block_size", "threads a block"), ("registers_per_thread", "registers"),
        ("shared_mem_allocated", "B of shared memory"),
    )  # fmt: skip
    known = [(rows[id], words) for id, words in named if rows[id].base.known and rows[id].other.known]
    if not known:
        return Fact(
            "shape", "Shape", "no", "unknown", "The launch configuration is not recorded on both sides."
        )
    parts = []
    for row, words in known:
        a, b = (f"{float(v):,.0f}" for v in (row.base.value, row.other.value) if v is not None)
        noun = words.replace("blocks", "block").replace("registers", "register") if a == b == "1" else words
        parts.append(f"{a} {noun}" if a == b else f"{a} \u2192 {b} {words}")
    changed = [words for row, words in known if row.base.value != row.other.value]
    dims = any(rows[f"{w}_dim_{axis}"].reading == "moved" for w in ("grid", "block") for axis in "xyz")
    text = ", ".join(parts) + "."
    if changed or dims:
        return Fact("shape", "Shape", "warn", "differs", text)
    return Fact("shape", "Shape", "ok", "same", text)


def _work(sides: Sides, rows: Mapping[str, Row]) -> Fact:
    """Return whether both did the same work: FLOPs tell; other instructions may be the improvement itself."""
    words = []
    same: dict[str, bool] = {}
    for row, name in ((rows["flops_total"], "FLOPs"), (rows[WORK], "warp instructions")):
        a, b = row.base.number, row.other.number
        if a is None or b is None:
            continue
        same[name] = abs(b - a) <= SAME_WORK * max(a, b)
        alike = same[name] and brief(a) == brief(b)
        words.append(f"{brief(a)} {name} in both" if alike else f"{brief(a)} \u2192 {brief(b)} {name}")
    if not words:
        return Fact("work", "Work", "no", "unknown", "Neither FLOPs nor instructions are known twice.")
    text = ", ".join(words) + "."
    flops = max(rows["flops_total"].base.number or 0.0, rows["flops_total"].other.number or 0.0)
    if "FLOPs" in same and flops:
        known = same["FLOPs"]
        return Fact("work", "Work", "ok" if known else "warn", "same" if known else "differs", text)
    if same.get("warp instructions") and sides.same_architecture:
        return Fact("work", "Work", "ok", "same", text)
    return Fact("work", "Work", "no", "unknown", f"{text} Instructions alone do not tell.")


def _kernel(match: Match) -> Fact:
    a, b = match.base.kernel, match.other.kernel
    failed = [side for side, k in (("base", a), ("other", b)) if k.failed]
    if failed:
        text = f"The {listed(failed)} has no valid measurement: {a.failed or b.failed}."
        return Fact("kernel", "Kernel", "bad", "failed", text)
    by = f"Matched by {match.by}."
    if a.name != b.name:
        return Fact("kernel", "Kernel", "warn", "differs", f"`{a.name}` and `{b.name}`. {by}")
    if (a.demangled or a.name) != (b.demangled or b.name):
        return Fact("kernel", "Kernel", "warn", "differs", f"Other template arguments or parameters. {by}")
    return Fact("kernel", "Kernel", "ok", "same", by)


def _spread(match: Match) -> Fact:
    a, b = match.base, match.other
    if a.repeats == b.repeats == 1:
        tiny = any(s.duration is not None and s.duration < SHORT for s in (a, b))
        floor = SHORT_FLOOR if tiny else FLOOR
        text = f"One measurement each: noise is unknown. A change under {floor:g}\u202f% is not called one."
        return Fact("spread", "Spread", "no", "unknown", text)
    parts = []
    for side, sample in (("base", a), ("other", b)):
        ends = sample.spread.get("kernel_duration")
        if ends is not None:
            low, high = (brief(end, "s") for end in ends)
            parts.append(f"{side} {low} to {high} over {sample.repeats} repeats")
        else:
            parts.append(f"{side} one measurement")
    text = sentence("; ".join(parts)) + "."
    if any(s.repeats > 1 and s.same_work is None for s in (a, b)):
        text += " That the repeats do the same work is not known; `--match order` keeps them apart."
    few = max(a.repeats, b.repeats) < FEW
    return Fact("spread", "Spread", "ok", "few repeats" if few else "measured", text)


def _peers(sides: Sides, base: Side, other: Side) -> Fact | None:
    """Return the fact that a kernel which waits for other GPUs cannot be judged by its own counters."""
    ranks = max(base.recorded.ranks or 1, other.recorded.ranks or 1)
    if any(kernel_kind(k.demangled or k.name) == "collective" for k in (sides.base, sides.other)):
        why = "It communicates with other GPUs"
    elif ranks > 1:
        why = f"It ran as one of {ranks} processes"
    else:
        return None
    text = f"{why}: its time may include waiting for them, so low shares of peak say nothing about it."
    return Fact("peers", "Peers", "warn", "waiting included", text)
