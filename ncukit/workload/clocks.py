"""Clocks, temperature and throttling, as NVML tells them; needs nvidia-ml-py, which is optional."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_THROTTLES = {
    0x2: "application clocks setting",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Bits of the clock event reasons that make a time unfair; idle and sync boost are none of them."""


def read(uuid: str | None) -> dict[str, Any]:
    """Return the clocks [Hz], temperature [degree C], power [W] and throttle reasons of a GPU, or why not.

    Never raises: a measurement without these facts is still one.
    """
    if uuid is None:
        return {"reason": "no GPU is used"}
    try:
        pynvml = import_module("pynvml")
    except ImportError:
        return {"reason": "nvidia-ml-py is not installed (pip install nvidia-ml-py)"}
    try:
        pynvml.nvmlInit()
        try:
            return _facts(pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid))
        finally:
            pynvml.nvmlShutdown()
    except Exception as error:  # NVMLError and its kin, differently named by version
        return {"reason": f"NVML: {error}"}


def _facts(nvml: Any, handle: Any) -> dict[str, Any]:
    asked: dict[str, Callable[[], Any]] = {
        "sm_clock": lambda: nvml.nvmlDeviceGetClockInfo(handle, 1) * 1e6,
        "sm_clock_max": lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, 1) * 1e6,
        "memory_clock": lambda: nvml.nvmlDeviceGetClockInfo(handle, 2) * 1e6,
        "temperature": lambda: nvml.nvmlDeviceGetTemperature(handle, 0),
        "power": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
        "throttled": lambda: _reasons(nvml, handle),
    }
    found: dict[str, Any] = {}
    for name, ask in asked.items():
        try:
            found[name] = ask()
        except Exception:  # a fact that this GPU does not tell
            found[name] = None
    return found


def _reasons(nvml: Any, handle: Any) -> list[str]:
    new = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    bits = (new or nvml.nvmlDeviceGetCurrentClocksThrottleReasons)(handle)
    return [words for bit, words in _THROTTLES.items() if bits & bit]
