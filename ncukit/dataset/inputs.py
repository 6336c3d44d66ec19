"""From what a user names to the files that are meant: patterns, folders, files."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ncukit.errors import ReportNotFound, UsageError

SUFFIXES = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")
"""Names of reports, where a folder is named."""


def expand(inputs: Iterable[str | os.PathLike[str]]) -> dict[str, str]:
    """Return absolute path -> name as the user would say it, of every file that ``inputs`` mean, once.

    A folder means the reports below it; ``**`` in a pattern means folders of any depth.

    Raises:
        ReportNotFound: one of them means no file.
        UsageError: a name is no text.
    """
    found: dict[str, str] = {}
    for given in inputs:
        named = sorted(_files(os.fspath(given)))
        if not named:
            hint = "quote patterns; ** means folders of any depth"
            raise ReportNotFound(os.fspath(given), f"no report matches {os.fspath(given)!r}", hint)
        for name in named:
            if not _is_text(name):
                raise UsageError(f"the name {os.fsencode(name)!r} is no UTF-8", "rename that file or folder")
            found.setdefault(os.path.abspath(name), name)
    return found


def _is_text(name: str) -> bool:
    """Return whether ``name`` can be written into a table."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _files(given: str) -> Iterator[str]:
    if os.path.isdir(given):
        for folder, folders, names in os.walk(given):
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from (str(Path(folder, name)) for name in names if name.endswith(SUFFIXES))
    elif os.path.lexists(given) and not os.path.isdir(given):
        yield given
    else:
        yield from (name for name in glob.iglob(given, recursive=True) if not os.path.isdir(name))
