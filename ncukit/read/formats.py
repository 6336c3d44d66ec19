"""Say by its first bytes what a file is that is not what a command takes."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import NamedTuple

from ncukit.errors import ReportNotFound
from ncukit.media import argument, word

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
