"""The seal of a run: by it ncukit knows a run that the same user recorded in the same folder.

A run directory may come from somebody else, and its record names a program, tools and variables.  The seal is
a hash of those with a key that lies in the user's state folder and that nobody else can read.  It covers no
path of the run directory, which may be moved or copied: whoever copies a sealed record makes the user's own
command of it, to be run from the folder in which it was begun.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from ncukit.folders import Folder, hidden_name, is_own_way
from ncukit.media import word
from ncukit.model.run import Run

KEY = "key"
_SIZE = 32


def sealed(run: Run, cwd: Path | None = None) -> Run:
    """Return ``run`` with its seal, without one where the key cannot be kept; it is run in ``cwd``."""
    key = _key(make=True)
    return replace(run, seal=None if key is None else _seal(run, key, cwd))


def own(run: Run) -> bool:
    """Return whether this user's ncukit recorded ``run`` in the current folder."""
    key = _key(make=False) if run.seal else None
    return key is not None and hmac.compare_digest(str(run.seal).encode(), _seal(run, key).encode())


def going_on(path: str | os.PathLike[str], run: Run) -> str:
    """Return the command that goes on with ``run`` in ``path``; a stranger's program is to be given."""
    command = f"ncukit profile --resume {word(path, 'RUNDIR')}"
    return command if own(run) else f"{command} -- PROGRAM"


def _seal(run: Run, key: bytes, cwd: Path | None = None) -> str:
    """Return the hash of all that a run which goes on takes from its record."""
    compiled = run.step("compile")
    parts = {
        "created": run.created,
        "version": run.version,
        "target": run.target,
        "options": run.options,
        "tools": run.tools,
        "compiled": [] if compiled is None else [asdict(file) for file in compiled.files],
        "cwd": _folder() if cwd is None else str(cwd),
    }
    return hmac.digest(key, json.dumps(parts, sort_keys=True).encode(), "sha256").hex()


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it is deleted
        return ""


def _key(*, make: bool) -> bytes | None:
    """Return the user's key; None where there is none, and where another user could have read or put it."""
    state, home = os.environ.get("XDG_STATE_HOME", ""), os.path.expanduser("~")
    place = Path(state if os.path.isabs(state) else os.path.join(home, ".local/state"), "ncukit")
    if not (place.is_absolute() and is_own_way(place, home)):  # there is no home, or it is another's
        return None
    try:
        if make:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.mkdir(mode=0o700, exist_ok=True)
        with Folder.open(place.parent) as above, above.folder(place.name) as folder:
            if not _private(folder.descriptor):
                return None
            if make and folder.find(KEY) is None:
                _make(folder)
            with folder.open_file(KEY) as file:
                key = file.read(_SIZE + 1)
                return key if len(key) == _SIZE and _private(file.fileno()) else None
    except OSError:
        return None


def _make(folder: Folder) -> None:
    """Make the key, whole and once: of two processes that make it, one does."""
    hidden = hidden_name()
    try:
        with folder.create(hidden) as file:
            file.write(secrets.token_bytes(_SIZE))
        with suppress(FileExistsError):
            os.link(hidden, KEY, src_dir_fd=folder.descriptor, dst_dir_fd=folder.descriptor)
    finally:
        folder.remove(hidden)


def _private(descriptor: int) -> bool:
    found = os.fstat(descriptor)
    return found.st_uid == os.geteuid() and not found.st_mode & 0o077
