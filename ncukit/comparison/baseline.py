"""One side of a comparison: a report, a folder of repeats, a run directory, a named baseline."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path, PurePath
from typing import Any

from ncukit.comparison.pairs import samples
from ncukit.errors import ReportEmpty, ReportError, ReportFormatError, ReportNotFound, UsageError
from ncukit.files import write_text
from ncukit.folders import Folder, require_inside
from ncukit.judge.ledger import FactsOnDemand
from ncukit.media import dumps
from ncukit.metrics import load
from ncukit.metrics.normalise import normalise, wanted
from ncukit.model import Diagnosis, Kernel, RawKernel, ReportFile, Value, Verdict, Wanted
from ncukit.model.comparison import Sample, Side
from ncukit.model.kernel import Recorded, stored, stored_noisy
from ncukit.model.run import Run, Timing
from ncukit.record import dataclass
from ncukit.report.reader import Source, recorded
from ncukit.roofline import place
from ncukit.run.directory import PROFILE, RECORD, TIMING, going_on, inside, read_record, read_timing
from ncukit.schemas.check import read_document

# ---- Named baselines: neutral metrics of a report as a small JSON file that belongs into the repository
#  Schema ``ncukit.baseline/1``.  A baseline holds what a comparison needs: every metric with its quality
# and the names of its raw counters, reasons for what is unknown, the spread of repeats, the verdict in
# brief.  It does not hold raw values, rules, source or SASS.

SCHEMA = "ncukit.baseline/1"
FOLDER = Path(".ncukit/baselines")
"""Where baselines lie, from the folder of ncukit.toml or else of the repository."""
PREFIX = "baseline:"
_AGAIN = "make it again with `ncukit baseline set`"
_BEGIN = re.compile(rb'\s*\{\s*"schema"\s*:\s*"ncukit\.baseline/')
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def path_of(folder: Path, name: str) -> Path:
    """Return the file of baseline ``name``.

    Raises:
        UsageError: that is no name for a baseline.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a baseline", "use letters, digits, dots, dashes and underscores"
        )
    return folder / f"{name}.json"


def exists(folder: Path, name: str) -> bool:
    """Return whether there is a baseline ``name``."""
    return bool(_NAME.fullmatch(name)) and name in baseline_names(folder)


def baseline_names(folder: Path) -> list[str]:
    """Return the names of all baselines."""
    try:
        with Folder.open(folder) as own:
            return [name[:-5] for name in own.names() if name.endswith(".json") and own.holds(name)]
    except OSError:
        return []


def origin(side: Side) -> str:
    """Return in a few words where a baseline comes from: file, hash, GPUs."""
    files = ", ".join(f"{file.path} (sha256 {file.sha256[:12]})" for file in side.files) or side.label
    gpus = ", ".join(dict.fromkeys(sample.kernel.gpu or "unknown GPU" for sample in side.samples))
    return f"{files}, {gpus}"


def write(folder: Path, name: str, side: Side, *, created: str, force: bool = False) -> Path:
    """Write ``side`` as baseline ``name`` and return the file, which appears only when whole.

    Raises:
        UsageError: it exists and ``force`` is not set, the name is no name, or the file cannot be written.
    """
    path = path_of(folder, name)
    if os.path.lexists(path):
        if not force:
            raise UsageError(f"the baseline {name} exists already", "use --force to replace it")
        _check_replaceable(path)
    return write_text(path, text(name, side, created=created), hint="give another place with --folder")


def _check_replaceable(path: Path) -> None:
    """Check that ``path`` is a baseline, of which not all need be there.

    Raises:
        UsageError: it is another file, or a link.
    """
    try:
        with Folder.open(path.parent) as folder, folder.open_file(path.name) as file:
            if _BEGIN.match(file.read(200)):
                return
        why = "it is not a baseline, and --force replaces nothing else"
    except OSError as error:
        why = str(error.strerror)
    raise UsageError(f"cannot write {path}: {why}", "give another name, or another place with --folder")


