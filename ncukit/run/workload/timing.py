"""Warm up, then time, by CUDA events or the host's clock; clocks, driver and use of the GPU."""

from __future__ import annotations

import ctypes
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, Literal

from ncukit.errors import NcukitError

# ---- Clocks, temperature and throttling, as NVML tells them; needs nvidia-ml-py, which is optional

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


# ---- What NVML says a GPU's utilisation is while a region runs: the number that nvidia-smi prints

EVERY = 0.05
"""[s] between two questions; the driver itself averages over 1/6 s to 1 s."""
MISSING = "nvidia-ml-py is not installed (pip install nvidia-ml-py)"


class Watch:
    """Asks NVML again and again, in a thread, from entering to leaving; never raises.

    >>> with Watch(None) as seen:
    ...     pass
    >>> seen.as_dict()
    {'samples': [], 'reason': 'no GPU is used'}
    """

    def __init__(self, uuid: str | None) -> None:
        self.samples: list[int] = []
        self.reason = "" if uuid is not None else "no GPU is used"
        self._uuid = uuid
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Watch:
        if self._uuid is not None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)

    def as_dict(self) -> dict[str, Any]:
        """Return the samples [%], or why there are none, as JSON data."""
        return {"samples": list(self.samples), "reason": self.reason}

    def _watch(self) -> None:
        try:
            nvml = import_module("pynvml")
            nvml.nvmlInit()
        except ImportError:
            self.reason = MISSING
            return
        except Exception as error:  # NVMLError and its kin, differently named by version
            self.reason = f"NVML: {error}"
            return
        try:
            handle = nvml.nvmlDeviceGetHandleByUUID(self._uuid)
            while not self._done.wait(EVERY):
                self.samples.append(int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu))
        except Exception as error:
            self.reason = f"NVML: {error}"
        finally:
            nvml.nvmlShutdown()


# ---- The CUDA driver by ctypes: events, flushing the L2, the profiler's switch; no framework needed
#  Works beside torch, Triton, CuPy, Numba and cuda-python alike, for they all share the primary context.

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


# ---- Warm up, then time: CUDA events where a GPU is used, else the host's clock, and it says which
# A time of the host's clock is never called GPU time.

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
