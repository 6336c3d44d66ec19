"""A trace of whatever tool, and what lies beside it: other ranks, logs of NCCL, samples of the host."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ncukit.errors import ReportEmpty, ReportFormatError, ReportNotFound, UsageError
from ncukit.folders import require_inside
from ncukit.model.ops import Counted, NcclLog, Setting, Stay, TorchTrace
from ncukit.model.trace import Trace
from ncukit.record import dataclass
from ncukit.report.container import GZIP
from ncukit.trace.events import Events
from ncukit.trace.nsys import Export, open_trace
from ncukit.trace.torch_events import read_torch, read_torch_trace

# ---- A trace of whatever tool: nsys, or the profiler of torch

_LOOK = 64
"""[byte] that tell JSON from other formats."""


def open_any_trace(
    path: str | os.PathLike[str], export: Export | None = None, *, force: bool = False
) -> Trace:
    """Return the events of the trace at ``path``, of nsys or of torch's profiler, by what the file holds.

    Raises:
        ReportError: as for `ncukit.trace.nsys.open_trace` and `ncukit.trace.torch_events.read_torch_trace`.
        ToolError: a .nsys-rep cannot be exported.
    """
    path = Path(path)
    return read_torch_trace(path) if is_json(path) else open_trace(path, export, force=force)


def is_json(path: Path) -> bool:
    """Return whether the file begins like JSON, packed by gzip or not; one that cannot be read does not."""
    if not path.is_file():
        return path.name.endswith((".json", ".json.gz"))
    try:
        with path.open("rb") as file:
            head = file.read(_LOOK)
        if head.startswith(GZIP):
            with gzip.open(path) as packed:
                head = packed.read(_LOOK)
    except (OSError, EOFError, zlib.error):
        return path.name.endswith((".json", ".json.gz"))
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def sha256_of(path: str | Path) -> str:
    """Return the SHA-256 of the file at ``path``."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- Traces of several ranks: which file is of which rank

