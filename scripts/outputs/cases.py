"""Which command lines the net runs, on which files, in which terminals."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Terminal:
    """What a command believes to print on: ``width`` [columns], ``encoding`` of its streams."""

    width: int
    encoding: str


PLAIN = Terminal(80, "utf-8")
MACHINE = (PLAIN, Terminal(60, "ascii"))
"""For what no width should change: JSON, CSV, Parquet, pages."""
TEXT = (Terminal(60, "utf-8"), PLAIN, Terminal(120, "utf-8"), Terminal(80, "ascii"))
"""For what is read in a terminal."""
ALL = tuple(Terminal(width, encoding) for encoding in ("utf-8", "ascii") for width in (60, 80, 120))
"""For what is quick."""
PARTNER = "gemm-tensor.ncu-rep"
"""The bundled sample that named reports are compared with."""


@dataclass(frozen=True)
class Case:
    """One command line; ``inputs`` are files by their path in the folder in which it runs."""

    subject: str
    words: tuple[str, ...]
    terminal: Terminal = PLAIN
    inputs: tuple[tuple[str, Path], ...] = ()

    @property
    def title(self) -> str:
        """Return what ``--only`` looks at: subject, command line, terminal."""
        terminal = f"{self.terminal.width} {self.terminal.encoding}"
        return f"{self.subject}: ncukit {shlex.join(self.words)} [{terminal}]"


EACH: dict[str, tuple[str, ...]] = {
    "report": (
        "show -v {file}",
        "show --json {file}",
        "show --format markdown {file}",
        "show --source {file}",
        "metrics --json {file}",
        "report {file} -o page.html",
    ),
    "nsys": (
        "timeline -v {file}",
        "timeline --json {file}",
        "timeline {file} -o page.html",
        "timeline {file} --trace trace.json",
        "advise {file}",
        "advise --json {file}",
    ),
    "torch": (
        "ops {file} -o page.html",
        "ops --json {file}",
        "ops --sort self-cpu --top 5 {file}",
        "timeline -v {file}",
        "timeline --json {file}",
        "advise {file}",
    ),
    "ranks": (
        "ops {file}",
        "ops --json {file}",
        "ops {file} -o page.html",
    ),
}
"""Six command lines for every file of a kind, three for a folder of ranks, at width 80."""

REPORT_TEXT = (
    "show {file}",
    "show -v {file}",
    "show --source {file}",
    "show --sass {file}",
    "show --launch 1 {file}",
    "show --kernel no-such-kernel {file}",
    "metrics {file}",
    "metrics -v {file}",
    "metrics --raw {file}",
    "compare {partner} {file}",
    "compare -v {file} {partner} --match order",
    "advise {file}",
    "roofline gemm --m 512 --n 512 --k 512 --dtype fp16 --report {file} --launch 1",
)
REPORT_DATA = (
    "show --json {file}",
    "show --json --source --sass {file}",
    "show --format markdown {file}",
    "report {file} -o page.html",
    "metrics --json {file}",
    "metrics --format csv {file}",
    "metrics --format parquet {file} -o metrics.parquet",
    "compare --json {file} {partner} --match order",
    "compare --format markdown {file} {partner} --match order",
    "compare --format github {file} {partner} --match order --fail-on 'kernel_duration > +5%'",
    "compare --format junit {file} {partner} --match order --fail-on 'dram_bytes > 1.02x'",
    "compare {file} {partner} --match order -o page.html",
    "advise --json {file}",
)
NSYS_TEXT = ("timeline {file}", "timeline -v {file}", "timeline -r no-such-range {file}", "advise {file}")
NSYS_DATA = (
    "timeline --json {file}",
    "timeline {file} -o page.html",
    "timeline {file} --trace trace.json.gz",
    "timeline --kernel . --allow-collective --json {file}",
    "advise --json {file}",
)
TORCH_TEXT = (
    "ops {file}",
    "ops --top 0 {file}",
    "ops --sort cpu {file}",
    "ops --sort self-device {file}",
    "timeline -v {file}",
    "advise {file}",
)
TORCH_DATA = (
    "ops --json {file}",
    "ops {file} -o page.html",
    "timeline --json {file}",
    "timeline {file} -o page.html",
    "advise --json {file}",
)
NAMED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "report": (REPORT_TEXT, REPORT_DATA),
    "nsys": (NSYS_TEXT, NSYS_DATA),
    "torch": (TORCH_TEXT, TORCH_DATA),
    "ranks": (("ops {file}",), ("ops --json {file}", "ops {file} -o page.html")),
}
"""About 25 command lines for the named files: what is read in a terminal, and what is not."""

CHOSEN = frozenset(
    (
        "samples/gemm-tensor.ncu-rep",
        "samples/several-launches.ncu-rep",
        "samples/gemm-tensor.sqlite",
        "reports/ncu/sm61-gtx-1080-ncu2020.1-01.nsight-cuprof-report",
        "reports/ncu/sm90-h800-ncu2023.3-01.ncu-rep",
        "reports/ncu/sm86-a10g-ncu2023.1-02.ncu-rep",
        "reports/ncu-more/sm100-b200-ncu2025.3-m01.ncu-rep",
        "reports/csv/ncu-output-01.csv",
        "reports/broken/truncated_half.ncu-rep",
        "reports/nsys/trace-09.sqlite",
        "reports/torch/trace-03.json.gz",
        "cases/traces/T25-clock-skew/traces",
    )
)
"""Twelve files of different kinds."""

NO_FILE_TEXT = (
    *("--help", "--version", "no-such-command", "show", "show --no-such-option x", "show missing.ncu-rep"),
    *("show --format nothing x.ncu-rep", "catalog", "catalog dram_bytes", "catalog dram_byte"),
    "mfu --list",
    "mfu --params 8e9 --tokens-per-second 64000 --gpus 8 --gpu h100-sxm",
    "mfu --params 8e9 --tokens-per-second 64000 --gpu h100",
    "roofline",
    "roofline gemm --m 8192 --n 8192 --k 8192 --dtype bf16 --gpu h100-sxm",
    "roofline gemm --m 64 --n 32 --k 128 --dtype fp16 --peak 200e12 --bandwidth 3e12",
    "roofline attention --help",
    "roofline point --flops 2e12 --bytes 1e12 --seconds 0.020 --peak 200T --bandwidth 3T",
    *(
        f"{command} --help"
        for command in (
            *(
                "profile",
                "time",
                "experiment",
                "report",
                "show",
                "metrics",
                "compare",
                "baseline",
                "timeline",
            ),
            *("ops", "index", "mfu", "advise", "probe", "catalog", "doctor", "demo", "schema", "dataset"),
        )
    ),
)
NO_FILE_DATA = (
    "catalog --json",
    "catalog --json dram_bytes",
    "mfu --params 8e9 --tokens-per-second 64000 --gpus 8 --gpu h100-sxm --json",
    "roofline --json",
    "roofline gemm --m 8192 --n 8192 --k 8192 --dtype bf16 --gpu h100-sxm --json",
    "schema",
    *(
        f"schema ncukit.{name}/1"
        for name in ("kernel", "comparison", "timeline", "ops", "ranks", "advice", "no-such")
    ),
)

REPORTS = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report", ".csv", ".txt")
TRACES = (".nsys-rep", ".qdrep", ".sqlite")


def kind(path: Path) -> str | None:
    """Return the kind of a file or folder, None for what no command reads.

    >>> kind(Path("a.ncu-rep")), kind(Path("t.json.gz")), kind(Path("make.py"))
    ('report', 'torch', None)
    """
    if path.is_dir():
        return "ranks"
    if path.name.endswith(REPORTS):
        return "report"
    if path.name.endswith(TRACES):
        return "nsys"
    return "torch" if path.name.endswith((".json", ".json.gz")) else None


def subjects(samples: Path, shared: Path) -> dict[str, Path]:
    """Return the files and folders of traces by name: bundled samples, and what is in ``shared``."""
    found = {f"samples/{path.name}": path for path in sorted(samples.iterdir()) if kind(path)}
    places = [
        *(Path("reports", name) for name in ("ncu", "ncu-more", "csv", "broken", "nsys", "torch")),
        Path("cases", "reports"),
        *(path.relative_to(shared) for path in sorted((shared / "cases" / "traces").glob("*/"))),
    ]
    for place in places:
        files = [path for path in sorted((shared / place).glob("*")) if path.is_file() and kind(path)]
        found |= {(place / path.name).as_posix(): path for path in files}
    ranks = sorted((shared / "cases" / "traces").glob("*/traces"))
    found |= {path.relative_to(shared).as_posix(): path for path in ranks}
    return found


def cases(samples: Path, shared: Path) -> Iterator[Case]:
    """Yield every case of the net; each title once."""
    yield from _lines("no file", (), NO_FILE_TEXT, ALL)
    yield from _lines("no file", (), NO_FILE_DATA, MACHINE)
    yield from _lines("samples", _inputs(samples, None), ("index {file} -q -w 1 -o page.html",), (PLAIN,))
    for name, path in subjects(samples, shared).items():
        of = kind(path) or ""
        inputs = _inputs(path, samples / PARTNER if of == "report" and name in CHOSEN else None)
        text, data = NAMED[of] if name in CHOSEN else ((), ())
        yield from _lines(name, inputs, text, TEXT)
        yield from _lines(name, inputs, data, MACHINE)
        done = {*text, *data}
        yield from _lines(name, inputs[:1] if path.is_file() else inputs, _rest(EACH[of], done), (PLAIN,))


def _rest(templates: Iterable[str], done: set[str]) -> tuple[str, ...]:
    return tuple(template for template in templates if template not in done)


def _inputs(path: Path, partner: Path | None) -> tuple[tuple[str, Path], ...]:
    if path.is_dir():
        return tuple((f"{path.name}/{file.name}", file) for file in sorted(path.iterdir()) if kind(file))
    beside = () if partner is None else ((f"partner-{partner.name}", partner),)
    return ((path.name, path), *beside)


def _lines(
    subject: str,
    inputs: tuple[tuple[str, Path], ...],
    templates: Iterable[str],
    terminals: Iterable[Terminal],
) -> Iterator[Case]:
    file = inputs[0][0].partition("/")[0] if inputs else ""
    for template in templates:
        words = [
            word.format(file=file, partner=f"partner-{PARTNER}") if word in ("{file}", "{partner}") else word
            for word in shlex.split(template)
        ]
        for terminal in terminals:
            yield Case(subject, tuple(words), terminal, inputs)
