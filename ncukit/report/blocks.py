"""The blocks of a report, and the labels of ncu's details page that stand for raw metrics."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from ncukit.record import dataclass

# ---- Which metric a label of ncu's details page stands for
#  ``details_names.json`` (made by ``scripts/details_names.py``) holds what reports of 2019 to 2026 say.

_RAW_NAME = r"[A-Za-z]\w*(?:__|\.)[\w.:%]*|[a-z\d]+(?:_[a-z\d]+)+"
_LABEL_AND_NAME = re.compile(rf"(?:.* )?\(({_RAW_NAME})\)")


class Labels:
    """What the labels in the rows of one launch mean; ``rows`` by column."""

    def __init__(self, rows: list[dict[str, str]]) -> None:
        self.table = _details_names()
        changed = self.table["changed"]
        labels = {
            row["Metric Name"] for row in rows if row.get("Section Name") == changed["evidence_section"]
        }
        # 0 or 1: the version before or after the change; None where the section that would tell is absent.
        self.version = int(not labels.isdisjoint(changed["evidence"])) if labels else None

    def identifier(self, section: str) -> str:
        """Return the identifier of the section with this title, or the title."""
        return str(self.table["sections"].get(section, section))

    def metric(self, row: dict[str, str]) -> str:
        """Return the metric that the label of ``row`` stands for, or "section: label"."""
        section, label = row.get("Section Name", ""), row["Metric Name"].strip()
        if named := _LABEL_AND_NAME.fullmatch(label):
            return named[1]
        item = row.get("Body Item Label", "")
        key = f"{item}/{label}" if item else label
        major = row.get("CC", "").partition(".")[0]
        for names in ("before_7.0", "names") if major in ("5", "6") else ("names",):
            if name := self.table[names].get(section, {}).get(key):
                return str(name)
        changed = self.table["changed"]
        if section == changed["section"] and key in changed["labels"] and self.version is not None:
            return str(changed["labels"][key][self.version])
        if re.fullmatch(_RAW_NAME, label):
            return label
        return f"{section}: {key}"


@cache
def _details_names() -> dict[str, Any]:
    path = Path(__file__).with_name("details_names.json")
    names: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return names


# ---- Walk the blocks of a report: headers and size prefixes only, never what a result holds
# NVIDIA documents the container in the Nsight Compute Customization Guide ("Report File Format"): the magic
# ``NVR\0``, a size-prefixed FileHeader, then blocks. A block is a size-prefixed BlockHeader followed by
# PayloadSize bytes of size-prefixed entries: the sources, then the results. Sizes are little-endian uint32,
# messages protobuf.

MAGIC = b"NVR\0"
KNOWN_VERSION = 7
"""The container version that the documentation describes; every ncu from 2019 to 2026 writes it."""

AGAIN = (
    "Copy or download the report again (a file transfer must be binary), or wait until ncu has finished "
    "writing it; where the original is damaged too, profile again."
)
# Fields of BlockHeader -> protobuf wire type: 0 varint, 2 length-delimited.
_SOURCES, _SESSION, _PAYLOAD, _RESULTS = 1, 3, 5, (2, 7, 8, 9)
_CREATED = 2
"""Field of ReportSessionDetails: CreationTime."""
_WIRE = {_SOURCES: 0, _SESSION: 2, 4: 2, _PAYLOAD: 0, 6: 2} | dict.fromkeys(_RESULTS, 0)
# Every block header seen so far begins with NumSources, NumResults, then session details or string table.
_FIRST = 0x08
_BLOCK = re.compile(rb"\x08[\x00-\x7f]\x10[\x00-\x7f][\x1a\x22]")
# A metric's name, as the sections of a result spell it: what follows a report without one is not part of it.
_CONTENT = re.compile(rb"[a-z0-9]__[a-z0-9_]+\.(?:sum|avg|max|min|pct|ratio)")
_SCAN = 1 << 26


@dataclass(frozen=True)
class Part:
    """One sound report within a file: ``offset`` and ``size`` [byte], and what its headers announce.

    ``version``, ``blocks``, ``sources`` and ``results`` are None for a compressed report.
    """

    offset: int
    size: int
    version: int | None = None
    blocks: int | None = None
    sources: int | None = None
    results: int | None = None


class Fault(Exception):
    """A report is not sound: ``code`` of the error, ``text`` that follows the file's name, and ``hint``."""

    def __init__(self, code: str, text: str, hint: str = AGAIN) -> None:
        super().__init__(text)
        self.code, self.text, self.hint = code, text, hint


def walk(file: BinaryIO, start: int, size: int) -> Part:
    """Return the report that begins at ``start`` of a file of ``size`` bytes.

    It ends with the file, where the next report begins, or before what is no block.

    Raises:
        Fault: it is cut off, or a header or size in it is damaged.
    """
    version, pos = _file_header(file, start, size)
    blocks = sources = results = 0
    while size - pos >= 4 and not (prefix := _at(file, pos, 4)).startswith(MAGIC):
        length = int.from_bytes(prefix, "little")
        here = f"block {blocks + 1} (byte {pos})"
        header = _at(file, pos + 4, min(length, size - pos - 4, _SCAN))
        found, complete = _fields(header) or ({}, False)
        if pos + 4 + length > size and (not header or (found and header[0] == _FIRST)):
            raise _cut(size, f"inside the header of {here}", results)
        if not found or not complete:
            if (next_block := _next_block(file, pos + 1, size)) is not None:
                raise Fault("report-damaged", f"is damaged: {here} is no block, but byte {next_block} is one")
            if not results or _CONTENT.search(_at(file, pos, _SCAN)):
                raise Fault("report-damaged", f"is damaged: {here} has no readable header")
            break
        announced = found.get(_SOURCES, 0), sum(found.get(field, 0) for field in _RESULTS)
        exact = version <= KNOWN_VERSION and not found.keys() - _WIRE.keys()
        payload = range(pos + 4 + length, pos + 4 + length + found.get(_PAYLOAD, 0))
        _check_payload(file, payload, size, announced, exact, here, results)
        pos = payload.stop
        blocks, sources, results = blocks + 1, sources + announced[0], results + announced[1]
    rest = _at(file, pos, 4) if pos < size else b""
    if not blocks and not rest:
        text = f"is cut off after its file header ({pos - start} bytes): no block follows"
        raise Fault("report-truncated", text)
    if 0 < len(rest) < 4 and rest.strip(b"\0\r\n "):
        raise _cut(size, f"at the beginning of block {blocks + 1}", results)
    return Part(start, pos - start, version, blocks, sources, results)