SUFFIXES = (".json", ".json.gz")
_RANK = re.compile(r"rank[-_.]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class RankTrace:
    """The trace of one rank."""

    rank: int
    trace: TorchTrace

    @property
    def path(self) -> str:
        """Where it was read from."""
        return self.trace.trace.file.path


def rank_traces(folder: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[RankTrace]:
    """Return the traces of ``folder`` (or of a list of files) by rank.

    The rank is what the trace says of itself, else the number behind "rank" in the name of its file.

    Raises:
        ReportNotFound: there is no trace.
        ReportError: one cannot be used.
        UsageError: two are of the same rank, or nothing says which rank one is of.
    """
    found: dict[int, RankTrace] = {}
    for path in _files(folder):
        trace = read_torch(path)
        rank = _rank(trace, path)
        if rank in found:
            raise UsageError(
                f"{Path(found[rank].path).name} and {path.name} are both of rank {rank}",
                "give one trace of each rank; several steps of one rank are looked at one by one",
            )
        found[rank] = RankTrace(rank, trace)
    return [found[rank] for rank in sorted(found)]


def _files(folder: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    if not isinstance(folder, str | os.PathLike):
        return _some([Path(path) for path in folder], "the list")
    place = Path(folder)
    if not place.is_dir():
        raise ReportNotFound(place, f"there is no folder {place}", "check the path")
    found = sorted(path for path in place.iterdir() if path.name.endswith(SUFFIXES))
    require_inside(found, place)
    return _some(found, str(place))


def _some(files: Iterable[Path], where: str) -> list[Path]:
    found = list(files)
    if not found:
        raise ReportNotFound(
            where, f"{where} holds no trace of torch's profiler", "a trace ends with .json or .json.gz"
        )
    return found


def _rank(trace: TorchTrace, path: Path) -> int:
    said = trace.head.get("distributedInfo")
    if isinstance(said, dict) and isinstance(said.get("rank"), int):
        return int(said["rank"])
    if match := _RANK.search(path.name):
        return int(match[1])
    raise UsageError(
        f"nothing says which rank {path.name} is of",
        "name the files rank0.json.gz, rank1.json.gz, ...; under torch.distributed torch writes the rank",
    )


# ---- Read what NCCL prints with ``NCCL_DEBUG=INFO``: version, settings, transports, warnings

_LINE = re.compile(r"\bNCCL (INFO|WARN|version)\b")
_VERSION = re.compile(r"\bNCCL version (\S+)")
_SET = re.compile(r"\bNCCL INFO (NCCL_\w+) set (?:by environment )?to (.+?)\.?\s*$")
_VIA = re.compile(r"\bvia ([A-Z0-9]+(?:/[\w-]+)*)")
_RANKS = re.compile(r"\bn[Rr]anks (\d+)\b")
_WARN = re.compile(r"\bNCCL WARN (.+?)\s*$")
_FACTS = (
    ("network", re.compile(r"\bNCCL INFO Using network (\S+)")),
    ("InfiniBand", re.compile(r"\bNCCL INFO NET/IB : (Using .+?|No device found)\s*\.?\s*$")),
    ("sockets", re.compile(r"\bNCCL INFO NET/Socket : (Using .+?)\s*$")),
    ("channels", re.compile(r"\b(\d+ coll channels, .+?)\s*$")),
)
NOTES = {
    "NCCL_P2P_DISABLE": ("1", "GPUs of one machine do not reach each other directly"),
    "NCCL_SHM_DISABLE": ("1", "shared memory between processes is off"),
    "NCCL_IB_DISABLE": ("1", "InfiniBand and RoCE are off: between machines only sockets are left"),
    "NCCL_NET_GDR_LEVEL": ("0", "the network card does not reach GPU memory itself"),
    "NCCL_ALGO": ("", "the algorithm is fixed: NCCL cannot choose by size"),
    "NCCL_PROTO": ("", "the protocol is fixed: NCCL cannot choose by size"),
    "NCCL_LAUNCH_MODE": ("", "how collectives are launched is fixed"),
    "NCCL_DEBUG": ("TRACE", "this much output slows the program"),
}
"""Settings that often explain slow collectives: the value that does (any where empty), and what it means."""
WARNINGS = 20
"""Different warnings that are kept."""


def read_nccl_log(path: str | os.PathLike[str]) -> NcclLog:
    """Return what the log at ``path`` says; lines of other programs are skipped.

    Raises:
        ReportNotFound: there is no such file.
        ReportFormatError: it holds no line of NCCL.
    """
    place = Path(path)
    version, ranks, lines = None, None, 0
    settings: dict[tuple[str, str], Setting] = {}
    transports: Counter[str] = Counter()
    warnings: dict[str, None] = {}
    try:
        with place.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if not _LINE.search(line):
                    continue
                lines += 1
                if match := _VERSION.search(line):
                    version = version or match[1]
                if match := _SET.search(line):
                    made = setting(match[1], match[2], "log")
                    settings.setdefault((made.name, made.value), made)
                for name, pattern in _FACTS:
                    if match := pattern.search(line):
                        settings.setdefault((name, match[1]), Setting(name, match[1], "log"))
                if match := _VIA.search(line):
                    transports[match[1]] += 1
                if match := _RANKS.search(line):
                    ranks = max(ranks or 0, int(match[1]))
                if (match := _WARN.search(line)) and len(warnings) < WARNINGS:
                    warnings.setdefault(match[1])
    except FileNotFoundError as error:
        raise ReportNotFound(place, f"there is no file {place}", "check the path") from error
    except OSError as error:
        raise ReportNotFound(place, f"{place} cannot be read: {error.strerror}") from error
    if not lines:
        raise ReportFormatError(
            place, f"{place} holds no line of NCCL", "run with NCCL_DEBUG=INFO and keep what it prints"
        )
    return NcclLog(str(place), version, tuple(settings.values()), dict(transports), tuple(warnings), ranks)


def setting(name: str, value: str, source: str) -> Setting:
    """Return a setting with what it means, where that often explains slow collectives.

    >>> setting("NCCL_P2P_DISABLE", "1", "log").note
    'GPUs of one machine do not reach each other directly'
    """
    wanted, note = NOTES.get(name, ("-", ""))
    return Setting(name, value, source, note if wanted in ("", value) else "")


# ---- What Python did on the host: samples of py-spy, counts of cProfile, stacks of torch's profiler
# Files of py-spy are Chrome traces whose events begin and end where the stack changes between two samples.

REGION = "ncukit_region"
"""The function around the region, in `ncukit.run.workload.steps`."""


def read_pyspy(path: str | Path) -> list[Stay]:
    """Return the stretches of the thread that ran the region, on the clock of py-spy.

    Raises:
        ReportError: it is no trace of py-spy, or the region was never seen in it.
    """
    open_: dict[Any, list[tuple[str, str]]] = defaultdict(list)
    since: dict[Any, int] = {}
    found: list[Stay] = []
    for event in Events(path):
        if not isinstance(event, dict) or event.get("ph") not in ("B", "E") or event.get("cat") != "py-spy":
            continue
        try:
            thread, at = event["tid"], round(event["ts"] * 1000)
            args, name = event["args"], str(event["name"])
        except (KeyError, TypeError) as error:
            raise ReportFormatError(path, f"{path} is no trace of py-spy: an event lacks {error}") from error
        stack = open_[thread]
        names = [function for function, _ in stack]
        if REGION in names and at > since[thread]:
            inside = stack[names.index(REGION) + 1 :]
            found.append(Stay(since[thread], at, tuple(label for _, label in inside)))
        since[thread] = at
        if event["ph"] == "B":
            stack.append((name, _label(str(args.get("filename", "?")), args.get("line"), name)))
        elif stack:
            stack.pop()
    if not found:
        raise ReportEmpty(
            path, f"{path} has no sample of the region", "the region is too short: --calls more"
        )
    return found


def _label(file: str, line: Any, name: str) -> str:
    return f"{name} ({short_file(file)})"


def short_file(file: str) -> str:
    """Return a file as people name it: from site-packages or the standard library on, else its last part.

    >>> short_file("/usr/lib/python3/site-packages/torch/nn/linear.py"), short_file("/home/me/model.py")
    ('torch/nn/linear.py', 'model.py')
    """
    for mark in ("site-packages/", "dist-packages/"):
        if mark in file:
            return file.rsplit(mark, 1)[1]
    return file.rsplit("/", 1)[-1]


def read_counts(path: str | Path) -> list[Counted]:
    """Return what cProfile counted, without the profiler itself.

    Raises:
        ReportFormatError: the file is not what the measured child wrote.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        return [
            Counted(
                _label(row["file"], row["line"], row["name"]) if row["file"] != "~" else row["name"],
                row["calls"],
                round(row["self"] * 1e9),
                round(row["total"] * 1e9),
            )
            for row in data["functions"]
            if "_lsprof.Profiler" not in row["name"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ReportFormatError(path, f"{path} holds no counts of cProfile") from error
