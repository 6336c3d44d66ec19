"""Ctrl-C and other ends, and interpreters that import nothing from the current folder."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ncukit.errors import Interrupted

# ---- New interpreters import nothing from the current folder, which may be a stranger's

_VARIABLE = "PYTHONSAFEPATH"


@contextmanager
def safe_path() -> Iterator[None]:
    """Keep the current folder out of ``sys.path`` of interpreters that a library starts meanwhile.

    ``multiprocessing`` starts ``python -c``, which searches the current folder first.  What ncukit starts
    itself has ``-P`` or ``-I``; the profiled program has neither, and its own folder comes first as always.

    >>> with safe_path():
    ...     os.environ["PYTHONSAFEPATH"]
    '1'
    """
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before


# ---- Ctrl-C and the signals that ask for the end: a command cleans up, says what it keeps, and ends

PATIENCE = 5.0
"""Time [s] after a signal in which the next ones change nothing: they would break off the cleaning up."""
_raised: list[int] = []
SIGNALS: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def heard() -> Iterator[None]:
    """Turn the signals into KeyboardInterrupt meanwhile; one that is ignored here stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    if any(isinstance(old, _Handler) for old in before.values()):  # heard already
        yield
        return
    hook = sys.unraisablehook
    handler = _Handler(hook)
    try:
        sys.unraisablehook = handler.unraisable
        for number, old in before.items():
            if old in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, handler)
        yield
    finally:
        for number, old in before.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, old)
        sys.unraisablehook = hook


def finish() -> None:
    """Ignore the signals from now on: the work is done, and Python is about to end."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def undisturbed(*others: signal.Signals) -> Iterator[None]:
    """Keep Ctrl-C from what is started meanwhile: the terminal sends it to all, and this one ends the others.

    It stays blocked in them, and so do ``others``, unless they unblock it; here it comes through at the end.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *others})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def put_off() -> Iterator[None]:
    """Let the signals wait for the end of the block: for the little that must not be broken off."""
    came: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    heard = {number: hears for number in SIGNALS if callable(hears := signal.getsignal(number))}
    for number in heard if main else ():
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, hears in heard.items() if main else ():
            signal.signal(number, hears)
        for number in came[:1]:
            heard[number](number, None)


class _Handler:
    def __init__(self, others: Callable[[Any], object]) -> None:
        self._others = others
        self._last: float | None = None

    def __call__(self, number: int, frame: Any) -> None:
        if self._last is None or time.monotonic() - self._last > PATIENCE:
            self._last = time.monotonic()
            _raised.append(number)
            raise KeyboardInterrupt(number)

    def unraisable(self, lost: Any) -> None:
        """Raise again what a destructor swallowed: once it has returned, for it would swallow this too."""
        if isinstance(lost.exc_value, KeyboardInterrupt):
            self._last = None
            again = threading.Timer(0.001, _thread.interrupt_main, lost.exc_value.args)
            again.daemon = True
            again.start()
        else:
            self._others(lost)


def last() -> Interrupted:
    """Return as an error what was heard last: for what a library reports without saying what it was."""
    return as_error(KeyboardInterrupt(*_raised[-1:]))


def behind(error: BaseException) -> KeyboardInterrupt | None:
    """Return the interruption that ``error`` is, or that Python made it from while it made a class (3.11)."""
    stop = error.__cause__ if isinstance(error, RuntimeError) else error
    return stop if isinstance(stop, KeyboardInterrupt) else None


def as_error(stop: KeyboardInterrupt) -> Interrupted:
    """Return ``stop`` as an error; what was noted on it last says what is kept.

    >>> as_error(KeyboardInterrupt(signal.SIGTERM)).message
    'stopped by SIGTERM'
    """
    number = next((number for number in stop.args if isinstance(number, int)), int(signal.SIGINT))
    message = "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"
    notes = [note for note in getattr(stop, "__notes__", []) if not note.startswith("Error calling")]
    return Interrupted(message, next(reversed(notes), ""), number=number)  # without Python's own (3.12)
