"""The errors that ncukit raises, and the exit code of each.

NcukitError                       exit 1
 ├ Interrupted                    exit 130
 ├ UsageError                     exit 2
 ├ ToolError                      exit 3
 └ ReportError                    exit 4
    ├ ReportNotFound
    ├ ReportEmpty
    ├ ReportFormatError           another format, or damaged
    └ ReaderCrashed               the native reader died on it
"""

from __future__ import annotations

import re
from pathlib import Path

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)


class NcukitError(Exception):
    """Base of all errors: what happened (``message``), what to do (``hint``), a stable ``code`` for JSON."""

    exit_code = 1
    code = "error"

    def __init__(self, message: str, hint: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another process as it is: its arguments are not those that it was made with."""
        return _again, (type(self), self.args, self.__dict__)

    def as_dict(self) -> dict[str, object]:
        """Return the error as JSON data: code, message, hint, exit code."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "exit_code": self.exit_code}


def _again(cls: type[NcukitError], args: tuple[object, ...], state: dict[str, object]) -> NcukitError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


class UsageError(NcukitError):
    """The caller asked for something that does not exist, or for a combination that makes no sense."""

    exit_code = 2
    code = "usage"


class Interrupted(NcukitError):
    """Ctrl-C, or a signal that asks for the end: ``number``; the hint says what is kept, where something is.

    >>> Interrupted("stopped by SIGTERM", number=15).exit_code
    143
    """

    code = "interrupted"

    def __init__(self, message: str = "interrupted", hint: str = "", *, number: int = 2) -> None:
        super().__init__(message, hint)
        self.exit_code = 128 + number


class ToolError(NcukitError):
    """ncu, nsys or nvcc is missing, too old, or failed."""

    exit_code = 3
    code = "tool-failed"


class ReportError(NcukitError):
    """An input file cannot be used; ``path`` says which."""

    exit_code = 4
    code = "report-unusable"

    def __init__(self, path: str | Path, message: str, hint: str = "", *, code: str | None = None) -> None:
        super().__init__(message, hint, code=code)
        self.path = str(path)

    def as_dict(self) -> dict[str, object]:
        """Return the error as JSON data, with the file it is about."""
        return {**super().as_dict(), "file": self.path}


class ReportNotFound(ReportError):
    """There is no such file, or it cannot be opened; of an address the error says that it is none.

    >>> ReportNotFound(Path("https://a.example/x.ncu-rep"), "there is no file").message
    'https://a.example/x.ncu-rep is an address, not a file'
    """

    code = "report-not-found"

    def __init__(self, path: str | Path, message: str, hint: str = "", *, code: str | None = None) -> None:
        if address := _ADDRESS.match(str(path)):  # Path leaves one of its slashes
            scheme, rest = address.groups()
            local = scheme.lower() == "file"
            message = f"{scheme}://{'/' * local}{rest} is an address, not a file"
            hint = f"Give its path: /{rest}" if local else "Download it first, and give the file."
        super().__init__(path, message, hint, code=code)


class ReportEmpty(ReportError):
    """The file is whole but holds nothing to show."""

    code = "report-empty"


class ReportFormatError(ReportError):
    """The file is of another format, truncated or damaged."""

    code = "report-format"


class ReaderCrashed(ReportError):
    """The native reader died on the file, in its child process."""

    code = "reader-crashed"
