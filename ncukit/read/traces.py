"""A trace of whatever tool: nsys, or the profiler of torch."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from pathlib import Path

from ncukit.model.trace import Trace
from ncukit.read.formats import GZIP
from ncukit.read.nsys import Export, open_trace
from ncukit.read.torch_trace import read_torch_trace

_LOOK = 64
"""[byte] that tell JSON from other formats."""


def open_any_trace(
    path: str | os.PathLike[str], export: Export | None = None, *, force: bool = False
) -> Trace:
    """Return the events of the trace at ``path``, of nsys or of torch's profiler, by what the file holds.

    Raises:
        ReportError: as for `ncukit.read.nsys.open_trace` and `ncukit.read.torch_trace.read_torch_trace`.
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
