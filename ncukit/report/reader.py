"""One way into every file that holds launches: how it was made, its launches, which of them failed."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ncukit.errors import ReportFormatError
from ncukit.model import RawKernel, RawValue, Wanted
from ncukit.model.kernel import Recorded
from ncukit.report import native
from ncukit.report import wire as child
from ncukit.report.blocks import MAGIC, session_created
from ncukit.report.container import Container, check, readable_files, state

if TYPE_CHECKING:
    from ncukit.model import RawKernel, ReportFile
    from ncukit.model.kernel import Code


# ---- What a report says about how it was made: versions and the command line of ncu
#  ``ncu_report`` does not hand these out, but the container holds them as plain text: a table of names and
# values ("Nsight Compute Target", "Display Driver Version", ...), and, from 2022.3, ncu's command line.

DEFAULT_CLOCKS, DEFAULT_CACHES = "base", "all"
"""What ncu does where its command line says nothing (Nsight Compute CLI documentation)."""

_NAMES = {"ncu": b"Nsight Compute Target", "driver": b"Display Driver Version", "cuda": b"CUDA Version"}
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_COMMAND = re.compile(rb'"?(?:/|[A-Za-z]:\\)[\x20-\x7e]{0,500}?[/\\]ncu(?:\.exe"?)? [\x20-\x7e]*')
_AROUND = 1 << 16
"""[byte] after the versions in which the command line stands."""
_LONGEST = 1 << 16


def recorded(path: str | Path) -> Recorded:
    """Return what the report at ``path`` says about how it was made; nothing for another file."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = {field: _value(data, name) for field, name in _NAMES.items()}
            command = _command(data, data.find(_NAMES["ncu"]))
    except (OSError, ValueError):
        return Recorded()
    if found["ncu"] is None:
        return Recorded()
    return Recorded(
        ".".join(found["ncu"].split(".")[:3]),
        found["driver"],
        found["cuda"],
        command,
        clock_control=None if command is None else option(command, "--clock-control", DEFAULT_CLOCKS),
        cache_control=None if command is None else option(command, "--cache-control", DEFAULT_CACHES),
    )


def created(path: str | Path) -> datetime | None:
    """Return when ncu made the report at ``path`` (UTC), as it says itself; None where it does not."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            seconds = session_created(file, os.fstat(file.fileno()).st_size)
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (OSError, OverflowError, ValueError):
        return None


def option(command: str, name: str, default: str) -> str:
    """Return the value of option ``name`` of a command line, else ``default``.

    >>> option("/opt/ncu --clock-control none -o a ./run", "--clock-control", "base")
    'none'
    """
    found = re.search(rf"(?:^| ){re.escape(name)}[ =](\S+)", command)
    return found[1] if found else default


def _value(data: mmap.mmap, name: bytes) -> str | None:
    """Return the version behind ``name``: a protobuf string, its length in one byte."""
    at = data.find(name + b"\x12")
    if at < 0:
        return None
    start = at + len(name) + 2
    text = data[start : start + data[start - 1]].decode("ascii", "replace")
    found = _VERSION.search(text)
    return found[0] if found else None


def _command(data: mmap.mmap, at: int) -> str | None:
    """Return ncu's command line: the longest text nearby that starts with its path."""
    if at < 0:
        return None
    found = _COMMAND.search(data[at : at + _AROUND])
    if found is None:
        return None
    text = found[0][:_LONGEST].decode("ascii", "replace")
    return (text[:-1] if text.count('"') % 2 else text).strip()  # the next field begins with its tag, a quote


# ---- Whether a launch holds a valid measurement at all

_NO_COUNTER = re.compile(r"^(device__|launch__|profiler__|ncukit__|\w+__maximum_)")
"""Names of what is known without measuring."""


def failure(raw: RawKernel) -> str | None:
    """Return why ``raw`` holds no valid measurement, or None for a good launch.

    ncu writes a result even when the kernel could not be run again: without a launch configuration, with zero
    replay passes (the counters are then copies of an earlier launch), or with NaN for what was asked.  A
    launch that reads no block or no time did not run either.
    """
    metrics = raw.metrics
    if raw.workload != "kernel":
        return None
    passes, duration = metrics.get("profiler__replayer_passes"), metrics.get("gpu__time_duration.sum")
    grid = metrics.get("launch__grid_size")
    if grid is None and raw.origin == "report":
        return f"the launch failed under the profiler: no launch configuration was recorded{_left(raw)}"
    if grid == 0:
        return f"the launch did not run: its launch configuration reads 0 blocks{_left(raw)}"
    if passes == 0 and not duration:
        return "the launch was not profiled: zero replay passes, and no time was measured"
    if passes == 0:
        return "the launch was not profiled: zero replay passes (its counters belong to another launch)"
    if _is_nan(duration):
        return f"the profiling pass failed: the duration is not a number{_left(raw)}"
    if duration == 0:
        return f"the launch did not run: its duration reads 0{_left(raw)}"
    return None


