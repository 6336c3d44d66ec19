"""Whether a file is a report, and whole, before the native reader opens it."""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

from ncukit.errors import ReportEmpty, ReportFormatError, ReportNotFound
from ncukit.media import argument, word
from ncukit.record import dataclass
from ncukit.report.blocks import AGAIN, KNOWN_VERSION, MAGIC, Fault, Part, walk

# ---- Say by its first bytes what a file is that is not what a command takes

GZIP = b"\x1f\x8b"
HEAD = 4096
"""How many bytes of a file ``identify`` needs [byte]."""


class Format(NamedTuple):
    """Another format: what the file is (completes "x.ncu-rep is ..."), what to do, and how it begins.

    In the hint FILE is the file, BASENAME its name, FOLDER where it lies: see `advice`.
    """

    what: str
    hint: str
    magic: bytes
    offset: int = 0

    def advice(self, path: Path) -> str:
        """Return what to do with the file at ``path``.

        >>> identify(b"version https://git-lfs.github.com/spec/v1").advice(Path("my runs/a.ncu-rep"))
        "Fetch the real file: git -C 'my runs' lfs pull --include=a.ncu-rep"
        """
        words = {"FILE": str(path), "BASENAME": path.name, "FOLDER": str(path.parent)}
        return re.sub(rf"\b({'|'.join(words)})\b", lambda found: _word(found[1], words[found[1]]), self.hint)


def _word(name: str, path: str) -> str:
    """Return a word of a hint; BASENAME is the value of an option, and no path of its own."""
    return argument(path, name) if name == "BASENAME" else word(path, name)


_NSYS = (
    "See what it says: ncukit timeline FILE; or put it beside a report: ncukit report REPORT.ncu-rep "
    "--timeline FILE"
)
_NSYS_TABLE = "Give the .nsys-rep or its sqlite export to ncukit timeline; a table of nsys stats is not read."
_UNPACK = "Unpack it first: {0}"
_NOT_OURS = "Give ncukit the .ncu-rep that `ncu -o NAME` wrote."
_CSV = "No launch with metrics is in it: give ncukit the .ncu-rep, or what `ncu --page raw --csv` prints."
_TORCH = "See what it says: ncukit ops FILE; or ncukit timeline FILE"
_HTML = "A login or preview page was saved instead of the report: download the raw file."

BINARY = (
    Format("a report of Nsight Compute (ncu)", "See what it says: ncukit show FILE", b"NVR\0"),
    Format("gzip-compressed", _UNPACK.format("gunzip -c FILE > report.ncu-rep"), GZIP),
    Format("compressed with xz", _UNPACK.format("xz -dc FILE > report.ncu-rep"), b"\xfd7zXZ\0"),
    Format("compressed with bzip2", _UNPACK.format("bzip2 -dc FILE > report.ncu-rep"), b"BZh"),
    Format("compressed with lz4", _UNPACK.format("lz4 -dc FILE > report.ncu-rep"), b"\x04\x22\x4d\x18"),
    Format("a zip archive", _UNPACK.format("unzip FILE"), b"PK\x03\x04"),
    Format("an empty zip archive", _NOT_OURS, b"PK\x05\x06"),
    Format("a 7-Zip archive", _UNPACK.format("7z x FILE"), b"7z\xbc\xaf\x27\x1c"),
    Format("a tar archive", _UNPACK.format("tar -xf FILE"), b"ustar", 257),
    Format("a report of Nsight Systems, not of Nsight Compute", _NSYS, b"NVIDIA Tegra Profiler Re"),
    Format("an SQLite database (an export of nsys, or of nvprof)", _NSYS, b"SQLite format 3\0"),
    Format("a GPU binary (cubin or fatbin)", _NOT_OURS, b"\x50\xed\x55\xba"),
    Format("an ELF file (a program, library or cubin)", _NOT_OURS, b"\x7fELF"),
    Format("a Windows program", _NOT_OURS, b"MZ"),
    Format("a PDF document", _NOT_OURS, b"%PDF-"),
    Format("a PNG image", _NOT_OURS, b"\x89PNG\r\n"),
    Format("a JPEG image", _NOT_OURS, b"\xff\xd8\xff"),
    Format("a Parquet file", _NOT_OURS, b"PAR1"),
    Format("an HDF5 file", _NOT_OURS, b"\x89HDF\r\n"),
)

