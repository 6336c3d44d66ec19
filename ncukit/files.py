"""Where what ships with ncukit lies, and files that appear only when they are whole."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ncukit.errors import UsageError
from ncukit.folders import Folder, hidden_name, is_own_way

# ---- Find the folders that ship with ncukit: templates, kernels, sample reports; and the user's cache

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """Return the folder ``name`` inside an installed wheel, else in the checkout.

    Raises:
        FileNotFoundError: ncukit was installed without it.

    >>> folder("templates").name
    'templates'
    """
    for parent in (_PACKAGE, _PACKAGE.parent):
        if (found := parent / name).is_dir():
            return found
    raise FileNotFoundError(f"ncukit was installed without its {name!r} folder")


def cache_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the user's cache folder for ncukit, which need not exist.

    It is None for a user without a home, and where somebody else decides what lies there.

    >>> cache_folder({"XDG_CACHE_HOME": "/var/cache/me"})
    PosixPath('/var/cache/me/ncukit')
    """
    env = os.environ if environ is None else environ
    base = env.get("XDG_CACHE_HOME", "")
    home = env.get("HOME") or os.path.expanduser("~")
    if not os.path.isabs(base):
        base = os.path.join(home, ".cache")
    found = Path(base, "ncukit")
    return found if found.is_absolute() and is_own_way(found, home) else None


# ---- Files that appear only when they are whole: written beside their place, then renamed

_CHUNK = 1 << 18
HINT = "give another place with -o"


@contextmanager
def beside(path: Path, *, force: bool = True, hint: str = HINT) -> Iterator[Path]:
    """Yield a name to write to, which becomes ``path`` when the block ends well, and is removed else.

    Raises:
        UsageError: ``path`` exists and ``force`` is not set, or it cannot be written (with ``hint``).
        OSError: what the block itself raises about other files.

    >>> from tempfile import mkdtemp
    >>> place = Path(mkdtemp()) / "new" / "file.txt"
    >>> with beside(place) as name:
    ...     _ = name.write_text("whole")
    >>> place.read_text(), len(list(place.parent.iterdir()))
    ('whole', 1)
    """
    check_new(path, force=force)
    try:
        folder = Folder.open(path.parent, make=True)
    except OSError as error:
        raise _unwritable(path, error, hint) from error
    with folder:
        hidden = hidden_name()
        written = folder.path / hidden
        try:
            _check(folder, path, hint)
            folder.create(hidden).close()
            yield written
            folder.publish(hidden, path.name)
        except OSError as error:
            about = {str(name) for name in (error.filename, error.filename2) if name is not None}
            if about and about.isdisjoint({str(path), path.name, str(written), hidden}):
                raise
            raise _unwritable(path, error, hint) from error
        finally:
            folder.remove(hidden)  # renamed, or never made


def _check(folder: Folder, path: Path, hint: str) -> None:
    """Check that a file may take the place of ``path`` in ``folder``.

    Raises:
        UsageError: a link, something else than a file, or what was measured is there.
        OSError: that cannot be told.
    """
    found = folder.find(path.name)
    if found is None:
        return
    if stat.S_ISLNK(found.st_mode):  # to follow it may lead anywhere, to replace it is not what was meant
        to = os.readlink(path.name, dir_fd=folder.descriptor)
        raise UsageError(f"cannot write {path}: it is a link to {to}", hint)
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"cannot write {path}: it is no file", hint)
    with folder.open_file(path.name) as file:
        head = file.read(max(map(len, _MEASURED)))
    if what := next((what for begin, what in _MEASURED.items() if head.startswith(begin)), None):
        raise UsageError(f"cannot write {path}: it is {what}, which --force does not replace", hint)


_MEASURED = {
    b"NVR\0": "a report of Nsight Compute",
    b"NVIDIA Tegra Profiler": "a report of Nsight Systems",
    b"SQLite format 3\0": "a database, as nsys exports it",
}
"""How files begin that ncukit never writes: what was measured is never replaced, least of all by its page."""


def check_new(path: Path, *, force: bool) -> None:
    """Check that writing to ``path`` overwrites nothing, unless ``force`` is set.

    Raises:
        UsageError: it exists, or is "-", by which stdout is meant.
    """
    if str(path) == "-":
        raise UsageError("- is no file, and this is not written to stdout", "name a file")
    if not force and os.path.lexists(path):
        raise UsageError(f"{path} exists already", "use --force to overwrite it, or -o for another name")


def write_text(path: Path, text: str, *, force: bool = True, hint: str = HINT) -> Path:
    """Write ``text`` to ``path``, whole or not at all, and return the path.

    Raises:
        UsageError: ``path`` exists and ``force`` is not set, or it cannot be written.
    """
    return write_bytes(path, text.encode(), force=force, hint=hint)


def write_bytes(path: Path, *parts: bytes | Path, force: bool = True, hint: str = HINT) -> Path:
    """Write ``parts``, of which some may be files, to ``path`` one after another; return the path.

    Raises:
        UsageError: ``path`` exists and ``force`` is not set, or it cannot be written.
    """
    with beside(path, force=force, hint=hint) as name, name.open("wb") as file:
        for part in parts:
            if isinstance(part, Path):
                with part.open("rb") as source:
                    shutil.copyfileobj(source, file, _CHUNK)
            else:
                file.write(part)
    return path


def _unwritable(path: Path, error: OSError, hint: str) -> UsageError:
    return UsageError(f"cannot write {path}: {error.strerror or error}", hint)
