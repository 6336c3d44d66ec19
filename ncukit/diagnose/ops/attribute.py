"""Which operator launched which work of the GPU, and made which CUDA call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.diagnose.ops.nesting import Nest
from ncukit.diagnose.timeline.scope import launching_calls
from ncukit.model.ops import Attribution, TorchTrace
from ncukit.model.trace import UNKNOWN, Columns
from ncukit.record import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

WORK = ("kernels", "copies", "memsets")


@dataclass(frozen=True, eq=False)
class Owners:
    """The operator of each piece of work and of each call, as a row of the nest, or -1."""

    of: dict[str, Ints]
    of_calls: Ints
    attribution: Attribution


def owners(trace: TorchTrace, nest: Nest) -> Owners:
    """Return what belongs to which operator.

    The call that launched the work (same correlation) ran inside the operator, on its thread.  Where the
    trace lacks that call, or no operator was open then, torch's External id tells, if it is an operator's.
    """
    import numpy as np

    rows = trace.trace
    ids = _operators_by_id(trace, nest)
    calls = rows.calls
    inside = nest.innermost(calls["thread"], calls["start"])
    of_calls = np.where(inside == UNKNOWN, _by_id(calls, ids), inside)
    of: dict[str, Ints] = {}
    sums = dict.fromkeys(("work", "by_call", "by_id", "outside", "n", "n_outside", "without_call"), 0)
    for kind in WORK:
        work: Columns = getattr(rows, kind)
        call = launching_calls(calls, work)
        by_call = np.where(call == UNKNOWN, UNKNOWN, inside[call] if len(calls) else UNKNOWN)
        named = _by_id(work, ids)
        of[kind] = np.where(by_call == UNKNOWN, named, by_call)
        length, lost = work.duration, of[kind] == UNKNOWN
        sums["work"] += int(length.sum())
        sums["by_call"] += int(length[by_call != UNKNOWN].sum())
        sums["by_id"] += int(length[(by_call == UNKNOWN) & ~lost].sum())
        sums["outside"] += int(length[lost].sum())
        sums["n"] += len(work)
        sums["n_outside"] += int(lost.sum())
        sums["without_call"] += int((call == UNKNOWN).sum())
    return Owners(of, of_calls, Attribution(**sums))


def _operators_by_id(trace: TorchTrace, nest: Nest) -> tuple[Ints, Ints]:
    """Return the External ids of operators, sorted, and the operator of each; none where they mean nothing.

    Old versions write the correlation into the External id of GPU work: then it names no operator.
    """
    import numpy as np

    none = np.empty(0, np.int64)
    seen = [rows for kind in WORK if len(rows := getattr(trace.trace, kind))]
    if all(((r["external"] == r["correlation"]) | (r["external"] == UNKNOWN)).all() for r in seen):
        return none, none
    external = trace.operators["external"][nest.order]
    known = np.flatnonzero(external != UNKNOWN)
    order = known[np.argsort(external[known], kind="stable")]
    return external[order], order


def _by_id(rows: Columns, ids: tuple[Ints, Ints]) -> Ints:
    import numpy as np

    known, operators = ids
    if not len(known) or not len(rows):
        return np.full(len(rows), UNKNOWN, np.int64)
    place = np.minimum(np.searchsorted(known, rows["external"]), len(known) - 1)
    return np.where(known[place] == rows["external"], operators[place], UNKNOWN)
