"""What went wrong in a command, said as one of ncukit's errors."""

from __future__ import annotations

import errno
from typing import Any

import typer

from ncukit.errors import NcukitError, UsageError

WrongUsage: Any = typer.BadParameter.__mro__[1]
"""click's UsageError, which typer bundles without a public name."""

_HINTS = {
    errno.ENOSPC: "free some space there, or choose another place with -o",
    errno.EDQUOT: "your quota is used up: free some space, or choose another place with -o",
    errno.EACCES: "check the permissions, or choose another place with -o",
    errno.EPERM: "check the permissions, or choose another place with -o",
    errno.EROFS: "choose a folder that can be written to with -o",
    errno.ENAMETOOLONG: "choose a shorter name with -o",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}


def as_error(error: Exception) -> NcukitError:
    """Return ``error`` as one of ncukit's: what happened, and what to do.

    >>> as_error(OSError(errno.ENOSPC, "No space left on device")).message
    'cannot read or write: No space left on device'
    """
    match error:
        case NcukitError():
            return error
        case WrongUsage():
            return UsageError(error.format_message().rstrip("."), _help(error))
        case OSError() if error.strerror:
            place = f": {error.filename}" if error.filename is not None else ""
            hint = _HINTS.get(error.errno or 0, "run again with --debug to see where")
            if error.filename is None:  # stdout, which no option of ours leads elsewhere
                hint = hint.removesuffix(" with -o")
            return NcukitError(f"cannot read or write{place}: {error.strerror}", hint, code="io")
        case MemoryError():
            return NcukitError(
                "there is not enough memory", "use a machine with more of it, or fewer launches"
            )
    return NcukitError(
        f"internal error: {type(error).__name__}: {error}",
        "run again with --debug and report it",
        code="internal",
    )


def asks_for_help(error: Exception) -> bool:
    """Return whether ``error`` only means that a command was called without anything."""
    return type(error).__name__ == "NoArgsIsHelpError"


def _help(error: Any) -> str:
    command = error.ctx.command_path if error.ctx else "ncukit"
    return f"{command} --help says what there is"
