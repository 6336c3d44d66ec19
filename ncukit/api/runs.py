"""Runs: time, trace and measure a kernel; the profiled pair of an experiment; probes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ncukit.api.reports import PathLike
from ncukit.errors import NcukitError, ReportError, UsageError
from ncukit.model.experiment import SIDES, Observed, Prediction, Profiled

if TYPE_CHECKING:
    from ncukit.model.comparison import Comparison
    from ncukit.model.experiment import Probed
    from ncukit.model.run import Timing
    from ncukit.run.bench import ExperimentOptions, Sides
    from ncukit.run.options import ProfileOptions
    from ncukit.run.plan import Carried
    from ncukit.run.probes import ProbeOptions
    from ncukit.run.session import Listener


# ---- Single questions about this machine and about torch on it


def probe(*names: str, options: ProbeOptions | None = None) -> list[Probed]:
    """Return what the probes ``names`` find: device, dtype, allocator, graph-breaks, copy, matmul.

    What needs CUDA or torch runs in a process of its own; a probe that cannot answer says why.

    Raises:
        UsageError: there is no such probe, or an option does not fit.
        ToolError: the interpreter that was given cannot be started.

    >>> probe("dtype")[0].result["types"][0]["bytes_per_element"]
    8.0
    """
    from ncukit.errors import UsageError
    from ncukit.run.probes import NAMES, ProbeOptions
    from ncukit.run.tools import cuda
    from ncukit.run.tools.gpus import smi
    from ncukit.run.tools.locate import child_environment

    wanted, chosen = list(dict.fromkeys(names)), options or ProbeOptions()
    if not wanted:
        raise UsageError("there is no probe to run", f"one or more of: {', '.join(NAMES)}")
    if unknown := [name for name in wanted if name not in NAMES]:
        raise UsageError(f"there is no probe {unknown[0]!r}", f"one or more of: {', '.join(NAMES)}")
    if chosen.script is not None and chosen.call is None:
        raise UsageError("a script without --kernel", "name the workload or function of it to run")
    env = child_environment(os.environ).variables
    driver = cuda.driver(env) if {"device", "dtype"} & set(wanted) else cuda.Driver(None)

    def run(name: str) -> Probed:
        from ncukit.run.probes import device, dtype, in_child

        if name == "device":
            return device(driver, smi(env), os.environ)
        return dtype(chosen, driver) if name == "dtype" else in_child(name, chosen)

    return [run(name) for name in wanted]


def parse_shape(text: str) -> tuple[int, ...]:
    """Return "4096x4096" as (4096, 4096); commas serve as well.

    Raises:
        UsageError: it is no shape.

    >>> parse_shape("32x4096"), parse_shape("7")
    ((32, 4096), (7,))
    """
    from ncukit.errors import UsageError

    parts: Iterable[str] = text.lower().replace(",", "x").split("x")
    try:
        shape = tuple(int(part) for part in parts)
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise UsageError(f"{text!r} is no shape", "write it as 4096x4096")
    return shape


# ---- Runs: time, trace and measure a kernel


def profile(
    target: PathLike | Sequence[str],
    *,
    options: ProfileOptions | None = None,
    output: PathLike | None = None,
    resume: PathLike | None = None,
    listener: Listener | None = None,
    dask: str | None = None,
) -> Carried:
    """Time, trace and measure one kernel of ``target`` (a file, or words of a command) in a run directory.

    The result has the directory, the record (`ncukit.model.run.Run`) and the first failure, if any: what was
    gained before it is kept.  ``resume`` goes on with a run that was broken off, if ``target`` and
    ``options`` are those of its record.  With ``dask``, the address of a scheduler, workers that declare a
    GPU measure the points of a sweep; they see the same files under the same paths.

    Raises:
        UsageError: target and options do not fit, or the directory is in use.
        ReportError: the script cannot be read, or there is no run to resume.
        NcukitError: no cluster, or no worker of it with a GPU, does the work.
    """
    from ncukit.render.run.page import finisher
    from ncukit.render.run.sweep import write_sweep_page
    from ncukit.run.options import ProfileOptions
    from ncukit.run.plan import at_point, carry_out
    from ncukit.run.session import Silent
    from ncukit.run.sweep import Carry, Point, Reached, carry_sweep
    from ncukit.run.target import Target, resolve
    from ncukit.trace.launch_choice import launch_for_ncu

    wanted, heard = options or ProfileOptions(), listener or Silent()
    words = [os.fspath(target)] if isinstance(target, str | os.PathLike) else list(target)
    found, command = resolve(words, wanted), " ".join(["ncukit profile", *words])

    def one(at: Target, chosen: ProfileOptions, new: Path | None, old: Path | None) -> Carried:
        finish = finisher(command)
        return carry_out(at, chosen, launch_for_ncu, output=new, resume=old, listener=heard, finish=finish)

    def here(points: Sequence[Point]) -> Iterator[Reached]:
        for number, point in enumerate(points, 1):
            heard.note(f"point {number} of {len(points)}: {point.folder.name}")
            place = (None, point.folder) if point.started else (point.folder, None)
            yield Reached.of(point, one(*at_point(found, wanted, point.params), *place))

    new, old = (None if path is None else Path(path) for path in (output, resume))
    carry: Carry = here
    if dask is not None:
        from ncukit.api.datasets import carry_on_cluster

        if len(wanted.points) == 1:
            raise UsageError("a cluster measures the points of a sweep", "give several: --param n=1024,2048")
        carry = carry_on_cluster(found, wanted, dask, command, heard.note)
    elif len(wanted.points) == 1:
        return one(found.at(wanted.points[0]), wanted, new, old)
    return carry_sweep(
        found,
        wanted,
        carry,
        lambda path, points: write_sweep_page(path, points, command=command),
        output=new,
        resume=old,
        listener=listener,
    )


def time(
    target: PathLike | Sequence[str],
    *,
    options: ProfileOptions | None = None,
    listener: Listener | None = None,
) -> list[Timing]:
    """Check and time ``target`` without any profiler, once for each point of its parameters.

    Raises:
        UsageError: target and options do not fit.
        ReportError: the script cannot be read.
        ToolError: it fails, or its result is wrong (``wrong-result``).
    """
    import tempfile
    from dataclasses import replace

    from ncukit.run.directory import read_timing
    from ncukit.run.options import ProfileOptions
    from ncukit.run.plan import at_point, carry_out
    from ncukit.run.target import resolve
    from ncukit.trace.launch_choice import launch_for_ncu

    wanted = replace(options or ProfileOptions(), skip_nsys=True, skip_ncu=True)
    words = [os.fspath(target)] if isinstance(target, str | os.PathLike) else list(target)
    found, timings = resolve(words, wanted), []
    for point in wanted.points:
        with tempfile.TemporaryDirectory(prefix="ncukit-") as folder:
            path = Path(folder) / "run"
            try:
                carried = carry_out(
                    *at_point(found, wanted, point), launch_for_ncu, output=path, listener=listener
                )
            except KeyboardInterrupt as stop:
                raise KeyboardInterrupt(*stop.args) from None  # the folder goes away: nothing can go on
            if carried.failure is not None:
                raise carried.failure.error()
            timings.append(read_timing(path))
    return timings


# ---- The profiled pair of an experiment: one run of each side, for diagnosis only


def profile_pair(
    sides: Sides, options: ExperimentOptions, folder: Path, listener: Listener
) -> tuple[Profiled, tuple[Observed, ...]]:
    """Profile one run of each side and return what the named metrics did; for diagnosis only."""
    pass  # gone
    from ncukit.run.measure import no_driver
    from ncukit.run.tools import cuda
    from ncukit.run.tools.locate import child_environment

    why = "not asked for (--no-profile)"
    if options.profile:
        child = child_environment(os.environ, keep=options.env, clean=options.clean_env)
        cause = no_driver(cuda.driver(child.variables))
        why = "" if cause is None else cause.message
    if why:
        return Profiled("not-done", why), _unknown(options.predictions, f"no profiled pair: {why}")
    listener.note("profiling one run of each side, for diagnosis only")
    failures = []
    for side in SIDES:
        wanted = sides.profile_options(side)
        try:
            carried = profile(sides.words(side), options=wanted, output=folder / side, listener=listener)
        except NcukitError as error:  # what the repetitions showed stays
            failures.append(f"{side}: {error.message}")
            continue
        if carried.failure is not None:
            failures.append(f"{side}: {carried.failure.message}")
    summary, observed = _observed(folder, options.predictions, options.range)
    detail = "; ".join(failures) or "one run of each side was profiled"
    return Profiled("partial" if failures else "done", detail, SIDES, summary), observed


def _observed(
    folder: Path, predictions: Sequence[Prediction], range: str | None
) -> tuple[str, tuple[Observed, ...]]:
    from ncukit.api.comparisons import compare
    from ncukit.comparison.rows import watched as counted
    from ncukit.judge.effect import UNITS, watched

    traces = {side: _traced(folder / side, range) for side in SIDES}
    lost = "; ".join(f"{side}: {why}" for side, (_, why) in traces.items() if why)
    source = lost or f"one trace of each side, for each call of {'the region' if range is None else range}"
    found, comparison = [], None
    try:
        comparison = compare(folder / SIDES[0], folder / SIDES[1], match=["order"])
    except (ReportError, UsageError) as error:
        why = error.message
    for one in predictions:
        if one.metric in UNITS:
            found.append(watched(one, traces["baseline"][0], traces["variant"][0], source))
        elif comparison is None:
            found.append(Observed(one.metric, one.direction, "unknown", source=why))
        else:
            found.append(counted(one, comparison))
    return _limits(comparison), tuple(found)


def _limits(comparison: Comparison | None) -> str:
    """Return what limits each side; which of them is faster is for the repetitions to say."""
    if comparison is None or len(comparison.pairs) != 1:
        return ""
    verdicts = [side.diagnosis.verdict for side in (comparison.pairs[0].base, comparison.pairs[0].other)]
    words = [f"{v.cls} ({v.limiter})" if v.limiter else v.cls for v in verdicts]
    return f"The baseline is {words[0]}, the variant {words[1]}."


def _traced(folder: Path, range: str | None) -> tuple[Mapping[str, float], str]:
    """Return the metrics of the trace of a run for one call of its region, or why there are none."""
    from ncukit.judge.effect import traced
    from ncukit.run.directory import EXPORT, TORCH_TRACE, TRACE, inside, read_record
    from ncukit.trace.launch_choice import region
    from ncukit.trace.nsys import read_export
    from ncukit.trace.region import describe
    from ncukit.trace.scope import in_range
    from ncukit.trace.torch_events import read_torch_trace

    try:
        step = read_record(folder).step("timeline")
        if (folder / TORCH_TRACE).is_file():
            trace = read_torch_trace(inside(folder, TORCH_TRACE))
        else:
            trace = read_export(inside(folder, EXPORT), folder / TRACE, "nsys-rep")
        scope = region(trace)[0] if range is None else in_range(trace, range)
        words = step.command if step is not None else ()
        calls = int(words[words.index("--calls") + 1]) if "--calls" in words else 1
        return traced(describe(scope), calls), ""
    except (ReportError, UsageError) as error:
        return {}, error.message


def _unknown(predictions: Sequence[Prediction], why: str) -> tuple[Observed, ...]:
    return tuple(Observed(one.metric, one.direction, "unknown", source=why) for one in predictions)
