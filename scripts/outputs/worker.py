"""Run command lines of the ncukit on PYTHONPATH: it is loaded once, and forked for each.

Reads one JSON object on stdin, ``{"tree": FOLDER, "jobs": [{"id", "folder", "words"}]}``, and answers each
job by a line ``{"id", "code"}`` on stdout; a ``code`` of None was stopped after `LIMIT`.  What a command
printed lies beside its folder, as FOLDER.out and FOLDER.err.  Ends with an error where the net itself fails,
or where not even ``--version`` works.  It imports nothing of this checkout: the tree is of any revision.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

LIMIT = 180.0
"""Time [s] after which a command is stopped."""
HEAVY = frozenset(("ncu_report", "pandas", "pyarrow"))
"""What must not be loaded before a fork: ncukit reads reports in another way when it is."""
_monotonic = time.monotonic


class _TooHeavy(BaseException):
    """No Exception: what catches a failed import must not catch this."""


class _Guard:
    """Refuses to load what is too heavy, and with it the module that asks."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in HEAVY:
            raise _TooHeavy(name)


def main() -> None:
    request = json.load(sys.stdin)
    _load(Path(request["tree"]))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    gc.freeze()  # forks share what no garbage collection touches
    _try(request["jobs"][0]["folder"])
    for job in request["jobs"]:
        code = _run(job["words"], job["folder"])
        answers.write(json.dumps({"id": job["id"], "code": code}) + "\n")
    answers.close()


def _load(tree: Path) -> None:
    """Import every module of ncukit that is light, and make sure that it is the one of the tree."""
    guard: Any = _Guard()
    sys.meta_path.insert(0, guard)
    try:
        import ncukit

        found = Path(ncukit.__file__ or "").resolve()
        if found.parent != (tree / "ncukit").resolve():
            sys.exit(f"the ncukit of {tree} should run, but {found} is imported")
        for module in pkgutil.walk_packages(ncukit.__path__, "ncukit.", onerror=lambda name: None):
            if not module.name.endswith("__main__"):
                try:
                    importlib.import_module(module.name)
                except (_TooHeavy, Exception):  # noqa: S112 - the command that needs it will say so
                    continue
    finally:
        sys.meta_path.remove(guard)


def _try(folder: str) -> None:
    """Make sure that a command can work here at all: two that both fail look like no difference."""
    if _run(["--version"], folder) != 0 or not Path(f"{folder}.out").read_text().strip():
        sys.exit(f"ncukit --version does not work here: {Path(f'{folder}.err').read_text()}")


def _run(words: list[str], folder: str) -> int | None:
    """Return the exit code of one command line, negative where a signal ended it; None: it was stopped."""
    reached, reach = os.pipe()
    began = _monotonic()
    child = os.fork()
    if child == 0:
        os.close(reached)
        _child(words, folder, reach)
    os.close(reach)
    with os.fdopen(reached, "rb") as pipe:
        begun = pipe.read(1)
    stopped = False
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        if _monotonic() - began > LIMIT:
            stopped = True
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.002)
    if not begun:
        sys.exit(f"the net could not run {words} in {folder}: {Path(folder + '.err').read_text()}")
    return None if stopped else os.waitstatus_to_exitcode(status)


def _child(words: list[str], folder: str, reach: int) -> None:
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        encoding = sys.stdout.encoding
        for number, path in ((2, f"{folder}.err"), (1, f"{folder}.out")):
            os.dup2(os.open(path, flags, 0o600), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding=encoding, errors="backslashreplace", closefd=False)  # noqa: SIM115
        sys.argv = ["ncukit", *words]
        os.write(reach, b"1")
        os.close(reach)
        from ncukit.__main__ import main as command_line

        command_line()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 120  # as Python ends when it cannot write
        os._exit(code)


if __name__ == "__main__":
    main()
