"""Datasets of many reports, and of one long report, against a bare ncu_report.

    python benchmarks/dataset.py [--launches N] [--files N] [--report FILE] [NAME...]

Measures all of these, or those whose name contains NAME:

twice     the real reports into a dataset twice: the second time none is read
workers   many reports with one worker and with two: at least 1.7 times as fast
long      one report of N launches against a script that reads the same values of it with ncu_report: at most
          2 times the time and 1.3 times the memory
many      memory does not grow with the number of files: at most 1.3 times that of half of them

Reports are found as in the tests (``../shared`` or NCUKIT_SHARED), else those that ship with ncukit are
taken.  The long report repeats the blocks of a real one (FILE).  Two processes work on it, one reads, one
translates: all times need two idle cores.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
LONG = "sm80-a100-pcie-40gb-ncu2021.2-01.ncu-rep"  # 154 launches, 263 raw metrics each
SAMPLE = CHECKOUT / "reports" / "samples" / "several-launches.ncu-rep"
FASTER, TIME, MEMORY = 1.7, 2.0, 1.3
STEP = 0.02
"""[s] between two looks at the memory of a command."""

# Every value that a row of the dataset needs, and nothing else.
BARE_READER = """
import json, sys, ncu_report
wanted = json.load(open(sys.argv[2]))
names, instances, breakdowns = (set(wanted[key]) for key in ("metrics", "instances", "breakdowns"))
launches = 0
for report in ncu_report.load_report(sys.argv[1]):
    for action in report:
        launches += 1
        [action.name(kind) for kind in range(3)]
        present = set(action.metric_names())
        for name in names & present:
            action.metric_by_name(name).value()
        for name in breakdowns & present:
            for member in action.metric_by_name(name).value().split(","):
                if (metric := action.metric_by_name(member.strip())) is not None:
                    metric.value()
        for name in instances & present:
            metric = action.metric_by_name(name)
            if metric.has_correlation_ids():
                ids = metric.correlation_ids()
                for i in range(metric.num_instances()):
                    ids.value(i), metric.value(i)
        if (state := action.nvtx_state()) is not None:
            for id in state.domains():
                domain = state.domain_by_id(id)
                domain.push_pop_ranges(), domain.start_end_ranges()
