"""From a tool's output to a cause, and which run wrote a file."""

from __future__ import annotations

import os
import re
import signal
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import Any

from ncukit.errors import ToolError
from ncukit.record import dataclass
from ncukit.run.tools import gpus
from ncukit.run.tools.process import Completed, last_progress

# ---- From output to cause: a stable code, what happened, what to do.  The causes are data, in failures.toml
# The first cause that was printed wins: "No kernels were profiled" and the exit code are nearly always its
# consequences. Exit codes alone say nothing: ncu passes on the program's, nsys ends with 0 without a
# report.

CODES = (
    *("tool-missing", "tool-too-old", "no-driver", "permission", "busy", "lock", "config", "driver-mismatch"),
    *(
        "unsupported-gpu",
        "library-not-loaded",
        "option-unknown",
        "metric-unknown",
        "interpreter",
        "app-failed",
    ),
    *(
        "app-no-cuda",
        "nothing-profiled",
        "replay",
        "launch-failed",
        "cupti-conflict",
        "mig-clocks",
        "timeout",
    ),
    *("collective", "stale-output", "no-gpu-work", "compile-failed", "wrong-result"),
)
"""The codes that scripts may rely on.  What fits none of them has ``tool-failed``."""

_PRODUCTS = {"ncu": "NVIDIA Nsight Compute", "nsys": "NVIDIA Nsight Systems", "nvcc": "the CUDA toolkit"}
# Errors that only frame a cause, or follow from it.
_FRAME = re.compile(
    "==ERROR== (An error was reported by|An error occurred while trying|Failed to profile |The application "
    "returned|Failed to create report)"
)
_TOOL_LINE = re.compile(r"^\s*$|==(PROF|WARNING|ERROR)==|^Generat(ing|ed)\b|^\s+/\S+\.nsys-rep$|^\[\d/\d\]")
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt|Warning)\b(: .*)?$")


@dataclass(frozen=True)
class Context:
    """What is known about a run besides its output, for the choice of cause and advice.

    ``kernel`` and ``range`` are the filters that were given to ncu, ``profiler_api`` that it waited for
    cudaProfilerStart; ``range_opened`` is what the program itself says about its region, None if nothing.
    ``gpu`` is whether the driver shows a GPU here, None where the machine is to be asked.
    ``facts`` fill placeholders of hints: version, driver, installs, python, command, timeout.
    """

    tool: str = "ncu"
    place: gpus.Place = "bare"
    gpu: bool | None = None
    kernel: str | None = None
    range: str | None = None
    profiler_api: bool = False
    range_opened: bool | None = None
    ranks: int = 1
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """One cause: its stable ``code``, words, and the line of output that says so.

    ``id`` tells kinds of one code apart; ``why`` is its part after the dot: "filter", "range", "graph".
    """

    id: str
    code: str
    message: str
    hint: str
    evidence: str = ""
    level: str = "error"

    @property
    def why(self) -> str | None:
        """Which kind of the code it is, None where the code says all."""
        return (*self.id.split("."), None)[1]

    def error(self) -> ToolFailure:
        """Return the exception to raise."""
        return ToolFailure(self)

    def as_dict(self) -> dict[str, object]:
        """Return the failure as JSON data."""
        return {
            "code": self.code,
            "why": self.why,
            "message": self.message,
            "hint": self.hint,
            "evidence": self.evidence or None,
        }


