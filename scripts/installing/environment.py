"""Fresh environments, the interpreters that make them, and what runs there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
"""The versions of Python that are declared, such as "3.11"."""
DEPENDENCIES = [re.match(r"[\w.-]+", line)[0] for line in PROJECT["dependencies"]]  # type: ignore[index]
TIMEOUT = 1800  # [s]


class Built(NamedTuple):
    """What is tried."""

    wheel: Path
    sdist: Path


class Failed(Exception):
    """A command that ended otherwise than it must, or left what it must not."""


def run(argv: Sequence[object], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Return what ``argv`` prints.

    Raises:
        Failed: it ended with another code than 0, or not in time.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words, cwd=cwd, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{' '.join(words)}: not done in {TIMEOUT} s") from error
    if done.returncode:
        lines = f"{done.stdout}\n{done.stderr}".splitlines()
        raise Failed("\n".join([f"{' '.join(words)}: ended with {done.returncode}", *lines[-40:]]))
    return done.stdout


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @classmethod
    def fresh(cls, folder: Path, python: object) -> Environment:
        """Return one made anew by ``python``: it holds pip alone."""
        shutil.rmtree(folder, ignore_errors=True)
        run([python, "-m", "venv", folder])
        return cls(folder)

    def program(self, name: str) -> Path:
        """Return the path of a program that is installed there."""
        return self.folder / "bin" / name

    def pip(self, *words: object) -> str:
        """Run pip there."""
        return run([self.program("python"), "-m", "pip", "--disable-pip-version-check", *words])

    def files(self) -> set[str]:
        """Return all files and folders there, but what Python compiled of modules that are there."""
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if not _compiled(path)}

    def holds(self, name: str) -> bool:
        """Return whether a distribution, a package or a program of that name is there."""
        places = ("lib/python*/site-packages", "bin")
        return any(any(self.folder.glob(f"{place}/{name}*")) for place in places)


def _compiled(path: Path) -> bool:
    for parent in (path, *path.parents):
        if parent.name == "__pycache__":
            return any(parent.parent.glob("*.py"))
    return False


def new(folder: Path) -> Path:
    """Return ``folder``, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def bare(home: Path) -> dict[str, str]:
    """Return the variables of a user who has nothing but a ``home``, new and empty."""
    return {"PATH": os.environ["PATH"], "HOME": str(new(home)), "LANG": "C.UTF-8"}


def registry(environment: Environment) -> dict[str, str]:
    """Return this process's variables, for uv also where pip is set up to find packages."""
    settings = dict(re.findall(r"(\S+)='(.*)'", environment.pip("config", "list")))
    found = {"UV_PYTHON_DOWNLOADS": "never"}
    for key, value in settings.items():
        if key.endswith(".index-url"):
            found["UV_DEFAULT_INDEX"] = value
        if key.endswith(".cert"):
            found["SSL_CERT_FILE"] = value
    return {**os.environ, **found}


def interpreters() -> dict[str, Path]:
    """Return a working interpreter of each declared version that is found: on PATH, of pyenv or of uv."""
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or home / ".local/share/uv/python")

    def candidates(minor: str) -> Iterator[Path]:
        yield Path(sys.executable)
        if found := shutil.which(f"python{minor}"):
            yield Path(found)
        yield from sorted(pyenv.glob(f"{minor}.*/bin/python"))
        yield from sorted(uv.glob(f"cpython-{minor}.*/bin/python"))

    works = {minor: next((path for path in candidates(minor) if _is(path, minor)), None) for minor in PYTHONS}
    return {minor: path for minor, path in works.items() if path}


def _is(python: Path, minor: str) -> bool:
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() == minor
