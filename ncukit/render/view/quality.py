"""Eight facts about the measurement, each with its consequence, and one sentence that says what to trust."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ncukit import quantity
from ncukit.model import ReportFile
from ncukit.model.kernel import Recorded
from ncukit.render.cells import Cells, state
from ncukit.render.line import Line, bold, code, line
from ncukit.render.view import made
from ncukit.render.words import inside, listed, plural

SHORT = 10e-6
"""[s] Below this, clocks and percentages of elapsed cycles are noisy (METRICS, trap 1)."""
FEW_SAMPLES = 1000
NEAR_BOOST = 0.95
STEADY = 0.05
"""Share by which issued and executed instructions, of different passes, may differ."""

LACKS = ("clean time", "timeline")
"""What a report alone never holds."""
CACHES: dict[str | None, tuple[str, str]] = {"all": ("ok", "cold"), "none": ("warn", "warm")}
"""Cache control -> status and word: with "all" every pass starts cold."""
FACTS = {
    "clocks": "Clocks",
    "caches": "Caches",
    "passes": "Passes",
    "values": "Values",
    "length": "Length",
    "collected": "Collected",
    "samples": "Samples",
    "which": "Which launch",
}
"""What the facts of the box are called, by their id."""
SIGNS = {"ok": "✓", "warn": "!", "no": "–", "bad": "✗"}
GROUPS = (
    ("sm_throughput_pct", "throughputs"),
    ("flops_total", "FLOPs"),
    ("l1_hit_rate_pct", "hit rates"),
    ("dram_read_bytes", "DRAM reads and writes"),
    ("warps_issued_per_scheduler", "issue rate"),
    ("warp_cycles_per_issued_instruction", "stall reasons"),
    ("pc_samples", "stall samples"),
    ("inst_mix_integer_pct", "instruction mix"),
)
"""One metric that shows whether a group of counters was collected, and what the group is called."""
_NAMES = dict(GROUPS)

KNOWN_BY = {"warps_issued_per_scheduler": "issue_busy_pct"}
"""Counters of other sections that say the same."""


def quality(cells: Cells, file: ReportFile, lacks: Sequence[str] = LACKS) -> dict[str, Any]:
    """Return the quality box of one launch: cautions first where there are more than two.

    ``lacks`` is what is missing beside the counters.
    """
    facts = [
        _clocks(cells, file.made),
        _caches(cells, file.made),
        _passes(cells),
        _values(cells),
        _length(cells),
        _collected(cells),
        _samples(cells),
        _which(cells, file),
    ]
    cautions = [fact for fact in facts if fact["status"] in ("warn", "bad")]
    if len(cautions) > 2:
        facts = cautions + [fact for fact in facts if fact not in cautions]
    return {"sentence": line(_sentence(cells, lacks)), "facts": facts}


def missing(cells: Cells) -> list[str]:
    """Return the groups of counters that this launch lacks and this GPU could give."""
    ids = (id for id, _ in GROUPS if state(cells.value(id)) == "missing")
    return [_NAMES[id] for id in ids if cells.number(KNOWN_BY.get(id, id)) is None]


def fact(id: str, status: str, said: str, text: Line) -> dict[str, Any]:
    """Return one fact of the box, with its sign; ``said`` is its word without one."""
    word = f"{SIGNS[status]} {said}"
    return {"id": id, "name": FACTS[id], "status": status, "said": said, "word": word, "text": text}


def is_short(cells: Cells) -> bool:
    """Return whether the launch is too short for its clocks to be trusted."""
    duration = cells.number("kernel_duration")
    return duration is not None and duration < SHORT


def not_a_number(cells: Cells) -> int:
    """Return how many raw metrics that were read are NaN."""
    return sum(isinstance(v, float) and math.isnan(v) for v in cells.kernel.raw.metrics.values())


def _sentence(cells: Cells, lacks: Sequence[str]) -> str:
    if cells.kernel.failed:
        return "No counter of this launch is used: only what describes device and launch stays true."
    nan = not_a_number(cells)
    first = "Counters: complete." if not missing(cells) else "Counters: incomplete."
    if nan:
        first = f"Counters: {nan:,} raw values are not numbers."
    if is_short(cells):
        first += " Clocks and shares of elapsed cycles are noisy."
    without = [*lacks, *missing(cells)]
    return f"{first} Missing: {listed(without)}." if without else first


def _clocks(cells: Cells, how: Recorded) -> dict[str, Any]:
    """Return the fact about clocks; ``besides`` is its text without their control, where it tells of that."""
    parts: Line = []
    shares = []
    for domain, name in (("sm", "SM"), ("dram", "DRAM")):
        clock, most = cells.number(f"{domain}_clock"), cells.number(f"{domain}_clock_max")
        if clock is None:
            cell = cells[f"{domain}_clock"]
            absent = cell["state"] == "absent"
            parts += line(f"No {name} clock on this GPU. ") if absent else line(f"{name} clock ", cell, ". ")
            continue
        parts += line(f"{name} ", cells[f"{domain}_clock"])
        if most:
            shares.append(clock / most)
            parts += line(
                " of ", cells[f"{domain}_clock_max"], f" ({100 * clock / most:.0f}{quantity.NARROW}%)"
            )
        parts += line(". ")
    if not shares:
        return fact("clocks", "no", "unknown", parts)
    if is_short(cells) or max(shares) > 1.05:
        return fact("clocks", "warn", "noisy", parts + line("Too short a kernel for a reliable clock."))
    besides = parts + line(" Roofs use these clocks.")
    parts += line(f"{made.CONTROL}: {inside(made.clocks(how))}", " Roofs use these clocks.")
    status, said = "ok", "near boost"
    if how.clock_control == "none":
        status, said = "warn", "unlocked"
    elif min(shares) < NEAR_BOOST:
        status, said = "warn", "below boost"
    return fact("clocks", status, said, parts) | {"besides": besides}


def _caches(cells: Cells, how: Recorded) -> dict[str, Any]:
    moved, size = cells.number("dram_bytes"), cells.number("l2_cache_size")
    status, word = CACHES.get(how.cache_control, ("no", "not recorded"))
    text = line(f"Cache control: {inside(made.caches(how))} ")
    if moved is None or not size or how.cache_control == "none":
        return fact("caches", status, word, text)
    text += line(cells["dram_bytes"], " of DRAM traffic, ", cells["l2_cache_size"], " of L2. ")
    if moved < size:
        return fact(
            "caches", "warn", "cold", text + line("The data would fit into L2: a warm run may need no DRAM.")
        )
    return fact("caches", status, word, text + line("More than L2 holds: little effect."))


def _passes(cells: Cells) -> dict[str, Any]:
    passes = cells.number("replay_passes")
    if passes is None:
        return fact("passes", "no", "unknown", line("The number of replay passes is not recorded."))
    text = line(cells["replay_passes"], " replay ", "pass. " if passes == 1 else "passes. ")
    issued, executed = cells.number("inst_issued"), cells.number("inst_executed")
    if not issued or not executed:
        return fact("passes", "ok", "counted", text + line("Whether they agree cannot be checked."))
    off = abs(issued / executed - 1)
    text += line(f"Issued and executed instructions differ by {quantity.short(100 * off, '%')}")
    if off > STEADY:
        return fact("passes", "warn", "differ", text + line(": replays, or passes that ran differently."))
    return fact("passes", "ok", "steady", text + line(", as they should."))


def _values(cells: Cells) -> dict[str, Any]:
    read, nan = len(cells.kernel.raw.metrics), not_a_number(cells)
    doubtful = [v for v in cells.kernel.metrics.values() if v.known and not v.reliable]
    text = line(f"{nan:,} of {read:,} raw metrics read are not numbers.")
    if nan:
        return fact("values", "bad" if nan > read / 10 else "warn", f"{nan:,} missing", text)
    if doubtful:
        some = [part for v in doubtful[:3] for part in (code(v.id), {"text": ", "})][:-1]
        text += line(
            f" {plural(len(doubtful), 'value')} out of range and not used: ",
            *some,
            "." if len(doubtful) < 4 else " …",
        )
        return fact("values", "warn", f"{len(doubtful)} unreliable", text)
    return fact("values", "ok", "complete", text)


def _length(cells: Cells) -> dict[str, Any]:
    if cells.number("kernel_duration") is None:
        return fact("length", "no", "unknown", line("The duration is ", cells["kernel_duration"], "."))
    text = line(cells["kernel_duration"], "; ")
    if is_short(cells):
        return fact(
            "length",
            "warn",
            "too short",
            text + line("under 10 µs clocks and shares of elapsed cycles are noisy."),
        )
    return fact("length", "ok", "long enough", text + line("kernels under 10 µs give noisy clocks."))


def _collected(cells: Cells) -> dict[str, Any]:
    if cells.kernel.failed:
        return fact("collected", "bad", "failed", line("The counters that are in the file are not used."))
    lacks = missing(cells)
    sections = len(cells.kernel.raw.sections)
    text = line(f"{plural(sections, 'section')} in the file. " if sections else "")
    if not lacks:
        return fact(
            "collected",
            "ok",
            "all groups",
            text + line("Throughputs, FLOPs, hit rates, stalls and samples are there."),
        )
    word = "little" if len(lacks) > 4 else "in part"
    return fact("collected", "warn", word, text + line(bold("Not collected: "), f"{listed(lacks)}."))


def _samples(cells: Cells) -> dict[str, Any]:
    count = cells.number("pc_samples")
    if count is None:
        return fact("samples", "no", "none", line("No stall samples, so nothing points to an instruction."))
    text = line(cells["pc_samples"])
    if cells.value("pc_sampling_interval").known:
        text += line(", one every ", cells["pc_sampling_interval"], " cycles")
    dropped = cells.number("pc_samples_dropped_bytes")
    if dropped:
        return fact(
            "samples",
            "warn",
            "dropped",
            text + line("; ", cells["pc_samples_dropped_bytes"], " of samples were lost."),
        )
    text += line(", none dropped." if dropped == 0 else ".")
    if count < FEW_SAMPLES:
        return fact("samples", "warn", "few", text + line(" Too few to rank single instructions."))
    return fact("samples", "ok", "enough", text)


def _which(cells: Cells, file: ReportFile) -> dict[str, Any]:
    if file.launches <= 1:
        text = "The only launch in the file. How often the program launches the kernel is not recorded."
    else:
        text = f"Launch {cells.launch:,} of {file.launches:,} in the file, ncu ID {cells.kernel.index:,}."
    return fact(
        "which",
        "no" if file.launches <= 1 else "ok",
        "unknown" if file.launches <= 1 else "in order",
        line(text),
    )
