"""What is measured, and whether it is still the same."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from ncukit.errors import ReportNotFound, ToolError, UsageError
from ncukit.record import dataclass
from ncukit.run.options import ProfileOptions, script_path
from ncukit.run.tools import cuda, gpus, locate
from ncukit.run.tools.capabilities import probe
from ncukit.run.tools.locate import ChildEnvironment, redact_words
from ncukit.run.tools.names import NamePattern
from ncukit.run.tools.process import run
from ncukit.run.workload.script import look_up

# ---- What is measured: a workload in a harness that marks it, or a program as it is

CHILD = Path(__file__).resolve().parent / "workload" / "child.py"


@dataclass(frozen=True)
class Target:
    """What is run, and what its name means.

    ``call`` is the workload or function that a harness calls, None where the program runs as it is; then
    nothing can be marked.  ``pattern`` filters GPU kernels (None: the one with the most time).
    """

    kind: Literal["workload", "function", "script", "cuda", "command"]
    name: str
    """For the run directory: the kernel, or the program without its suffix."""
    meaning: str
    source: Path | None = None
    program: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    call: str | None = None
    pattern: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable

    @property
    def marked(self) -> bool:
        """Whether a harness marks the region."""
        return self.call is not None

    @property
    def argv(self) -> tuple[str, ...]:
        """The program as it is, with its arguments."""
        return (*self.program, *self.args)

    def child(self, step: str, result: Path, *options: str) -> tuple[str, ...]:
        """Return the command line of a measured child (see `ncukit.run.workload.child`)."""
        params = [word for name, value in self.params.items() for word in ("--param", f"{name}={value}")]
        args = ["--", *self.args] if self.args else []
        return (
            *(self.python, str(CHILD), step, str(self.source), "--call", str(self.call)),
            *(*params, "--result", str(result), *options, *args),
        )

    def built(self, program: Path) -> Target:
        """Return this target, compiled to ``program``."""
        return replace(self, program=(str(program),))

    def at(self, params: Mapping[str, str]) -> Target:
        """Return this target at one point of a sweep."""
        return replace(self, params=dict(params))


def resolve(words: Sequence[str], options: ProfileOptions) -> Target:
    """Return the target that the words of the command line mean; nothing is run.

    Raises:
        UsageError: there is none, or options do not fit it.
        ReportError: a source file cannot be used.
    """
    if not words:
        raise UsageError("there is nothing to profile", "give a .py or .cu file, or a command after --")
    for pattern in (options.gpu_kernel, options.kernel):
        if pattern is not None:
            NamePattern(pattern)  # refuses what cannot match
    source, args = script_path(words[0]), tuple(words[1:])
    if source is not None and source.suffix == ".py":
        return _python(source, args, options)
    if options.params:
        raise UsageError(
            "--param is for workloads in a Python file", "give arguments after the program instead"
        )
    pattern = options.gpu_kernel or options.kernel
    filtered = "the kernel with the most GPU time is measured"
    if pattern is not None:
        filtered = f"its GPU kernels are filtered by {pattern!r}"
    if source is not None:
        if not source.is_file():
            raise ReportNotFound(source, f"there is no file {source}", "check the path")
        text = f"{source.name} is compiled and run as it is; {filtered}"
        return Target("cuda", options.kernel or source.stem, text, source, (), args, None, pattern)
    program = shutil.which(words[0])
    if program is None:
        raise UsageError(
            f"{words[0]} is not a program that can be run",
            "give its path; a script needs its interpreter first",
        )
    name = options.kernel or Path(words[0]).stem
    return Target(
        "command", name, f"the command runs as it is; {filtered}", None, (program,), args, None, pattern
    )


def _python(source: Path, args: tuple[str, ...], options: ProfileOptions) -> Target:
    python = options.tools.get("python") or sys.executable
    if shutil.which(python) is None:
        raise UsageError(f"--python {python} is not an executable file", "give the path of an interpreter")
    meaning = look_up(source, options.kernel, options.params)
    name = options.kernel or meaning.name or source.stem
    if meaning.kind in ("workload", "function"):
        if (
            unknown := sorted(set(options.params) - set(meaning.defaults))
            if meaning.kind == "workload"
            else []
        ):
            known = ", ".join(meaning.defaults) or "none"
            raise UsageError(f"{name} has no parameter {unknown[0]!r}", f"its parameters: {known}")
        kind: Literal["workload", "function"] = "workload" if meaning.kind == "workload" else "function"
        return Target(
            kind, name, meaning.text, source, (), args, meaning.name, options.gpu_kernel, {}, python
        )
    if options.params:
        raise UsageError(
            f"--param needs a workload: {meaning.text}",
            "write @ncukit.workload above a function of that name",
        )
    pattern = options.gpu_kernel or meaning.pattern
    return Target(
        "script", name, meaning.text, source, (python, str(source)), args, None, pattern, {}, python
    )


# ---- What makes two runs the same: script, arguments, tools, GPU.  And what else is worth recording

_MATTERS = (
    *(
        "CUDA_*",
        "NVIDIA_*",
        "NCCL_*",
        "TORCH*",
        "PYTORCH_*",
        "TRITON_*",
        "NUMBA_*",
        "CUPY_*",
        "OMP_NUM_THREADS",
    ),
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH"),
)
"""Variables that change what a kernel does, or which libraries it comes from."""
_PROFILERS = ("torch.profiler", "triton.profiler", "proton", "cuProfilerStart", "cupti")
_RESUMED = {
    "target": "the program or its arguments",
    "source": "the script",
    "options": "the options",
    "tools": "the tools",
    "gpu": "the GPU",
}


def target_data(target: Target) -> dict[str, Any]:
    """Return what run.json says about the target; the script with its hash."""
    source = target.source
    return {
        **{name: value for name, value in asdict(target).items() if name != "source"},
        "program": list(target.program),
        "args": redact_words(target.args, os.environ),
        "params": dict(target.params),
        "source": None if source is None else str(source.absolute()),
        "sha256": None if source is None else hashlib.sha256(source.read_bytes()).hexdigest(),
    }


def tools_data(
    options: ProfileOptions, kind: str, environ: Mapping[str, str], child: Mapping[str, str]
) -> dict[str, Any]:
    """Return path and version of every tool that the run needs; of a missing one the code that says so."""
    wanted: list[locate.Tool] = ["nvcc"] if kind == "cuda" else []
    wanted += [] if options.skip_nsys else ["nsys"]
    wanted += [] if options.skip_ncu else ["ncu"]
    found: dict[str, Any] = {}
    for tool in wanted:
        try:
            path = locate.find(tool, options.tools.get(tool), environ=environ).path
            found[tool] = {"path": str(path), "version": probe(tool, path, environ=child).version}
        except ToolError as error:
            found[tool] = {"path": None, "version": None, "code": error.code}
    return found


def gpu_data(driver: cuda.Driver) -> dict[str, Any] | None:
    """Return the first visible GPU; what the program uses is in timing.json."""
    if not driver.gpus:
        return None
    gpu = driver.gpus[0]
    return {
        "name": gpu.name,
        "uuid": gpu.uuid,
        "compute_capability": f"{gpu.cc[0]}.{gpu.cc[1]}",
        "memory": gpu.memory,
        "visible": len(driver.gpus),
    }


def driver_data(driver: cuda.Driver) -> dict[str, Any]:
    """Return the versions of the driver."""
    return {"kernel": gpus.driver_version(), "cuda": driver.version, "problem": driver.problem}


def environment_data(child: ChildEnvironment) -> dict[str, Any]:
    """Return the variables that matter, and the names of those that children do not get."""
    kept = {
        name: value
        for name, value in sorted(child.variables.items())
        if any(fnmatchcase(name, pattern) for pattern in _MATTERS)
    }
    return {"variables": kept, "withheld": list(child.dropped)}


def git_data(source: Path | None, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the git revision of the script, and whether it differs from it; None outside of a repository.

    ``git status`` runs what the repository's own configuration names: monitors, filters, transports of
    objects that are missing.  The script is compared here instead, byte by byte.
    """
    if source is None:
        return None
    try:
        head = _git(source, environ, "HEAD")
        blob = _git(source, environ, f"HEAD:./{source.name}") if head is not None else None
    except ToolError:
        return None
    if head is None:
        return None
    return {"revision": head, "modified": blob is None or blob not in _blobs(source.read_bytes(), len(blob))}


