"""Options that several commands share, and those of analytic models."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ncukit.cli import output
from ncukit.cli.output import complain, warn
from ncukit.errors import NcukitError, ReportError, UsageError

if TYPE_CHECKING:
    from ncukit.api import Report
    from ncukit.model import Diagnosis, Kernel, RawKernel, ReportFile
    from ncukit.render.timeline.beside import Beside


# ---- Arguments and options that several commands share, and how files and launches are chosen

Files = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="Reports (.ncu-rep) or ncu's CSV; - reads stdin.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, one object a file.")]
Launches = Annotated[
    list[int] | None,
    typer.Option("--launch", "-l", min=1, metavar="N", help="Only launch N (from 1); repeatable."),
]
KernelName = Annotated[
    str | None, typer.Option("--kernel", "-k", metavar="NAME", help="Only kernels whose name contains NAME.")
]
Trace = Annotated[
    Path | None,
    typer.Option(
        "--timeline", "-t", metavar="FILE", help="A trace of the same program: .nsys-rep, .qdrep or .sqlite."
    ),
]
TraceRange = Annotated[
    str | None,
    typer.Option("--range", "-r", metavar="NAME", help="Of the trace, only what is inside this NVTX range."),
]
MeasuredCeilings = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw the ceilings that `ncukit probe copy matmul -o FILE` measured."),
]
Nsys = Annotated[Path | None, typer.Option(metavar="PATH", help="The nsys that exports a .nsys-rep.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite existing files.")]


def each_file(files: list[str], work: Callable[[str], None], *, json: bool = False) -> None:
    """Do ``work`` for every file; one that cannot be used is told, the rest go on, and its exit code ends."""
    worst: NcukitError | None = None
    for file in files:
        try:
            work(file)
        except ReportError as error:
            output.show_where()
            if json:
                from ncukit.render.json import error_text

                print(error_text(error, file))
            complain(error)
            worst = error
    if worst is not None:
        raise typer.Exit(worst.exit_code)


def open_report(file: str) -> Report:
    """Open ``file`` ("-": CSV on stdin) and tell its warnings."""
    from ncukit.api import Report

    report = Report("<stdin>", stdin=sys.stdin) if file == "-" else Report(file)
    warn(report.warnings, file)
    return report


def chosen(kernels: Iterable[Kernel], launches: list[int] | None, name: str | None) -> Iterator[Kernel]:
    """Yield the kernels that the options choose.

    Raises:
        UsageError: nothing matches; the hint lists what there is.
    """
    return _chosen(kernels, lambda k: (k.index, k.name, k.demangled), launches, name)


def chosen_raw(
    raws: Iterable[RawKernel], launches: list[int] | None, name: str | None
) -> Iterator[RawKernel]:
    """Yield the raw launches that the options choose, as `chosen` does."""
    return _chosen(raws, lambda r: (r.index, r.function, r.demangled), launches, name)


T = TypeVar("T")


def _chosen(
    items: Iterable[T],
    identity: Callable[[T], tuple[int, str, str]],
    launches: list[int] | None,
    name: str | None,
) -> Iterator[T]:
    from ncukit.run.tools.names import NamePattern

    wanted = set(launches or ())
    pattern = NamePattern(name) if name is not None else None
    seen: dict[str, None] = {}
    count = matched = 0
    for item in items:
        index, function, demangled = identity(item)
        count += 1
        seen.setdefault(function)
        if wanted and index + 1 not in wanted:
            continue
        if pattern is not None and not pattern.matches(function, demangled):
            continue
        matched += 1
        yield item
    if count and not matched:
        from difflib import get_close_matches

        if name:
            names = get_close_matches(name, list(seen), 5, 0) or list(seen)[:5]
            raise UsageError(f"no kernel is named like {name!r}", f"there is: {', '.join(names)}")
        raise UsageError(f"there is no launch {min(wanted)}", f"the report holds launches 1 to {count}")


def measured(ceilings: Path | None) -> Callable[[Diagnosis], Diagnosis]:
    """Return what adds the measured ceilings in the file ``ceilings`` to a diagnosis; None adds nothing.

    Raises:
        ReportError: the file cannot be used.
        UsageError: it holds no ceiling of a GPU.
    """
    if ceilings is None:
        return lambda diagnosis: diagnosis
    from dataclasses import replace

    from ncukit.roofline.place import read_measured

    found = read_measured(ceilings)
    return lambda d: replace(d, roofline=found.on(d.roofline, d.kernel.gpu))


def diagnosed(
    report: Report, launches: list[int] | None, name: str | None, ceilings: Path | None = None
) -> tuple[ReportFile, list[Diagnosis]]:
    """Return the file with its number of launches, and the diagnoses of the chosen ones.

    ``ceilings`` are measured ones to add.
    """
    from ncukit.api import diagnose

    total = 0

    def counted() -> Iterator[Kernel]:
        nonlocal total
        for kernel in report.kernels(details=True):
            total += 1
            yield kernel

    add = measured(ceilings)
    diagnoses = [add(diagnose(kernel)) for kernel in chosen(counted(), launches, name)]
    return report.file(total), diagnoses


def opened_trace(
    trace: Path | None, range: str | None, nsys: Path | None, *, force: bool = False
) -> Beside | None:
    """Return the trace that goes with the reports, read and judged; None where none was given.

    Raises:
        UsageError: a range without a trace, a range that does not exist.
    """
    if trace is None:
        if range is not None:
            raise UsageError("--range is about a trace, and there is none", "add --timeline FILE")
        return None
    from ncukit.render.timeline.beside import beside
    from ncukit.trace.nsys import exporter

    return beside(trace, range, export=exporter(nsys), force=force)


def check_ids(ids: list[str] | None) -> list[str] | None:
    """Return metric ids that exist.

    Raises:
        UsageError: one does not; the hint names the nearest.
    """
    from ncukit.metrics import load

    known = load().metrics
    for id in ids or ():
        if id not in known:
            from difflib import get_close_matches

            near = ", ".join(get_close_matches(id, known, 3, 0.4)) or "none"
            raise UsageError(f"there is no metric {id!r}", f"nearest: {near}; `ncukit catalog` lists all")
    return ids or None


# ---- Options that every analytic model has on the command line, and how numbers are written there

_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def rate(text: str | float) -> float:
    """Return a number such as 200e12 or 200T.

    >>> rate("200T"), rate("3.35e12")
    (200000000000000.0, 3350000000000.0)
    """
    digits = str(text)
    factor = _PREFIXES.get(digits[-1:], 1.0)
    try:
        number = float(digits[:-1] if factor != 1 else digits) * factor
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise typer.BadParameter(f"{text!r} is no number: write 200e12 or 200T")
    return number


def whole(text: str | int) -> int:
    """Return a whole number, also one written as 1e6.

    >>> whole("4096"), whole("1e6")
    (4096, 1000000)
    """
    try:
        return int(text) if str(text).lstrip("+-").isdecimal() else _integral(float(text))
    except (ValueError, OverflowError):
        pass
    raise typer.BadParameter(f"{text!r} is no whole number")


def _integral(number: float) -> int:
    if number != int(number):
        raise ValueError
    return int(number)


ModelJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout (schema ncukit.roofline/1).")]
SHARED: dict[str, tuple[Any, Any]] = {
    "peak": (
        Annotated[
            float | None,
            typer.Option("--peak", parser=rate, metavar="FLOP/S", help="Peak rate: 200e12, or 200T."),
        ],
        None,
    ),
    "bandwidth": (
        Annotated[
            float | None,
            typer.Option("--bandwidth", parser=rate, metavar="BYTE/S", help="Memory bandwidth: 3e12, or 3T."),
        ],
        None,
    ),
    "gpu": (
        Annotated[
            str | None,
            typer.Option(metavar="NAME", help="Product whose data sheet gives what is not given: h100-sxm."),
        ],
        None,
    ),
    "seconds": (
        Annotated[
            float | None,
            typer.Option("--seconds", parser=rate, metavar="S", help="A measured time, to be checked."),
        ],
        None,
    ),
    "report": (
        Annotated[
            str | None,
            typer.Option(
                metavar="FILE", help="A report: its launch is held against the model, at its peaks."
            ),
        ],
        None,
    ),
    "launch": (
        Annotated[
            int | None,
            typer.Option("--launch", "-l", min=1, metavar="N", help="Launch N (from 1) of the report."),
        ],
        None,
    ),
    "kernel": (
        Annotated[
            str | None,
            typer.Option(
                "--kernel", "-k", metavar="NAME", help="The launch whose kernel's name contains NAME."
            ),
        ],
        None,
    ),
    "measured_ceilings": (MeasuredCeilings, None),
    "json": (ModelJson, False),
    "output": (
        Annotated[
            Path | None,
            typer.Option("--output", "-o", metavar="PAGE.html", help="Write a page with the roofline."),
        ],
        None,
    ),
    "force": (Force, False),
}
"""Options that every model has: name -> annotation and default."""
