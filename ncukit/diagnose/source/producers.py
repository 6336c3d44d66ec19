"""Which instruction a waiting one waits for: a sample names the victim, the cause stands before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ncukit.diagnose.source.sass import Instruction

REACH = 400
"""Instructions looked back: a loop body that is longer hides the load of its own iteration anyway."""

_LONG = re.compile(r"^(LDG|LDL|LD|LDT|TEX|TLD4?|TMML|TXD|SULD|ATOM|ATOMG|ATOMS|SYNCS|LDTM|CCTL)$")
_SHORT = re.compile(
    r"^(LDS|LDSM|ATOMS|SHFL|MUFU|S2R|S2UR|I2F|F2I|F2F|FRND|I2FP?|LDC|ULDC|LDCU|R2UR|POPC|FLO|BREV|MATCH|REDUX|"
    r"VOTE|VOTEU|MOVM|B2R|SYNCS|LDTM|ELECT|QSPC|DADD|DMUL|DFMA|DSETP)$"
)
_STORE = re.compile(r"^(ST|STG|STL|STS|RED|REDG|ATOM|ATOMG|UTMASTG|UTMAREDG|SUST)$")
COPY_WAITS = ("DEPBAR", "LDGDEPBAR")
"""Waits for asynchronous copies; like that of a barrier, theirs is sampled at them or behind them."""

_COPY = re.compile(r"^(LDGSTS|UTMALDG|UBLKCP)$")

Code = Sequence[Instruction]


def producer(code: Code, jumps: Sequence[int | None], row: int, start: int, state: str) -> int | None:
    """Return the position of what ``code[row]`` waits for in ``state`` (raw name), or None.

    The function begins at ``start``; ``jumps`` are the positions that branches lead to.  Where nothing before
    ``row`` fits and a later branch leads back before it, the search goes on from that branch: the load then
    belongs to the iteration before.
    """
    if state == "barrier":
        return _barrier(code, row, start)
    if state == "drain":
        done = _before(code, row, start, lambda i: i.opcode == "EXIT", 2)
        return None if done is None else _before(code, done, start, _is(_STORE), REACH)
    if state == "membar":
        return _before(code, row, start, lambda i: i.opcode in ("MEMBAR", "FENCE", "ERRBAR"), 3)
    if state not in ("long_scoreboard", "short_scoreboard"):
        return None
    kinds = _LONG if state == "long_scoreboard" else _SHORT
    if code[row].opcode in COPY_WAITS or (row > start and code[row - 1].opcode in COPY_WAITS):
        return _before(code, row, start, _is(_COPY), REACH)
    needed = code[row].reads
    if not needed:
        return None
    found = _writer(code, row, start, needed, kinds)
    if found is not None:
        return found
    for branch in range(row, min(len(code), row + REACH)):
        target = jumps[branch]
        if target is not None and start <= target <= row:
            return _writer(code, branch, row + 1, needed, kinds)
    return None


def _barrier(code: Code, row: int, start: int) -> int | None:
    """Return the barrier before ``row``; for a wait on warp-group MMA the MMA."""
    if code[row].opcode == "WARPGROUP":
        return _before(code, row, start, lambda i: i.opcode.endswith("GMMA"), REACH)
    return _before(code, row, start, lambda i: i.opcode in ("BAR", "UCGABAR_WAIT", "WARPSYNC"), 2)


def _writer(code: Code, row: int, start: int, needed: frozenset[str], kinds: re.Pattern[str]) -> int | None:
    """Return the last instruction before ``row`` of these kinds that writes something needed."""
    left = set(needed)
    for position in range(row - 1, max(start, row - REACH) - 1, -1):
        written = code[position].writes & left
        if written and kinds.match(code[position].opcode):
            return position
        if not code[position].guarded:
            left -= written  # overwritten by something else: an older load of it is done
        if not left:
            return None
    return None


def _is(pattern: re.Pattern[str]) -> Callable[[Instruction], bool]:
    return lambda instruction: pattern.match(instruction.opcode) is not None


def _before(code: Code, row: int, start: int, fits: Callable[[Instruction], bool], reach: int) -> int | None:
    for position in range(row - 1, max(start, row - reach) - 1, -1):
        if fits(code[position]):
            return position
    return None
