"""Facts about this machine that decide which advice is right: container, WSL, driver, counter permission."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ncukit.record import dataclass

Place = Literal["bare", "container", "wsl"]

_ROOT = Path("/")
_CAP_SYS_ADMIN = 21
_CONTAINER = re.compile(r"docker|kubepods|containerd|libpod|lxc|podman|garden|ecs|/actions_job/")


@dataclass(frozen=True)
class Counters:
    """Whether this user may read GPU performance counters: None where it cannot be told; and why."""

    allowed: bool | None
    reason: str


def place(root: Path = _ROOT, environ: Mapping[str, str] | None = None) -> Place:
    """Return whether this is WSL, a container, or neither; ``root`` and ``environ`` are for tests."""
    env = os.environ if environ is None else environ
    if re.search("microsoft|wsl", _read(root / "proc/sys/kernel/osrelease"), re.IGNORECASE):
        return "wsl"
    if any((root / mark).exists() for mark in (".dockerenv", "run/.containerenv")):
        return "container"
    if env.get("container") or env.get("KUBERNETES_SERVICE_HOST"):
        return "container"
    if _CONTAINER.search(_read(root / "proc/1/cgroup") + _read(root / "proc/self/cgroup")):
        return "container"
    mounts = _read(root / "proc/self/mountinfo")
    return "container" if re.search(r"^\d+ \d+ \S+ \S+ / .* - overlay ", mounts, re.MULTILINE) else "bare"


def driver_version(root: Path = _ROOT) -> str | None:
    """Return the version of the loaded kernel driver, "550.163.01"; None where none is loaded."""
    found = re.search(r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", _read(root / "proc/driver/nvidia/version"))
    return found.group(1) if found else None


def has_gpu(root: Path = _ROOT) -> bool:
    """Return whether a driver knows a GPU here: NVIDIA's on Linux, of WSL, or of Jetson.

    On Linux its device may be made only when it is first used.
    """
    devices = ("nvidia[0-9]*", "dxg", "nvgpu", "nvhost-gpu", "nvhost-ctrl-gpu")
    known = (*(f"dev/{name}" for name in devices), "proc/driver/nvidia/gpus/*")
    return any(any(root.glob(name)) for name in known)


def counters(root: Path = _ROOT, *, admin: bool | None = None) -> Counters:
    """Return whether the driver lets this user read counters (``RmProfilingAdminOnly``, CAP_SYS_ADMIN)."""
    may = is_admin(root) if admin is None else admin
    params = _read(root / "proc/driver/nvidia/params")
    found = re.search(r"^RmProfilingAdminOnly:\s*(\d+)", params, re.MULTILINE)
    if found is None:
        return Counters(None, "the driver does not say (RmProfilingAdminOnly in /proc/driver/nvidia/params)")
    if found.group(1) == "0":
        return Counters(True, "the driver allows counters to every user (RmProfilingAdminOnly 0)")
    if may:
        return Counters(True, "the driver allows counters to administrators, and this process is one")
    return Counters(False, "the driver allows counters to administrators only (RmProfilingAdminOnly 1)")


def is_admin(root: Path = _ROOT) -> bool:
    """Return whether this process has CAP_SYS_ADMIN, which is what the driver asks for."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", _read(root / "proc/self/status"), re.MULTILINE)
    return bool(found and int(found.group(1), 16) >> _CAP_SYS_ADMIN & 1)


def owner(path: str | Path) -> str | None:
    """Return the name of the user that ``path`` belongs to; None where there is no such file."""
    try:
        return Path(path).owner()
    except KeyError:
        return f"user {Path(path).stat().st_uid}"
    except OSError:
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
