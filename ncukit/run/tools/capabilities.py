"""What a tool can do, and what can be seen before a costly run."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ncukit.errors import ToolError, UsageError
from ncukit.files import cache_folder, write_text
from ncukit.record import dataclass
from ncukit.run.tools import failures, gpus
from ncukit.run.tools.failures import Context, Failure, classify, failure
from ncukit.run.tools.process import run

# ---- What a tool can do: version and options, asked once per binary and version, and remembered on disk

TIMEOUT = 30.0  # [s]
OLDEST = {"ncu": (2021, 1), "nsys": (2021, 4), "nvcc": (11, 0)}
"""Older ones lack what ncukit cannot do without: ncu -k NAME, .nsys-rep, C++17."""
FORMAT = 2
"""Raised when answers are read otherwise than before: older ones in the cache then do not count."""
ELSEWHERE = "/"
"""Where tools are asked: the Python inside some versions of nsys imports modules from the current folder."""

COMMANDS = {"ncu": ("",), "nsys": ("profile", "export"), "nvcc": ()}
"""The commands of a tool that have options of their own; "" where the tool has no commands."""

_VERSION = {
    "ncu": r"Version (\d+\.\d+[\d.]*)",
    "nsys": r"version (\d+\.\d+[\d.]*)",
    "nvcc": r"\bV(\d+\.\d+[\d.]*)",
}
# A line that defines an option: "  -k [ --kernel-name ] arg", "\t-c, --capture-range=", "\t(Beta) --x=".
_OPTION = re.compile(r"^\s{1,4}(?:\([A-Z]\w*\) )?(?:-\w(?: \[|,) )?(--[a-z][\w-]*)", re.MULTILINE)


@dataclass(frozen=True)
class Probe:
    """A tool that answered: ``options`` holds, per command of the tool, the long options it takes."""

    tool: str
    path: Path
    version: str
    options: Mapping[str, frozenset[str]]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version as numbers: (2024, 1, 1, 0)."""
        return _numbers(self.version)

    def has(self, option: str, command: str = "") -> bool:
        """Return whether ``command`` of this tool takes ``option``."""
        return option in self.options.get(command, frozenset())


def probe(tool: str, path: Path, *, environ: Mapping[str, str] | None = None) -> Probe:
    """Return version and options of ``tool`` at ``path``.

    Raises:
        ToolError: it does not answer (``tool-missing``), or is too old to be used (``tool-too-old``).
    """
    env = dict(os.environ if environ is None else environ)
    version = _version(tool, path, tuple(sorted(env.items())))
    if _numbers(version) < OLDEST[tool]:
        oldest = ".".join(map(str, OLDEST[tool]))
        raise failures.failure(
            "tool-too-old", tool=tool, path=str(path), version=version, oldest=oldest
        ).error()
    options = remembered(
        (tool, path, version, "options"),
        lambda: {
            command: _options([path, *([command] if command else []), "--help"], env)
            for command in COMMANDS[tool]
        },
        environ=env,
    )
    return Probe(tool, path, version, {command: frozenset(names) for command, names in options.items()})


def version_or_zero(tool: str, path: Path, *, environ: Mapping[str, str] | None = None) -> tuple[int, ...]:
    """Return the version as numbers, () where the tool does not answer: for sorting."""
    try:
        return _numbers(
            _version(tool, path, tuple(sorted((os.environ if environ is None else environ).items())))
        )
    except ToolError:
        return ()


def remembered(
    key: tuple[str, Path, str, str], ask: Callable[[], Any], *, environ: Mapping[str, str] | None = None
) -> Any:
    """Return JSON data about one version of one binary, from the user's cache folder or else from ``ask``.

    A cache that cannot be read or written is no error: ``ask`` answers.
    """
    tool, path, version, what = key
    real = path.resolve()
    stat = real.stat()
    identity = json.dumps([FORMAT, str(real), stat.st_size, stat.st_mtime_ns, version, what])
    if (cache := cache_folder(environ)) is None:
        return ask()
    file = cache / "tools" / f"{tool}-{hashlib.sha256(identity.encode()).hexdigest()[:24]}.json"
    with contextlib.suppress(OSError, ValueError, LookupError):
        return json.loads(file.read_text("utf-8"))["answer"]
    answer = ask()
    with contextlib.suppress(UsageError):
        write_text(file, json.dumps({"about": identity, "answer": answer}))
    return answer


@lru_cache(maxsize=64)
def _version(tool: str, path: Path, env: tuple[tuple[str, str], ...]) -> str:
    done = run([os.path.abspath(path), "--version"], env=dict(env), timeout=TIMEOUT, cwd=ELSEWHERE)
    if found := re.search(_VERSION[tool], done.output):
        return found.group(1).rstrip(".")
    said = done.tail(2).strip() or (f"nothing within {TIMEOUT:.0f} s" if done.timed_out else "nothing")
    raise ToolError(
        f"{path} does not work: asked for its version it said: {said}",
        f"reinstall it, or name another one with --{tool}",
        code="tool-missing",
    )


def _options(argv: Sequence[str | Path], env: Mapping[str, str]) -> list[str]:
    return sorted(set(_OPTION.findall(run(argv, env=env, timeout=TIMEOUT, cwd=ELSEWHERE).output)))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


# ---- What can be seen before a costly run: a second profiler in the script, ranks, a wrong interpreter

# Modules that collect through CUPTI themselves, and the name to say.
PROFILERS = {
    "torch.profiler": "torch.profiler",
    "torch.autograd.profiler": "torch.autograd.profiler",
    "triton.profiler": "Proton (triton.profiler)",
    "proton": "Proton",
    "cupti": "CUPTI",
    "nsight": "nsight-python",
}
_RANKS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


@dataclass(frozen=True)
class Rank:
    """This process among those of a distributed program."""

    rank: int
    size: int

    @property
    def suffix(self) -> str:
        """What to add to the name of an output, so that ranks do not overwrite each other's."""
        return f"-rank{self.rank}"


def profilers(source: str) -> tuple[str, ...]:
    """Return the names of profilers that a script imports or calls: they cannot share a process with ours.

    >>> profilers("import torch\\nwith torch.profiler.profile(): pass")
    ('torch.profiler',)
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ()
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            used.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            used.add(node.module)
            used.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            used.add(ast.unparse(node))
    return tuple(
        name for module, name in PROFILERS.items() if any(f"{u}.".startswith(f"{module}.") for u in used)
    )


def rank(environ: Mapping[str, str]) -> Rank | None:
    """Return which rank of how many this process is, None where it is alone.

    >>> rank({"RANK": "3", "WORLD_SIZE": "4"}).suffix
    '-rank3'
    """
    for name, size_name in _RANKS:
        number, size = environ.get(name, ""), environ.get(size_name, "")
        if number.isdigit() and size.isdigit() and int(size) > 1:
            return Rank(int(number), int(size))
    return None


def interpreter(
    python: str | Path, modules: Sequence[str], *, env: Mapping[str, str], timeout: float = 120
) -> Failure | None:
    """Import ``modules`` with ``python``, without any profiler; return what is wrong, None if nothing."""
    code = "".join(f"import {module}\n" for module in modules)
    done = run([python, "-P", "-c", code], env=env, timeout=timeout)
    if done.returncode == 0 and not done.timed_out:
        return None
    context = Context("app", gpus.place(), facts={"python": str(python)})
    return classify(done, context) or failure("app-failed", context, exit=f"exit code {done.returncode}")
