"""The CUDA driver by ctypes: events, flushing the L2, the profiler's switch; no framework needed.

Works beside torch, Triton, CuPy, Numba and cuda-python alike, for they all share the primary context.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from ncukit.errors import NcukitError

LIBRARIES = ("libcuda.so.1", "libcuda.so")
_MAJOR, _MINOR, _SMS, _L2 = 75, 76, 16, 38  # CUdevice_attribute
_NULL_STREAM = ctypes.c_void_p(0)
_DEFAULT_EVENT = 0
FLUSH_AT_LEAST = 64 << 20
"""[byte] written to flush an L2 whose size is unknown or small."""


class DriverError(NcukitError):
    """A call of the CUDA driver failed: usually because a kernel before it did."""

    code = "app-failed"


@dataclass(frozen=True)
class DeviceFacts:
    """The GPU that the program uses; ``l2`` [byte]."""

    index: int
    name: str
    cc: tuple[int, int]
    sms: int
    l2: int
    uuid: str


class Device:
    """The GPU whose context the program made current; `current` returns it."""

    def __init__(self, cuda: ctypes.CDLL, index: int) -> None:
        self._cuda = cuda
        self._index = index
        self._scratch = ctypes.c_uint64(0)
        self.facts = self._facts()

    @classmethod
    def current(cls) -> Device | None:
        """Return the device of this thread's context, or of the only active one; None where none is used."""
        cuda = library()
        if cuda is None or cuda.cuInit(0) != 0:
            return None
        context = ctypes.c_void_p()
        if cuda.cuCtxGetCurrent(ctypes.byref(context)) == 0 and context.value:
            device = ctypes.c_int(0)
            cuda.cuCtxGetDevice(ctypes.byref(device))
            return cls(cuda, device.value)
        for index in range(_count(cuda)):
            if _is_active(cuda, index) and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), index) == 0:
                cuda.cuCtxSetCurrent(context)
                return cls(cuda, index)
        return None

    def event(self) -> ctypes.c_void_p:
        """Return a new event."""
        event = ctypes.c_void_p()
        self._check(self._cuda.cuEventCreate(ctypes.byref(event), _DEFAULT_EVENT), "cuEventCreate")
        return event

    def record(self, event: ctypes.c_void_p) -> None:
        """Record ``event`` on the default stream, which waits for all blocking streams."""
        self._check(self._cuda.cuEventRecord(event, _NULL_STREAM), "cuEventRecord")

    def wait(self, event: ctypes.c_void_p) -> None:
        """Wait on the CPU until ``event`` is reached."""
        self._check(self._cuda.cuEventSynchronize(event), "cuEventSynchronize")

    def seconds(self, start: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        """Return the time between two events that were reached [s]."""
        found = ctypes.c_float(0)
        self._check(self._cuda.cuEventElapsedTime(ctypes.byref(found), start, end), "cuEventElapsedTime")
        return found.value / 1e3

    def synchronise(self) -> None:
        """Wait on the CPU for all work of the context, on every stream."""
        self._check(self._cuda.cuCtxSynchronize(), "cuCtxSynchronize")

    def flush(self) -> None:
        """Write over a buffer of twice the L2, on the default stream, so that nothing of the inputs stays."""
        size = max(2 * self.facts.l2, FLUSH_AT_LEAST)
        if not self._scratch.value:
            code = self._cuda.cuMemAlloc_v2(ctypes.byref(self._scratch), ctypes.c_size_t(size))
            self._check(code, "cuMemAlloc")
        words = ctypes.c_size_t(size // 4)
        code = self._cuda.cuMemsetD32Async(self._scratch, ctypes.c_uint(0), words, _NULL_STREAM)
        self._check(code, "cuMemsetD32Async")

    def release(self) -> None:
        """Free the buffer of `flush`."""
        if self._scratch.value:
            self._cuda.cuMemFree_v2(self._scratch)
            self._scratch = ctypes.c_uint64(0)

    def _check(self, code: int, call: str) -> None:
        if code:
            raise DriverError(
                f"{call} failed: {_name(self._cuda, code)}",
                "a kernel before it failed: run the script under compute-sanitizer",
            )

    def _facts(self) -> DeviceFacts:
        cuda, index = self._cuda, ctypes.c_int(self._index)
        name, uuid, number = ctypes.create_string_buffer(256), (ctypes.c_ubyte * 16)(), ctypes.c_int(0)
        cuda.cuDeviceGetName(name, 256, index)
        cuda.cuDeviceGetUuid(uuid, index)
        numbers = []
        for attribute in (_MAJOR, _MINOR, _SMS, _L2):
            number.value = 0
            cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, index)
            numbers.append(number.value)
        h = bytes(uuid).hex()
        return DeviceFacts(
            self._index,
            name.value.decode("utf-8", "replace"),
            (numbers[0], numbers[1]),
            numbers[2],
            numbers[3],
            f"GPU-{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}",
        )


def library() -> Any:
    """Return libcuda, None where there is none."""
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _count(cuda: ctypes.CDLL) -> int:
    number = ctypes.c_int(0)
    return number.value if cuda.cuDeviceGetCount(ctypes.byref(number)) == 0 else 0


def _is_active(cuda: ctypes.CDLL, index: int) -> bool:
    flags, active = ctypes.c_uint(0), ctypes.c_int(0)
    code = cuda.cuDevicePrimaryCtxGetState(index, ctypes.byref(flags), ctypes.byref(active))
    return code == 0 and active.value == 1


def _name(cuda: ctypes.CDLL, code: int) -> str:
    text = ctypes.c_char_p()
    if cuda.cuGetErrorName(code, ctypes.byref(text)) == 0 and text.value:
        return text.value.decode("ascii", "replace")
    return f"error {code}"
