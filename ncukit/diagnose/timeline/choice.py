"""Which launch deserves ncu, and the options that make ncu measure exactly that one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ncukit.diagnose.gpus import AMD, is_amd
from ncukit.diagnose.timeline.devices import devices, main_device
from ncukit.diagnose.timeline.kernels import configurations, launch_order, ranking, steady
from ncukit.diagnose.timeline.scope import PROCESS, Scope, whole
from ncukit.errors import UsageError
from ncukit.model.timeline import Candidate, KernelTime, Launch, LaunchChoice, Timeline
from ncukit.model.trace import UNKNOWN, Columns
from ncukit.quantity import time
from ncukit.record import dataclass
from ncukit.tools.names import NamePattern, any_spelling, escape

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

RUNNERS_UP = 5
NEAR = 0.1
"""A launch whose duration differs from the median by at most this share is near enough, if it comes early."""
_WHY_NOT = {
    "compute": "less time",
    "helper": "only fills, copies, flushes or makes random numbers; ask for it by name",
    "collective": "communicates: ncu replays it while the other ranks wait; needs --allow-collective",
}


@dataclass(frozen=True)
class Request:
    """What the user asked for: ``pattern`` of the kernel's name (None: the one with the most time).

    ``count_in_range`` counts launches only within the region, for an ncu run that sees only that region.
    """

    pattern: str | None = None
    allow_collective: bool = False
    count_in_range: bool = False


def choose_launch(
    scope: Scope, request: Request | None = None, timeline: Timeline | None = None
) -> LaunchChoice:
    """Return the launch of the region that deserves ncu, and the ncu options that select it.

    The kernel with the most steady time wins; helpers only if nothing else matches a given pattern,
    collectives only if allowed.  Of that kernel, the configuration with the most steady time, and of it the
    first launch with the median duration.  ``timeline`` is that of ``scope``, if it is known already.

    Raises:
        UsageError: nothing matches (the hint names the nearest), only collectives match (``collective``),
            only helpers ran, all kernels are in graphs that were traced as a whole (``inside-graph``), or the
            GPU is none of NVIDIA's (``not-nvidia``).
    """
    request = request or Request()
    if is_amd((gpu.name for gpu in scope.trace.gpus.values()), scope.trace.names):
        raise UsageError(*AMD, code="not-nvidia")
    ranked = ranking(scope, main_device(devices(scope))) if timeline is None else timeline.kernels
    pool = _pool(scope, ranked, request)
    best = max(pool, key=lambda kernel: kernel.steady.total)
    launch, how = _launch(scope, best, request)
    function = _is_distinctive(scope, best, launch.process)
    name = f"regex:^{escape(best.short if function else best.name)}$"
    if not function and scope.trace.file.format == "torch":  # whose demangler is not ncu's
        name = f"regex:{any_spelling(best.name)}"
    selection = (
        *("--kernel-name-base", "function" if function else "demangled", "--kernel-name", name),
        *("--launch-skip", str(launch.nth), "--launch-count", "1"),
        *(("--graph-profiling", "node") if launch.in_graph else ()),
    )
    every = sum(kernel.launches.total for kernel in ranked)
    rest = [kernel for kernel in ranked if kernel is not best]
    return LaunchChoice(
        launch,
        selection,
        (_why(best, every, request), *how),
        tuple(_candidate(kernel, every, pool) for kernel in rest[:RUNNERS_UP]),
        _cautions(scope, best, launch, function),
    )


def _pool(scope: Scope, ranked: tuple[KernelTime, ...], request: Request) -> list[KernelTime]:
    graphs = len(scope.rows("graphs"))
    inside = "they may be inside CUDA graphs, traced as a whole: trace with --cuda-graph-trace=node"
    if not ranked and graphs:
        raise UsageError(
            "no launch to choose: all kernels ran inside a CUDA graph that was traced as a whole",
            "Trace again with nsys --cuda-graph-trace=node.",
            code="inside-graph",
        )
    if not ranked:
        raise UsageError("no launch to choose: no kernel ran in the region", "Choose another --range.")
    pattern = None if request.pattern is None else NamePattern(request.pattern)
    found = [k for k in ranked if pattern is None or pattern.matches(k.short, k.name)]
    if not found:
        every = sum(k.launches.total for k in ranked) or 1
        share = {k.short: 0.0 for k in ranked}
        for k in ranked:
            share[k.short] += 100 * k.launches.total / every
        near = ", ".join(f"{n} ({share[n]:.1f} %)" for n in _nearest(request.pattern or "", share))
        raise UsageError(
            f"no kernel of the region matches {request.pattern!r}",
            f"Nearest, with their share of kernel time: {near}." + (f" Or {inside}." if graphs else ""),
            code="inside-graph" if graphs else "no-such-kernel",
        )
    if compute := [k for k in found if k.kind == "compute"]:
        return compute
    allowed = [k for k in found if k.kind == "collective" and request.allow_collective]
    if allowed:
        return allowed
    if request.pattern is not None and (helpers := [k for k in found if k.kind == "helper"]):
        return helpers
    if any(k.kind == "collective" for k in found):
        raise UsageError(
            f"{found[0].short} communicates with other GPUs: ncu would replay it while the other ranks wait",
            "Choose another kernel, or pass --allow-collective if it runs alone.",
            code="collective",
        )
    raise UsageError(
        "only helper kernels ran: fills, copies, flushes or random numbers",
        f"Ask for one by name: {', '.join(k.short for k in found[:RUNNERS_UP])}.",
    )


def _nearest(pattern: str, names: Iterable[str], n: int = RUNNERS_UP) -> list[str]:
    """Return the names that share the longest piece with ``pattern``, the best first."""

    def likeness(name: str) -> int:
        matcher = difflib.SequenceMatcher(None, pattern.lower(), name.lower(), autojunk=False)
        return matcher.find_longest_match().size

    return sorted(names, key=lambda name: (-likeness(name), name))[:n]


def _launch(scope: Scope, best: KernelTime, request: Request) -> tuple[Launch, tuple[str, ...]]:
    """Return the launch of ``best`` to measure, and why it is this one."""
    import numpy as np

    rows, ordered = scope.rows("kernels"), launch_order(scope)
    group = np.flatnonzero(_named(scope, rows, best.name))
    group = group[np.lexsort((rows["start"][group], ordered[group]))]
    config, duration = configurations(rows)[group], rows.duration[group]
    kept, tuning, warmup = steady(config, duration)
    totals = {int(c): int(duration[kept & (config == c)].sum()) for c in np.unique(config[kept])}
    most = max(totals, key=lambda c: totals[c])
    of_config = np.flatnonzero(kept & (config == most))
    median = float(np.median(duration[of_config]))
    distance = np.abs(duration[of_config] - median)
    near = max(NEAR * median, float(distance.min())) if request.count_in_range else float(distance.min())
    place = int(of_config[np.argmax(distance <= near)])  # the first: ncu measures all before it as well
    row = int(group[place])
    launch = _describe(scope, rows, row, best, request)
    before = [f"{n:,} of {what}" for n, what in ((tuning, "autotuning"), (warmup, "warm-up")) if n]
    left_out = f", {' and '.join(before)} left out" if before else ""
    why = [
        f"launch {launch.nth + 1:,} of {launch.matches:,}: steady{left_out}; of its configuration the first "
        f"whose duration is {'near' if request.count_in_range else 'nearest to'} the median, {time(median)}"
    ]
    if len(totals) > 1:
        why.append(f"its grid, block and memory take the most time of {len(totals)} configurations")
    return launch, tuple(why)


def _describe(scope: Scope, rows: Columns, row: int, best: KernelTime, request: Request) -> Launch:
    import numpy as np

    value = {name: int(rows[name][row]) for name in rows.names()}
    counted = scope if request.count_in_range or scope.range is None else whole(scope.trace)
    every, ordered = counted.rows("kernels"), launch_order(counted)
    same = _named(counted, every, best.name)
    if _is_distinctive(scope, best, value["process"]):
        same = _shorts(counted, every, best.short)
    same &= every["process"] == value["process"]
    when = int(launch_order(scope)[row])
    before = (ordered < when) | ((ordered == when) & (every["start"] < value["start"]))
    return Launch(
        name=best.name,
        short=best.short,
        grid=(value["grid_x"], value["grid_y"], value["grid_z"]),
        block=(value["block_x"], value["block_y"], value["block_z"]),
        registers=value["registers"],
        static_shared=value["static_shared"],
        dynamic_shared=value["dynamic_shared"],
        device=value["device"],
        stream=value["stream"],
        process=value["process"],
        start=value["start"],
        duration=value["end"] - value["start"],
        nth=int(np.count_nonzero(same & before)),
        matches=int(np.count_nonzero(same)),
        in_graph=value["graph_node"] > 0,
    )


def _named(scope: Scope, rows: Columns, name: str) -> NDArray[np.bool_]:
    import numpy as np

    texts = scope.trace.names
    wanted = [int(i) for i in np.unique(rows["name"]) if i != UNKNOWN and texts[int(i)] == name]
    return np.isin(rows["name"], wanted or [UNKNOWN])


def _shorts(scope: Scope, rows: Columns, short: str) -> NDArray[np.bool_]:
    import numpy as np

    texts = scope.trace.names
    wanted = [int(i) for i in np.unique(rows["short"]) if i != UNKNOWN and texts[int(i)] == short]
    return np.isin(rows["short"], wanted or [UNKNOWN])


def _is_distinctive(scope: Scope, best: KernelTime, process: int) -> bool:
    """Return whether the short name means only this kernel in its process; in CUTLASS all are "Kernel"."""
    import numpy as np

    rows = scope.trace.kernels
    same = _shorts(scope, rows, best.short) & (rows["process"] == process)
    return bool(same.any()) and len(np.unique(rows["name"][same])) == 1


def _why(best: KernelTime, every: int, request: Request) -> str:
    share = 100 * best.launches.total / every if every else 0.0
    asked = f" that match {request.pattern!r}" if request.pattern is not None else ""
    kind = {"compute": "computing", "helper": "helper", "collective": "collective"}[best.kind]
    launches = f"{best.launches.n:,} {'launch' if best.launches.n == 1 else 'launches'}"
    return (
        f"{best.short} has the most steady time of the {kind} kernels{asked}: {time(best.launches.total)} in "
        f"{launches}, {share:.1f} % of all kernel time"
    )


def _candidate(kernel: KernelTime, every: int, pool: list[KernelTime]) -> Candidate:
    why = _WHY_NOT[kernel.kind] if kernel.kind != "compute" or kernel in pool else "does not match the name"
    share = 100 * kernel.launches.total / every if every else 0.0
    return Candidate(kernel.name, kernel.kind, kernel.launches.n, kernel.launches.total, share, why)


def _cautions(scope: Scope, best: KernelTime, launch: Launch, function: bool) -> tuple[str, ...]:
    """Return what could make ncu count differently than this trace."""
    import numpy as np

    rows = scope.trace.kernels
    same = _shorts(scope, rows, best.short) if function else _named(scope, rows, best.name)
    found = []
    if len(processes := np.unique(rows["process"][same])) > 1:
        pid = launch.process >> 24 & 0xFFFFFF
        found.append(f"{len(processes)} processes launch it: run ncu on the one with id {pid}")
    call = whole(scope.trace).call_of["kernels"][same]
    if len(scope.trace.calls) and (known := call[call != UNKNOWN]).size:
        threads = scope.trace.calls["thread"][known]
        if len(np.unique(threads[(threads & PROCESS) == launch.process])) > 1:
            found.append("several threads launch it: their order may differ under ncu")
    if best.tuning:
        found.append("autotuning may launch it another number of times under ncu: compare the result's grid")
    if best.kind == "collective":
        found.append("ncu replays it: every rank must run under ncu, with one pass")
    return tuple(found)
