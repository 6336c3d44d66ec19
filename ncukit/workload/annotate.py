"""Name phases of a program for the profilers: NVTX start/end ranges, and a record in torch's profiler.

Start/end, never push/pop: what a phase launches may come from other threads, as autograd's kernels do.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from threading import get_ident
from types import TracebackType
from typing import Any, TypeVar

from ncukit.errors import UsageError
from ncukit.workload.marks import Ranges, ranges

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
