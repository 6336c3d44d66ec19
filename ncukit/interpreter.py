"""New interpreters import nothing from the current folder, which may be a stranger's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLE = "PYTHONSAFEPATH"


@contextmanager
def safe_path() -> Iterator[None]:
    """Keep the current folder out of ``sys.path`` of interpreters that a library starts meanwhile.

    ``multiprocessing`` starts ``python -c``, which searches the current folder first.  What ncukit starts
    itself has ``-P`` or ``-I``; the profiled program has neither, and its own folder comes first as always.

    >>> with safe_path():
    ...     os.environ["PYTHONSAFEPATH"]
    '1'
    """
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
