"""What can be seen before a costly run: a second profiler in the script, ranks, a wrong interpreter."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

from ncukit.record import dataclass
from ncukit.tools import host
from ncukit.tools.failures import Context, Failure, classify, failure
from ncukit.tools.run import run

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
    context = Context("app", host.place(), facts={"python": str(python)})
    return classify(done, context) or failure("app-failed", context, exit=f"exit code {done.returncode}")