_LFS = (
    "a git LFS pointer, not the report itself",
    "Fetch the real file: git -C FOLDER lfs pull --include=BASENAME",
)
# Looked for in this order; the first that the text starts with, after blanks and a byte order mark.
TEXT_STARTS = (
    Format(*_LFS, b"version https://git-lfs"),
    Format("a web page (HTML)", _HTML, b"<!doctype html"),
    Format("a web page (HTML)", _HTML, b"<html"),
    Format("XML text", _NOT_OURS, b"<?xml"),
    Format("JSON text", _NOT_OURS, b'{"'),
    Format("JSON text", _NOT_OURS, b"{\n"),
    Format("JSON text", _NOT_OURS, b"[{"),
    Format("JSON text", _NOT_OURS, b"[\n"),
)
_EVENTS = re.compile(rb'^[{\[].*"(traceevents|deviceproperties|distributedinfo|ph)"\s*:', re.DOTALL)
"""How a trace of torch's profiler begins, in small letters."""
# Looked for anywhere in the head.
TEXT_PARTS = (
    Format("CSV text, not a report", _CSV, b'"kernel name"'),
    Format("CSV text, not a report", _CSV, b"kernel name,"),
    Format("the output of nvprof", _NOT_OURS, b"==nvprof=="),
    Format(
        "what ncu printed on the terminal, not the report",
        "Profile with `ncu -o NAME` and give ncukit NAME.ncu-rep, or print CSV: ncu --csv --page raw.",
        b"==prof==",
    ),
    Format("what ncu printed on the terminal, not the report", _CSV, b"), context 1, stream "),
    Format("a table of nsys stats", _NSYS_TABLE, b"total time (ns)"),
)


def refuse_pipe(path: Path) -> None:
    """Refuse what is neither a file nor a folder: to open a pipe would wait for ever.

    Raises:
        ReportNotFound: it is a pipe or a device.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ReportNotFound(path, f"{path} is a pipe or device, not a file", "Write it to a file first.")


def identify(head: bytes) -> Format:
    """Return what a file that begins with ``head`` is.

    >>> identify(b"version https://git-lfs.github.com/spec/v1").what
    'a git LFS pointer, not the report itself'
    """
    if head.startswith(GZIP) and _EVENTS.match(unpacked(head).lstrip().lower()):
        return Format("a packed trace of torch's profiler", _TORCH, b"")
    for entry in BINARY:
        if head.startswith(entry.magic, entry.offset):
            return entry
    if not head.strip(b"\0"):
        return Format("nothing but zero bytes", "The copy failed: copy or download the report again.", b"")
    if (text := _text(head)) is not None:
        low = text.lower().encode()
        if _EVENTS.match(low.lstrip()):
            return Format("a trace of torch's profiler", _TORCH, b"")
        for entry in TEXT_STARTS:
            if low.lstrip().startswith(entry.magic):
                return entry
        for entry in TEXT_PARTS:
            if entry.magic in low:
                return entry
        # Never its words: a link may lead to a file of secrets, and errors end in the logs of CI.
        return Format("text of no known format" if text.strip() else "blank text", _NOT_OURS, b"")
    return Format("of an unknown format: a report begins with 4e 56 52 00 (NVR)", _NOT_OURS, b"")


def is_text(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is text: UTF-8, near enough to it, or UTF-16 with its mark."""
    return _text(head) is not None


def unpacked(head: bytes) -> bytes:
    """Return how the content of a gzip file begins, as far as it can be read; ``head`` if it is none."""
    if not head.startswith(GZIP):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD)
    except zlib.error:
        return b""