class ToolFailure(ToolError):
    """A tool failed for a known reason: ``failure``."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, failure.hint, code=failure.code)
        self.failure = failure

    def as_dict(self) -> dict[str, object]:
        """Return the error as JSON data, with the kind and the line of output behind it."""
        return {**super().as_dict(), **self.failure.as_dict()}


@dataclass(frozen=True)
class _Row:
    id: str
    code: str
    level: str
    tools: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]
    messages: tuple[str, ...]
    hint: tuple[str, ...]
    places: Mapping[str, tuple[str, ...]]
    without_gpu: str | None = None

    def render(self, context: Context, facts: Mapping[str, str], evidence: str = "") -> Failure:
        known = {"tool": context.tool, "TOOL": context.tool.upper(), **context.facts, **facts}
        known["product"] = _PRODUCTS.get(known["tool"], known["tool"])
        messages = list(_filled(self.messages, known)) or [re.sub(r"{\w+}", "?", self.messages[-1])]
        hint = " ".join(_filled((*self.places.get(context.place, ()), *self.hint), known))
        return Failure(self.id, self.code, messages[0], hint, evidence.strip(), self.level)


def failure(id: str, context: Context | None = None, evidence: str = "", **facts: str) -> Failure:
    """Return the failure ``id`` of the table, for what is found otherwise than from output.

    >>> failure("wrong-result", said="element 7 is 3.0, not 4.0").message
    'the result is wrong: element 7 is 3.0, not 4.0'
    """
    row = next(row for row in _table() if row.id == id)
    return row.render(context or Context(tool=facts.get("tool", "ncu"), place=gpus.place()), facts, evidence)


def classify(done: Completed | str, context: Context | None = None) -> Failure | None:
    """Return the root cause of a run that failed, None where neither output nor exit code tell of any.

    Whether a run succeeded is decided by the file that it wrote: see ``ncu.judge`` and ``nsys.judge``.

    >>> classify("==ERROR== Failed to find metric foo.sum").code
    'metric-unknown'
    """
    ctx = context or Context()
    if isinstance(done, str):
        done = Completed((), 0, lines=tuple(("stdout", line) for line in done.splitlines()))
    lines = done.output.splitlines()
    if causes := _matches(lines, ctx, "error"):
        return causes[0]
    if done.timed_out:
        return _timed_out(done, lines, ctx)
    exit_code = _application_exit(done, lines, ctx)
    exception = next((at for at in range(len(lines) - 1, -1, -1) if _EXCEPTION.match(lines[at])), None)
    if exit_code and (found := _application_cause(lines, ctx, exception)):
        return found
    if unknown := next((line for line in lines if "==ERROR==" in line and not _FRAME.search(line)), None):
        words = unknown.partition("==ERROR==")[2].strip()
        return Failure("tool-failed", "tool-failed", f"{ctx.tool} failed: {words}", "", unknown.strip())
    if exit_code:
        facts = {"exit": _exit_words(exit_code)}
        if exception is not None:
            facts["exception"] = lines[exception]
        elif said := [line.strip() for line in lines if not _TOOL_LINE.search(line)]:
            facts["said"] = said[-1]
        evidence = _line(lines, "returned an error code")
        return failure("compile-failed" if ctx.tool == "nvcc" else "app-failed", ctx, evidence, **facts)
    if results := _matches(lines, ctx, "result"):
        return results[0]
    return _nothing_profiled(lines, ctx)


def notes(done: Completed | str, context: Context | None = None) -> tuple[Failure, ...]:
    """Return what a run that succeeded said beside its results, each kind once.

    >>> [note.code for note in notes("==WARNING== Note: Running with unmodified GPU clocks. If not ...")]
    ['mig-clocks']
    """
    lines = (done if isinstance(done, str) else done.output).splitlines()
    found: dict[str, Failure] = {}
    for note in _matches(lines, context or Context(), "warning"):
        found.setdefault(note.id, note)
    return tuple(found.values())


def _matches(lines: Sequence[str], context: Context, level: str) -> list[Failure]:
    """Return a failure for each line that a row of ``level`` matches, in the order of the lines."""
    rows = [row for row in _table() if row.level == level and (not row.tools or context.tool in row.tools)]
    found = []
    for line in lines:
        hits = ((row, hit) for row in rows for pattern in row.patterns if (hit := pattern.search(line)))
        for row, match in hits:
            facts = {name: text for name, text in match.groupdict().items() if text}
            if "path" in facts and (owner := gpus.owner(facts["path"])):
                facts["owner"] = owner
            found.append(_of_machine(row, context).render(context, facts, line))
            break
    return found


def _of_machine(row: _Row, context: Context) -> _Row:
    """Return the row that speaks for ``row`` where there is no GPU, else ``row``."""
    if row.without_gpu is None or (gpus.has_gpu() if context.gpu is None else context.gpu):
        return row
    return next(other for other in _table() if other.id == row.without_gpu)


def _application_exit(done: Completed, lines: Sequence[str], context: Context) -> int:
    """Return the exit code of the program, 0 where it did well."""
    if said := re.search(r"The application returned an error code \((\d+)\)", "\n".join(lines)):
        return int(said[1])
    return done.returncode


def _application_cause(lines: Sequence[str], context: Context, exception: int | None) -> Failure | None:
    """Return the cause that the program printed: its last exception, or a message that is no exception."""
    for cause in reversed(_matches(lines, context, "app")):
        raised = _EXCEPTION.match(cause.evidence)
        if not raised or exception is None or cause.evidence == lines[exception].strip():
            return cause
    return None


def _timed_out(done: Completed, lines: Sequence[str], context: Context) -> Failure:
    hangs = [f for f in _matches(lines, context, "app") if f.code == "collective"]
    hangs += [f for f in _matches(lines, context, "warning") if f.code == "collective"]
    if hangs or context.ranks > 1:
        return failure("collective", context, hangs[0].evidence if hangs else "")
    progress = last_progress(lines)
    facts = {"timeout": f"{done.duration:.3g}"} | ({"progress": str(progress)} if progress else {})
    return failure("timeout", context, _line(lines, "Profiling"), **facts)


def _nothing_profiled(lines: Sequence[str], context: Context) -> Failure | None:
    """Return why ncu profiled nothing, None where it does not say so."""
    if not (said := _line(lines, r"No (kernels|ranges|graphs|cmdlists) were profiled")):
        return None
    text = "\n".join(lines)
    connected = re.findall(r"Connected to process (\d+) \((.*)\)", text)
    ended = re.findall(r"Target process (\d+) terminated before first instrumented API call", text)
    seen = [f"{pid} {path}" for pid, path in connected] + [f"{pid} (no CUDA)" for pid in ended]
    marked = bool(context.range or context.profiler_api)
    region = "the marked region" if marked else ""
    facts = {"processes": ", ".join(seen), "kernel": context.kernel, "range": context.range, "region": region}
    skipped = {why for why, pattern in _SKIPPED.items() if re.search(pattern, text)}
    if "requires the --target-processes all option" in text:
        id = "nothing-profiled.child"
    elif not connected:
        id = "app-no-cuda"
    elif marked and (context.range_opened is False or skipped == {"range"}):
        id = "nothing-profiled.range"
    elif context.kernel:
        id = "nothing-profiled.filter"
    elif marked and context.range_opened is None:
        id = "nothing-profiled.range"
    elif context.range and context.range.endswith(("/", "]")):
        id = "nothing-profiled.thread"
    else:
        id = "nothing-profiled.child" if ended else "nothing-profiled"
    return failure(id, context, said, **{name: text for name, text in facts.items() if text})


# What ncu --verbose says about each launch that it passed over.
_SKIPPED = {
    "filter": r"Skipping launch in process \d+: kernel .* does not match",
    "range": r"Skipping launch in .*(no range filter match|incorrect nvtx context|incorrect profile state)",
}


def _exit_words(code: int) -> str:
    if code > 128:
        return f"signal {_signal(code - 128)}"
    return f"exit code {code}" + (f" (or {_signal(code)})" if code in (4, 6, 7, 8, 9, 11, 15) else "")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _line(lines: Sequence[str], pattern: str) -> str:
    return next((line.strip() for line in lines if re.search(pattern, line)), "")


def _filled(templates: Sequence[str], known: Mapping[str, str]) -> Iterator[str]:
    """Yield the templates whose placeholders are all known, filled."""
    for template in templates:
        if all(name in known for _, name, _, _ in Formatter().parse(template) if name):
            yield template.format_map(known)


@lru_cache(maxsize=1)
def _table() -> tuple[_Row, ...]:
    with Path(__file__).with_name("failures.toml").open("rb") as file:
        return rows(tomllib.load(file)["failure"])


def rows(tables: Iterable[Mapping[str, Any]]) -> tuple[_Row, ...]:
    """Return the causes that ``tables`` of failures.toml describe."""
    return tuple(
        _Row(
            id=row["id"],
            code=row["code"],
            level=row.get("level", "error"),
            tools=frozenset(row.get("tools", ())),
            patterns=tuple(re.compile(pattern) for pattern in row.get("patterns", ())),
            messages=(row["message"],) if isinstance(row["message"], str) else tuple(row["message"]),
            hint=tuple(row.get("hint", ())),
            places={place: tuple(row[place]) for place in ("bare", "container", "wsl") if place in row},
            without_gpu=row.get("without_gpu"),
        )
        for row in tables
    )


# ---- Which run wrote a file: an output counts only when this run created it


@dataclass(frozen=True)
class Stamp:
    """What tells one writing of a file from another."""

    inode: int
    size: int
    modified: int
    """Time of the last change [ns]."""


@dataclass(frozen=True)
class Outcome:
    """What a run of a tool came to.

    ``path`` is the file that this run created, None if none; ``failure`` is the cause of what went wrong,
    which a partial report can have as well; ``notes`` are what the tool remarked beside.
    """

    path: Path | None
    failure: Failure | None = None
    notes: tuple[Failure, ...] = ()


def stamp(path: Path) -> Stamp | None:
    """Return the stamp of ``path``, None where there is no such file."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return Stamp(stat.st_ino, stat.st_size, stat.st_mtime_ns)


def judge(done: Completed, path: Path, before: Stamp | None, context: Context, magic: bytes) -> Outcome:
    """Return what ``done`` came to; ``before`` is the stamp of its output from before the run.

    The exit code alone says nothing: success is a new file that begins with ``magic``.
    """
    after = stamp(path)
    cause = classify(done, context)
    remarks = notes(done, context)
    if after is None:
        said = done.tail(1).strip() or "nothing"
        return Outcome(None, cause or _lost("missing", context, path, said), remarks)
    if after == before or (cause and cause.code == "stale-output"):
        return Outcome(None, cause or _lost("old", context, path), remarks)
    if done.timed_out or not _begins(path, magic):
        return Outcome(None, cause or _lost("unreadable", context, path), remarks)
    return Outcome(path, cause, remarks)


def _lost(kind: str, context: Context, path: Path, said: str = "") -> Failure:
    return failure(f"stale-output.{kind}", context, path=str(path), said=said)


def _begins(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic and bool(file.read(1))
