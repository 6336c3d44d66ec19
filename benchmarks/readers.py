"""What stands beside ncukit: plain programs without it, and the reports that all of them read."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import CHECKOUT

ONE = "sm86-rtx-3070-ncu2022.3-03.ncu-rep"  # one small launch
MANY = "sm80-a100-pcie-40gb-ncu2021.2-01.ncu-rep"  # 154 launches, 263 raw metrics each
HALF = "sm86-a40-ncu2022.4-01.ncu-rep"  # packed-half instructions: the SASS must be read
SAMPLES = CHECKOUT / "reports" / "samples"

TYPER = """
import typer
app = typer.Typer()
@app.command()
def read(file: str, launch: int = 1): "Read a file."
@app.command()
def write(file: str, force: bool = False): "Write a file."
app()
"""

# Every value of every metric and instance, every SASS line that was counted: what a page may show.
EVERY_VALUE = """
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

# Every value that the neutral metrics need, and nothing else.
WANTED_VALUES = """
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
class Setting:
    """What this machine has, and where to write."""

    folder: Path
    reports: Sequence[Path]
    """Real ones, else the samples."""
    ncu: Path | None
    quick: bool

    @property
    def real(self) -> bool:
        """Whether the reports are real ones."""
        return self.reports[0].parent != SAMPLES

    def report(self, name: str) -> Path | None:
        """Return the real report of that name."""
        return next((path for path in self.reports if path.name == name), None)


def setting(folder: Path, *, quick: bool = False) -> Setting:
    """Return what this machine has: reports and ncu are looked for where the tests do."""
    from tests.conftest import reports, tool

    return Setting(folder, reports() or sorted(SAMPLES.glob("*.ncu-rep")), tool("ncu"), quick)


def every_value(report: Path) -> tuple[str, ...]:
    """Return the command that reads everything of a report."""
    return (sys.executable, "-c", EVERY_VALUE, str(report))


def wanted_values(report: Path, folder: Path) -> tuple[str, ...]:
    """Return the command that reads what the neutral metrics need and prints the number of launches."""
    from ncukit.metrics.normalise import wanted

    want = wanted()
    names = {key: sorted(getattr(want, key) or ()) for key in ("metrics", "instances", "breakdowns")}
    (folder / "wanted.json").write_text(json.dumps(names))
    return (sys.executable, "-c", WANTED_VALUES, str(report), str(folder / "wanted.json"))


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
