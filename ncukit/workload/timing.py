"""Warm up, then time: CUDA events where a GPU is used, else the host's clock, and it says which.

A time of the host's clock is never called GPU time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ncukit.workload.device import Device

Timer = Literal["cuda-events", "host-synchronised", "host"]

AGREE, NOISE = 0.05, 2e-6
"""Two successive timings agree when they differ by this share, or by this much [s]."""
WARM_CALLS, WARM_SECONDS = 200, 60.0
"""Warm-up that has not settled ends here."""
SAMPLES, FEWEST, SECONDS = 200, 10, 1.0
"""At most so many samples, at least so few, as many as fit into so long [s]."""
LONG, FEWEST_LONG = 1.0, 3
"""A call this long [s] is repeated less often."""
SHORT = 200e-6
"""A sample is at least this long [s] where the caches are not flushed: shorter calls share one."""
UNSEEN = 0.2
"""Work that ends later than the events by this share of the time ran on a stream that they do not see."""


@dataclass(frozen=True)
class Warmup:
    """``calls`` of run until two successive timings agreed (``settled``) or a limit was reached."""

    calls: int
    settled: bool
    last: float
    """Time of the last call [s]."""


@dataclass(frozen=True)
class Summary:
    """Statistics of durations [s]: ``iqr`` is the distance between the quartiles.

    >>> summarise([11.3, 11.2, 9.1, 8.8, 8.8, 8.79, 8.80, 8.79]).median
    8.8
    """

    n: int
    median: float
    iqr: float
    min: float
    max: float


def summarise(samples: Sequence[float]) -> Summary:
    """Return the statistics of ``samples`` [s], which must not be empty."""
    if len(samples) > 1:
        low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    else:
        low = high = samples[0]
    return Summary(len(samples), statistics.median(samples), high - low, min(samples), max(samples))


class Stopwatch:
    """Times calls of ``run`` with the best clock there is."""

    def __init__(self, run: Callable[[], Any], device: Device | None = None, *, flush: bool = True) -> None:
        self.run = run
        self.device = device
        self.flush = flush and device is not None
        self.timer: Timer = "host" if device is None else "cuda-events"
        self.notes: list[str] = []

    def warm_up(self, calls: int | None = None) -> Warmup:
        """Call ``run`` until two successive timings agree, or exactly ``calls`` times."""
        began, last, done = time.perf_counter(), float("inf"), 0
        while calls is None or done < calls:
            now = self._host()
            done += 1
            if calls is None:
                agree = abs(now - last) <= max(AGREE * max(now, last), NOISE)
                if agree and done >= 3:
                    return Warmup(done, True, now)
                if done >= WARM_CALLS or time.perf_counter() - began > WARM_SECONDS:
                    return Warmup(done, False, now)
            last = now
        return Warmup(done, True, last)

    def samples(self, once: float, repeat: int | None = None) -> tuple[list[float], int]:
        """Return the time of a call [s], often, and how many calls each sample averages."""
        if self.device is not None:
            self._look_for_unseen_work()
        share = 1 if self.flush or once <= 0 else max(1, min(1000, round(SHORT / once)))
        least = FEWEST_LONG if once * FEWEST > SECONDS * FEWEST and once > LONG else FEWEST
        n = repeat or max(least, min(SAMPLES, int(SECONDS / max(once * share, 1e-9))))
        if self.timer == "cuda-events":
            assert self.device is not None
            return self._events(self.device, n, share), share
        return [self._host(share) for _ in range(n)], share

    def _host(self, calls: int = 1) -> float:
        """Return the host's time of a call [s], with all GPU work done before and after."""
        if self.device is not None:
            if self.flush:
                self.device.flush()
            self.device.synchronise()
        start = time.perf_counter()
        for _ in range(calls):
            self.run()
        if self.device is not None:
            self.device.synchronise()
        return (time.perf_counter() - start) / calls

    def _events(self, device: Device, n: int, share: int) -> list[float]:
        """Return ``n`` times between events; the CPU runs ahead, so that the GPU does not wait for it."""
        pairs = [(device.event(), device.event()) for _ in range(n)]
        device.synchronise()
        for start, end in pairs:
            if self.flush:
                device.flush()
            device.record(start)
            for _ in range(share):
                self.run()
            device.record(end)
        device.synchronise()
        return [device.seconds(start, end) / share for start, end in pairs]

    def _look_for_unseen_work(self) -> None:
        """Fall back to the host's clock where ``run`` works on streams that the default stream ignores."""
        assert self.device is not None
        start, end = self.device.event(), self.device.event()
        self.device.synchronise()
        self.device.record(start)
        self.run()
        self.device.record(end)
        self.device.wait(end)
        reached = time.perf_counter()
        self.device.synchronise()
        later = time.perf_counter() - reached
        if later > max(UNSEEN * self.device.seconds(start, end), 20e-6):
            self.timer = "host-synchronised"
            self.notes.append(
                "the work runs on a non-blocking stream that CUDA events on the default stream do not see: "
                "timed by the host's clock with synchronisation, which includes launching"
            )
