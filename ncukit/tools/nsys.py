"""Nsight Systems: options to command line, and what a run came to.  The export is in ``nsys_export``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from ncukit.errors import UsageError
from ncukit.record import dataclass
from ncukit.tools import host
from ncukit.tools.failures import Context, failure
from ncukit.tools.output import Outcome, Stamp
from ncukit.tools.output import judge as judge_output
from ncukit.tools.probe import Probe
from ncukit.tools.run import Completed

SUFFIX = ".nsys-rep"
MAGIC = b"NVIDIA Tegra Profiler Report"

_CAPTURE = {"all": "none", "profiler-api": "cudaProfilerApi", "nvtx": "nvtx"}


@dataclass(frozen=True)
class NsysOptions:
    """What to trace; every default that changed between versions, or costs time, is given explicitly.

    ``capture`` says when: always, between cudaProfilerStart and Stop, or inside the NVTX range ``range``.
    CPU sampling is off: it costs time and needs rights.
    """

    target: tuple[str, ...]
    output: Path
    trace: tuple[str, ...] = ("cuda", "nvtx")
    capture: Literal["all", "profiler-api", "nvtx"] = "all"
    range: str | None = None
    cuda_graphs: Literal["node", "graph"] = "node"
    overwrite: bool = False
    extra: tuple[str, ...] = ()

    @property
    def report(self) -> Path:
        """The file that nsys writes: ``output`` with its suffix."""
        path = self.output
        return path if path.name.endswith(SUFFIX) else path.with_name(path.name + SUFFIX)

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that the run needs: without this one nsys takes only registered strings for a range."""
        return {"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"} if self.capture == "nvtx" else {}


def argv(options: NsysOptions, nsys: Probe) -> tuple[str, ...]:
    """Return the command line for ``options``, with no option that this nsys does not have.

    Raises:
        UsageError: the options contradict each other or name no program.
        ToolError: something was asked for that this nsys cannot do (code ``option-unknown``).
    """
    if not options.target or options.target[0].startswith("-"):
        raise UsageError("there is no program to trace", "give it after the options, with its path")
    if (options.capture == "nvtx") != (options.range is not None):
        raise UsageError("an NVTX capture needs a range, and only it", "give both or neither")
    line = [str(nsys.path), "profile"]
    for option, value, needed in _table(options):
        if nsys.has(option, "profile"):
            line += [] if value is None else [f"{option}={value}"]
        elif needed and value is not None:
            raise failure("option-unknown", Context("nsys"), version=nsys.version, option=option).error()
    return (*line, *options.extra, *options.target)


def _table(o: NsysOptions) -> tuple[tuple[str, str | None, bool], ...]:
    """Return (option, its value, whether it must exist)."""
    marked = o.capture != "all"
    return (
        ("--trace", ",".join(o.trace), True),
        ("--sample", "none", False),
        ("--cpuctxsw", "none", False),
        ("--backtrace", "none", False),
        ("--cuda-graph-trace", o.cuda_graphs, False),  # graph hides the kernels inside
        ("--cuda-event-trace", "false", False),  # since 2025, on by default, and slow
        ("--cuda-memory-usage", "false", False),
        ("--trace-fork-before-exec", "false", False),
        ("--capture-range", _CAPTURE[o.capture], marked),
        ("--capture-range-end", "stop" if marked else None, False),  # the default ends the program
        ("--nvtx-capture", o.range, True),
        ("--kill", "none", False),
        ("--wait", "primary", False),  # the default waits for daemons that the program left behind
        ("--stop-on-exit", "true", False),
        ("--show-output", "true", False),
        ("--stats", "false", False),
        ("--export", "none", False),
        ("--force-overwrite", "true" if o.overwrite else "false", True),
        ("--output", str(o.output).replace("%", "%%"), True),  # % begins a macro
    )


def judge(done: Completed, options: NsysOptions, before: Stamp | None, **known: Any) -> Outcome:
    """Return what a run came to; ``before`` is ``output.stamp(options.report)`` from before it.

    nsys ends with 0 without a file when the marked region never opened: that is told apart here.
    """
    fields = {"tool": "nsys", "place": host.place(), "range": options.range, **known}
    context = Context(**{**fields, "profiler_api": options.capture == "profiler-api"})
    outcome = judge_output(done, options.report, before, context, MAGIC)
    lost = outcome.failure and outcome.failure.id == "stale-output.missing"
    if outcome.path is None and lost and options.capture != "all":
        given = {"range": options.range} if options.range else {}
        return Outcome(None, failure("nothing-profiled.range", context, **given), outcome.notes)
    return outcome
