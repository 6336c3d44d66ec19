"""The quality box of a file: how many of its launches each caution is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ncukit import quantity
from ncukit.model import ReportFile
from ncukit.model.kernel import Recorded
from ncukit.render.line import bold, line, link
from ncukit.render.view import made
from ncukit.render.view.groups import Launch
from ncukit.render.view.quality import CACHES, LACKS, SHORT, fact, missing, not_a_number
from ncukit.render.words import inside, listed


def quality(launches: Sequence[Launch], file: ReportFile, lacks: Sequence[str] = LACKS) -> dict[str, Any]:
    """Return the quality box of the file: how many launches each caution is about.

    ``lacks`` is what is missing beside the counters.
    """
    lacking = _lacking(launches)
    facts = [
        _length(launches),
        _caches(file.made),
        _clocks(launches, file.made),
        _collected(lacking),
        _passes(launches),
        _values(launches),
        _which(launches, file),
    ]
    cautions = [f for f in facts if f["status"] in ("warn", "bad")]
    facts = cautions + [f for f in facts if f not in cautions]
    without = [*lacks, *lacking]
    rest = f" Missing: {listed(without)}." if without else ""
    good = sum(not launch.cells.kernel.failed for launch in launches)
    return {
        "sentence": line(f"{good:,} of {len(launches):,} launches hold a valid measurement.{rest}"),
        "facts": facts,
    }


def is_brief(launch: Launch) -> bool:
    """Return whether a launch is too short for its clocks to be trusted."""
    return launch.duration is not None and launch.duration < SHORT


def _length(launches: Sequence[Launch]) -> dict[str, Any]:
    brief = sum(is_brief(launch) for launch in launches)
    unknown = sum(launch.duration is None for launch in launches)
    lost = line(f" The duration of {unknown:,} is unknown.") if unknown else []
    if brief:
        text = f"{brief:,} of {len(launches):,} launches {'is' if brief == 1 else 'are'} shorter than 10 µs: "
        text += "clocks and shares of elapsed cycles are noisy."
        return fact("length", "warn", "too short", line(text) + lost)
    if unknown == len(launches):
        return fact("length", "no", "unknown", line("No duration was collected."))
    return fact("length", "ok", "long enough", line("No launch is shorter than 10 µs.") + lost)


def _caches(how: Recorded) -> dict[str, Any]:
    text = f"Cache control: {inside(made.caches(how))} "
    if how.cache_control != "none":
        text += "Data that one launch leaves in L2 for the next is then read from DRAM."
    return fact("caches", *CACHES.get(how.cache_control, ("no", "not recorded")), line(text))


def _clocks(launches: Sequence[Launch], how: Recorded) -> dict[str, Any]:
    parts = []
    spread = 0.0
    for id, name in (("sm_clock", "SM"), ("dram_clock", "DRAM")):
        known = [n for launch in launches if (n := launch.cells.number(id)) is not None]
        if known:
            parts.append(f"{name} {quantity.span(min(known), max(known), 'hz')}")
            spread = max(spread, max(known) / min(known) - 1 if min(known) else 0)
    if not parts:
        return fact("clocks", "no", "unknown", line("No clock was collected."))
    words = f"{'; '.join(parts)}. {made.CONTROL}: {inside(made.clocks(how))}"
    if how.clock_control == "none":
        return fact("clocks", "warn", "unlocked", line(words))
    return fact("clocks", *(("warn", "varying") if spread > 0.05 else ("ok", "steady")), line(words))


def _collected(lacks: Sequence[str]) -> dict[str, Any]:
    if not lacks:
        return fact(
            "collected",
            "ok",
            "all groups",
            line("Throughputs, FLOPs, hit rates, stalls and samples are there."),
        )
    return fact(
        "collected",
        "warn",
        "in part",
        line(bold("Not collected, in some or all launches: "), f"{listed(lacks)}."),
    )


def _lacking(launches: Sequence[Launch]) -> list[str]:
    """Return the groups of counters that some good launch lacks."""
    lacks: dict[str, None] = {}
    for launch in launches:
        if not launch.cells.kernel.failed:
            lacks |= dict.fromkeys(missing(launch.cells))
    return list(lacks)


def _passes(launches: Sequence[Launch]) -> dict[str, Any]:
    known = [n for launch in launches if (n := launch.cells.number("replay_passes")) is not None]
    if not known:
        return fact("passes", "no", "unknown", line("The number of replay passes is not recorded."))
    return fact(
        "passes",
        "ok",
        "counted",
        line(f"{quantity.span(min(known), max(known), 'pass')} replay passes a launch."),
    )


def _values(launches: Sequence[Launch]) -> dict[str, Any]:
    failed = [launch for launch in launches if launch.cells.kernel.failed]
    nan = sum(not_a_number(launch.cells) for launch in launches)
    text = line(f"{nan:,} raw values are not numbers, over all launches.")
    if failed:
        some = [
            part
            for launch in failed[:5]
            for part in (link(str(launch.n), f"kernel-{launch.n}"), {"text": " "})
        ]
        return fact(
            "values",
            "bad",
            f"{len(failed):,} failed",
            text + line(" Failed: ", *some, "…" if len(failed) > 5 else ""),
        )
    return fact(
        "values",
        "warn" if nan else "ok",
        f"{nan:,} missing" if nan else "complete",
        text + line(" No launch failed."),
    )


def _which(launches: Sequence[Launch], file: ReportFile) -> dict[str, Any]:
    if file.launches > len(launches):
        text = f"{len(launches):,} of the {file.launches:,} launches in the file were chosen."
        return fact("which", "warn", "a selection", line(text))
    return fact(
        "which",
        "ok",
        "all in file",
        line(f"{len(launches):,} launches with ncu IDs from 0, in order. Kernel filters are not recorded."),
    )
