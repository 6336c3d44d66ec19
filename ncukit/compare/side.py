"""Read one argument of a comparison: a report, a folder of repeats, a run directory, or a baseline."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from pathlib import Path, PurePath
from typing import Any

from ncukit.collect.directory import PROFILE, RECORD, TIMING, inside, read_record, read_timing
from ncukit.collect.seal import going_on
from ncukit.compare import baseline
from ncukit.compare.samples import samples
from ncukit.errors import ReportEmpty, ReportError, ReportNotFound
from ncukit.folders import require_inside
from ncukit.model import Kernel, ReportFile, Wanted
from ncukit.model.comparison import Side
from ncukit.model.recorded import Recorded
from ncukit.model.run import Run
from ncukit.normalise import normalise, wanted
from ncukit.read.report import Source
from ncukit.read.session import recorded
from ncukit.record import dataclass

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
    baselines: Path = field(default_factory=lambda: baseline.FOLDER)


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
    if text.startswith(baseline.PREFIX):
        return baseline.read(choice.baselines, text.removeprefix(baseline.PREFIX), choice.keep)
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
            return baseline.read_file(path, choice.keep)
        return _reports(path.name, [path], choice)
    if path.suffix == "" and baseline.exists(choice.baselines, text):
        return baseline.read(choice.baselines, text, choice.keep)
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

    names = baseline.names(choice.baselines)
    near = get_close_matches(text, names, 3, 0.4)
    hint = f"baselines: {', '.join(near or names[:5])}" if names else "check the path"
    return ReportNotFound(text, f"{text}: there is no such file, and no baseline of that name", hint)
