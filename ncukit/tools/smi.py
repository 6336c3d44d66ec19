"""What nvidia-smi says about the GPUs: their order in NVML, clocks, ECC, MIG."""

from __future__ import annotations

import os
import shutil
import xml.etree.ElementTree as xml
from collections.abc import Mapping
from dataclasses import field

from ncukit.errors import ToolError
from ncukit.record import dataclass
from ncukit.tools.run import run

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