def _text(head: bytes) -> str | None:
    """Return ``head`` as text, or None when it is binary."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) // 2 * 2].decode("utf-16", errors="replace")
    if b"\0" in head:
        return None
    text = head.decode("utf-8-sig", errors="replace")
    odd = sum(c == "\ufffd" or (c < " " and c not in "\t\n\r\f\x1b") for c in text)
    return text if odd <= len(text) // 50 else None


# ---- Walk the frame of a zstd file (RFC 8878) without unpacking it: enough to see that it was cut off
#  Python has no zstd before 3.14; the native reader unpacks compressed reports itself.

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_BLOCK = 1 << 17
"""The most [byte] that a compressed block holds (RFC 8878, 3.1.1.2.4)."""
_BOMB = 200
"""A file that unpacks to more than this many times its size holds no report: those reach 20 times."""
_SMALL = 1 << 28
"""Size [byte] below which that is never asked."""


def frame_end(file: BinaryIO, size: int) -> int:
    """Return where the frame at the beginning of ``file`` ends [byte].

    Raises:
        Fault: the file ends inside the frame, or a block has a reserved type.
    """
    file.seek(len(ZSTD_MAGIC))
    descriptor = file.read(1)
    if not descriptor:
        raise _cut(size, "its header")
    flags = descriptor[0]
    single_segment = bool(flags & 0x20)
    content_size = (int(single_segment), 2, 4, 8)[flags >> 6]
    pos = len(ZSTD_MAGIC) + 1 + (not single_segment) + (0, 1, 2, 4)[flags & 3] + content_size
    checksum = 4 if flags & 0x04 else 0
    last, block, unpacked = False, 0, 0
    while not last:
        block += 1
        file.seek(pos)
        header = file.read(3)
        if len(header) < 3:
            raise _cut(size, f"its block {block}")
        word = int.from_bytes(header, "little")
        last, kind, length = bool(word & 1), word >> 1 & 3, word >> 3
        if kind == 3:
            raise Fault("report-damaged", f"is damaged at byte {pos}: block {block} has no valid type")
        pos += 3 + (1 if kind == 1 else length)
        unpacked += _BLOCK if kind == 2 else length
        if pos > size:
            raise _cut(size, f"its block {block}")
    if pos + checksum > size:
        raise _cut(size, "its checksum")
    if unpacked > max(_SMALL, _BOMB * size):
        raise Fault("report-damaged", f"unpacks to more than {_BOMB} times its size")
    return pos + checksum


def _cut(size: int, where: str) -> Fault:
    return Fault("report-truncated", f"is truncated: it ends at byte {size}, inside {where}")


# ---- Check the container of a report before the native reader opens it
# The native reader raises on none of the faults named here: it returns no launches, or launches without a
# name, or ends the process. `blocks` walks a report, `zstd` a compressed one (``.ncu-repz``), `formats`
# says what another file is.

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
        pass  # gone

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
    pass  # gone

    file.seek(0)
    head = file.read(HEAD)
    if MAGIC.startswith(head):
        message = f"{path} is cut off after {size} bytes, inside its magic"
        raise ReportFormatError(path, message, AGAIN, code="report-truncated")
    if not head.startswith(ZSTD_MAGIC):
        found = identify(head)
        raise ReportFormatError(path, f"{path} is {found.what}", found.advice(path))
    try:
        end = frame_end(file, size)
    except Fault as fault:
        message = f"{path} is a compressed report (zstd) that {fault.text}"
        raise ReportFormatError(path, message, fault.hint, code=fault.code) from None
    file.seek(end)
    if file.read(4) == ZSTD_MAGIC:
        message = f"{path} holds several zstd frames; a compressed report (.ncu-repz) is one"
        raise ReportFormatError(path, message, f"Unpack it first: zstd -dc {word(path)} > report.ncu-rep")
    warnings = (_behind(size, end),) if end < size else ()
    return Container(path, size, (Part(0, end),), warnings, "ncu-repz")


def _behind(size: int, end: int) -> str:
    count = size - end
    return f"from byte {end} on, {count} byte{'s' * (count != 1)} follow that no report holds: left out"
