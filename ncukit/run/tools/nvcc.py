"""The CUDA compiler: a .cu file to a program with line information."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ncukit.errors import UsageError
from ncukit.record import dataclass
from ncukit.run.tools import gpus
from ncukit.run.tools.capabilities import Probe
from ncukit.run.tools.failures import Context, Outcome, classify, failure, stamp
from ncukit.run.tools.process import Completed, OnText, run

_RUN_BY_A_SHELL = re.compile(r'[$`"\\\n\r]')
"""What a name must not hold: nvcc starts its steps through ``sh``, with names between double quotes."""


@dataclass(frozen=True)
class NvccOptions:
    """What to compile: ``arch`` is "native", "sm_90" or the like; ``extra`` goes before the sources."""

    sources: tuple[Path, ...]
    output: Path
    arch: str = "native"
    optimise: str = "-O3"
    extra: tuple[str, ...] = ()


def argv(options: NvccOptions, nvcc: Probe) -> tuple[str, ...]:
    """Return the command line: always with ``-lineinfo``, or source lines cannot be shown.

    Raises:
        UsageError: nvcc would give a name to a shell that runs a part of it.
    """
    for path in (*options.sources, options.output):
        if _RUN_BY_A_SHELL.search(str(path)):
            raise UsageError(
                f"nvcc gives the name {path} to a shell, which would run or change a part of it",
                'name the file and its folder without $, `, ", \\ and line ends',
            )
    return (
        str(nvcc.path),
        "-lineinfo",
        options.optimise,
        f"-arch={options.arch}",
        *options.extra,
        "-o",
        str(options.output),
        *map(str, options.sources),
    )


def compile_program(
    options: NvccOptions,
    nvcc: Probe,
    *,
    env: Mapping[str, str] | None = None,
    timeout: float | None = 600,
    on_text: OnText | None = None,
) -> tuple[Completed, Outcome]:
    """Compile, and return the run (its output holds the compiler's messages as they are) and its outcome."""
    before = stamp(options.output)
    done = run(argv(options, nvcc), env=env, timeout=timeout, on_text=on_text)
    context = Context(tool="nvcc", place=gpus.place())
    if done.returncode == 0 and not done.timed_out and (after := stamp(options.output)) and after != before:
        return done, Outcome(options.output)
    cause = classify(done, context) or failure(
        "stale-output.missing", context, path=str(options.output), said=""
    )
    return done, Outcome(None, cause)


def errors(done: Completed) -> Sequence[str]:
    """Return the lines of the compiler's output that are errors."""
    return [line for line in done.output.splitlines() if "error" in line or "fatal" in line]