def text(name: str, side: Side, *, created: str) -> str:
    """Return a baseline as JSON, one metric a line, so that a change of it reads well in a diff."""
    words = _Words()
    kernels = [_kernel(sample, words) for sample in side.samples]
    head = {
        "schema": SCHEMA,
        "name": name,
        "created": created,
        "files": [{"name": Path(f.path).name, "size": f.size, "sha256": f.sha256} for f in side.files],
        "launches": side.launches,
        "recorded": {k: v for k, v in vars(side.recorded).items() if v is not None and k != "command"},
        "timing": None if side.timing is None else _timing(side.timing),
        "sources": words.list,
    }
    lines = [f" {_encode(key)}: {_encode(value)},\n" for key, value in head.items()]
    return "{\n" + "".join(lines) + ' "kernels": [\n' + ",\n".join(kernels) + "\n ]\n}\n"


def read(folder: Path, name: str, keep: Callable[[Kernel], bool] = lambda kernel: True) -> Side:
    """Return baseline ``name`` as a side of a comparison.

    Raises:
        ReportNotFound: there is none of that name.
        ReportFormatError: its file is damaged or of a later version.
    """
    path = path_of(folder, name)
    if not path.is_file():
        known = baseline_names(folder)
        hint = f"there is: {', '.join(known)}" if known else f"`ncukit baseline set {name} FILE` makes it"
        raise ReportNotFound(path, f"there is no baseline {name!r}", hint)
    return read_file(path, keep, found=True)


def read_file(
    path: Path, keep: Callable[[Kernel], bool] = lambda kernel: True, *, found: bool = False
) -> Side:
    """Return the baseline in the file ``path`` as a side of a comparison; see `read_document` for ``found``.

    Raises:
        ReportFormatError: it is no baseline, or damaged.
        ReportEmpty: it holds no launch that ``keep`` wants.
    """
    data = read_document(path, SCHEMA, _AGAIN, found=found)
    try:
        side = _side(data)
    except IndexError as error:  # a raw counter that the baseline does not name
        message = f"{path} is damaged: {error}"
        raise ReportFormatError(path, message, _AGAIN, code="report-damaged") from error
    chosen = tuple(sample for sample in side.samples if keep(sample.kernel))
    if not chosen:
        raise ReportEmpty(path, f"{path} holds no launch that was asked for", "choose one that it holds")
    return Side(side.label, "baseline", chosen, side.files, side.launches, side.recorded, side.timing)


