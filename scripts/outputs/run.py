"""Run cases in a tree that lies at a fixed place: clock, paths and names are the same for every revision."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from scripts.outputs.cases import Case, Terminal

HERE = Path(__file__).resolve().parent
CHUNK = 80
"""Cases that one worker process runs: it loads ncukit once."""
LONG = 1_000_000
"""A longer line [character] is a library in a page, and is kept as its digest."""
MADE = 1_700_000_000
"""When every input was last changed [s since 1970]."""


class NetError(Exception):
    """The net itself failed: what it would print is no answer."""


@dataclass(frozen=True)
class Output:
    """What a command line left: its exit code, and by name what it printed and each file that it wrote."""

    code: int
    parts: Mapping[str, bytes]


@dataclass
class Place:
    """The folder in which everything runs: the same for every revision, and for one run at a time."""

    folder: Path
    _digests: dict[Path, str] = field(default_factory=dict)

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    def digest(self, path: Path) -> str:
        """Return the sha256 of an input, computed once."""
        if path not in self._digests:
            self._digests[path] = hashlib.sha256(path.read_bytes()).hexdigest()
        return self._digests[path]

    def input(self, path: Path) -> Path:
        """Return the copy of an input that cases link to, all of one date."""
        copy = self.folder / "inputs" / self.digest(path)
        if not copy.exists():
            shutil.copyfile(path, copy)
            copy.chmod(0o444)
            os.utime(copy, (MADE, MADE))
        return copy


@contextmanager
def place(checkout: Path) -> Iterator[Place]:
    """Give the place of a checkout, empty; another run of the same checkout is waited for."""
    name = hashlib.sha256(str(checkout).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()).resolve() / f"ncukit-outputs-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise NetError(f"{folder} belongs to somebody else")
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _empty(folder)
        (folder / "inputs").mkdir()
        try:
            yield Place(folder)
        finally:
            _empty(folder)


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != "lock":
            entry.unlink()


def revision(checkout: Path, name: str) -> str:
    """Return the commit that ``name`` means."""
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    try:
        return _git(checkout, *asked).decode().strip()
    except NetError as error:
        raise NetError(f"{name} is no revision of {checkout}") from error


def lay_revision(checkout: Path, commit: str, where: Place) -> None:
    """Put the files of a commit where trees run."""
    data = _git(checkout, "archive", commit)
    _fresh(where)
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        archive.extractall(where.tree, filter="data")


def lay_folder(checkout: Path, where: Place) -> None:
    """Put the working tree where trees run: files that git knows, and new ones that it does not ignore."""
    listed = os.fsdecode(_git(checkout, "ls-files", "-z", "--cached", "--others", "--exclude-standard"))
    _fresh(where)
    for name in filter(None, listed.split("\0")):
        if (checkout / name).is_file():
            target = where.tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(checkout / name, target)


def _git(checkout: Path, *words: str) -> bytes:
    git = shutil.which("git")
    if git is None:
        raise NetError("git is not on PATH")
    done = subprocess.run([git, "-C", str(checkout), *words], capture_output=True)
    if done.returncode:
        raise NetError(f"git {words[0]} failed in {checkout}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def _fresh(where: Place) -> None:
    """Remove the tree that ran before, and whatever it kept for later."""
    for name in ("tree", "home", "tmp"):
        shutil.rmtree(where.folder / name, ignore_errors=True)
        (where.folder / name).mkdir(mode=0o700)


def outputs(
    cases: Sequence[Case], where: Place, cache: Cache | None = None, jobs: int = 0
) -> dict[Case, Output]:
    """Run the cases in the tree that lies in ``where``; those in the ``cache`` are not run again.

    Raises:
        NetError: a worker failed, a case was not answered, or a command had to be stopped.
    """
    known = {} if cache is None else cache.known(cases, where)
    rest = [case for case in cases if case not in known]
    jobs = jobs or os.cpu_count() or 1
    if rest:
        subprocess.run(
            [sys.executable, "-m", "compileall", "-q", "-j", str(jobs), str(where.tree / "ncukit")],
            check=False,
        )
    chunks: list[list[Case]] = []
    for terminal in dict.fromkeys(case.terminal for case in rest):
        same = [case for case in rest if case.terminal == terminal]
        chunks += [same[start : start + CHUNK] for start in range(0, len(same), CHUNK)]
    with ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(lambda chunk: _chunk(chunk, where), chunks):
            known |= found
            if cache is not None:
                cache.keep(found, where)
    if missing := [case.title for case in cases if case not in known]:
        raise NetError(f"{len(missing)} cases have no answer, the first: {missing[0]}")
    return known


def _chunk(cases: Sequence[Case], where: Place) -> dict[Case, Output]:
    """Run cases of one terminal in one worker."""
    folders = [_prepare(case, where) for case in cases]
    request = {
        "tree": str(where.tree),
        "jobs": [
            {"id": number, "folder": str(folder), "words": case.words}
            for number, (case, folder) in enumerate(zip(cases, folders, strict=True))
        ],
    }
    done = subprocess.run(
        [sys.executable, "-P", str(HERE / "worker.py")],
        input=json.dumps(request),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env=_environment(where, cases[0].terminal),
    )
    if done.returncode:
        raise NetError(f"a worker failed: {done.stderr.strip() or f'exit code {done.returncode}'}")
    codes = {answer["id"]: answer["code"] for answer in map(json.loads, done.stdout.splitlines())}
    found: dict[Case, Output] = {}
    for number, (case, folder) in enumerate(zip(cases, folders, strict=True)):
        if number not in codes:
            raise NetError(f"a worker gave no answer to {case.title}")
        if codes[number] is None:
            raise NetError(f"it did not end in time: {case.title}")
        found[case] = Output(codes[number], _parts(case, folder, where))
        shutil.rmtree(folder)
        for ending in (".out", ".err"):
            Path(f"{folder}{ending}").unlink()
    return found


def _prepare(case: Case, where: Place) -> Path:
    """Make the folder of a case, named for what it holds, with links to its inputs."""
    folder = where.folder / "run" / hashlib.sha256(case.title.encode()).hexdigest()[:12]
    folder.mkdir(parents=True)
    for name, path in case.inputs:
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        os.link(where.input(path), target)
    return folder


def _parts(case: Case, folder: Path, where: Place) -> dict[str, bytes]:
    """Return what a command printed and every file that it wrote, also over one of its inputs."""
    parts = {
        "stdout": _short(Path(f"{folder}.out").read_bytes()),
        "stderr": _short(Path(f"{folder}.err").read_bytes()),
    }
    inputs = {folder / name: where.input(path) for name, path in case.inputs}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            parts[f"file {path.relative_to(folder)}"] = f"link to {os.readlink(path)}".encode()
        elif path.is_file() and not (path in inputs and _same(path, inputs[path])):
            parts[f"file {path.relative_to(folder)}"] = _short(path.read_bytes())
    parts |= {f"file {path.relative_to(folder)}": b"(removed)" for path in inputs if not path.exists()}
    return parts


def _same(path: Path, given: Path) -> bool:
    return path.samefile(given) and path.stat().st_mtime == MADE


def _short(data: bytes) -> bytes:
    """Replace lines that no one reads, libraries in pages, by their digest."""
    if len(data) <= LONG:
        return data
    return b"\n".join(
        line if len(line) <= LONG else f"({len(line)} bytes {hashlib.sha256(line).hexdigest()})".encode()
        for line in data.split(b"\n")
    )


def _environment(where: Place, terminal: Terminal) -> dict[str, str]:
    home = where.folder / "home"
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "TMPDIR": str(where.folder / "tmp"),
        "TZ": "UTC",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "COLUMNS": str(terminal.width),
        "PYTHONPATH": os.pathsep.join((str(HERE / "clock"), str(where.tree))),
        "PYTHONIOENCODING": terminal.encoding,
        "PYTHONHASHSEED": "0",
    }


class Cache:
    """Outputs of one commit, kept in a file; a case is found while all that it depends on is the same."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._data = sqlite3.connect(path, check_same_thread=False)
        self._data.execute(
            "create table if not exists outputs (key text primary key, code integer, parts blob)"
        )
        self._lock = threading.Lock()
        self._around = _around()

    def known(self, cases: Sequence[Case], where: Place) -> dict[Case, Output]:
        """Return the outputs that are kept."""
        found: dict[Case, Output] = {}
        for case in cases:
            row = self._data.execute(
                "select code, parts from outputs where key = ?", (self._key(case, where),)
            ).fetchone()
            if row is not None:
                found[case] = Output(row[0], _unpacked(row[1]))
        return found

    def keep(self, found: Mapping[Case, Output], where: Place) -> None:
        """Keep outputs."""
        rows = [(self._key(case, where), out.code, _packed(out.parts)) for case, out in found.items()]
        with self._lock, self._data:
            self._data.executemany("insert or replace into outputs values (?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        self._data.close()

    def _key(self, case: Case, where: Place) -> str:
        inputs = [(name, where.digest(path)) for name, path in case.inputs]
        said = json.dumps([self._around, str(where.folder), case.title, inputs])
        return hashlib.sha256(said.encode()).hexdigest()


def _around() -> str:
    """Return a digest of what outputs depend on beside the tree: the net's own code, Python, its packages."""
    seen = hashlib.sha256(sys.version.encode())
    for name in ("run.py", "worker.py", "clock/sitecustomize.py"):
        seen.update((HERE / name).read_bytes())
    packages = sorted({f"{found.name} {found.version}" for found in importlib.metadata.distributions()})
    seen.update("\n".join(name for name in packages if not name.startswith("ncukit ")).encode())
    return seen.hexdigest()


def _packed(parts: Mapping[str, bytes]) -> bytes:
    """Return the parts in one piece: a line of names and lengths, then all bytes."""
    head = json.dumps([[name, len(data)] for name, data in parts.items()]).encode()
    return zlib.compress(head + b"\n" + b"".join(parts.values()), 1)


def _unpacked(data: bytes) -> dict[str, bytes]:
    head, _, rest = zlib.decompress(data).partition(b"\n")
    parts: dict[str, bytes] = {}
    start = 0
    for name, length in json.loads(head):
        parts[name] = rest[start : start + length]
        start += length
    return parts
