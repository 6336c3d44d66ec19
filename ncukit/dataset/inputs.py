"""From what a user names to the files that are meant: patterns, folders, files."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ncukit.errors import ReportNotFound, UsageError
from ncukit.folders import way_out
from ncukit.record import dataclass

SUFFIXES = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")
"""Names of reports, where a folder is named."""


@dataclass(frozen=True)
class Inputs:
    """The files that are meant: absolute path -> name as the user would say it, and what was ``skipped``."""

    files: Mapping[str, str]
    skipped: tuple[str, ...] = ()


def expand(inputs: Iterable[str | os.PathLike[str]]) -> Inputs:
    """Return every file that ``inputs`` mean, once.

    A folder means the reports below it; ``**`` in a pattern means folders of any depth.  A file that is found
    that way is skipped if it is a link that leads out of the folder, or if its name is not UTF-8.

    Raises:
        ReportNotFound: one of them means no file.
        UsageError: a name that was given is not UTF-8.
    """
    found: dict[str, str] = {}
    skipped: list[str] = []
    for one in inputs:
        given = os.fspath(one)
        if os.path.lexists(given) and not os.path.isdir(given):
            if not is_text(given):
                raise UsageError(f"the name {os.fsencode(given)!r} is no UTF-8", "rename that file or folder")
            found.setdefault(os.path.abspath(given), given)
            continue
        base, names = _meant(given)
        any_file, leads_out, before = False, way_out(base), len(skipped)
        for name in sorted(names):
            if (why := unfit(name, leads_out)) is None:
                any_file = True
                found.setdefault(os.path.abspath(name), name)
            else:
                skipped.append(f"{legible(name)} is skipped: {why}")
        if not any_file:
            hint = skipped[-1] if len(skipped) > before else "quote patterns; ** means folders of any depth"
            raise ReportNotFound(given, f"no report matches {given!r}", hint)
    return Inputs(found, tuple(skipped))


def unfit(name: str, leads_out: Callable[[str], bool]) -> str | None:
    """Return why the file ``name``, which was found in a folder, is not read; None where it is."""
    if not is_text(name):
        return "its name is not UTF-8"
    if leads_out(name):
        return "it is a link that leads out of the folder"
    return None


def is_text(name: str) -> bool:
    """Return whether ``name`` can be written into a table."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def legible(name: str) -> str:
    r"""Return ``name`` with bytes that are no text as escapes.

    >>> legible("caf\udce9.ncu-rep")
    'caf\\xe9.ncu-rep'
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _meant(given: str) -> tuple[str, Iterator[str]]:
    """Return the folder below which ``given`` looks, and the files that it means there."""
    if os.path.isdir(given):
        return given, _below(given)
    fixed: list[str] = []
    for part in Path(given).parts:
        if glob.has_magic(part):
            break
        fixed.append(part)
    found = (name for name in glob.iglob(given, recursive=True) if not os.path.isdir(name))
    return os.path.join(*fixed) if fixed else ".", found


def _below(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (str(Path(place, name)) for name in names if name.endswith(SUFFIXES))
