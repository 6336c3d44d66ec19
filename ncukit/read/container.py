"""Check the container of a report before the native reader opens it.

The native reader raises on none of the faults named here: it returns no launches, or launches without a
name, or ends the process.  `blocks` walks a report, `zstd` a compressed one (``.ncu-repz``), `formats` says
what another file is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from ncukit.errors import ReportEmpty, ReportFormatError, ReportNotFound
from ncukit.media import word
from ncukit.read.blocks import AGAIN, KNOWN_VERSION, MAGIC, Fault, Part, walk
from ncukit.record import dataclass

_NO_RESULTS = (
    "ncu profiled nothing: check its kernel filter (-k, --launch-skip, --nvtx-include) and its messages."
)
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Container:
    """A file that holds a sound report: whole, or as far as ``parts`` with a warning that says so.

    ``parts`` has one entry a report: one, unless reports were written one after another into one file.
    """

    path: Path
    size: int
    parts: tuple[Part, ...]
    warnings: tuple[str, ...] = ()
    kind: Literal["ncu-rep", "ncu-repz"] = "ncu-rep"

    @property
    def version(self) -> int | None:
        """Version in the file header; None where it is compressed."""
        return self.parts[0].version

    @property
    def results(self) -> int | None:
        """Number of results: launches, ranges, graphs; None where they are compressed."""
        known = [part.results for part in self.parts if part.results is not None]
        return sum(known) if known else None

    @property
    def sound_size(self) -> int:
        """Size [byte] of the first report in the file, from its beginning."""
        return self.parts[0].size

    @property
    def whole(self) -> bool:
        """Whether the file is exactly one report."""
        return self.sound_size == self.size

    @property
    def direct(self) -> bool:
        """Whether the native reader opens the file where it lies: whole, and named for what it is."""
        return self.whole and self.path.name.endswith(".ncu-repz") == (self.kind == "ncu-repz")


def state(path: str | Path) -> tuple[int, ...]:
    """Return what tells whether the file at ``path`` is the same still: device, inode, size, change."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def check(path: str | Path) -> Container:
    """Return the container of the report at ``path``.

    Raises:
        ReportNotFound: no such file, a folder, a pipe, or not readable.
        ReportEmpty: nothing in the file, or a sound report without results.
        ReportFormatError: another format, truncated or damaged; the message says what and where.
    """
    path = Path(path)
    size = _size(path)
    try:
        with path.open("rb") as file:
            return _check(path, file, size)
    except PermissionError as exc:
        raise ReportNotFound(
            path, f"{path} cannot be opened: permission denied", f"chmod +r {word(path)}"
        ) from exc
    except OSError as exc:
        raise ReportNotFound(path, f"{path} cannot be read: {exc.strerror}", "Check the disk.") from exc


@contextmanager
def readable_files(container: Container) -> Iterator[tuple[Path, ...]]:
    """Yield one file a part that the native reader opens: the report itself, or private temporary copies.

    The native reader refuses a file with anything behind the report, and goes by the name: compressed means
    exactly ``.ncu-repz``.

    Raises:
        OSError: there is no room for the copies.
    """
    if container.direct:
        yield (container.path,)
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="ncukit-") as folder, container.path.open("rb") as source:
        copies = []
        for number, part in enumerate(container.parts):
            copies.append(Path(folder, f"{number}.{container.kind}"))
            source.seek(part.offset)
            left = part.size
            with copies[-1].open("wb") as copy:
                while left and (chunk := source.read(min(left, _CHUNK))):
                    left -= copy.write(chunk)
        yield tuple(copies)


def _size(path: Path) -> int:
    try:
        found = path.stat()
    except FileNotFoundError as exc:
        if path.is_symlink():
            message = f"{path} is a link to {os.readlink(path)}, which does not exist"
            raise ReportNotFound(path, message, "Check where it should lead.") from exc
        with_suffix = path.with_name(path.name + ".ncu-rep")
        hint = f"Did you mean {with_suffix}?" if with_suffix.exists() else "Check the path."
        raise ReportNotFound(path, f"there is no file {path}", hint) from exc
    except PermissionError as exc:
        message = f"{path} cannot be reached: permission denied"
        raise ReportNotFound(path, message, f"chmod +x {word(path.parent)}") from exc
    except (OSError, ValueError) as exc:
        raise ReportNotFound(path, f"{str(path)!r} is not a usable path: {exc}", "Check the path.") from exc
    if stat.S_ISDIR(found.st_mode):
        inside = sorted(word(p) for p in path.glob("*.ncu-rep*"))[:3]
        hint = f"Name a report in it: {', '.join(inside)}" if inside else "There is no .ncu-rep in it."
        raise ReportNotFound(path, f"{path} is a folder, not a report", hint)
    if not stat.S_ISREG(found.st_mode):
        from ncukit.read.formats import refuse_pipe

        refuse_pipe(path)
    if found.st_size == 0:
        raise ReportEmpty(path, f"{path} is empty (0 bytes)", AGAIN)
    return found.st_size


def _check(path: Path, file: BinaryIO, size: int) -> Container:
    if file.read(len(MAGIC)) != MAGIC:
        return _check_other(path, file, size)
    parts: list[Part] = []
    warnings: list[str] = []
    end = 0
    while end < size:
        try:
            parts.append(walk(file, end, size))
        except Fault as fault:
            if not parts:
                raise ReportFormatError(path, f"{path} {fault.text}", fault.hint, code=fault.code) from None
            warnings.append(f"a second report, from byte {end} on, {fault.text}: only the first is read")
            break
        end = parts[-1].offset + parts[-1].size
        file.seek(end)
        if end < size and file.read(4) != MAGIC:
            warnings.append(_behind(size, end))
            break
    if len(parts) > 1:
        warnings.append(f"it holds {len(parts)} reports one after another; launches are counted through")
    newest = max(part.version or 0 for part in parts)
    if newest > KNOWN_VERSION:
        warnings.append(f"container version {newest} is newer than {KNOWN_VERSION}: a later ncu wrote it")
    if not any(part.results for part in parts):
        raise ReportEmpty(path, f"{path} is a sound report without any result", _NO_RESULTS)
    return Container(path, size, tuple(parts), tuple(warnings))


def _check_other(path: Path, file: BinaryIO, size: int) -> Container:
    """Check a compressed report; say of another file what it is."""
    from ncukit.read import formats, zstd

    file.seek(0)
    head = file.read(formats.HEAD)
    if MAGIC.startswith(head):
        message = f"{path} is cut off after {size} bytes, inside its magic"
        raise ReportFormatError(path, message, AGAIN, code="report-truncated")
    if not head.startswith(zstd.MAGIC):
        found = formats.identify(head)
        raise ReportFormatError(path, f"{path} is {found.what}", found.advice(path))
    try:
        end = zstd.frame_end(file, size)
    except Fault as fault:
        message = f"{path} is a compressed report (zstd) that {fault.text}"
        raise ReportFormatError(path, message, fault.hint, code=fault.code) from None
    file.seek(end)
    if file.read(4) == zstd.MAGIC:
        message = f"{path} holds several zstd frames; a compressed report (.ncu-repz) is one"
        raise ReportFormatError(path, message, f"Unpack it first: zstd -dc {word(path)} > report.ncu-rep")
    warnings = (_behind(size, end),) if end < size else ()
    return Container(path, size, (Part(0, end),), warnings, "ncu-repz")


def _behind(size: int, end: int) -> str:
    count = size - end
    return f"from byte {end} on, {count} byte{'s' * (count != 1)} follow that no report holds: left out"
