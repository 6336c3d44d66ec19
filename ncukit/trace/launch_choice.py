"""Which launch deserves ncu, the options that make ncu measure exactly that one, and whether it did."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ncukit.errors import UsageError
from ncukit.model import Kernel
from ncukit.model.run import Chosen
from ncukit.model.trace import (
    UNKNOWN,
    Candidate,
    Columns,
    KernelTime,
    Launch,
    LaunchChoice,
    Match,
    ShapeTime,
    Timeline,
    Trace,
)
from ncukit.quantity import time
from ncukit.record import dataclass
from ncukit.run.tools.names import NamePattern, any_spelling, escape, spelled
from ncukit.run.workload.annotation import RANGE
from ncukit.trace.activity import CONFIGURATION, configurations, launch_order, ranking, steady
from ncukit.trace.scope import AMD, PROCESS, Scope, devices, in_range, is_amd, main_device, whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


# ---- Which launch deserves ncu, and the options that make ncu measure exactly that one

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


# ---- Which traced kernel a launch that ncu measured belongs to: by name, then grid and block, then registers

Shape = tuple[tuple[int, int, int], tuple[int, int, int]]


class Matcher:
    """Finds the launches that ncu measured among the kernels of a timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._named: dict[str, KernelTime] = {}
        self._functions: dict[str, list[KernelTime]] = {}
        for kernel in timeline.kernels:
            self._named.setdefault(spelled(kernel.name), kernel)
            self._functions.setdefault(kernel.short, []).append(kernel)

    def find(self, kernel: Kernel) -> Match | None:
        """Return the traced kernel of the launch ``kernel``, None where the trace does not hold it.

        Its whole name decides; where no kernel has it, the function name does, if only one kernel has that
        name, or only one of them has the launch's grid and block.
        """
        shape, registers = shape_of(kernel), kernel.number("registers_per_thread")
        if (named := self._named.get(spelled(kernel.demangled))) is not None:
            return _match(named, shape, registers, "name")
        same = self._functions.get(kernel.name, [])
        if len(same) > 1:
            same = [k for k in same if shape is not None and _of_shape(k.shapes, shape)]
        return _match(same[0], shape, registers, "function name") if len(same) == 1 else None


def shape_of(kernel: Kernel) -> Shape | None:
    """Return grid and block of a launch that ncu measured, None where they are not in the report."""
    sizes = [kernel.number(f"{what}_dim_{axis}") for what in ("grid", "block") for axis in "xyz"]
    if None in sizes:
        return None
    x, y, z, a, b, c = (int(size or 0) for size in sizes)
    return (x, y, z), (a, b, c)


def _of_shape(shapes: Sequence[ShapeTime], shape: Shape) -> list[ShapeTime]:
    return [s for s in shapes if (s.grid, s.block) == shape]


def _match(kernel: KernelTime, shape: Shape | None, registers: float | None, by: str) -> Match:
    """Return the match with the shape of most launches; the same registers win."""
    same = _of_shape(kernel.shapes, shape) if shape is not None else []
    if not same:
        return Match(kernel, None, (by,))
    if exact := [s for s in same if s.registers == registers]:
        return Match(kernel, exact[0], (by, "grid and block", "registers"))
    return Match(kernel, same[0], (by, "grid and block"))


# ---- Which launch of a run's trace ncu is to measure, and whether its filter lets that through first


def launch_for_ncu(
    trace: Trace, pattern: str | None = None, allow_collective: bool = False, range: str | None = None
) -> Chosen:
    """Return the launch of ``trace`` that deserves ncu: in the NVTX range ``range``, else in the marked one.

    Launches are counted within that region only.

    Raises:
        UsageError: no launch can be chosen; the hint names the nearest.
    """
    scope, marked = region(trace, range)
    choice = choose_launch(scope, Request(pattern, allow_collective, count_in_range=True))
    fits = first_fits(scope, choice.launch, by_function="function" in choice.selection)
    return Chosen(choice, fits, marked, len(trace.kernels))


def region(trace: Trace, range: str | None = None) -> tuple[Scope, str | None]:
    """Return the region of a run's trace and its name: ``range``, else the marked one, else all of the trace.

    Raises:
        UsageError: there is no range ``range``, or nothing was launched in it.
    """
    if range is not None:
        return in_range(trace, range), range
    if RANGE in trace.names:
        try:
            return in_range(trace, RANGE), RANGE
        except UsageError:  # the mark is there, but launches cannot be attributed to it
            pass
    return whole(trace), None


def first_fits(scope: Scope, launch: Launch, *, by_function: bool) -> bool:
    """Return whether the first launch of that name has the configuration of ``launch``.

    Then nothing has to be skipped to reach such a launch, however ncu counts.
    """
    import numpy as np

    rows, ordered = scope.rows("kernels"), launch_order(scope)
    column, name = ("short", launch.short) if by_function else ("name", launch.name)
    ids = [i for i, text in enumerate(scope.trace.names) if text == name] or [UNKNOWN]
    same = np.flatnonzero(np.isin(rows[column], ids) & (rows["process"] == launch.process))
    if not len(same):
        return False
    first = int(same[np.lexsort((rows["start"][same], ordered[same]))[0]])
    wanted = (*launch.grid, *launch.block, launch.registers, launch.static_shared, launch.dynamic_shared)
    return tuple(int(rows[name][first]) for name in CONFIGURATION) == wanted
