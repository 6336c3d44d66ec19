"""Traces of several ranks: which file is of which rank."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ncukit.errors import ReportNotFound, UsageError
from ncukit.folders import require_inside
from ncukit.model.ops import TorchTrace
from ncukit.read.torch_trace import read_torch
from ncukit.record import dataclass

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
