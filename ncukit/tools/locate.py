"""Where ncu, nsys and nvcc are: option, environment, PATH, then the usual folders, newest first."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from ncukit.errors import ToolError
from ncukit.record import dataclass
from ncukit.tools import failures, probe

Tool = Literal["ncu", "nsys", "nvcc"]

# Relative to the root of the file system.  CUDA's own folder, NVIDIA's packages, Debian's split packages,
# the HPC SDK, Arch, and the prefix of scripts/install_nsight.sh.
FOLDERS: Mapping[Tool, tuple[str, ...]] = {
    "ncu": (
        "opt/nvidia/nsight-compute/*/ncu",
        "usr/local/cuda*/bin/ncu",
        "usr/local/cuda*/nsight-compute-*/ncu",
        "opt/nvidia/hpc_sdk/*/*/profilers/Nsight_Compute/ncu",
        "opt/cuda/bin/ncu",
        "usr/bin/ncu",
        "usr/lib/nsight-compute/ncu",
        "opt/nsight/bin/ncu",
    ),
    "nsys": (
        "opt/nvidia/nsight-systems*/*/bin/nsys",
        "opt/nvidia/nsight-systems*/*/target-linux-*/nsys",
        "usr/local/cuda*/bin/nsys",
        "usr/local/cuda*/nsight-systems-*/bin/nsys",
        "opt/nvidia/hpc_sdk/*/*/profilers/Nsight_Systems/bin/nsys",
        "opt/cuda/bin/nsys",
        "usr/bin/nsys",
        "usr/lib/nsight-systems/target-linux-*/nsys",
        "usr/lib/*/nsight-systems/target-linux-*/nsys",
        "opt/nsight/bin/nsys",
    ),
    "nvcc": (
        "usr/local/cuda*/bin/nvcc",
        "opt/cuda/bin/nvcc",
        "opt/nvidia/hpc_sdk/*/*/compilers/bin/nvcc",
        "usr/bin/nvcc",
        "usr/lib/cuda/bin/nvcc",
        "usr/lib/nvidia-cuda-toolkit/bin/nvcc",
    ),
}


@dataclass(frozen=True)
class Install:
    """One executable that was found, and where the pointer to it came from."""

    tool: Tool
    path: Path
    source: str


def find(
    tool: Tool,
    explicit: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    root: Path = Path("/"),
) -> Install:
    """Return the ``tool`` to use: ``explicit``, NCUKIT_<TOOL>, PATH, or the newest in the usual folders.

    Raises:
        ToolError: there is none, or what was asked for is no executable file (code ``tool-missing``).
    """
    env = os.environ if environ is None else environ
    variable = f"NCUKIT_{tool.upper()}"
    for given, source in ((explicit, f"--{tool}"), (env.get(variable), variable)):
        if given:
            if (path := shutil.which(os.path.expanduser(given), path=env.get("PATH", ""))) is None:
                raise ToolError(
                    f"{source} names {given}, which is not an executable file",
                    f"give the path of {tool} itself, or leave {source} out to search for it",
                    code="tool-missing",
                )
            return Install(tool, Path(path).absolute(), source)
    if path := shutil.which(tool, path=env.get("PATH", "")):
        return Install(tool, Path(path).absolute(), "PATH")
    if not (found := list(_folders(tool, env, root))):
        raise failures.failure("tool-missing", tool=tool, looked=", ".join(_looked(tool))).error()
    return max(found, key=lambda install: probe.version_or_zero(tool, install.path, environ=env))


def installs(
    tool: Tool,
    explicit: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    root: Path = Path("/"),
) -> tuple[Install, ...]:
    """Return every ``tool`` on this machine, the one that ``find`` takes first, the others newest first."""
    env = os.environ if environ is None else environ
    found: list[Install] = []
    try:
        found.append(find(tool, explicit, environ=env, root=root))
    except ToolError:
        if explicit or env.get(f"NCUKIT_{tool.upper()}"):
            return ()
    others = [*_on_path(tool, env), *_folders(tool, env, root)]
    others.sort(key=lambda install: probe.version_or_zero(tool, install.path, environ=env), reverse=True)
    seen: dict[Path, Install] = {}
    for install in (*found, *others):
        seen.setdefault(install.path.resolve(), install)
    return tuple(seen.values())


def _on_path(tool: Tool, env: Mapping[str, str]) -> Iterator[Install]:
    for folder in env.get("PATH", "").split(os.pathsep):
        if folder and (path := shutil.which(tool, path=folder)):
            yield Install(tool, Path(path).absolute(), "PATH")


def _folders(tool: Tool, env: Mapping[str, str], root: Path) -> Iterator[Install]:
    for variable in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"):
        if (home := env.get(variable)) and _executable(path := Path(home) / "bin" / tool):
            yield Install(tool, path, variable)
    seen = set()
    for pattern in FOLDERS[tool]:
        for path in sorted(root.glob(pattern)):
            if _executable(path) and (real := path.resolve()) not in seen:
                seen.add(real)
                yield Install(tool, path, "install folder")


def _executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _looked(tool: Tool) -> tuple[str, ...]:
    return ("PATH", *(f"/{pattern.rsplit('/', 1)[0]}" for pattern in FOLDERS[tool][:3]))
