"""Nsight Systems: options to command line, what a run came to, exports; and py-spy beside it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ncukit.errors import ReportFormatError, ToolError, UsageError
from ncukit.media import word
from ncukit.record import dataclass
from ncukit.run.tools import gpus
from ncukit.run.tools.capabilities import ELSEWHERE, Probe
from ncukit.run.tools.failures import Context, Outcome, Stamp, failure
from ncukit.run.tools.failures import judge as judge_output
from ncukit.run.tools.locate import find
from ncukit.run.tools.process import Completed, run

# ---- Let nsys export a report as SQLite, and say why when it cannot

TIMEOUT = 1800.0
"""A report of some gigabytes takes nsys minutes [s]."""
_NEWER = re.compile(
    r"created in Nsight Systems version \(([\d.]+)[^)]*\), newer than your current version \(([\d.]+)"
)
_UNREADABLE = re.compile(r"Exportation error: (?!File (?:not found|already exists))(.*)")
_SQLITE = b"SQLite format 3\0"


def export_sqlite(
    report: Path, target: Path, *, nsys: str | Path | None = None, written_by: str | None = None
) -> None:
    """Export ``report`` as sqlite to the new file ``target``.

    ``nsys`` is the program to use (None: the one that `ncukit.run.tools.locate.find` finds);
    ``written_by`` is the version that wrote the report, for the messages.

    Raises:
        ToolError: nsys is missing (``tool-missing``), older than the report (``tool-too-old``), or failed.
        ReportFormatError: nsys says that the report is damaged.
    """
    needed = f"nsys {written_by} or newer" if written_by else "an nsys as new as the one that wrote it"
    try:
        tool = find("nsys", nsys).path
    except ToolError as error:
        if nsys is not None:
            raise
        raise ToolError(
            f"{report} must be exported by nsys: {error.message}",
            f"Install {needed} (or name it with --nsys or NCUKIT_NSYS), or export it where nsys is: "
            f"nsys export --type sqlite {word(report.name)}, and give ncukit the .sqlite.",
            code="tool-missing",
        ) from error
    options = ("--type=sqlite", "--quiet=true", f"--output={target.absolute()}")
    command = (os.path.abspath(tool), "export", *options, os.path.abspath(report))
    done = run(command, timeout=TIMEOUT, cwd=ELSEWHERE)
    if done.returncode == 0 and _is_sqlite(target):  # rc 0 alone proves nothing
        return
    raise _why(report, done, needed)


def _is_sqlite(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _why(report: Path, done: Completed, needed: str) -> ToolError | ReportFormatError:
    if match := _NEWER.search(done.output):
        return ToolError(
            f"{report} was written by nsys {match[1]}, but this nsys is {match[2]}",
            f"Install nsys {match[1]} or newer, or export it where it was recorded: "
            f"nsys export --type sqlite {word(report.name)}",
            code="tool-too-old",
        )
    if match := _UNREADABLE.search(done.output):
        return ReportFormatError(
            report,
            f"{report} is damaged: nsys cannot read it ({match[1].strip().rstrip('.')})",
            "Copy it again, or record it again.",
        )
    if done.timed_out:
        return ToolError(
            f"nsys did not export {report} within {TIMEOUT:.0f} s", "Export it by hand.", code="timeout"
        )
    said = next((line.strip() for _, line in reversed(done.lines) if line.strip()), "it said nothing")
    return ToolError(
        f"nsys could not export {report} (exit code {done.returncode}): {said}",
        f"Try it by hand: nsys export --type sqlite {word(report.name)}; it needs {needed}.",
        code="tool-failed",
    )


# ---- Nsight Systems: options to command line, and what a run came to.  The export is in ``nsys_export``

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
    fields = {"tool": "nsys", "place": gpus.place(), "range": options.range, **known}
    context = Context(**{**fields, "profiler_api": options.capture == "profiler-api"})
    outcome = judge_output(done, options.report, before, context, MAGIC)
    lost = outcome.failure and outcome.failure.id == "stale-output.missing"
    if outcome.path is None and lost and options.capture != "all":
        given = {"range": options.range} if options.range else {}
        return Outcome(None, failure("nothing-profiled.range", context, **given), outcome.notes)
    return outcome


# ---- py-spy: samples the Python stack of a program from outside; it is optional

RATE = 500
"""Samples a second: each one stops the program for a moment."""
VARIABLE = "NCUKIT_PY_SPY"
_SAMPLES = re.compile(r"Samples: (\d+)")
_REFUSED = re.compile(r"permission denied|operation not permitted|ptrace|must be run as root", re.IGNORECASE)


def find_pyspy(environ: Mapping[str, str]) -> Path | None:
    """Return the py-spy to use: NCUKIT_PY_SPY, PATH, or beside this interpreter; None where there is none."""
    if given := environ.get(VARIABLE):
        return Path(given) if shutil.which(given) else None
    found = shutil.which("py-spy", path=environ.get("PATH")) or shutil.which(
        "py-spy", path=str(Path(sys.executable).parent)
    )
    return Path(found) if found else None


def pyspy_argv(tool: Path, output: Path, command: Sequence[str]) -> tuple[str, ...]:
    """Return the command that samples ``command`` `RATE` times a second: with times, also while it waits.

    >>> pyspy_argv(Path("py-spy"), Path("s.json"), ["python", "x.py"])[-4:]
    ('s.json', '--', 'python', 'x.py')
    """
    options = ("record", "--format", "chrometrace", "--rate", str(RATE), "--idle", "--full-filenames")
    return (str(tool), *options, "--output", str(output), "--", *command)


def refused(done: Completed, output: Path) -> str:
    """Return why py-spy did not sample, "" where it did."""
    if _REFUSED.search(done.output) and not output.is_file():
        return "py-spy may not look into the process (ptrace is not permitted here)"
    samples = _SAMPLES.search(done.output)
    if not output.is_file() or (samples is not None and samples[1] == "0"):
        said = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")
        return f"py-spy took no sample{': ' + said.strip() if said else ''}"
    return ""
