"""Mark the measured region for the profilers: an NVTX start/end range, and the profiler's switch.

The range is start/end, never push/pop: autograd launches from a thread of its own.  Neither mark needs torch
or the nvtx package; which ones worked, and which are missing and why, is part of the result.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from ncukit.workload.device import library

RANGE = "ncukit"
"""Name of the range, in the default domain."""
_NVTX = ("libnvToolsExt.so.1", "libnvToolsExt.so")
_RUNTIME = ("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so")


@dataclass
class Marks:
    """The marks that can be set here: ``nvtx`` and ``profiler`` say by what, None where they are missing."""

    nvtx: str | None = None
    profiler: str | None = None
    missing: list[str] = field(default_factory=list)
    _start: Callable[[], Any] | None = None
    _end: Callable[[Any], Any] | None = None
    _switch: Any = None
    _opened: Any = None

    @classmethod
    def find(cls, *, gpu: bool) -> Marks:
        """Return the marks that work in this process; the profiler's switch needs a GPU in use."""
        marks = cls()
        if (made := ranges()) is not None:
            marks.nvtx, marks._start, marks._end = made.by, partial(made.start, RANGE), made.end
        else:
            marks.missing.append(f"no NVTX range: {NO_RANGES}")
        if not gpu:
            marks.missing.append("no cudaProfilerStart: the program uses no GPU in this process")
        elif (switch := _profiler()) is not None:
            marks.profiler, marks._switch = switch
        else:
            marks.missing.append("no cudaProfilerStart: neither libcuda nor libcudart takes it")
        return marks

    def open(self) -> None:
        """Begin the region: first the profiler, then the range, so that the range is in the trace."""
        if self._switch is not None:
            self._switch[0]()
        if self._start is not None:
            self._opened = self._start()

    def close(self) -> None:
        """End the region; all GPU work of it must be done."""
        if self._end is not None:
            self._end(self._opened)
        if self._switch is not None:
            self._switch[1]()

    def as_dict(self) -> dict[str, Any]:
        """Return what works, as JSON data."""
        return {"nvtx": self.nvtx, "profiler": self.profiler, "missing": list(self.missing)}


NO_RANGES = "neither torch with CUDA, the nvtx package nor libnvToolsExt"


@dataclass(frozen=True)
class Ranges:
    """How NVTX start/end ranges are made here, and by what."""

    by: str
    start: Callable[[str], Any]
    end: Callable[[Any], Any]


def ranges() -> Ranges | None:
    """Return what makes NVTX start/end ranges in this process, None where nothing does."""
    return next((made for source in (_torch, _package, _library) if (made := source()) is not None), None)


def _torch() -> Ranges | None:
    """Return the range functions of a torch that the script imported, if it was built with CUDA."""
    torch = sys.modules.get("torch")
    if torch is None or getattr(getattr(torch, "version", None), "cuda", None) is None:
        return None
    nvtx = torch.cuda.nvtx
    if not hasattr(nvtx, "range_start"):
        return None
    return Ranges("torch", nvtx.range_start, nvtx.range_end)


def _package() -> Ranges | None:
    try:
        nvtx = import_module("nvtx")
    except ImportError:
        return None
    version = getattr(nvtx, "__version__", "")
    return Ranges(f"nvtx {version}".strip(), lambda name: nvtx.start_range(message=name), nvtx.end_range)


def _library() -> Ranges | None:
    for name in _NVTX:
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        start = found.nvtxRangeStartA
        start.restype, start.argtypes = ctypes.c_uint64, [ctypes.c_char_p]
        found.nvtxRangeEnd.argtypes = [ctypes.c_uint64]
        return Ranges(name, partial(_encoded, start), found.nvtxRangeEnd)
    return None


def _encoded(start: Callable[[bytes], Any], name: str) -> Any:
    return start(name.encode())


def _profiler() -> tuple[str, tuple[Callable[[], Any], Callable[[], Any]]] | None:
    """Return who switches the profiler; without a profiler the switch does nothing."""
    candidates = [("libcuda", library(), "cuProfilerStart", "cuProfilerStop")]
    for name in _RUNTIME:
        try:
            candidates.append((name, ctypes.CDLL(name), "cudaProfilerStart", "cudaProfilerStop"))
        except OSError:
            continue
    for name, found, start, stop in candidates:
        if found is None or not hasattr(found, start) or not hasattr(found, stop):
            continue
        if getattr(found, stop)() == 0:
            return f"{name} {start}", (getattr(found, start), getattr(found, stop))
    return None
