"""Folders that may be a stranger's: no link and no name in one leads out of it.

The user names a folder, and the path to it may hold links: the user chose them.  Below it no link is
followed, names are plain and only regular files are read.  Nothing is written in place, for a file may have
another name elsewhere: it is replaced.
"""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL, ELOOP, EPERM
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Self

from ncukit.errors import ReportFormatError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A pipe that nobody writes to is opened, and refused, without a wait."""
_MOST_LINKS = 40


class Refused(OSError):
    """A name that leads out of its folder, a link, or no regular file; ``strerror`` says which."""


def components(name: str) -> tuple[str, ...]:
    """Return the components of a path inside a folder.

    Raises:
        Refused: it is absolute, leads upwards or is not a path at all.

    >>> components("gpu=A40/x.parquet")
    ('gpu=A40', 'x.parquet')
    >>> components("../x.parquet")
    Traceback (most recent call last):
    ncukit.folders.Refused: [Errno 22] '../x.parquet' does not name a file inside the folder
    """
    parts = tuple(name.split("/"))
    if "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise Refused(EINVAL, f"{name!r} does not name a file inside the folder")
    return parts


class Folder:
    """The open folder ``path``; names in its methods are paths below it, of plain components.

    What an error of the operating system says of a file below it is raised as it is, as `OSError`.

    >>> from tempfile import mkdtemp
    >>> with Folder.open(mkdtemp()) as folder:
    ...     folder.write("a.txt", b"text")
    ...     folder.names(), folder.read("a.txt"), folder.remove("a.txt"), folder.names()
    (['a.txt'], b'text', True, [])
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self.descriptor = path, descriptor

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, make: bool = False) -> Folder:
        """Open the folder that the user named; with ``make`` it is made first.

        Raises:
            OSError: there is none, or it cannot be read.
        """
        if make:
            os.makedirs(path, exist_ok=True)
        return cls(Path(path), os.open(path, _FOLDER))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        os.close(self.descriptor)

    def folder(self, name: str, *, make: bool = False) -> Folder:
        """Open the folder ``name``; with ``make`` it is made first.

        Raises:
            Refused: it is a link, or ``name`` leads elsewhere.
            OSError: there is none, or it cannot be read.
        """
        with self._above(name) as (above, last):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(last, dir_fd=above)
            try:
                return Folder(self.path / name, os.open(last, _FOLDER | os.O_NOFOLLOW, dir_fd=above))
            except OSError as error:
                raise self._why(error, above, last) from error

    def find(self, name: str) -> os.stat_result | None:
        """Return what ``name`` itself is; None where it is nothing, or behind a link."""
        try:
            with self._above(name) as (above, last):
                return os.stat(last, dir_fd=above, follow_symlinks=False)
        except (Refused, FileNotFoundError, NotADirectoryError):
            return None

    def holds(self, name: str) -> bool:
        """Return whether ``name`` is a regular file."""
        found = self.find(name)
        return found is not None and stat.S_ISREG(found.st_mode)

    def names(self) -> list[str]:
        """Return the names of all that lies in it."""
        return sorted(os.listdir(self.descriptor))

    def open_file(self, name: str) -> BufferedReader:
        """Open the regular file ``name`` to be read.

        Raises:
            Refused: it is a link or no regular file, or ``name`` leads elsewhere.
            OSError: there is none, or it cannot be read.
        """
        with self._above(name) as (above, last):
            return os.fdopen(self._regular(above, last, os.O_RDONLY), "rb")

    def read(self, name: str) -> bytes:
        """Return the bytes of the regular file ``name``.

        Raises:
            OSError: see `open_file`.
        """
        with self.open_file(name) as file:
            return file.read()

    def create(self, name: str) -> BinaryIO:
        """Make the new file ``name``, which only this user can read, and open it to be written.

        Raises:
            OSError: there is something of that name, or nothing can be written.
        """
        with self._above(name) as (above, last):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE
            return os.fdopen(os.open(last, flags, 0o600, dir_fd=above), "wb")

    def write(self, name: str, data: bytes) -> None:
        """Let ``data`` take the place of the file ``name``, whole or not at all.

        Raises:
            Refused: there is a link, or something else than a file, of that name.
            OSError: nothing can be written.
        """
        hidden = hidden_name()
        with self._above(name) as (above, last), Folder(self.path, os.dup(above)) as place:
            try:
                with place.create(hidden) as file:
                    file.write(data)
                place.publish(hidden, last)
            finally:
                place.remove(hidden)

    def publish(self, hidden: str, name: str) -> None:
        """Rename the file ``hidden`` to ``name``, as a new file of this user: what ``name`` was is replaced.

        Raises:
            Refused: ``hidden`` or ``name`` is a link, or something else than a file.
            OSError: it cannot be renamed.
        """
        with self._above(hidden) as (source, first), self._above(name) as (target, last):
            file = self._regular(source, first, os.O_RDONLY)
            try:
                os.fchmod(file, 0o666 & ~umask())
            finally:
                os.close(file)
            with suppress(FileNotFoundError):
                self._check(os.stat(last, dir_fd=target, follow_symlinks=False))
            os.replace(first, last, src_dir_fd=source, dst_dir_fd=target)

    def take(self, file: Path, name: str) -> None:
        """Move ``file``, which is this user's own, to ``name``; what ``name`` was, a link too, is replaced.

        Raises:
            Refused: ``name`` leads elsewhere.
            OSError: it cannot be moved.
        """
        with self._above(name) as (above, last):
            os.replace(file, last, dst_dir_fd=above)

    def require_plain(self, name: str) -> None:
        """Check that ``name`` leads to nothing outside; there may be nothing of that name.

        Raises:
            Refused: it does, or is a link.
        """
        with suppress(FileNotFoundError, NotADirectoryError), self._above(name) as (above, last):
            if stat.S_ISLNK(os.stat(last, dir_fd=above, follow_symlinks=False).st_mode):
                raise Refused(ELOOP, "it is a link, which is not followed there")

    def remove(self, name: str) -> bool:
        """Remove the file or the link ``name``, never what the link leads to; return whether it is gone."""
        with suppress(OSError), self._above(name) as (above, last):
            with suppress(FileNotFoundError):
                os.unlink(last, dir_fd=above)
            return True
        return False

    def remove_folder(self, name: str, *, content: bool = False) -> bool:
        """Remove the folder ``name``, with ``content`` all that lies in it too; return whether it is gone.

        A link is not removed, and a link below it is removed itself.  With ``content`` the folder must
        belong to this user.
        """
        with suppress(OSError), self._above(name) as (above, last):
            if content:
                found = os.stat(last, dir_fd=above, follow_symlinks=False)
                if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                    return False
                shutil.rmtree(last, dir_fd=above)
            else:
                os.rmdir(last, dir_fd=above)
            return True
        return False

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Hold the lock of the file ``name``, which is made where there is none, and never changed.

        Raises:
            BlockingIOError: another process holds it.
            Refused: it is a link or no regular file.
            OSError: it cannot be made.
        """
        with self._above(name) as (above, last):
            lock = self._regular(above, last, os.O_RDWR | os.O_CREAT)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError:
                pass  # a file system without locks
            yield
        finally:
            os.close(lock)

    @contextmanager
    def _above(self, name: str) -> Iterator[tuple[int, str]]:
        """Yield the descriptor of the folder that ``name`` lies in, and its last component."""
        *folders, last = components(name)
        at = self.descriptor
        opened: list[int] = []
        try:
            for one in folders:
                try:
                    at = os.open(one, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
                except OSError as error:
                    raise self._why(error, at, one) from error
                opened.append(at)
            yield at, last
        finally:
            for one_fd in opened:
                os.close(one_fd)

    def _regular(self, above: int, last: str, flags: int) -> int:
        try:
            file = os.open(last, flags | _FILE, 0o666, dir_fd=above)
        except OSError as error:
            raise self._why(error, above, last) from error
        try:
            self._check(os.fstat(file))
        except BaseException:
            os.close(file)
            raise
        return file

    @staticmethod
    def _check(found: os.stat_result) -> None:
        if stat.S_ISLNK(found.st_mode):
            raise Refused(ELOOP, "it is a link, which is not followed there")
        if not stat.S_ISREG(found.st_mode):
            raise Refused(EPERM, "it is not a regular file")

    @staticmethod
    def _why(error: OSError, above: int, name: str) -> OSError:
        """Return ``error``, or that ``name`` is a link: the operating system has several words for it."""
        with suppress(OSError):
            if stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
                return Refused(ELOOP, "it is a link, which is not followed there")
        return error


def is_own_way(path: str | os.PathLike[str], home: str = "") -> bool:
    """Return whether nobody but this user and root decides what lies at ``path``, as far as it exists.

    Every folder and link on the way belongs to one of them.  Others can write into none of the folders but
    sticky ones, where they can replace nothing.  What leads to ``home`` is not looked at.

    >>> is_own_way("/"), is_own_way("/nowhere/below")
    (True, True)
    """
    pending, at, links = list(Path(path).parts[:0:-1]), "/", 0
    while pending:
        part = pending.pop()
        if part == "..":
            at = os.path.dirname(at)
            continue
        at = os.path.join(at, part)
        if os.path.join(home, "").startswith(os.path.join(at, "")):
            continue
        try:
            found = os.lstat(at)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        if found.st_uid not in (0, os.geteuid()):
            return False
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MOST_LINKS:
                return False
            target = Path(os.readlink(at))
            pending += reversed(target.parts[1:] if target.is_absolute() else target.parts)
            at = "/" if target.is_absolute() else os.path.dirname(at)
        elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
            return False
    return True


def way_out(folder: str | os.PathLike[str]) -> Callable[[str | os.PathLike[str]], bool]:
    """Return a function that says whether links lead from a file, which was found in ``folder``, out of it.

    It resolves each folder once: ask it about the files of one search, and no later.
    """
    real = functools.cache(os.path.realpath)
    root = real(os.fspath(folder))

    def leads_out(path: str | os.PathLike[str]) -> bool:
        name = os.fspath(path)
        to = os.path.realpath(name) if os.path.islink(name) else real(os.path.dirname(name) or ".")
        return bool(os.path.commonpath([root, to]) != root)

    return leads_out


def require_inside(files: Iterable[Path], folder: Path) -> None:
    """Check that no link leads from one of ``files``, which were found in ``folder``, out of it.

    Raises:
        ReportFormatError: one does.
    """
    leads_out = way_out(folder)
    for file in files:
        if leads_out(file):
            message = f"{file} is a link that leads out of the folder"
            raise ReportFormatError(file, message, "put the file itself there, or name it yourself")


def hidden_name() -> str:
    """Return a new name for a file that is not whole yet."""
    return f".ncukit-{os.urandom(8).hex()}.tmp"


def umask() -> int:
    """Return the permissions that new files of this process lack."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