def _git(source: Path, environ: Mapping[str, str], name: str) -> str | None:
    """Return the object that git calls ``name`` in the folder of ``source``; git itself runs nothing."""
    quiet = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
    folder = str(source.absolute().parent)
    command = ["git", "-c", "core.fsmonitor=false", "-C", folder, "rev-parse", "--verify", "--quiet", name]
    done = run(command, env={**environ, **quiet}, timeout=10)
    return done.stdout.strip() if done.returncode == 0 else None


def _blobs(data: bytes, digits: int) -> list[str]:
    """Return what git calls a file of ``data``, as it is and with the line ends that git stores."""
    kind = hashlib.sha256 if digits == 64 else hashlib.sha1
    stored = (data, data.replace(b"\r\n", b"\n"))
    return [kind(b"blob %d\0" % len(text) + text, usedforsecurity=False).hexdigest() for text in stored]


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return in words what differs between a run and the same request now; nothing: it can go on."""
    found = []
    for part, words in _RESUMED.items():
        before, now = old.get(part), new.get(part)
        if before == now:
            continue
        changed = words
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            names = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
            changed += (
                f" ({', '.join(f'{n}: {_short(before.get(n))} -> {_short(now.get(n))}' for n in names)})"
            )
        found.append(changed)
    return found


def identity(
    target: Mapping[str, Any], options: Mapping[str, Any], tools: Mapping[str, Any], gpu: Any
) -> dict[str, Any]:
    """Return what must not have changed for a run to go on."""
    own = {
        name: target.get(name) for name in ("kind", "program", "args", "call", "pattern", "params", "python")
    }
    if target.get("kind") == "cuda":
        own["program"] = []  # compiled into the run directory
    return {
        "target": own,
        "source": {name: target.get(name) for name in ("source", "sha256")},
        "options": {name: value for name, value in options.items() if name != "timeout"},
        "tools": {name: {key: tool.get(key) for key in ("path", "version")} for name, tool in tools.items()},
        "gpu": None if gpu is None else {name: gpu.get(name) for name in ("name", "uuid")},
    }


def profilers_in(source: Path | None) -> list[str]:
    """Return the profilers that a script seems to start itself: two at once lose data or abort."""
    if source is None:
        return []
    text = source.read_text(encoding="utf-8", errors="replace").lower()
    return [name for name in _PROFILERS if name.lower() in text]


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(str(part) for part in value.values() if part) or "none"
    text = str(value) if value not in (None, "", [], {}) else "none"
    return text[:12] if len(text) == 64 and text.isalnum() else text
