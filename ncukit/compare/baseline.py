"""Named baselines: neutral metrics of a report as a small JSON file that belongs into the repository.

Schema ``ncukit.baseline/1``.  A baseline holds what a comparison needs: every metric with its
quality and the names of its raw counters, reasons for what is unknown, the spread of repeats, the verdict in
brief.  It does not hold raw values, rules, source or SASS.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ncukit.catalog import load
from ncukit.diagnose.launch_facts import FactsOnDemand
from ncukit.errors import ReportEmpty, ReportFormatError, ReportNotFound, UsageError
from ncukit.folders import Folder
from ncukit.media import dumps
from ncukit.model import Diagnosis, Kernel, RawKernel, ReportFile, Value, Verdict
from ncukit.model.comparison import Sample, Side
from ncukit.model.recorded import Recorded
from ncukit.model.run import Timing
from ncukit.model.value import stored, stored_noisy
from ncukit.roofline import place
from ncukit.schemas.documents import read_document
from ncukit.whole import write_text

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
    return bool(_NAME.fullmatch(name)) and name in names(folder)


def names(folder: Path) -> list[str]:
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
        known = names(folder)
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
