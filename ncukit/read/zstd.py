"""Walk the frame of a zstd file (RFC 8878) without unpacking it: enough to see that it was cut off.

Python has no zstd before 3.14; the native reader unpacks compressed reports itself.
"""

from __future__ import annotations

from typing import BinaryIO

from ncukit.read.blocks import Fault

MAGIC = b"\x28\xb5\x2f\xfd"
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
    file.seek(len(MAGIC))
    descriptor = file.read(1)
    if not descriptor:
        raise _cut(size, "its header")
    flags = descriptor[0]
    single_segment = bool(flags & 0x20)
    content_size = (int(single_segment), 2, 4, 8)[flags >> 6]
    pos = len(MAGIC) + 1 + (not single_segment) + (0, 1, 2, 4)[flags & 3] + content_size
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