class _Words:
    """Names of raw counters, each once, by position."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._at: dict[str, int] = {}

    def at(self, name: str) -> int:
        if name not in self._at:
            self._at[name] = len(self.list)
            self.list.append(name)
        return self._at[name]


def _encode(value: Any) -> str:
    return dumps(value)


def _timing(timing: Timing) -> dict[str, Any]:
    names = ("timer", "n", "median", "iqr", "min", "max")
    return {name: getattr(timing, name) for name in names}


def _kernel(sample: Sample, words: _Words) -> str:
    kernel, verdict = sample.kernel, sample.diagnosis.verdict
    head = {
        "name": kernel.name,
        "demangled": kernel.demangled,
        "index": kernel.index,
        "launches": list(sample.launches),
        "repeats": sample.repeats,
        "same_work": sample.same_work,
        "nvtx": list(kernel.raw.nvtx),
        "sections": list(kernel.raw.sections),
        "failed": kernel.failed,
        "verdict": {
            "class": verdict.cls,
            "limiter": verdict.limiter,
            "confidence": verdict.confidence,
            "claim": verdict.claim,
        },
        "members": {id: [name for name, _ in members] for id, members in kernel.breakdowns.items()},
        "signals": {v.id: v.value for v in kernel.signals.values() if v.number is not None},
        "unknown": _reasons(kernel.metrics.values()),
    }
    lines = [f"   {_encode(key)}: {_encode(value)},\n" for key, value in head.items()]
    metrics = [
        f"    {_encode(v.id)}: {_encode(_metric(v, sample, words))}"
        for v in kernel.metrics.values()
        if v.known
    ]
    return "  {\n" + "".join(lines) + '   "metrics": {\n' + ",\n".join(metrics) + "\n   }\n  }"


def _metric(value: Value, sample: Sample, words: _Words) -> list[Any]:
    """Return value, quality, positions of the raw counters; then, where there is one, spread and doubt."""
    entry: list[Any] = [value.value, value.quality, [words.at(name) for name in value.sources]]
    ends = sample.spread.get(value.id)
    if ends is not None or not value.reliable:
        entry.append(None if ends is None else [end for end in ends])
    if not value.reliable:
        entry.append(value.reason)
    return entry


def _reasons(values: Iterable[Value]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value in values:
        if not value.known:
            found.setdefault(value.reason or "not collected", []).append(value.id)
    return found


def _side(data: Mapping[str, Any]) -> Side:
    files = tuple(ReportFile(f["name"], f["size"], f["sha256"]) for f in data["files"])
    timing = None if data.get("timing") is None else Timing.from_dict(data["timing"])
    known = Recorded.__dataclass_fields__
    return Side(
        f"{PREFIX}{data['name']}",
        "baseline",
        tuple(_sample(entry, data["sources"], data["name"]) for entry in data["kernels"]),
        files,
        data["launches"],
        Recorded(**{name: value for name, value in data["recorded"].items() if name in known}),
        timing,
    )


def _sample(entry: Mapping[str, Any], sources: list[str], name: str) -> Sample:
    raw = RawKernel(
        entry["index"],
        entry["name"],
        entry["demangled"],
        "",
        sections=tuple(entry["sections"]),
        nvtx=tuple(entry["nvtx"]),
    )
    metrics, spread = _metrics(entry, sources)
    units = {id: metric.unit for id, metric in load().signals.items()}
    kernel = Kernel(
        f"{PREFIX}{name}",
        raw,
        metrics,
        {id: Value(id, value, units[id], "derived") for id, value in entry["signals"].items() if id in units},
        {id: tuple((member, 0.0) for member in members) for id, members in entry["members"].items()},
        entry["failed"],
    )
    said = entry["verdict"]
    verdict = Verdict(said["class"], said["limiter"], said["confidence"], said["claim"])
    return Sample(
        Diagnosis(kernel, place(kernel), verdict, facts=FactsOnDemand(kernel)),
        tuple(entry["launches"]),
        spread,
        entry["repeats"],
        entry["same_work"],
    )


def _metrics(
    entry: Mapping[str, Any], sources: list[str]
) -> tuple[dict[str, Value], dict[str, tuple[float, float]]]:
    reasons = {id: reason for reason, ids in entry["unknown"].items() for id in ids}
    found: dict[str, Value] = {}
    spread: dict[str, tuple[float, float]] = {}
    for id, metric in load().metrics.items():
        if id not in entry["metrics"]:
            reason = reasons.get(id, "not in the baseline: it is older than this metric")
            found[id] = stored(id, metric.unit, reason)
            continue
        value, quality, positions, *rest = entry["metrics"][id]
        doubt = rest[1] if len(rest) > 1 else None
        names = tuple(sources[at] for at in positions)
        found[id] = Value(
            id, value, metric.unit, quality, names, doubt, doubt is None, noisy=stored_noisy(doubt)
        )
        if rest and rest[0] is not None:
            spread[id] = (rest[0][0], rest[0][1])
    return found, spread


# ---- Read one argument of a comparison: a report, a folder of repeats, a run directory, or a baseline

SUFFIXES = (".ncu-rep", ".ncu-repz")
FEW = 16
"""Launches of a report up to which its source lines are read."""


@dataclass(frozen=True)
class Choice:
    """Which launches of a side are compared, and what is read of them.

    ``keep`` says for each launch whether it is wanted; ``apart`` keeps launches of one file apart that would
    be repeats; ``lines`` reads source lines and their samples as well.
    """

    keep: Callable[[Kernel], bool] = lambda kernel: True
    apart: bool = False
    lines: bool = False
    isolate: bool = True
    baselines: Path = field(default_factory=lambda: FOLDER)


def read_side(what: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], choice: Choice) -> Side:
    """Return what ``what`` names: a report, a run, a folder of reports, or a baseline.

    Several paths are repeats of one measurement.

    Raises:
        ReportError: a file cannot be used, or there is neither a file nor a baseline of that name.
    """
    if not isinstance(what, str | os.PathLike):
        return _reports(
            ", ".join(PurePath(path).name for path in what), [Path(path) for path in what], choice
        )
    text = str(what)
    if text.startswith(PREFIX):
        return read(choice.baselines, text.removeprefix(PREFIX), choice.keep)
    path = Path(text)
    if path.is_dir():
        if (path / RECORD).is_file():
            return _run(path, choice)
        found = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
        if not found:
            raise ReportNotFound(path, f"{path} holds no report", f"reports end in {' or '.join(SUFFIXES)}")
        require_inside(found, path)
        return _reports(path.name or text, found, choice)
    if path.is_file():
        if path.suffix == ".json":
            return read_file(path, choice.keep)
        return _reports(path.name, [path], choice)
    if path.suffix == "" and exists(choice.baselines, text):
        return read(choice.baselines, text, choice.keep)
    raise _nothing(text, choice)


def side_of(kernels: Iterable[Kernel], label: str = "kernels", *, apart: bool = False) -> Side:
    """Return launches that were read already as a side."""
    some = list(kernels)
    if not some:
        raise ReportEmpty(label, f"{label}: there is no launch to compare", "choose at least one launch")
    return Side(label, "kernels", samples([some], apart=apart), launches=len(some))


def _reports(label: str, paths: Sequence[Path], choice: Choice) -> Side:
    files: list[ReportFile] = []
    launches: list[list[Kernel]] = []
    for path in paths:
        source = Source(path, isolate=choice.isolate)
        kernels = [normalise(raw, str(path)) for raw in source.launches(_wanted(choice, source, len(paths)))]
        files.append(source.described(len(kernels)))
        launches.append([kernel for kernel in kernels if choice.keep(kernel)])
    if not any(launches):
        raise ReportEmpty(
            paths[0],
            f"{label} holds no launch that was asked for",
            "choose by a name or number that it holds",
        )
    return Side(
        label,
        "report" if len(paths) == 1 else "repeats",
        samples(launches, apart=choice.apart),
        tuple(files),
        sum(file.launches for file in files),
        _common([recorded(path) for path in paths]),
        warnings=tuple(dict.fromkeys(text for file in files for text in file.warnings)),
    )


def _wanted(choice: Choice, source: Source, files: int) -> Wanted:
    few = files == 1 and 0 < (source.announced or 0) <= FEW
    return wanted(details=True, code=choice.lines and few)


def _common(found: Sequence[Recorded]) -> Recorded:
    """Return what all files of a side say; where they do not agree it is unknown."""
    same: dict[str, Any] = {
        name: getattr(found[0], name)
        for name in Recorded.__dataclass_fields__
        if len({getattr(one, name) for one in found}) == 1
    }
    return Recorded(**same)


def _run(path: Path, choice: Choice) -> Side:
    """Return a run directory: its report, the clean time beside it, and what was recorded of both."""
    run = read_record(path)
    report = inside(path, PROFILE)
    if not report.is_file():
        raise ReportNotFound(report, f"the run {path} holds no counters", going_on(path, run))
    side = _reports(path.name, [report], choice)
    tools = run.tools.get("ncu")
    version = tools.get("version") if isinstance(tools, dict) else None
    known = side.recorded
    git = run.git.get("revision") if run.git else None
    return replace(
        side,
        kind="run",
        timing=read_timing(path) if (path / TIMING).is_file() else None,
        recorded=replace(
            known,
            ncu=known.ncu or (str(version) if version else None),
            clock_control=run.clock_control or known.clock_control,
            cache_control=run.cache_control or known.cache_control,
            git=str(git) if git else None,
            ranks=_ranks(run),
        ),
    )


def _ranks(run: Run) -> int | None:
    """Return how many processes ran the program together, as torchrun says it; None where unsaid."""
    size = str(run.environment.get("variables", {}).get("WORLD_SIZE", ""))
    return int(size) if size.isdecimal() else None


def _nothing(text: str, choice: Choice) -> ReportError:
    from difflib import get_close_matches

    names = baseline_names(choice.baselines)
    near = get_close_matches(text, names, 3, 0.4)
    hint = f"baselines: {', '.join(near or names[:5])}" if names else "check the path"
    return ReportNotFound(text, f"{text}: there is no such file, and no baseline of that name", hint)