def session_created(file: BinaryIO, size: int) -> int | None:
    """Return the Unix time [s] at which ncu began the report; None where its first block does not say."""
    if _at(file, 0, 4) != MAGIC:
        return None
    try:
        pos = _file_header(file, 0, size)[1]
    except Fault:
        return None
    header = _at(file, pos + 4, min(int.from_bytes(_at(file, pos, 4), "little"), _SCAN))
    try:
        at = 0
        while at < len(header):
            key, at = _varint(header, at)
            value, at = _varint(header, at)
            if key == _SESSION << 3 | 2:
                found, _ = _fields(header[at : at + value], {}) or ({}, False)
                return found.get(_CREATED)
            at += value if key & 7 == 2 else 0
    except (IndexError, ValueError):
        pass
    return None


def _file_header(file: BinaryIO, start: int, size: int) -> tuple[int, int]:
    """Return version and end of the file header of the report at ``start``."""
    head = _at(file, start + 4, 4)
    length = int.from_bytes(head, "little")
    header = _at(file, start + 8, min(length, 64))
    if len(head) < 4 or (length <= 64 and len(header) < length):
        raise Fault("report-truncated", f"is cut off after {size - start} bytes, inside its file header")
    found, complete = _fields(header, {1: 0}) or ({}, False)
    if not complete or 1 not in found or length > 64:
        text = f"is damaged: its file header, {length} bytes by its size, cannot be read (it has 2 bytes)"
        raise Fault("report-damaged", text)
    if found[1] < KNOWN_VERSION:
        text = f"has container version {found[1]}; the reader knows {KNOWN_VERSION} and later"
        raise Fault("report-format", text, "Open it with the ncu that wrote it and save it again.")
    return found[1], start + 8 + length


def _check_payload(
    file: BinaryIO,
    payload: range,
    size: int,
    announced: tuple[int, int],
    exact: bool,
    here: str,
    results: int,
) -> None:
    """Walk the size prefixes of the sources and results in ``payload``: they must fill it."""
    pos, count, total = payload.start, 0, sum(announced)
    while pos < payload.stop:
        if count >= total and exact:
            raise Fault("report-damaged", f"is damaged: {here} holds more than the {total} entries announced")
        result = count - announced[0]
        name = f"source {count + 1}" if result < 0 else f"result {results + result + 1}"
        prefix = _at(file, pos, 4)
        after = pos + 4 + int.from_bytes(prefix, "little")
        if after > payload.stop:
            raise Fault("report-damaged", f"is damaged: {name}, in {here}, is larger than its block")
        if len(prefix) < 4 or after > size:
            where = f"inside {name}, in {here}, which would end at byte {after}"
            raise _cut(size, where, results + max(result, 0))
        pos, count = after, count + 1
    if count < total:
        raise Fault("report-damaged", f"is damaged: {here} announces {total} entries and holds {count}")


def _cut(size: int, where: str, results: int) -> Fault:
    whole = f"; {results} whole result{'s' * (results != 1)} before it" if results else ""
    return Fault("report-truncated", f"is truncated: it ends at byte {size}, {where}{whole}")


def _next_block(file: BinaryIO, pos: int, size: int) -> int | None:
    """Return where the next readable block begins after ``pos``, if there is one nearby."""
    rest = _at(file, pos, _SCAN)
    for match in _BLOCK.finditer(rest, 4):
        at = match.start() - 4
        length = int.from_bytes(rest[at : at + 4], "little")
        header = rest[at + 4 : at + 4 + length]
        found, complete = _fields(header) or ({}, False)
        end = pos + at + 4 + length + found.get(_PAYLOAD, 0)
        if complete and len(header) == length and end <= size:
            return pos + at
    return None


def _fields(header: bytes, wire: dict[int, int] = _WIRE) -> tuple[dict[int, int], bool] | None:
    """Return the fields of a protobuf message (varint or length) and whether it is complete, or None."""
    found: dict[int, int] = {}
    pos, end = 0, len(header)
    try:
        while pos < end:
            key, pos = _varint(header, pos)
            field, kind = key >> 3, key & 7
            if not field or wire.get(field, kind) != kind or kind not in (0, 1, 2, 5):
                return None
            found[field] = 0
            if kind in (1, 5):
                pos += 8 if kind == 1 else 4
                continue
            found[field], pos = _varint(header, pos)
            if kind == 2:
                pos += found[field]
    except IndexError:
        return found, False
    except ValueError:
        return None
    return found, pos == end


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[pos]
        value |= (byte & 0x7F) << shift
        pos, shift = pos + 1, shift + 7
        if byte < 0x80:
            return value, pos
        if shift > 63:
            raise ValueError("a varint has at most 10 bytes")


def _at(file: BinaryIO, pos: int, length: int) -> bytes:
    file.seek(pos)
    return file.read(length)
