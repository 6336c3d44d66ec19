"""One way into every file that holds launches: a report, a compressed one, or ncu's CSV."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ncukit.errors import ReportFormatError
from ncukit.model import Wanted
from ncukit.read import isolate as child
from ncukit.read import native
from ncukit.read.blocks import MAGIC
from ncukit.read.container import Container, check, readable_files, state

if TYPE_CHECKING:
    from ncukit.model import RawKernel, ReportFile
    from ncukit.model.raw import Code


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
            from ncukit.read.csv import read_csv

            self._csv = read_csv(stdin, path=self.path)
        elif not _is_report(self.path) and _is_csv(self.path):
            from ncukit.read.csv import read_csv

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
        from ncukit.read.received import raw_kernel

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

        from ncukit.read.session import recorded

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
    from ncukit.read.csv import looks_like_csv

    return os.path.isfile(path) and looks_like_csv(path)