def _left(raw: RawKernel) -> str:
    """Return what the counters of a failed launch read, as the end of a sentence."""
    numbers = {n: v for n, v in raw.metrics.items() if not isinstance(v, str) and not _NO_COUNTER.match(n)}
    peaks = [v for n, v in numbers.items() if ".peak_sustained" in n]
    counters = [v for n, v in numbers.items() if ".peak_sustained" not in n]
    if not counters:
        return ", and no counter"
    if any(v == v and v for v in counters):
        return ""
    if not any(v != v for v in counters):
        return ", and every counter reads 0"
    return ", and the counters are NaN" + (" (peaks read 0)" if any(v == 0 for v in peaks) else "")


def _is_nan(value: RawValue | None) -> bool:
    return isinstance(value, float) and value != value


# ---- One way into every file that holds launches: a report, a compressed one, or ncu's CSV


class Source:
    """An input file, checked; iterate over `launches` as often as needed.

    ``warnings`` tell what was odd about the file (a newer container, trailing bytes).

    Raises:
        ReportError: the file is missing, empty, damaged or of another format (exit 4).
    """

    def __init__(
        self, path: str | os.PathLike[str], *, stdin: TextIO | None = None, isolate: bool = True
    ) -> None:
        self.path, self.isolate = str(path), isolate
        self._csv: list[RawKernel] | None = None
        self._container: Container | None = None
        self._reader: child.Reader | None = None
        self._state: tuple[int, ...] | None = None
        self.warnings: tuple[str, ...] = ()
        if stdin is not None:
            from ncukit.report.printed import read_csv

            self._csv = read_csv(stdin, path=self.path)
        elif not _is_report(self.path) and _is_csv(self.path):
            from ncukit.report.printed import read_csv

            self._csv = read_csv(Path(self.path))
        else:
            self._container, self._state = check(self.path), state(self.path)
            self.warnings = self._container.warnings
            if isolate and self._container.direct:
                # it parses while the caller gets ready
                self._reader = child.Reader(self.path)

    @property
    def announced(self) -> int | None:
        """Number of launches that the file says it holds; None where it does not say."""
        if self._csv is not None:
            return len(self._csv)
        return None if self._container is None else self._container.results

    def launches(self, wanted: Wanted) -> Iterator[RawKernel]:
        """Yield every launch in order, with what is ``wanted`` of it.

        Raises:
            ReaderCrashed: the native reader died on the file.
            ReportFormatError: the reader found other results than the container announces.
        """
        if self._csv is not None:
            yield from self._csv
            return
        assert self._container is not None
        from ncukit.report.wire import raw_kernel

        found = 0
        with readable_files(self._container) as files:
            for file in files:
                codes: dict[int, Code] = {}
                for plain in self._results(str(file), wanted):
                    named = {**plain, "index": found} if found != plain["index"] else plain
                    raw = raw_kernel(named, codes)
                    if not raw.demangled and not raw.function:
                        raise self._damaged(f"result {found + 1} has no name")
                    found += 1
                    yield raw
        announced = self._container.results
        if found == 0 or (announced is not None and found < announced):
            raise self._damaged(f"the reader found {found} of {announced or 'its'} results")

    def _results(self, file: str, wanted: Wanted) -> Iterator[native.Plain]:
        if self.isolate:
            reader, self._reader = self._reader, None
            if reader is None or not reader.ours:
                reader = child.Reader(file)
            yield from reader.results(wanted)
            return
        try:
            yield from native.results(native.load(file), wanted)
        except native.DAMAGE as exc:
            raise self._damaged(f"{type(exc).__name__}: {exc}") from exc

    def described(self, launches: int) -> ReportFile:
        """Return the file's size and hash and how it was made, for the provenance of a page."""
        from ncukit.model import ReportFile

        if not os.path.isfile(self.path):
            return ReportFile(self.path, 0, "", launches, self.warnings)
        import hashlib

        pass  # gone

        with open(self.path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size, warnings = os.path.getsize(self.path), self.warnings
        if self._state not in (None, state(self.path)):
            warnings += ("it changed while it was read: size and hash are not of what was read",)
        return ReportFile(self.path, size, digest, launches, warnings, recorded(self.path))

    def _damaged(self, what: str) -> ReportFormatError:
        return ReportFormatError(
            self.path,
            f"{self.path} is damaged inside: {what}",
            "copy it again from where it was made, or profile again",
            code="report-damaged",
        )


def _is_report(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _is_csv(path: str) -> bool:
    from ncukit.report.printed import looks_like_csv

    return os.path.isfile(path) and looks_like_csv(path)
