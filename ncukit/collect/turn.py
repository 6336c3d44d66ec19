"""One job a GPU at a time: two at once would measure each other."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ncukit.collect.directory import slug
from ncukit.tools import cuda


@contextmanager
def turn(environ: Mapping[str, str] | None = None) -> Iterator[None]:
    """Wait until the first visible GPU of this machine is free, and keep it until the end.

    It holds among all that ask for a turn on this machine, whoever starts them.  Without a GPU there is
    nothing to wait for.
    """
    gpus = cuda.driver(os.environ if environ is None else environ).gpus
    if not gpus:
        yield
        return
    path = Path(tempfile.gettempdir()) / f"ncukit-{slug(gpus[0].uuid)}.lock"
    lock = _open(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _open(path: Path) -> int:
    """Open a lock that users share: who made it does not matter, reading is enough to lock."""
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT, 0o644)
