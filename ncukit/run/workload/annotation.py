"""Ranges that profilers see: the measured region, and phases that a program names."""

from __future__ import annotations

import ctypes
import functools
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from threading import get_ident
from types import TracebackType
from typing import Any, TypeVar

from ncukit.errors import UsageError
from ncukit.run.workload.timing import library

# ---- Mark the measured region for the profilers: an NVTX start/end range, and the profiler's switch
# The range is start/end, never push/pop: autograd launches from a thread of its own. Neither mark needs
# torch or the nvtx package; which ones worked, and which are missing and why, is part of the result.

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


# ---- Name phases of a program for the profilers: NVTX start/end ranges, and a record in torch's profiler
#  Start/end, never push/pop: what a phase launches may come from other threads, as autograd's kernels do.

LISTENER = "NVTX_INJECTION64_PATH"
"""NVTX loads its listener from here; nsys and ncu set it for the program that they start."""

Function = TypeVar("Function", bound=Callable[..., Any])


class annotate:
    """Name a phase, as decorator or as context manager: ``with ncukit.annotate("prefill"): ...``.

    The phase is an NVTX range in a trace of nsys (``ncukit timeline run.nsys-rep --range prefill``) and a
    user annotation in one of torch's profiler.  Without a profiler it costs well under a microsecond.
    Phases may be nested, recursive and in many threads.

    Raises:
        UsageError: the name is empty, or no text.

    >>> @annotate("decode")
    ... def step(x):
    ...     return x + 1
    >>> with annotate("prefill"):
    ...     step(1)
    2
    """

    __slots__ = ("_open", "name")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise UsageError(f"{name!r} is no name of a phase", 'write ncukit.annotate("prefill")')
        self.name = name
        self._open: dict[int, list[tuple[Any, Any]]] = {}

    def __enter__(self) -> annotate:
        if _made is not None or _torch_records():
            self._open.setdefault(get_ident(), []).append(_start(self.name))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._open and (mine := self._open.get(get_ident())):
            _end(mine.pop())

    def __call__(self, function: Function) -> Function:
        """Return ``function``, also an ``async`` one, as a phase of this name: each call is an instance.

        Raises:
            UsageError: it is a generator, whose call does nothing yet.
        """
        name = self.name
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise UsageError(
                f"{function.__name__} is a generator: its call does none of its work",
                f'write `with ncukit.annotate("{name}"):` inside it',
            )
        if inspect.iscoroutinefunction(function):
            return self._awaited(function)  # type: ignore[no-any-return]

        @functools.wraps(function)
        def named(*args: Any, **kwargs: Any) -> Any:
            if _made is None and not _torch_records():
                return function(*args, **kwargs)
            opened = _start(name)
            try:
                return function(*args, **kwargs)
            finally:
                _end(opened)

        return named  # type: ignore[return-value]

    def _awaited(self, function: Any) -> Any:
        @functools.wraps(function)
        async def named(*args: Any, **kwargs: Any) -> Any:
            with annotate(self.name):
                return await function(*args, **kwargs)

        return named


def _start(name: str) -> tuple[Any, Any]:
    """Open the phase with everything that listens."""
    record = None
    if _torch_records():
        record = sys.modules["torch"].profiler.record_function(name)
        record.__enter__()
    found = _ranges()
    return record, (found.end, found.start(name)) if found is not None else None


def _end(opened: tuple[Any, Any]) -> None:
    record, marked = opened
    if marked is not None:
        end, id = marked
        end(id)
    if record is not None:
        record.__exit__(None, None, None)


class _Unasked:
    """There may be a listener, but what makes ranges for it was not looked for yet."""


_made: Ranges | _Unasked | None = _Unasked() if os.environ.get(LISTENER) else None
"""What makes ranges; None without a listener, which a program has from its start or not at all."""


def _ranges() -> Ranges | None:
    global _made
    if isinstance(_made, _Unasked):
        _made = ranges()
    return _made


def _torch_records() -> bool:
    """Return whether torch's profiler records now; a private question, so it may have no answer."""
    torch = sys.modules.get("torch")
    asked = getattr(getattr(torch, "autograd", None), "_profiler_enabled", None)
    return asked is not None and bool(asked())
