"""Registers down, local memory up, time up: the wrong lesson from an occupancy limit, said as such."""

from __future__ import annotations

from collections.abc import Mapping

from ncukit.compare.comparable import Sides
from ncukit.diagnose.words import listed, sentence
from ncukit.model.comparison import Row
from ncukit.quantity import brief
from ncukit.record import dataclass

REGISTERS = "registers_per_thread"
LOCAL = ("local_memory_bytes", "local_store_inst", "local_load_inst")
"""What shows local memory, best first."""
OCCUPANCY = "theoretical_occupancy_pct"
COUNTER = "marked_spill_inst"
"""Signal that counts only what the compiler marked as spills."""


@dataclass(frozen=True)
class Spilling:
    """What registers and local memory say together about a change in time."""

    claim: str
    deck: str
    cause: str
    evidence: tuple[str, ...]


def spilling(rows: Mapping[str, Row], sides: Sides) -> Spilling | None:
    """Return that a version spills, or no longer does, where registers, local memory and time agree.

    Registers must go one way, local memory traffic and time the other.  The word "spilling" is not used where
    a counter says that nothing of it is a spill.
    """
    registers, time = rows[REGISTERS], rows["kernel_duration"]
    local = next((rows[id] for id in LOCAL if rows[id].change is not None and rows[id].beyond_noise), None)
    if local is None or not registers.change or not time.change or not time.beyond_noise:
        return None
    slower = time.change > 0
    if ((registers.change or 0) < 0) != slower or ((local.change or 0) > 0) != slower:
        return None
    counted = (sides.other if slower else sides.base).number(COUNTER)
    if counted == 0:
        return None
    before, after = (brief(row.number) for row in (registers.base, registers.other))
    amounts = " \u2192 ".join(brief(v.number, v.unit) for v in (local.base, local.other))
    claim = "spilling" if slower else "no more spilling"
    claim += f"; registers {before} \u2192 {after}, {_name(local.id)} {amounts}"
    sure = (
        f"The spill counter agrees: {brief(counted)} instructions."
        if counted
        else "The report has no spill counter: that the traffic is spilling follows from the registers."
    )
    evidence = (REGISTERS, local.id, "kernel_duration", OCCUPANCY)
    return Spilling(claim, " ".join(part for part in (_occupancy(rows), sure) if part), "spilling", evidence)


def _name(id: str) -> str:
    return {"local_memory_bytes": "local memory traffic", "local_store_inst": "local stores"}.get(
        id, "local loads"
    )


def _occupancy(rows: Mapping[str, Row]) -> str:
    """Return what the registers bought in occupancy."""
    row, limiter = rows[OCCUPANCY], rows["occupancy_limiter"].other.value
    if row.change is None:
        return ""
    if row.change == 0:
        why = (
            f", because {limiter_words(str(limiter))} still {'limit' if '+' in str(limiter) else 'limits'} it"
            if limiter
            else ""
        )
        return sentence(f"occupancy is the same{why}: the change in registers bought nothing.")
    ends = " \u2192 ".join(brief(v.number, "%") for v in (row.base, row.other))
    return f"Theoretical occupancy {ends}."


def limiter_words(limiter: str) -> str:
    """Return what limits occupancy, in words.

    >>> limiter_words("registers+shared_mem")
    'registers and shared memory'
    """
    return listed(limiter.replace("shared_mem", "shared memory").split("+"))
