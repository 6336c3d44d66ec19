"""Is there a measurement, and does it cover both sides of the machine?"""

from __future__ import annotations

from ncukit.diagnose.call import Call
from ncukit.diagnose.facts import Facts


def failed(f: Facts) -> Call | None:
    """A failed launch is not judged."""
    return Call("failed", None, "failed", words={"why": f.kernel.failed}) if f.kernel.failed else None


def undetermined(f: Facts) -> Call | None:
    """Nothing was full so far: without both sides that proves nothing."""
    if f.shares.sm_side and f.shares.memory_side:
        return None
    sides = [
        side
        for side, known in (("the SMs", f.shares.sm_side), ("the memory system", f.shares.memory_side))
        if not known
    ]
    return Call("undetermined", None, "undetermined", words={"sides": " and ".join(sides)})
