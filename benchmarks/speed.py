"""Run times against the tools beside it: whole processes, alternating, the median of five.

    python benchmarks/speed.py [--rounds N] [NAME...]

Prints for every bar (or those whose name contains NAME) the ratio, its limit, and both times.  Reports and
ncu are found as in the tests: ``../shared`` or NCUKIT_SHARED; NCUKIT_NCU, PATH or where CI installs it.
ncukit reads in one process and translates in another: on a busy machine its ratios are worse.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
SCRIPT = Path(sys.executable).with_name("ncukit")  # what a user runs
NCUKIT = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "ncukit"]

# What a plain script would do: every value of every metric and instance, every SASS line that was counted.
BARE_READER = """
import sys, ncu_report
for report in ncu_report.load_report(sys.argv[1]):
    for action in report:
        for name in action.metric_names():
            metric = action.metric_by_name(name)
            metric.value()
            for i in range(metric.num_instances()):
                metric.value(i)
        counted = action.metric_by_name("inst_executed")
        if counted is not None and counted.has_correlation_ids():
            pcs = counted.correlation_ids()
            for i in range(counted.num_instances()):
                action.sass_by_pc(pcs.value(i))
"""
BARE_TYPER = """
import typer
app = typer.Typer()
@app.command()
def read(file: str, launch: int = 1): "Read a file."
@app.command()
def write(file: str, force: bool = False): "Write a file."
app()
"""
MANY = "sm80-a100-pcie-40gb-ncu2021.2-01"  # 154 launches
ONE = "sm86-rtx-3070-ncu2022.3-03"  # one small launch
HALF = "sm86-a40-ncu2022.4-01"  # packed-half instructions: the SASS must be read


@dataclass(frozen=True)
class Bar:
    """Our command may take at most ``limit`` times as long as theirs."""

    name: str
    limit: float
    ours: tuple[str, ...]
    theirs: tuple[str, ...]


def bars(ncu: Path | None, reports: Path | None, folder: Path) -> Iterator[Bar]:
    """Yield the bars that can be measured with this ncu and these reports; pages go to ``folder``."""
    python = (sys.executable, "-c")
    yield Bar("--help", 1.5, (*NCUKIT, "--help"), (*python, BARE_TYPER, "--help"))
    if reports is None:
        return
    many, one, half = (str(reports / f"{name}.ncu-rep") for name in (MANY, ONE, HALF))
    for label, file in (("many launches", many), ("much SASS", half)):  # one launch: starting Python is all
        page = str(folder / f"{Path(file).stem}.html")
        report = (*NCUKIT, "report", file, "--force", "-o", page)
        yield Bar(f"report, {label}", 2.0, report, (*python, BARE_READER, file))
    if ncu is None:
        return
    for label, limit, file, page in (
        ("many launches", 1.0, many, ("details",)),
        ("one launch", 1.3, one, ("details",)),
        ("much SASS", 1.25, half, ("source", "--csv")),
    ):
        importing = (str(ncu), "--import", file, "--page", *page)
        yield Bar(f"metrics, {label}", limit, (*NCUKIT, "metrics", file, "--json"), importing)


def measure(bar: Bar, rounds: int = 5) -> tuple[float, float]:
    """Return the medians [s] of our and their run times, measured in turns after one run of each.

    Raises:
        subprocess.CalledProcessError: a command failed.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 1):
        for argv, taken in zip((bar.ours, bar.theirs), times, strict=True):
            start = time.perf_counter()
            subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
            if turn:
                taken.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def row(bar: Bar, ours: float, theirs: float) -> str:
    """Return one line of the table.

    >>> row(Bar("--help", 1.5, (), ()), 0.12, 0.1)
    '--help                    1.20 of 1.50       0.120 s    0.100 s'
    """
    return f"{bar.name:24} {ours / theirs:5.2f} of {bar.limit:.2f} {ours:11.3f} s {theirs:8.3f} s"


def main() -> None:
    """Print the ratios."""
    sys.path.insert(0, str(CHECKOUT))
    from tests.conftest import shared_folder, tool

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    reports = shared_folder() / "reports" / "ncu"
    print(f"{'bar':24} {'ratio of limit':>14} {'ncukit':>13} {'beside':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for bar in bars(tool("ncu"), reports if reports.is_dir() else None, Path(folder)):
            if not options.names or any(name in bar.name for name in options.names):
                print(row(bar, *measure(bar, options.rounds)), flush=True)


if __name__ == "__main__":
    main()
