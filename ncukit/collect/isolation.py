"""The proof of isolation: is what ncu captured the launch that was chosen?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ncukit.model import RawKernel, Wanted
from ncukit.model.run import Chosen, Compared, Isolation
from ncukit.model.timeline import Launch
from ncukit.tools.names import function_of, qualified, spelled

_DIMS = {
    "grid": tuple(f"launch__grid_dim_{axis}" for axis in "xyz"),
    "block": tuple(f"launch__block_dim_{axis}" for axis in "xyz"),
}
_NUMBERS = {
    "registers per thread": ("registers", "launch__registers_per_thread"),
    "static shared memory [byte/block]": ("static_shared", "launch__shared_mem_per_block_static"),
    "dynamic shared memory [byte/block]": ("dynamic_shared", "launch__shared_mem_per_block_dynamic"),
}
DECISIVE = ("name", "grid", "block")
"""Without these nothing is proven."""
WANTED = Wanted(
    frozenset(
        (
            *(name for names in _DIMS.values() for name in names),
            *(metric for _, metric in _NUMBERS.values()),
            *("launch__grid_size", "gpu__time_duration.sum", "profiler__replayer_passes"),
        )
    )
)
"""What must be read of a report to compare."""


def prove(chosen: Chosen | None, captured: Sequence[RawKernel], index: int) -> Isolation:
    """Return whether launch ``index`` of ``captured`` is the chosen one, property by property.

    What one side does not tell is unknown, never equal.
    """
    at = min(index, len(captured) - 1)
    raw = captured[at]
    if chosen is None:
        words = "not proven: no timeline says which launch to choose; the first that matched was captured"
        return Isolation("unknown", words, tuple(_alone(raw)), at)
    launch = chosen.choice.launch
    rows = tuple(_rows(launch, raw))
    where = f"launch {launch.nth + 1:,} of {launch.matches:,}"
    different = [row for row in rows if row.same is False]
    lacking = [row.name for row in rows if row.same is None]
    if index >= len(captured):
        text = f"denied: ncu captured only {len(captured):,} of the {index + 1:,} launches up to {where}"
        return Isolation("denied", text, rows, at, launch.nth, launch.matches)
    if different:
        text = "denied: ncu captured another launch than the chosen one: " + "; ".join(
            f"{row.name} {row.captured} instead of {row.chosen}" for row in different
        )
        return Isolation("denied", text, rows, at, launch.nth, launch.matches)
    if any(name in lacking for name in DECISIVE):
        text = f"not proven: {' and '.join(lacking)} cannot be compared"
        return Isolation("unknown", text, rows, at, launch.nth, launch.matches)
    known = [row.name.split(" [")[0] for row in rows if row.same]
    text = f"proven: what ncu captured is the chosen launch ({where}): {', '.join(known)} are the same"
    if lacking:
        text += f"; not compared: {', '.join(lacking)}"
    return Isolation("proven", text, rows, at, launch.nth, launch.matches)


def only_configuration_differs(proof: Isolation) -> bool:
    """Return whether it is the chosen kernel in another configuration: what autotuning does."""
    rows = {row.name: row.same for row in proof.compared}
    return proof.verdict == "denied" and rows.get("name") is True


def squeezed(name: str) -> str:
    """Return a demangled name without spaces: ncu and nsys set them differently."""
    return name.replace(" ", "")


def _same_name(launch: Launch, raw: RawKernel) -> bool | None:
    """Return whether the names mean one kernel; None where demanglers write a lambda too differently."""
    if squeezed(launch.name) == squeezed(raw.demangled):
        return True
    if launch.name == launch.short:  # a trace without demangled names
        return launch.short == raw.function
    ours, theirs = qualified(launch.name), qualified(raw.demangled)
    if not ours.endswith(">") or not theirs.endswith(">"):
        return spelled(launch.name) == spelled(raw.demangled)
    if spelled(ours) == spelled(theirs):
        return True
    return None if "lambda" in ours and function_of(theirs) == launch.short else False


def _rows(launch: Launch, raw: RawKernel) -> list[Compared]:
    rows = [Compared("name", launch.name, raw.demangled or raw.function, _same_name(launch, raw))]
    for name, metrics in _DIMS.items():
        chosen = tuple(getattr(launch, name))
        found = [raw.metrics.get(metric) for metric in metrics]
        captured = None if None in found else tuple(int(value) for value in found if value is not None)
        known = captured is not None and min(chosen) >= 0
        rows.append(Compared(name, _dims(chosen), _dims(captured), captured == chosen if known else None))
    for name, (attribute, metric) in _NUMBERS.items():
        wanted, got = getattr(launch, attribute), raw.metrics.get(metric)
        known = got is not None and wanted >= 0
        rows.append(
            Compared(
                name,
                f"{wanted:,}" if wanted >= 0 else None,
                None if got is None else f"{int(got):,}",
                int(got or 0) == wanted if known else None,
            )
        )
    return rows


def _alone(raw: RawKernel) -> list[Compared]:
    found: list[Compared] = [Compared("name", None, raw.demangled or raw.function, None)]
    for name, metrics in _DIMS.items():
        values: list[Any] = [raw.metrics.get(metric) for metric in metrics]
        captured = None if None in values else tuple(int(v) for v in values)
        found.append(Compared(name, None, _dims(captured), None))
    return found


def _dims(values: tuple[int, ...] | None) -> str | None:
    if values is None or min(values) < 0:
        return None
    return " × ".join(f"{value:,}" for value in values)
