"""Calls of the same operator with the same inputs as one row, with all that they launched."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ncukit.diagnose.ops.attribute import Owners
from ncukit.diagnose.ops.nesting import Nest
from ncukit.diagnose.timeline.calls import Named
from ncukit.model.ops import KernelUse, Operator, TorchTrace
from ncukit.model.trace import UNKNOWN, Columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

IDENTITY = ("name", "shapes", "types")


def keys(operators: Columns) -> tuple[Ints, Ints]:
    """Return the distinct operators (name, shapes, types), and for each call which of them it is."""
    import numpy as np

    if not len(operators):
        return np.empty((0, 3), np.int64), np.empty(0, np.int64)
    rows = np.stack([operators[field] for field in IDENTITY], axis=1)
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    return distinct, which.reshape(-1)


def operators(trace: TorchTrace, nest: Nest, distinct: Ints, owned: Owners) -> tuple[Operator, ...]:
    """Return the operators in no order; ``distinct`` is from `keys`."""
    import numpy as np

    n, rows, names = len(distinct), trace.trace, trace.trace.names
    if not len(nest):
        return ()
    device = np.zeros(len(nest), np.int64)
    for kind, of in owned.of.items():
        work: Columns = getattr(rows, kind)
        np.add.at(device, of[of != UNKNOWN], work.duration[of != UNKNOWN])
    top = nest.outermost

    def summed(values: Ints, where: NDArray[np.bool_] | None = None) -> list[int]:
        key = nest.key if where is None else nest.key[where]
        total = np.zeros(n, np.int64)
        np.add.at(total, key, values)
        found: list[int] = total.tolist()
        return found

    cpu_total = summed((nest.end - nest.start)[top], top)
    device_total = summed(nest.with_inner(device)[top], top)
    calls, cpu_self, device_self = summed(np.ones_like(nest.own)), summed(nest.own), summed(device)
    used = _kernels(trace, nest, owned)
    counts = {kind: _of(n, nest, owned.of[kind], np.ones(len(owned.of[kind]), np.int64)) for kind in owned.of}
    copies = rows.copies
    copy_bytes = _of(n, nest, owned.of["copies"], np.maximum(copies["bytes"], 0))
    copy_time = _of(n, nest, owned.of["copies"], copies.duration)
    waiting = Named(rows, rows.calls).is_kind("wait") if len(rows.calls) else np.empty(0, bool)
    waited = owned.of_calls[waiting]
    waits = _of(n, nest, waited, rows.calls.duration[waiting])
    wait_calls = _of(n, nest, waited, np.ones(len(waited), np.int64))
    allocated, freed = _allocations(trace, nest, n)
    return tuple(
        Operator(
            name=names[name],
            shapes=names[shapes] if shapes != UNKNOWN else "",
            types=names[types] if types != UNKNOWN else "",
            calls=calls[k],
            cpu_total=cpu_total[k],
            cpu_self=cpu_self[k],
            device_total=device_total[k],
            device_self=device_self[k],
            kernels=used.get(k, ()),
            kernel_launches=counts["kernels"][k],
            copies=counts["copies"][k],
            copy_bytes=copy_bytes[k],
            copy_time=copy_time[k],
            memsets=counts["memsets"][k],
            waits=waits[k],
            wait_calls=wait_calls[k],
            allocated=allocated[k],
            freed=freed[k],
        )
        for k, (name, shapes, types) in enumerate(distinct.tolist())
    )


def _of(n: int, nest: Nest, owner: Ints, values: Ints) -> list[int]:
    """Return the sum of ``values`` for each of ``n`` keys, by the operator that owns each value."""
    import numpy as np

    known = owner != UNKNOWN
    total = np.zeros(n, np.int64)
    np.add.at(total, nest.key[owner[known]], values[known])
    found: list[int] = total.tolist()
    return found


def _kernels(trace: TorchTrace, nest: Nest, owned: Owners) -> dict[int, tuple[KernelUse, ...]]:
    """Return the kernels that each operator launched itself, the longest total first."""
    rows, names = trace.trace.kernels, trace.trace.names
    owner = owned.of["kernels"]
    known = owner != UNKNOWN
    sums: dict[int, dict[int, list[int]]] = defaultdict(dict)
    columns = (nest.key[owner[known]], rows["name"][known], rows["short"][known], rows.duration[known])
    for key, name, short, length in zip(*(column.tolist() for column in columns), strict=True):
        found = sums[key].setdefault(name, [short, 0, 0])
        found[1] += 1
        found[2] += length
    return {
        key: tuple(
            sorted(
                (KernelUse(names[name], names[short], n, total) for name, (short, n, total) in of.items()),
                key=lambda use: (-use.total, use.name),
            )
        )
        for key, of in sums.items()
    }


def _allocations(trace: TorchTrace, nest: Nest, n: int) -> tuple[list[int], list[int]]:
    """Return the bytes that each operator allocated itself, and those that it freed."""
    import numpy as np

    rows = trace.memory
    owner = nest.innermost(rows["thread"], rows["start"])
    grown = _of(n, nest, owner, np.maximum(rows["bytes"], 0))
    return grown, _of(n, nest, owner, np.maximum(-rows["bytes"], 0))
