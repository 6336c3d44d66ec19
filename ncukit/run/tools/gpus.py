"""Facts about this machine that decide which advice is right: GPUs, driver, container, permissions."""

from __future__ import annotations

import os
import re
import shutil
import xml.etree.ElementTree as xml
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Literal

from ncukit.errors import ToolError
from ncukit.record import dataclass
from ncukit.run.tools.process import run

# ---- What nvidia-smi says about the GPUs: their order in NVML, clocks, ECC, MIG

ASK = ("-q", "-x")


@dataclass(frozen=True)
class Slice:
    """A MIG instance: ``memory`` [byte]."""

    index: int
    sms: int | None
    memory: int | None


@dataclass(frozen=True)
class SmiGpu:
    """One GPU as NVML orders them; clocks [Hz], ``memory`` [byte]; None is what it does not say."""

    index: int
    uuid: str
    name: str
    bus: str
    memory: int | None = None
    sm_clock: float | None = None
    sm_clock_max: float | None = None
    memory_clock: float | None = None
    memory_clock_max: float | None = None
    ecc: bool | None = None
    mig: bool | None = None
    slices: tuple[Slice, ...] = ()


@dataclass(frozen=True)
class Smi:
    """What nvidia-smi answered; ``problem`` says why it did not."""

    gpus: tuple[SmiGpu, ...] = ()
    driver: str | None = None
    problem: str | None = field(default=None)


def smi(environ: Mapping[str, str] | None = None, *, timeout: float = 30) -> Smi:
    """Return what nvidia-smi says, or why it says nothing; never raises."""
    env = os.environ if environ is None else environ
    path = shutil.which("nvidia-smi", path=env.get("PATH", os.defpath))
    if path is None:
        return Smi(problem="nvidia-smi is not on PATH")
    try:
        done = run([path, *ASK], env=env, timeout=timeout, keep=1 << 24)
    except ToolError as error:
        return Smi(problem=error.message)
    if done.timed_out:
        return Smi(problem=f"nvidia-smi did not answer within {timeout:.0f} s")
    if done.returncode:
        return Smi(problem=f"nvidia-smi: {done.tail(1).strip() or f'exit code {done.returncode}'}")
    return parse(done.stdout)


def parse(text: str) -> Smi:
    """Return what the XML of ``nvidia-smi -q -x`` says."""
    try:
        root = xml.fromstring(text)  # noqa: S314 - what nvidia-smi printed
    except xml.ParseError as error:
        return Smi(problem=f"nvidia-smi printed no XML ({error})")
    gpus = tuple(_gpu(index, node) for index, node in enumerate(root.findall("gpu")))
    return Smi(gpus, _text(root, "driver_version"))


def _gpu(index: int, node: xml.Element) -> SmiGpu:
    return SmiGpu(
        index,
        _text(node, "uuid") or "",
        _text(node, "product_name") or "",
        node.get("id", ""),
        _bytes(_text(node, "fb_memory_usage/total")),
        _hertz(_text(node, "clocks/sm_clock")),
        _hertz(_text(node, "max_clocks/sm_clock")),
        _hertz(_text(node, "clocks/mem_clock")),
        _hertz(_text(node, "max_clocks/mem_clock")),
        _enabled(_text(node, "ecc_mode/current_ecc")),
        _enabled(_text(node, "mig_mode/current_mig")),
        tuple(_slice(position, one) for position, one in enumerate(node.findall("mig_devices/mig_device"))),
    )


def _slice(position: int, node: xml.Element) -> Slice:
    sms = _text(node, "device_attributes/shared/multiprocessor_count")
    index = _text(node, "index")
    return Slice(
        int(index) if index and index.isdigit() else position,
        int(sms) if sms and sms.isdigit() else None,
        _bytes(_text(node, "fb_memory_usage/total")),
    )


def _text(node: xml.Element, path: str) -> str | None:
    found = node.findtext(path)
    return found.strip() if found and found.strip() not in ("N/A", "[N/A]") else None


def _number(text: str | None, units: Mapping[str, float]) -> float | None:
    value, _, unit = (text or "").partition(" ")
    try:
        return float(value) * units[unit]
    except (ValueError, KeyError):
        return None


def _bytes(text: str | None) -> int | None:
    found = _number(text, {"MiB": 2**20, "GiB": 2**30})
    return None if found is None else int(found)


def _hertz(text: str | None) -> float | None:
    return _number(text, {"MHz": 1e6, "GHz": 1e9})


def _enabled(text: str | None) -> bool | None:
    return None if text is None else {"Enabled": True, "Disabled": False}.get(text)


# ---- Facts about this machine that decide which advice is right: container, WSL, driver, counter permission

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
