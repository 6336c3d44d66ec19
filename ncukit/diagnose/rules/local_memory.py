"""Local memory: spills, stack arrays, and telling them apart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncukit.diagnose.places import listed, places
from ncukit.diagnose.rule import Found, View, rule
from ncukit.model import Place
from ncukit.model.finding import Severity
from ncukit.quantity import brief

if TYPE_CHECKING:
    from ncukit.model.source import Cost

LEADS = 50.0
"""[%] of the sectors between L1 and L2: then the first thing to change, whatever the class."""

VISIBLE = 5.0
"""[%] of L1's or L2's sectors from which local memory is more than a rare path."""

FULL_REGISTERS = 200.0
"""[register/thread] Near the limit of 255 the compiler has most likely run out of registers."""

LOCAL = re.compile(r"^(LDL|STL)\b")
STACK = re.compile(r"\[R1(\+-?0x[0-9a-f]+)?\]")
"""An address that is known when the code is compiled."""

ARGUMENTS = 10
"""Local accesses that one call of a function may need for what it is given and gives back."""

MOSTLY = 80.0
"""[%] of the local accesses from which their kind is told by how they are addressed."""


def _weight(k: View) -> tuple[Severity, float | None]:
    share = k.get("l2_local_share_pct")
    inner = k.get("l1_local_share_pct")
    if share is not None and share >= LEADS:
        return "high", share
    if max(share or 0.0, inner or 0.0) >= VISIBLE:
        return "medium", share if share is not None and share >= VISIBLE else inner
    return "low", share


def _instructions(k: View) -> float:
    return (k.get("local_load_inst") or 0.0) + (k.get("local_store_inst") or 0.0)


def _where(k: View) -> tuple[Place, ...]:
    return places(k.source, _accesses, "inst", lambda row: bool(LOCAL.match(row.opcode)))


def _accesses(cost: Cost) -> int | None:
    return cost.instructions


@rule("register-spills", family="memory", needs=("marked_spill_inst",))
def register_spills(k: View) -> Found | None:
    """Instructions that the compiler marked as register spills ran."""
    spills, shared = k["marked_spill_inst"], k.get("shared_spill_inst") or 0.0
    if spills <= 0 and shared <= 0:
        return None
    severity, share = _weight(k)
    traffic = f", local memory is {brief(share, '%')} of the cache traffic" if share else ""
    into = f", {brief(shared)} of them into shared memory" if shared else ""
    where = _where(k)
    return Found(
        f"Registers spill: {brief(spills + shared)} spill instructions ran{into}{traffic}",
        severity,
        advice="Allow more registers (launch bounds, -maxrregcount), or keep fewer values alive at once.",
        detail=f"Of the local accesses {listed(where)}." if where else "",
        gain=None if share is None else k.relief(share, "l1", "l2"),
        places=where,
    )


@rule("local-memory", family="memory", needs=(("local_load_inst", "local_store_inst", "l1_local_share_pct"),))
def local_memory(k: View) -> Found | None:
    """Local memory is in use; only a spill counter can call it spilling."""
    instructions, spills = _instructions(k), k.get("marked_spill_inst")
    severity, share = _weight(k)
    if (instructions <= 0 and not share) or (spills is not None and spills > 0):
        return None
    registers = k.get("registers_per_thread")
    if spills is not None:
        kind, advice = (
            "and none of it is register spilling: stack arrays or slow-path functions",
            "Index local arrays with constants only, or move them to shared memory; more registers would "
            "not help.",
        )
    elif (fixed := _fixed(k)) is not None and fixed >= MOSTLY:
        likely = (
            "register spills, or arguments of called functions"
            if _calls(k)
            else "most likely register spills"
        )
        near = f" at {registers:.0f} registers a thread" if registers is not None else ""
        kind, advice = (
            f"{brief(fixed, '%')} of it at fixed offsets from the stack pointer: {likely}{near}",
            "Look for spill stores in `ptxas -v`; allow more registers (launch bounds, -maxrregcount) or "
            "keep fewer values alive.",
        )
    elif fixed is not None and fixed < 100 - MOSTLY:
        kind, advice = (
            "mostly at computed addresses: an array on the stack, not spilling",
            "Index local arrays with constants only, or move them to shared memory; more registers would "
            "not help.",
        )
    elif registers is not None and registers >= FULL_REGISTERS:
        kind, advice = (
            f"a possible register spill at {registers:.0f} registers a thread",
            "Look for spill stores in `ptxas -v`; if there are some, allow more registers or keep fewer "
            "values alive.",
        )
    else:
        kind, advice = (
            "most likely a stack array or a slow path of sin and cos, not spilling",
            "Index local arrays with constants only; check `ptxas -v` for a stack frame.",
        )
    where = _where(k)
    return Found(
        f"Local memory is in use{_counted(k, instructions, share)}, {kind}",
        severity,
        advice=advice,
        detail=f"Of the local accesses {listed(where)}." if where else "",
        gain=None if share is None else k.relief(share, "l1", "l2"),
        places=where,
    )


def _fixed(k: View) -> float | None:
    """Return how much [%] of the local accesses is at constant offsets from the stack pointer R1.

    The compiler keeps an array that it indexes with constants in registers, so such accesses are spills, or
    arguments of a called function.  None without the code.
    """
    rows = [] if k.source is None else [row for row in k.source.rows if LOCAL.match(row.opcode)]
    total = sum(row.cost.instructions or 0 for row in rows)
    if not total:
        return None
    return 100 * sum(row.cost.instructions or 0 for row in rows if STACK.search(row.text)) / total


def _calls(k: View) -> bool:
    """Return whether functions are called so often that the local accesses can be what they are given."""
    rows = () if k.source is None else k.source.rows
    calls = sum(row.cost.instructions or 0 for row in rows if row.opcode.startswith("CALL"))
    return calls * ARGUMENTS >= sum(row.cost.instructions or 0 for row in rows if LOCAL.match(row.opcode))


def _counted(k: View, instructions: float, share: float | None) -> str:
    """Return how much of it there is; few instructions beside much traffic are a counter that missed."""
    words = []
    mix = k.get("local_inst_share_pct")
    if instructions > FEW:
        part = f", {brief(mix, '%')} of all" if mix is not None else ""
        words.append(f"{brief(instructions)} instructions{part}")
    if share:
        words.append(f"{brief(share, '%')} of the cache traffic")
    return f" ({'; '.join(words)})" if words else ""


FEW = 8.0
"""[inst] Fewer local accesses than this are not worth a number."""