print(launches)
"""


@dataclass(frozen=True)
class Cost:
    """What a command took: wall and CPU time [s], peak memory [byte] of all its processes, its output."""

    seconds: float
    cpu: float
    peak: int
    out: str

    def __str__(self) -> str:
        return f"{self.seconds:7.2f} s ({self.cpu:6.2f} s of CPU) {self.peak / 1e6:8.0f} MB"


def measured(argv: Sequence[object]) -> Cost:
    """Run ``argv`` and return what it took, all processes that it starts included.

    Raises:
        SystemExit: it failed.
    """
    before, start = os.times(), time.perf_counter()
    process = subprocess.Popen(
        [str(word) for word in argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=CHECKOUT,
    )
    peak, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(STEP):
            peak[0] = max(peak[0], memory(process.pid))

    looker = threading.Thread(target=look)
    looker.start()
    out, err = process.communicate()
    over.set()
    looker.join()
    if process.returncode:
        raise SystemExit(f"failed: {' '.join(map(str, argv))}\n{err}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(time.perf_counter() - start, cpu, peak[0], out)


def memory(session: int) -> int:
    """Return the memory [byte] of all processes of a session; what they share counts once."""
    total = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                text = (entry / "smaps_rollup").read_text()
                total += 1024 * int(text.partition("\nPss:")[2].split()[0])
        except (OSError, ValueError, IndexError):
            continue  # it ended meanwhile
    return total


def repeat(source: Path, target: Path, launches: int, held: int) -> int:
    """Write a report of ``launches`` or more: the blocks of ``source``, which holds ``held``, repeated.

    Return how many it holds.  Blocks are complete in themselves: names are indices into all string tables,
    and those of the first block are the same.
    """
    data = source.read_bytes()
    head = 8 + struct.unpack_from("<I", data, 4)[0]
    times = -(-launches // held)
    with target.open("wb") as file:
        file.write(data[:head])
        for _ in range(times):
            file.write(data[head:])
    return times * held


def build(inputs: Sequence[Path], folder: Path, workers: int) -> tuple[Cost, dict[str, int]]:
    """Build a dataset of ``inputs`` in ``folder``; return what it took and what it did."""
    words = ["dataset", "build", *inputs, "-o", folder, "--workers", workers, "--json", "--quiet"]
    cost = measured([sys.executable, "-m", "ncukit", *words])
    return cost, json.loads(cost.out)


def bare(report: Path, folder: Path) -> Cost:
    """Read the same values with ncu_report alone."""
    from ncukit.normalise import wanted

    want = wanted()
    names = {key: sorted(getattr(want, key) or ()) for key in ("metrics", "instances", "breakdowns")}
    (folder / "wanted.json").write_text(json.dumps(names))
    return measured([sys.executable, "-c", BARE_READER, report, folder / "wanted.json"])


def twice(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, bool]]:
    """The second build of unchanged reports reads none."""
    first, done = build(options.reports, folder / "twice", 2)
    again, then = build(options.reports, folder / "twice", 2)
    yield f"  first  {first}  {done['read']} reports, {done['launches']:,} launches", done["read"] > 0
    yield f"  again  {again}  {then['read']} read", then["read"] == 0 and then["reports"] == done["reports"]


def workers(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, bool]]:
    """Two workers against one, over many files."""
    many = copies(options.reports, options.files, folder / "many")
    one, _ = build([many], folder / "one", 1)
    two, _ = build([many], folder / "two", 2)
    ratio = one.seconds / two.seconds
    yield f"  one    {one}  {options.files} files", True
    yield f"  two    {two}  {ratio:.2f} x as fast (at least {FASTER})", ratio >= FASTER


def long(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, bool]]:
    """One long report against ncu_report alone."""
    held = int(bare(options.report, folder).out)
    report = folder / "long.ncu-rep"
    count = repeat(options.report, report, options.launches, held)
    theirs = bare(report, folder)
    ours, done = build([report], folder / "long", 2)
    time_, memory_ = ours.seconds / theirs.seconds, ours.peak / theirs.peak
    size = report.stat().st_size / 1e6
    same = int(theirs.out) == done["launches"] == count
    yield f"  bare   {theirs}  {int(theirs.out):,} launches, {size:.0f} MB", same
    yield f"  ncukit {ours}  {time_:.2f} x the time (at most {TIME})", time_ <= TIME
    yield f"         {memory_:.2f} x the memory (at most {MEMORY})", memory_ <= MEMORY


def many(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, bool]]:
    """Memory over many files against that over half of them."""
    costs = []
    for count in (options.files // 2, options.files):
        cost, _ = build([copies(options.reports, count, folder / f"{count}")], folder / f"of-{count}", 1)
        costs.append(cost)
        ratio = cost.peak / costs[0].peak
        words = f"{count} files" + (f", {ratio:.2f} x the memory (at most {MEMORY})" if costs[1:] else "")
        yield f"  {'half' if len(costs) == 1 else 'all':6} {cost}  {words}", ratio <= MEMORY


PARTS: dict[str, Callable[[argparse.Namespace, Path], Iterator[tuple[str, bool]]]] = {
    part.__name__: part for part in (twice, workers, long, many)
}


def copies(reports: Sequence[Path], count: int, folder: Path) -> Path:
    """Put ``count`` links to ``reports``, taken in turns, into ``folder``."""
    folder.mkdir()
    for number in range(count):
        report = reports[number % len(reports)]
        os.symlink(report, folder / f"{number:04}-{report.name}")
    return folder


def main(words: Sequence[str] | None = None) -> int:
    """Print what was measured; return 1 where a bar was missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--launches", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--report", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(words)
    options.reports, own = found()
    options.report = options.report or own
    missed = False
    with tempfile.TemporaryDirectory() as scratch:
        for name, part in PARTS.items():
            if options.names and not any(word in name for word in options.names):
                continue
            print(name, flush=True)
            folder = Path(scratch) / name
            folder.mkdir()
            for line, met in part(options, folder):
                print(line if met else f"{line}  MISSED", flush=True)
                missed |= not met
            shutil.rmtree(folder)
    return int(missed)


def found() -> tuple[list[Path], Path]:
    """Return the reports of this machine, and the one whose blocks are repeated."""
    from tests.conftest import reports

    real = reports()
    if not real:
        return sorted(SAMPLE.parent.glob("*.ncu-rep")), SAMPLE
    return real, next((path for path in real if path.name == LONG), real[0])


if __name__ == "__main__":
    sys.path.insert(0, str(CHECKOUT))
    sys.exit(main())
