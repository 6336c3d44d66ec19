"""Measure the chosen launch with ncu, once, and prove that it was that launch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncukit.errors import ReportError, ToolError
from ncukit.model import RawKernel, Wanted
from ncukit.model.run import Chosen, Compared, Isolation
from ncukit.model.trace import Launch
from ncukit.record import dataclass
from ncukit.report.reader import Source
from ncukit.report.reader import failure as measurement_failure
from ncukit.run.directory import PROFILE
from ncukit.run.options import COSTLY, Collected, collected, estimate
from ncukit.run.session import Session, region_command, tool_failure
from ncukit.run.tools import gpus, ncu
from ncukit.run.tools.capabilities import Probe
from ncukit.run.tools.failures import Context, Failure, Outcome, failure, stamp
from ncukit.run.tools.names import Base, NamePattern, function_of, nvtx_range, qualified, spelled
from ncukit.run.tools.process import Completed
from ncukit.run.workload.annotation import RANGE
from ncukit.schemas.check import read_json

# ---- The proof of isolation: is what ncu captured the launch that was chosen?

_DIMS = {
    "grid": tuple(f"launch__grid_dim_{axis}" for axis in "xyz"),
    "block": tuple(f"launch__block_dim_{axis}" for axis in "xyz"),
}
_NUMBERS = {
    "registers per thread": ("registers", "launch__registers_per_thread"),
    "static shared memory [byte/block]": ("static_shared", "launch__shared_mem_per_block_static"),
    "dynamic shared memory [byte/block]": ("dynamic_shared", "launch__shared_mem_per_block_dynamic"),
}
DECISIVE = ("name", "grid", "block")
"""Without these nothing is proven."""
WANTED = Wanted(
    frozenset(
        (
            *(name for names in _DIMS.values() for name in names),
            *(metric for _, metric in _NUMBERS.values()),
            *("launch__grid_size", "gpu__time_duration.sum", "profiler__replayer_passes"),
        )
    )
)
"""What must be read of a report to compare."""


def prove(chosen: Chosen | None, captured: Sequence[RawKernel], index: int) -> Isolation:
    """Return whether launch ``index`` of ``captured`` is the chosen one, property by property.

    What one side does not tell is unknown, never equal.
    """
    at = min(index, len(captured) - 1)
    raw = captured[at]
    if chosen is None:
        words = "not proven: no timeline says which launch to choose; the first that matched was captured"
        return Isolation("unknown", words, tuple(_alone(raw)), at)
    launch = chosen.choice.launch
    rows = tuple(_rows(launch, raw))
    where = f"launch {launch.nth + 1:,} of {launch.matches:,}"
    different = [row for row in rows if row.same is False]
    lacking = [row.name for row in rows if row.same is None]
    if index >= len(captured):
        text = f"denied: ncu captured only {len(captured):,} of the {index + 1:,} launches up to {where}"
        return Isolation("denied", text, rows, at, launch.nth, launch.matches)
    if different:
        text = "denied: ncu captured another launch than the chosen one: " + "; ".join(
            f"{row.name} {row.captured} instead of {row.chosen}" for row in different
        )
        return Isolation("denied", text, rows, at, launch.nth, launch.matches)
    if any(name in lacking for name in DECISIVE):
        text = f"not proven: {' and '.join(lacking)} cannot be compared"
        return Isolation("unknown", text, rows, at, launch.nth, launch.matches)
    known = [row.name.split(" [")[0] for row in rows if row.same]
    text = f"proven: what ncu captured is the chosen launch ({where}): {', '.join(known)} are the same"
    if lacking:
        text += f"; not compared: {', '.join(lacking)}"
    return Isolation("proven", text, rows, at, launch.nth, launch.matches)


def only_configuration_differs(proof: Isolation) -> bool:
    """Return whether it is the chosen kernel in another configuration: what autotuning does."""
    rows = {row.name: row.same for row in proof.compared}
    return proof.verdict == "denied" and rows.get("name") is True


def squeezed(name: str) -> str:
    """Return a demangled name without spaces: ncu and nsys set them differently."""
    return name.replace(" ", "")


def _same_name(launch: Launch, raw: RawKernel) -> bool | None:
    """Return whether the names mean one kernel; None where demanglers write a lambda too differently."""
    if squeezed(launch.name) == squeezed(raw.demangled):
        return True
    if launch.name == launch.short:  # a trace without demangled names
        return launch.short == raw.function
    ours, theirs = qualified(launch.name), qualified(raw.demangled)
    if not ours.endswith(">") or not theirs.endswith(">"):
        return spelled(launch.name) == spelled(raw.demangled)
    if spelled(ours) == spelled(theirs):
        return True
    return None if "lambda" in ours and function_of(theirs) == launch.short else False


def _rows(launch: Launch, raw: RawKernel) -> list[Compared]:
    rows = [Compared("name", launch.name, raw.demangled or raw.function, _same_name(launch, raw))]
    for name, metrics in _DIMS.items():
        chosen = tuple(getattr(launch, name))
        found = [raw.metrics.get(metric) for metric in metrics]
        captured = None if None in found else tuple(int(value) for value in found if value is not None)
        known = captured is not None and min(chosen) >= 0
        rows.append(Compared(name, _dims(chosen), _dims(captured), captured == chosen if known else None))
    for name, (attribute, metric) in _NUMBERS.items():
        wanted, got = getattr(launch, attribute), raw.metrics.get(metric)
        known = got is not None and wanted >= 0
        rows.append(
            Compared(
                name,
                f"{wanted:,}" if wanted >= 0 else None,
                None if got is None else f"{int(got):,}",
                int(got or 0) == wanted if known else None,
            )
        )
    return rows


def _alone(raw: RawKernel) -> list[Compared]:
    found: list[Compared] = [Compared("name", None, raw.demangled or raw.function, None)]
    for name, metrics in _DIMS.items():
        values: list[Any] = [raw.metrics.get(metric) for metric in metrics]
        captured = None if None in values else tuple(int(v) for v in values)
        found.append(Compared(name, None, _dims(captured), None))
    return found


def _dims(values: tuple[int, ...] | None) -> str | None:
    if values is None or min(values) < 0:
        return None
    return " × ".join(f"{value:,}" for value in values)


# ---- Measure the chosen launch with ncu, once, and prove that it was that launch


@dataclass(frozen=True)
class Selection:
    """How ncu is told which launch: a filter, and what to count; ``index`` is its position in the report."""

    kernel: str | None
    base: Base
    skip: int
    count: int
    index: int


def select(chosen: Chosen | None, pattern: str | None, *, marked: bool) -> Selection:
    """Return the selection of the chosen launch, or of the first that matches where none was chosen.

    Whether ncu counts launches outside the marks when it skips is not the same in all versions.  So inside
    marks nothing is skipped: the first match is taken where it fits, else all matches up to the chosen one.
    """
    if chosen is None:
        if pattern is None:
            return Selection(None, "function", 0, 1, 0)
        return Selection(*NamePattern(pattern).ncu_filter(), 0, 1, 0)
    options = dict(zip(chosen.choice.selection[::2], chosen.choice.selection[1::2], strict=True))
    given = options["--kernel-name-base"]
    name_base: Base = "demangled" if given == "demangled" else "function"
    nth = chosen.choice.launch.nth
    if not marked:
        return Selection(options["--kernel-name"], name_base, nth, 1, 0)
    index = 0 if chosen.first_fits else nth
    return Selection(options["--kernel-name"], name_base, 0, index + 1, index)


def ncu_options(
    session: Session, what: Collected, selection: Selection, command: Sequence[str], output: Path
) -> ncu.NcuOptions:
    """Return what ncu is told: marks only where they are known to work."""
    marks, chosen = session.marks, session.chosen
    profiler = session.target.marked and bool(marks.get("profiler"))
    ranged = session.target.marked and (
        chosen.range is not None if chosen is not None else bool(marks.get("nvtx")) and not profiler
    )
    return ncu.NcuOptions(
        target=tuple(command),
        output=output,
        set=what.set,
        sections=what.sections,
        metrics=what.metrics,
        kernel=selection.kernel,
        kernel_base=selection.base,
        skip=selection.skip,
        count=selection.count,
        nvtx_include=_included(session.options.range, RANGE if ranged else None),
        profile_from_start=not profiler,
        replay_mode=session.options.replay_mode,
        clock_control=session.options.clock_control,
        cache_control=session.options.cache_control,
        graph_profiling=session.options.graph_profiling,
    )


def _included(asked: str | None, marked: str | None) -> tuple[str, ...]:
    """Return the range expressions for ncu: of the range ``asked`` for, in either style, else ``marked``."""
    if asked is not None:
        return nvtx_range(asked), nvtx_range(asked, push_pop=True)
    return () if marked is None else (nvtx_range(marked),)


def capture(session: Session) -> None:
    """Run ncu on the chosen launch and keep its report; what went wrong is recorded, not raised."""
    if session.options.skip_ncu:
        session.skip("counters", "--skip-ncu")
        return
    if session.finished("counters", PROFILE) and session.run.isolation is not None:
        return
    choice = session.run.step("choice")
    if choice is not None and choice.state == "failed":
        session.skip("counters", "no launch could be chosen")
        return
    if session.chosen is None and session.target.pattern is None and not session.target.marked:
        session.skip("counters", "without a timeline nothing says which kernel to measure: give --gpu-kernel")
        return
    try:
        tool = session.probe("ncu")
        what = collected_for(session, tool)
        if (cause := unsupported(session, tool)) is not None:
            session.failed(session.begin("counters"), cause)
            return
        _attempts(session, tool, what)
    except ToolError as error:
        session.failed(session.begin("counters"), tool_failure(error))


def collected_for(session: Session, tool: Probe) -> Collected:
    """Return what to collect on the GPU of this run; a question that ncu cannot answer costs only detail."""
    sections: Sequence[str] = ()
    metrics: frozenset[str] = frozenset()
    cc = compute_capability(session)
    try:
        sections = ncu.list_sections(tool, environ=session.child.variables)
        chip = ncu.chip_of(ncu.list_chips(tool, environ=session.child.variables), cc) if cc else None
        if chip is not None:
            metrics = ncu.query_metrics(tool, chip, environ=session.child.variables)
    except ToolError as error:
        session.note(
            f"ncu does not say what this GPU has ({error.message}): only whole sections are collected"
        )
    return collected(
        session.options.preset, known_sections=sections, known_metrics=metrics, cc=cc, ranks=ranks(session)
    )


def compute_capability(session: Session) -> tuple[int, int] | None:
    """Return the compute capability of the GPU that the program used, or of the first there is."""
    device = session.timing.device if session.timing is not None else None
    if device and device.get("cc"):
        major, minor = device["cc"]
        return int(major), int(minor)
    return session.driver.gpus[0].cc if session.driver.gpus else None


def ranks(session: Session) -> int:
    """Return how many processes work together, as launchers such as torchrun say."""
    text = session.environ.get("WORLD_SIZE", "1")
    return int(text) if text.isdigit() else 1


def unsupported(session: Session, tool: Probe) -> Failure | None:
    """Return that ncu does not know this GPU, None where it does or cannot tell."""
    if (cc := compute_capability(session)) is None:
        return None
    try:
        known = ncu.supports(ncu.list_chips(tool, environ=session.child.variables), cc)
    except ToolError:
        return None
    if known is not False:
        return None
    said = f"ncu {tool.version} does not know compute capability {cc[0]}.{cc[1]}"
    return failure("unsupported-gpu", Context("ncu", gpus.place()), said=said)


def _attempts(session: Session, tool: Probe, what: Collected) -> None:
    """Run ncu; again where clocks cannot be locked, and where autotuning settled on another configuration."""
    selection = select(session.chosen, session.target.pattern, marked=_sees_marks(session))
    clocks, repeated = session.options.clock_control, False
    while True:
        done, outcome = _run(session, tool, what, selection, clocks)
        record = session.run.step("counters")
        assert record is not None
        notes = tuple(note.message for note in outcome.notes)
        if outcome.path is None:
            cause = outcome.failure or failure("stale-output.missing", Context("ncu"), path=PROFILE, said="")
            if cause.code == "mig-clocks" and clocks == "base":
                clocks = "none"
                session.note(
                    "clocks cannot be locked on this MIG slice: measured again with the clocks unlocked"
                )
                continue
            session.failed(record, cause, done, notes=notes)
            return
        captured, bad = _read(outcome.path, selection.index)
        if bad is not None:
            session.failed(record, outcome.failure or bad, done, notes=notes)
            return
        proof = replace(prove(session.chosen, captured, selection.index), repeated=repeated)
        if only_configuration_differs(proof) and not repeated:
            repeated = True
            session.note(f"{proof.words}: autotuning settled on another configuration; measured once more")
            continue
        _keep(session, done, outcome, proof, clocks, notes)
        return


def _run(
    session: Session, tool: Probe, what: Collected, selection: Selection, clocks: str
) -> tuple[Completed, Outcome]:
    folder = session.directory.scratch
    result = folder / "ncu-child.json"
    result.unlink(missing_ok=True)
    made = ncu_options(session, what, selection, region_command(session, result), folder / "profile")
    options = replace(made, clock_control="none" if clocks == "none" else "base", overwrite=True)
    if what.note:
        session.note(what.note)
    _tell_estimate(session, what, selection)
    command = ncu.argv(options, tool)
    session.run = replace(session.run, isolation=None)
    session.begin("counters", command)
    before = stamp(options.report)
    done = session.execute(command, log="ncu")
    opened: bool | None = None
    if session.target.marked:
        try:
            opened = bool(read_json(result).get("opened"))
        except ReportError:
            opened = False
    facts = {"version": tool.version, "python": session.target.python}
    if session.run.driver.get("kernel"):
        facts["driver"] = str(session.run.driver["kernel"])
    outcome = ncu.judge(done, options, before, range_opened=opened, ranks=ranks(session), facts=facts)
    return done, outcome


def _tell_estimate(session: Session, what: Collected, selection: Selection) -> None:
    kernel = None if session.chosen is None else session.chosen.choice.launch.duration / 1e9
    step = session.run.step("timeline") or session.run.step("timing")
    seconds = estimate(what.passes, selection.count, kernel, step.seconds if step else None)
    launches = f"{selection.count:,} launch{'es' if selection.count > 1 else ''}"
    text = f"ncu will replay {launches} about {what.passes:,} times each: about {seconds:,.0f} s"
    if seconds >= COSTLY or selection.count > 20:
        session.note(f"{text}; --preset quick takes fewer passes")
    else:
        session.listener.note(text)


def _sees_marks(session: Session) -> bool:
    """Return whether ncu will look at the marked region, or the range that was asked for, alone."""
    chosen = session.chosen
    ranged = chosen is not None and chosen.range is not None
    marked = session.target.marked and (bool(session.marks.get("profiler")) or ranged)
    return marked or session.options.range is not None


def _read(report: Path, index: int) -> tuple[list[RawKernel], Failure | None]:
    """Return the captured launches, and why there is no good one among them."""
    try:
        captured = list(Source(report).launches(WANTED))
    except ReportError as error:
        return [], Failure("stale-output.unreadable", "stale-output", error.message, error.hint)
    if not captured:
        return [], failure("nothing-profiled", Context("ncu", gpus.place()))
    reasons = [measurement_failure(raw) for raw in captured]
    if all(reasons):
        words = reasons[min(index, len(reasons) - 1)] or ""
        return captured, Failure("replay", "replay", f"ncu has no valid measurement: {words}", _REPLAY_HINT)
    return captured, None


_REPLAY_HINT = "run the program under compute-sanitizer; or collect fewer passes (--preset quick)"


def _keep(
    session: Session, done: Completed, outcome: Outcome, proof: Isolation, clocks: str, notes: tuple[str, ...]
) -> None:
    assert outcome.path is not None
    record = session.run.step("counters")
    assert record is not None
    kept = session.directory.adopt(outcome.path, PROFILE)
    session.run = replace(
        session.run, isolation=proof, clock_control=clocks, cache_control=session.options.cache_control
    )
    if outcome.failure is not None:
        session.failed(record, outcome.failure, done, state="partial", files=(kept,), notes=notes)
    else:
        passes = re.findall(r"- (\d+) pass", done.output)
        said = (*notes, f"{passes[-1]} passes") if passes else notes
        session.end(record, done, state="done", files=(kept,), notes=said)
    if proof.verdict == "denied":
        session.failures.append(
            Failure("nothing-profiled.other", "nothing-profiled", f"isolation {proof.words}", _DENIED_HINT)
        )
    session.listener.note(f"isolation {proof.words}")


_DENIED_HINT = (
    "the counters are those of another launch: name the kernel with --gpu-kernel, or warm up longer"
)
