"""The commands that a page or a terminal offers to copy.

A page may be shared: its commands call files by their base name.  What a terminal shows is pasted where it
was printed: there files are called by where they lie.  Names from a report enter only when they are plain
words.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path, PurePath

from ncukit.media import word
from ncukit.model import Kernel
from ncukit.run.tools.names import after_failure, same_again

PROGRAM = "./your_program"


def collect(kernel: Kernel, options: str = "--set full --import-source on", output: str = "again") -> str:
    """Return the ncu command that profiles this kernel once more.

    >>> from ncukit.model import RawKernel
    >>> collect(Kernel("", RawKernel(0, "copy", "copy()", ""), {}), "--set full")
    'ncu --set full --kernel-name copy --launch-count 1 -o again ./your_program'
    """
    which = same_again(kernel.name, kernel.index, kernel.raw.workload)
    return f"ncu {options} {which} -o {output} {PROGRAM}"


def collect_failed(kernel: Kernel) -> str:
    """Return the ncu command that profiles a launch whose measurement failed, in another way."""
    return f"ncu {after_failure(kernel.name, kernel.index, kernel.raw.workload)} -o again {PROGRAM}"


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
    return word(PurePath(path).name or "report.ncu-rep")


def typed(path: str | PurePath) -> str:
    """Return ``path`` as one types it in the current folder, not yet quoted.

    >>> typed("runs/a.ncu-rep"), typed(Path.cwd() / "a.ncu-rep"), typed("/elsewhere/a.ncu-rep")
    ('runs/a.ncu-rep', 'a.ncu-rep', '/elsewhere/a.ncu-rep')
    """
    found = Path(path)
    with suppress(OSError, ValueError):  # the current folder is gone, or the file lies elsewhere
        found = found.relative_to(Path.cwd())
    return f"./{found}" if str(found).startswith("-") else str(found)


def pasteable(command: str, path: str) -> str:
    """Return a command of a page as it works in the current folder, where the page's file is at ``path``.

    >>> pasteable("ncukit compare a.ncu-rep after.ncu-rep", "runs of today/a.ncu-rep")
    "ncukit compare 'runs of today/a.ncu-rep' after.ncu-rep"
    """
    if not command.startswith("ncukit "):
        return command
    call = rf"(?<!\S){re.escape(quoted(path))}(?!\S)"
    return re.sub(call, lambda _: word(typed(path)), command, count=1)
