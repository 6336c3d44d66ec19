"""The sample trace: a program around the GEMM of `kernels`, whose copies cost more than its kernels.

Times follow from the model: the GEMM takes the cycles of its report at the boost clock, copies run at a
stated speed, everything else is an assumption.  Nothing is random.
"""

from __future__ import annotations

from pathlib import Path

from tests.nsys_builder import COPY, LAUNCH, Builder
from tests.synthetic.kernels import GEMM
from tests.synthetic.model import Model

MARK = "written by tests/make_samples.py from a model, not measured"
STEPS = 24
US = 1_000
MATRIX = 8192 * 8192 * 2
"""[byte]"""
PAGEABLE = 11.2
"""[byte/ns] of a copy from pageable memory."""
SYNCHRONISE = "cudaStreamSynchronize_v3020"
SCALE = "scale(unsigned short *, float, int)"
SUM = "sum(const unsigned short *, float *, int)"


def builder() -> Builder:
    """Return the events: each step copies a matrix, multiplies twice, scales, sums, and reads the sum."""
    gpu = GEMM.gpu
    found = Builder(gpus=(), product="2025.1.1.0")
    found.add("META_DATA_EXPORT", name="NCUKIT_SYNTHETIC", value=MARK)
    found.add(
        "TARGET_INFO_GPU",
        **{"vmId": 1 << 48, "id": 0, "name": gpu.name, "smCount": gpu.sms, "cuDevice": 0, "isDiscrete": 1},
        **{"computeMajor": gpu.cc[0], "computeMinor": gpu.cc[1], "memoryBandwidth": int(gpu.dram_bandwidth)},
    )
    multiply = int(Model(GEMM).duration_us * 1e3 * gpu.sm_clock / gpu.sm_clock_max)
    at = 0
    for step in range(STEPS):
        at = _step(found, step, at, multiply)
    return found


def _step(found: Builder, step: int, start: int, multiply: int) -> int:
    """Add one step that begins at ``start`` [ns] and return when it ends."""
    copied = start + 30 * US + int(MATRIX / PAGEABLE)
    found.copy("h2d", MATRIX, start + 20 * US, copied, call=(COPY, start + 8 * US, copied + 6 * US))
    found.nvtx("load", start + 5 * US, copied + 8 * US)
    launched, free = copied + 12 * US, copied
    kernels = [(GEMM.demangled, multiply), (GEMM.demangled, multiply), (SCALE, 260 * US), (SUM, 140 * US)]
    shapes = {SCALE: ((65536, 1, 1), 24), SUM: ((1024, 1, 1), 32)}
    for i, (name, usual) in enumerate(kernels):
        slow = usual // 6 if step == 0 and i == 0 else 0
        begin = max(free + 2 * US, launched + 9 * US)
        free = begin + usual + slow + (step * 7 + i * 3) % 11 * usual // 1000
        grid, registers = shapes.get(name, (GEMM.grid, GEMM.registers))
        found.kernel(
            name,
            begin,
            free,
            call=(LAUNCH, launched, launched + 5 * US),
            grid=grid,
            block=(256, 1, 1),
            registers=registers,
            shared=(0, GEMM.shared_dynamic if name == GEMM.demangled else 0),
        )
        launched += 8 * US
    waited = free + 8 * US
    found.api(SYNCHRONISE, launched, waited)
    read = waited + 22 * US
    found.copy("d2h", 4, read - 3 * US, read, call=(COPY, waited + 4 * US, read + 5 * US))
    found.nvtx("step", start, read + 10 * US)
    return read + 250 * US


def write(path: Path) -> Path:
    """Write the trace to ``path`` and return it."""
    path.unlink(missing_ok=True)
    return builder().write(path)
