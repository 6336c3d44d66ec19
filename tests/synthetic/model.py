"""What a launch does to the machine: work for every unit, the time it takes, and what the warps wait for.

All counts follow from the instructions (`program`) and from how each memory instruction touches memory
(`Access`); the duration follows from the unit that limits the kernel and the share of its peak it reaches.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from tests.synthetic.description import Access, Kernel
from tests.synthetic.gpu import SCHEDULERS, SECTOR, Occupancy, occupancy
from tests.synthetic.program import Step, consumers, listing, steps

QUANTUM = 1e-6
"""[s] Durations are whole multiples, so that every clock counts whole cycles."""
LAUNCH_OVERHEAD = 2e-6
"""[s] Before the first and after the last instruction of a kernel that fills nothing."""
MOST_SAMPLES = 200_000

Key = TypeVar("Key", bound=Hashable)
MEMORY = ("LDG", "STG", "LDS", "STS", "LDSM", "LDGSTS")
ANY = r"."
STALL_SITES: Mapping[str, str] = {
    # state -> opcodes of the instructions at which warps wait in it; "after X": the readers of X's result
    "long_scoreboard": r"after LDG(\.|$)|DEPBAR",
    "short_scoreboard": r"after LDS|after SHFL|after S2R",
    "lg_throttle": r"LDG(\.|$)|STG|LDGSTS",
    "mio_throttle": r"LDS|STS|SHFL|LDGSTS",
    "math_pipe_throttle": r"HMMA|FFMA|FADD",
    "barrier": r"BAR",
    "branch_resolving": r"BRA",
    "drain": r"EXIT",
    "imc_miss": r"LDC|ULDC",
    "wait": ANY,
    "not_selected": ANY,
    "selected": ANY,
    "dispatch_stall": ANY,
    "no_instruction": ANY,
}


@dataclass(frozen=True)
class Memory:
    """Executions of one memory instruction over the whole launch."""

    step: Step
    requests: int
    access: Access

    @property
    def sectors(self) -> int:
        """Sectors touched."""
        return self.requests * self.access.sectors

    @property
    def wavefronts(self) -> int:
        """Wavefronts of the data stage."""
        return self.requests * self.access.wavefronts


class Model:
    """A kernel with everything that follows from its description; all totals are over the whole launch."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.gpu = kernel.gpu
        self.blocks = math.prod(kernel.grid)
        self.threads = math.prod(kernel.block)
        shared = kernel.shared_static + kernel.shared_dynamic
        self.residency: Occupancy = occupancy(self.gpu, self.threads, kernel.registers, shared)
        self.warps = self.blocks * self.residency.warps_per_block
        self.program = listing(kernel.file, kernel.mangled)
        each = steps(self.program, self.residency.warps_per_block, kernel.trips, kernel.path)
        n = self.blocks
        self.steps = [Step(s.instruction, s.warps * n, s.active * n, s.on * n) for s in each]
        self.memory = [m for s in self.steps if (m := self._memory(s))]

    def _memory(self, step: Step) -> Memory | None:
        i = step.instruction
        if i.opcode not in MEMORY:
            return None
        sectors = 0 if i.opcode in ("LDS", "STS", "LDSM") else 128 * i.words // SECTOR
        neighbours = Access(sectors, sectors, i.words, i.words)
        special = (access for pattern, access in self.kernel.access.items() if re.search(pattern, i.text))
        access = next(special, neighbours)
        return Memory(step, step.warps if step.on else 0, access)

    def count(self, pattern: str) -> int:
        """Return warp instructions whose opcode matches."""
        return sum(s.warps for s in self.steps if re.match(pattern, s.instruction.full_opcode))

    def threads_on(self, pattern: str) -> int:
        """Return thread instructions, predicated on, whose opcode matches."""
        return sum(s.on for s in self.steps if re.match(pattern, s.instruction.full_opcode))

    def requests(self, pattern: str) -> int:
        """Return requests of the memory instructions whose opcode matches."""
        return sum(m.requests for m in self._matching(pattern))

    def sectors(self, pattern: str, *, ideal: bool = False) -> int:
        """Return sectors of the memory instructions whose opcode matches."""
        found = self._matching(pattern)
        return sum(m.requests * (m.access.ideal_sectors if ideal else m.access.sectors) for m in found)

    def wavefronts(self, pattern: str, *, ideal: bool = False) -> int:
        """Return data-stage wavefronts of the memory instructions whose opcode matches."""
        found = self._matching(pattern)
        return sum(m.requests * (m.access.ideal_wavefronts if ideal else m.access.wavefronts) for m in found)

    def _matching(self, pattern: str) -> list[Memory]:
        return [m for m in self.memory if re.match(pattern, m.step.instruction.full_opcode)]

    @functools.cached_property
    def opcodes(self) -> Counter[str]:
        """Warp instructions by opcode with modifiers."""
        found: Counter[str] = Counter()
        for s in self.steps:
            found[s.instruction.full_opcode] += s.warps
        return +found

    @functools.cached_property
    def pipes(self) -> Counter[str]:
        """Warp instructions by pipe."""
        found: Counter[str] = Counter()
        for s in self.steps:
            if pipe := s.instruction.pipe:
                found[pipe] += s.warps
        return found

    @property
    def inst(self) -> int:
        """Warp instructions executed, and issued: nothing is replayed."""
        return sum(s.warps for s in self.steps)

    @property
    def tensor_ops(self) -> int:
        """Tensor operations: 2 m n k for each HMMA.16816."""
        return 2 * 16 * 8 * 16 * self.count(r"HMMA\.16816")

    @property
    def tensor_cycles(self) -> float:
        """Cycles of the tensor pipe of an SM, summed over SMs; HFMA2.MMA runs there as well."""
        return self.tensor_ops / self.gpu.tensor.get("src_fp16_dst_fp32", 4096) + self.count("HFMA2") / 2

    # Memory, in sectors: L1 holds nothing between loads (streaming), so that every sector comes from L2.

    @property
    def l2_reads(self) -> int:
        """Sectors that L1 reads from L2: global loads and asynchronous copies."""
        return self.sectors(r"LDG")

    @property
    def l2_writes(self) -> int:
        """Sectors that L1 writes to L2."""
        return self.sectors("STG")

    @property
    def l2_read_hits(self) -> int:
        """Sectors of those reads that L2 holds."""
        return round(self.l2_reads * self.kernel.l2_hit)

    @property
    def l2_misses(self) -> int:
        """Sectors that L2 reads from device memory."""
        return self.l2_reads - self.l2_read_hits

    @property
    def fabric(self) -> int:
        """Sectors that cross to the other half of L2: half of all misses, counted twice by L2."""
        return self.l2_misses // 2

    @property
    def dram_written(self) -> int:
        """Sectors written to device memory."""
        return round(self.l2_writes * self.kernel.write_back)

    @property
    def dram_bytes(self) -> int:
        """Bytes read from and written to device memory."""
        return SECTOR * (self.l2_misses + self.dram_written)

    @property
    def shared_wavefronts(self) -> int:
        """Data-stage wavefronts of shared memory, asynchronous copies included."""
        return self.wavefronts("LDS|STS|LDGSTS")

    @property
    def l1_wavefronts(self) -> int:
        """All data-stage wavefronts of the LSU."""
        return self.shared_wavefronts + self.wavefronts(r"LDG(\.|$)|STG")

    # Time

    @functools.cached_property
    def duration_us(self) -> int:
        """[us] Gpu time."""
        limit, gpu = self.kernel.limit, self.gpu
        if limit.unit == "latency":
            seconds = self.inst / self.warps * limit.cycles / gpu.sm_clock + LAUNCH_OVERHEAD
        else:
            seconds = {
                "dram": self.dram_bytes / gpu.dram_bandwidth,
                "l1": self.l1_wavefronts / gpu.sms / gpu.sm_clock,
                "tensor": self.tensor_cycles / gpu.sms / gpu.sm_clock,
                "fma": self.pipes["fma"] / gpu.pipes["fma"] / gpu.sms / gpu.sm_clock,
            }[limit.unit] / limit.share
        return math.ceil(seconds / QUANTUM)

    def cycles(self, clock: int) -> int:
        """Return elapsed cycles of a clock [Hz]."""
        return self.duration_us * clock // 1_000_000

    @property
    def elapsed(self) -> int:
        """[cycle] Elapsed, in the clock of the SMs."""
        return self.cycles(self.gpu.sm_clock)

    @property
    def busy_sms(self) -> int:
        """SMs that get a block at all."""
        return min(self.blocks, self.gpu.sms)

    @property
    def active_busiest(self) -> int:
        """[cycle] Active cycles of the busiest SM."""
        if self.kernel.limit.unit == "latency":
            return round(self.inst / self.warps * self.kernel.limit.cycles)
        return round(self.elapsed * self.kernel.active * (1 + self.kernel.spread))

    @property
    def active_total(self) -> int:
        """[cycle] Active cycles of all SMs together."""
        if self.kernel.limit.unit == "latency":
            return self.active_busiest * self.busy_sms
        return round(self.elapsed * self.kernel.active * self.gpu.sms)

    # Warps

    @property
    def issue(self) -> float:
        """Instructions per active cycle and scheduler."""
        return self.inst / (SCHEDULERS * self.active_total)

    @property
    def warps_active(self) -> float:
        """Warps per active cycle and scheduler."""
        if self.kernel.limit.unit == "latency":
            per_sm = self.warps / self.busy_sms
        else:
            per_sm = self.residency.warps * self.kernel.occupancy
        return per_sm / SCHEDULERS

    @property
    def latency(self) -> float:
        """[cycle] Between two instructions of a warp."""
        return self.warps_active / self.issue

    @functools.cached_property
    def stall_cycles(self) -> dict[str, float]:
        """State -> warp cycles per issued instruction; they add up to the latency, ``selected`` is one."""
        weights = self.kernel.stalls
        scale = (self.latency - 1) / added(weights.values())
        return {"selected": 1.0} | {state: weight * scale for state, weight in weights.items()}

    @property
    def eligible(self) -> float:
        """Warps per active cycle and scheduler that could issue: the one that does, those not selected."""
        return self.issue * (1 + self.stall_cycles.get("not_selected", 0.0))

    # Sampling

    @functools.cached_property
    def sampling_exponent(self) -> int:
        """The interval is 2^(5 + this) cycles: the smallest that keeps the number of samples handy."""
        return next(n for n in range(27) if self.active_total >> (5 + n) <= MOST_SAMPLES)

    @functools.cached_property
    def samples(self) -> dict[tuple[int, str], int]:
        """(offset, state) -> samples: one an SM and interval, where and how its warps spend their time."""
        total = self.active_total >> (5 + self.sampling_exponent)
        found: dict[tuple[int, str], int] = {}
        for state, n in apportion(total, self.stall_cycles).items():
            sites = self._sites(STALL_SITES[state])
            assert sites, f"{self.kernel.demangled}: no instruction waits in {state}"
            found |= {(offset, state): k for offset, k in apportion(n, sites).items() if k}
        return found

    def _sites(self, pattern: str) -> dict[int, int]:
        executed = {s.instruction.offset: s.warps for s in self.steps if s.warps}
        found: dict[int, int] = {}
        for part in re.split(r"\|(?![$)])", pattern):
            if part.startswith("after "):
                offsets = list(consumers(self.program, part.removeprefix("after ")))
            else:
                offsets = [i.offset for i in self.program if re.match(part, i.full_opcode)]
            found |= {offset: executed[offset] for offset in offsets if offset in executed}
        return found


def apportion(total: int, weights: Mapping[Key, float]) -> dict[Key, int]:
    """Share ``total`` out in proportion to ``weights``, in whole numbers, by largest remainder.

    >>> apportion(10, {"a": 1, "b": 1, "c": 1})
    {'a': 4, 'b': 3, 'c': 3}
    """
    whole = added(weights.values())
    exact = {key: total * weight / whole for key, weight in weights.items()}
    found = {key: int(value) for key, value in exact.items()}
    by_remainder = sorted(exact, key=lambda key: found[key] - exact[key])
    for key in by_remainder[: total - sum(found.values())]:
        found[key] += 1
    return found


def added(numbers: Iterable[float]) -> float:
    """Return their sum, rounded after each: `sum` rounds less often from Python 3.12 on."""
    return functools.reduce(operator.add, numbers, 0.0)
