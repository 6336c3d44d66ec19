"""The ranking of kernels, and which launches of each are steady: neither autotuning nor warm-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.diagnose.timeline.intervals import lengths_by
from ncukit.diagnose.timeline.names import kernel_kind
from ncukit.diagnose.timeline.scope import Scope
from ncukit.diagnose.timeline.statistics import spread, spreads_by
from ncukit.model.timeline import KernelTime, ShapeTime
from ncukit.model.trace import UNKNOWN, Columns, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]

CONFIGURATION = (
    *(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"),
    *("registers", "static_shared", "dynamic_shared"),
)
RUN = 3
"""Autotuners try one configuration several times in a row; models alternate between theirs."""
WARM = 1.05
"""A first launch this much slower than the median of the later half is warm-up (clocks, caches, loading)."""
RANKED = 2000
"""Kernels beyond this many, by total time, get no steady statistics of their own."""
SHAPES = 500
"""Configurations of one kernel that are told apart, by total time."""


def ranking(scope: Scope, main: int | None) -> tuple[KernelTime, ...]:
    """Return the kernels of the region by total time; ``main`` is the device that shares refer to."""
    import numpy as np

    rows = scope.rows("kernels")
    if not len(rows):
        return ()
    names, trace = rows["name"], scope.trace
    others = scope.others[scope.inside["kernels"]]
    on_main = rows["device"] == main
    time = rows.take(on_main)
    busy = dict(zip(*(a.tolist() for a in lengths_by(time["name"], time["start"], time["end"])), strict=True))
    window = scope.windows[main].length if main is not None else 0
    config = configurations(rows)
    order = np.lexsort((rows["start"], launch_order(scope, rows), names))
    first = np.flatnonzero(np.concatenate(([True], np.diff(names[order]) != 0)))
    groups = dict(zip(names[order][first].tolist(), np.split(order, first[1:]), strict=True))
    duration = rows.duration
    all_launches = spreads_by(names, duration)
    found = []
    for i, (name, launches) in enumerate(sorted(all_launches.items(), key=lambda item: -item[1].total)):
        group = groups[name]
        kept, tuning, warmup = steady(config[group], duration[group]) if i < RANKED else (None, 0, 0)
        shapes, configured = _shapes(rows, config, group, kept)
        text = _text(trace, name)
        own = int(busy.get(name, 0))
        found.append(
            KernelTime(
                name=text,
                short=_text(trace, int(rows["short"][group[0]])) or text,
                kind=kernel_kind(text),
                launches=launches,
                steady=launches if kept is None else spread(duration[group][kept]),
                busy=own,
                share=100 * own / window if window else 0.0,
                bound=window / (window - own) if own < window else None,
                configurations=configured,
                other_threads=int(others[group].sum()),
                tuning=tuning,
                warmup=warmup,
                shapes=shapes,
            )
        )
    return tuple(found)


def _shapes(rows: Columns, config: Ints, group: Ints, kept: Mask | None) -> tuple[tuple[ShapeTime, ...], int]:
    """Return the configurations of the kernel with the launches ``group``, and how many it has in all."""
    import numpy as np

    if kept is None:
        return (), len(np.unique(config[group]))
    _, code = np.unique(config[group], return_inverse=True)
    duration = rows.duration[group]
    total = np.bincount(code, weights=duration)
    most = np.argsort(-total, kind="stable")[:SHAPES]
    chosen = np.isin(code, most) if len(total) > SHAPES else np.ones(len(code), np.bool_)
    every = spreads_by(code[chosen], duration[chosen])
    steadily = spreads_by(code[chosen & kept], duration[chosen & kept])
    order = np.lexsort((rows["start"][group], ~kept, code))
    first = group[order[np.searchsorted(code[order], np.arange(len(total)))]]
    columns = {name: rows[name][first].tolist() for name in (*CONFIGURATION, "start")}
    found = []
    for i in most.tolist():
        x, y, z, *rest = (columns[name][i] for name in CONFIGURATION)
        a, b, c, registers, static, dynamic = rest
        found.append(
            ShapeTime(
                (x, y, z),
                (a, b, c),
                registers,
                static,
                dynamic,
                every[i],
                steadily.get(i),
                columns["start"][i],
            )
        )
    return tuple(found), len(total)


def steady(config: Ints, duration: Ints) -> tuple[Mask, int, int]:
    """Return which launches of one kernel are steady, and how many were left out as tuning and as warm-up.

    ``config`` and ``duration`` [ns] are in launch order.  Tuning ends with the run of launches of the last
    configuration that is new, if the kernel then returns to older ones and the configurations came in runs.
    Warm-up are the first launches of a configuration, at most a quarter, that are slower than its later half.

    >>> import numpy as np
    >>> config = np.repeat([0, 1, 2, 1], [30, 30, 30, 10])
    >>> kept, tuning, warmup = steady(config, np.full(100, 5000))
    >>> int(kept.sum()), tuning, warmup
    (10, 90, 0)
    """
    import numpy as np

    kept = np.zeros(len(config), np.bool_)
    tuning = _tuning(config)
    kept[tuning:] = True
    rest = np.arange(tuning, len(config))
    order = rest[np.argsort(config[rest], kind="stable")]
    for group in np.split(order, np.flatnonzero(np.diff(config[order])) + 1):
        d = duration[group]
        limit = WARM * float(np.median(d[len(d) // 2 :]))
        slow = d[: max(2, len(d) // 4)] > limit
        if len(d) >= 4:
            kept[group[: int(np.argmin(slow)) if not slow.all() else len(slow)]] = False
    return kept, tuning, len(config) - tuning - int(kept.sum())


def _tuning(config: Ints) -> int:
    """Return how many launches at the beginning were autotuning."""
    import numpy as np

    _, seen = np.unique(config, return_index=True)
    if len(seen) < 2:
        return 0
    newest = int(seen.max())
    changed = np.flatnonzero(config[newest:] != config[newest])
    if not len(changed):
        return 0
    end = newest + int(changed[0])
    runs = 1 + int((np.diff(config[:end]) != 0).sum())
    return end if end >= RUN * runs else 0


def configurations(rows: Columns) -> Ints:
    """Return one number for each launch that is equal where grid, block, registers and shared memory are."""
    import numpy as np

    mixed = np.zeros(len(rows), np.uint64)
    for name in CONFIGURATION:
        mixed = (mixed ^ rows[name].astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)


def launch_order(scope: Scope, rows: Columns | None = None) -> Ints:
    """Return when the CPU launched each kernel of the region [ns], or its start where that is unknown."""
    import numpy as np

    rows = scope.rows("kernels") if rows is None else rows
    call = scope.call_of["kernels"][scope.inside["kernels"]]
    if not len(scope.trace.calls):
        return rows["start"]
    return np.where(call == UNKNOWN, rows["start"], scope.trace.calls["start"][call])


def collectives(kernels: tuple[KernelTime, ...]) -> tuple[KernelTime, ...]:
    """Return the kernels that communicate between GPUs."""
    return tuple(kernel for kernel in kernels if kernel.kind == "collective")


def _text(trace: Trace, name: int) -> str:
    return "(no name)" if name == UNKNOWN else trace.names[name]
