"""The commands that a page offers to copy. Names from a report enter them only when they are plain words."""

from __future__ import annotations

import shlex
from pathlib import PurePath

from ncukit.model import Kernel
from ncukit.tools.names import same_again

PROGRAM = "./your_program"


def collect(kernel: Kernel, options: str = "--set full --import-source on", output: str = "again") -> str:
    """Return the ncu command that profiles this kernel once more.

    >>> from ncukit.model import RawKernel
    >>> collect(Kernel("", RawKernel(0, "copy", "copy()", ""), {}), "--set full")
    'ncu --set full --kernel-name copy --launch-count 1 -o again ./your_program'
    """
    which = same_again(kernel.name, kernel.index, kernel.raw.workload)
    return f"ncu {options} {which} -o {output} {PROGRAM}"


def one_launch(file: str, launch: int) -> str:
    """Return the command that makes the page of one launch of ``file``, with every metric."""
    return f"ncukit report {quoted(file)} --launch {launch}"


def timeline(file: str) -> tuple[str, str]:
    """Return the two commands that add a timeline to the report of ``file``."""
    return (
        f"nsys profile -t cuda,nvtx,osrt -o run {PROGRAM}",
        f"ncukit report {quoted(file)} --timeline run.nsys-rep",
    )


def quoted(path: str) -> str:
    """Return the base name of ``path`` for a shell; no folder of the machine that made the page."""
    return shlex.quote(PurePath(path).name or "report.ncu-rep")
