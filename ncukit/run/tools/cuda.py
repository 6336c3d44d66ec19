"""What the CUDA driver says about itself and its GPUs, asked in a child: a broken driver may hang or crash.

The file is also the child's script, so it imports only the standard library at module level.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

LIBRARIES = ("libcuda.so.1", "libcuda.so")
NAMES = {
    0: "CUDA_SUCCESS",
    34: "CUDA_ERROR_STUB_LIBRARY",
    46: "CUDA_ERROR_DEVICE_UNAVAILABLE",
    100: "CUDA_ERROR_NO_DEVICE",
    101: "CUDA_ERROR_INVALID_DEVICE",
    802: "CUDA_ERROR_SYSTEM_NOT_READY",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    804: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
    999: "CUDA_ERROR_UNKNOWN",
}
_MAJOR, _MINOR, _SMS = 75, 76, 16  # CUdevice_attribute


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver shows it; ``memory`` [byte]."""

    index: int
    name: str
    cc: tuple[int, int]
    sms: int
    memory: int
    uuid: str


@dataclass(frozen=True)
class Driver:
    """What the driver answered: ``code`` is that of cuInit, None where there is no libcuda or no answer.

    ``version`` is the newest CUDA that the driver supports, "12.4".
    """

    code: int | None
    library: str | None = None
    version: str | None = None
    gpus: tuple[Gpu, ...] = ()
    problem: str | None = None
    """Why there is no code."""

    @property
    def name(self) -> str:
        """The name of the code: "CUDA_ERROR_NO_DEVICE"."""
        return NAMES.get(self.code, f"error {self.code}") if self.code is not None else "no answer"


@dataclass
class _Answer:
    code: int | None = None
    library: str | None = None
    version: str | None = None
    gpus: list[dict[str, Any]] = field(default_factory=list)
    problem: str | None = None


def driver(env: Mapping[str, str] | None = None, *, timeout: float = 30) -> Driver:
    """Return what the driver says, or why it says nothing; never raises."""
    from ncukit.run.tools.process import run

    done = run([sys.executable, "-I", "-S", __file__], env=env, timeout=timeout)
    if done.timed_out:
        return Driver(None, problem=f"the driver did not answer within {timeout:.0f} s")
    try:
        said = json.loads(done.stdout)
    except ValueError:
        why = done.signal or f"exit code {done.returncode}"
        return Driver(None, problem=f"asking the driver ended with {why}")
    gpus = tuple(Gpu(**{**gpu, "cc": tuple(gpu["cc"])}) for gpu in said.pop("gpus"))
    return Driver(gpus=gpus, **said)


def ask() -> _Answer:
    """Ask the driver, in this process."""
    answer, cuda = _Answer(), None
    for name in LIBRARIES:
        try:
            cuda = ctypes.CDLL(name)
        except OSError as error:
            answer.problem = answer.problem or str(error)
            continue
        answer.library, answer.problem = name, None
        break
    if cuda is None:
        return answer
    answer.code = cuda.cuInit(0)
    number = ctypes.c_int(0)
    if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0 and number.value:
        answer.version = f"{number.value // 1000}.{number.value % 1000 // 10}"
    if answer.code == 0 and cuda.cuDeviceGetCount(ctypes.byref(number)) == 0:
        answer.gpus = [_gpu(cuda, index) for index in range(number.value)]
    return answer


def _gpu(cuda: ctypes.CDLL, index: int) -> dict[str, Any]:
    device, number, size = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_size_t(0)
    name, uuid = ctypes.create_string_buffer(256), (ctypes.c_ubyte * 16)()
    cuda.cuDeviceGet(ctypes.byref(device), index)
    cuda.cuDeviceGetName(name, 256, device)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    cuda.cuDeviceGetUuid(uuid, device)
    numbers = []
    for attribute in (_MAJOR, _MINOR, _SMS):
        cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
        numbers.append(number.value)
    h = bytes(uuid).hex()
    return {
        "index": index,
        "name": name.value.decode("utf-8", "replace"),
        "cc": numbers[:2],
        "sms": numbers[2],
        "memory": size.value,
        "uuid": f"GPU-{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}",
    }


if __name__ == "__main__":
    print(json.dumps(asdict(ask())))
