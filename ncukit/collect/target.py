"""What is measured: a workload in a harness that marks it, or a program as it is."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from ncukit.collect.options import ProfileOptions, script_path
from ncukit.errors import ReportNotFound, UsageError
from ncukit.record import dataclass
from ncukit.tools.names import NamePattern
from ncukit.workload.names import look_up

CHILD = Path(__file__).resolve().parents[1] / "workload" / "child.py"


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
        """Return the command line of a measured child (see `ncukit.workload.child`)."""
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
