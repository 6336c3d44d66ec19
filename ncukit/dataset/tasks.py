"""One report into its part files: the unit of work, the same for a local process and a Dask worker."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncukit.errors import NcukitError, ReaderCrashed, ReportError, ReportNotFound, UsageError
from ncukit.model import Kernel
from ncukit.read.formats import refuse_pipe
from ncukit.record import dataclass


@dataclass(frozen=True)
class Task:
    """A report to read into the dataset ``folder``.

    ``path`` is absolute; ``file`` is how the user named it.  ``known`` is the SHA-256 of what the dataset
    holds of it: the same content is not read again.  With ``isolate`` the native reader gets a process of
    its own.
    """

    path: str
    file: str
    folder: str
    size: int = 0
    known: str = ""
    isolate: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a task: ``parts`` inside the dataset, or the ``error`` in its JSON form.

    ``size`` [byte] and ``mtime_ns`` [ns] were taken before the file was read.  ``unchanged``: the content
    is what the dataset holds already.
    """

    path: str
    file: str
    size: int = 0
    mtime_ns: int = 0
    sha256: str = ""
    launches: int = 0
    parts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: Mapping[str, Any] | None = None
    unchanged: bool = False


def extract(task: Task) -> Outcome:
    """Read the report of ``task`` and write its rows; what is wrong with the report is in the outcome.

    Raises:
        UsageError: the dataset cannot be written to.
    """
    outcome = Outcome(task.path, task.file)
    try:
        found = os.stat(task.path)
        outcome = replace(outcome, size=found.st_size, mtime_ns=found.st_mtime_ns)
        refuse_pipe(Path(task.path))
        outcome = replace(outcome, sha256=digest(task.path))
        if task.known and outcome.sha256 == task.known:
            return replace(outcome, unchanged=True)
        return _read(task, outcome)
    except OSError as error:
        return failed(outcome, ReportNotFound(task.path, f"{task.path} cannot be read: {error.strerror}"))
    except UsageError:
        raise
    except NcukitError as error:
        return failed(outcome, error)
    except Exception as error:
        what = f"internal error: {type(error).__name__}: {error}"
        return failed(outcome, ReportError(task.path, f"{task.path}: {what}", code="internal"))


def failed(outcome: Outcome, error: NcukitError) -> Outcome:
    """Return ``outcome`` with the error that ended it."""
    return replace(outcome, error=error.as_dict())


def crashed(task: Task, how: str) -> Outcome:
    """Return the outcome of a task whose worker died; ``how`` says of what."""
    outcome = Outcome(task.path, task.file)
    try:
        found = os.stat(task.path)
        outcome = replace(outcome, size=found.st_size, mtime_ns=found.st_mtime_ns, sha256=digest(task.path))
    except OSError:
        pass  # it went away meanwhile: the error says enough
    return failed(
        outcome,
        ReaderCrashed(
            task.path,
            f"{task.path}: the reader crashed on this file ({how})",
            "the file is damaged inside; copy it again from where it was made, or profile again",
        ),
    )


def digest(path: str) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(task: Task, outcome: Outcome) -> Outcome:
    from ncukit.dataset.parts import Parts
    from ncukit.diagnose.facts import Facts
    from ncukit.diagnose.verdict import verdict
    from ncukit.read.report import Source

    source = Source(task.path, isolate=task.isolate)
    with Parts(task.folder, task.path, outcome.sha256) as parts:
        for kernel in _kernels(source, task.file):
            parts.add(kernel, verdict(Facts.of(kernel), advise=False))
        return replace(outcome, launches=parts.launches, parts=parts.finish(), warnings=source.warnings)


def _kernels(source: Any, file: str) -> Iterator[Kernel]:
    from ncukit.normalise import normalise, wanted

    for raw in source.launches(replace(wanted(), nvtx=True)):
        yield normalise(raw, file)
