"""How full each unit of the GPU was, and why warps waited: the rulers of the elimination."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Literal

from ncukit.metrics import load
from ncukit.metrics.catalog import load_units
from ncukit.model import Kernel
from ncukit.model.shares import ISSUE_GUARD, TENSOR_TYPES, Share, Shares
from ncukit.model.source import ENOUGH_SAMPLES
from ncukit.record import dataclass

# ---- Why warps waited: one measurement of the stall states, counters or samples, never mixed

WORKING = ("selected", "not_selected")
"""States in which the warp could go on."""


@dataclass(frozen=True)
class Waits:
    """Shares [%] of warp latency by stall state, from ``source``.

    ``issued`` is the issue rate [warp/cycle per scheduler]; None when it was not collected.
    """

    source: Literal["counters", "samples"]
    shares: Mapping[str, float]
    issued: float | None
    disagreement: float | None = None
    """Total variation [%] between counters and samples, where both were collected."""

    def of(self, *states: str) -> float:
        """Return the share [%] of these states together."""
        return sum(self.shares.get(state, 0.0) for state in states)

    def metric(self, state: str) -> str:
        """Return the neutral metric that this measurement of ``state`` came from."""
        return f"stall_{'cycles' if self.source == 'counters' else 'samples'}_{state}"

    @property
    def matter(self) -> bool:
        """Whether stalls may be spoken of: only when schedulers often have no warp to issue."""
        return self.issued is None or self.issued < ISSUE_GUARD

    def top(self) -> tuple[str, float]:
        """Return the largest state in which warps really wait, and its share [%]."""
        waiting = {state: share for state, share in self.shares.items() if state not in WORKING}
        state = max(waiting, key=lambda s: waiting[s])
        return state, waiting[state]


@functools.cache
def states() -> Mapping[str, tuple[str, str]]:
    """Return state -> (its category, NVIDIA's name)."""
    return {
        state: (category, raw)
        for category, entry in load().stalls.items()
        for state, raw in entry["states"].items()
    }


def advice(state: str) -> str:
    """Return what to try against ``state``, as catalog, counters or sampling spell it; or nothing.

    >>> advice("no_instructions") == advice("no_instruction") == advice("instruction_fetch") != ""
    True
    """
    for known, (category, raw) in states().items():
        if state in (known, raw, f"{raw}s", raw.removesuffix("_stall")):
            return str(load().stalls[category].get("advice", {}).get(known, ""))
    return ""


def waits(kernel: Kernel) -> Waits | None:
    """Return the stall states of ``kernel``: counters where they are, else samples, else None."""
    counted = _shares(kernel, "stall_cycles_")
    sampled = _shares(kernel, "stall_samples_")
    total = kernel.number("pc_samples")
    if sampled is not None and total is not None and total < ENOUGH_SAMPLES:
        sampled = None
    issued = kernel.number("warps_issued_per_scheduler")
    if issued is None and (slots := kernel.number("issue_busy_pct")) is not None:
        issued = slots / 100
    if counted is None:
        return None if sampled is None else Waits("samples", sampled, issued)
    apart = None if sampled is None else _variation(counted, sampled)
    return Waits("counters", counted, issued, apart)


def _shares(kernel: Kernel, prefix: str) -> dict[str, float] | None:
    amounts = {state: n for state in states() if (n := kernel.number(prefix + state)) is not None}
    total = sum(amounts.values())
    if not amounts.keys() - set(WORKING):
        return None
    return {state: 100 * n / total for state, n in amounts.items()} if total > 0 else None


def _variation(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    return sum(abs(a.get(state, 0.0) - b.get(state, 0.0)) for state in states()) / 2


# ---- How full each unit of the GPU was: the ruler of the elimination
# DRAM and L2 are judged against elapsed time, units inside the SM against the time an SM had work, so that
# idle SMs do not hide a full pipe. The maxima of ncu (``sm__throughput`` and the like) are never taken for
# a unit: their members are.

SAME = 3.0
"""[points] Below this a maximum and its largest known member are the same measurement."""

TENSOR_WITHOUT_OPCODES = 20.0
"""[%] Tensor-pipe use that constant loads (HFMA2.MMA) never reach: an MMA ran even if opcodes are missing."""

SAME_READING = 0.01
"""[points] Compute and memory throughput this close are one counter, printed twice: load/store issue."""

HEAVY_LEAD = 10.0
"""[points] The heavy half of the FMA pipe this far above the mean of both halves runs IMAD, not FP32."""

MOSTLY = 50.0
"""[%] From here on a pipe that runs several types is named after this one."""

FP32_IS_IDLE = 0.2
"""Achieved FP32 rate over FMA-pipe use below which the pipe runs IMAD: plain FADD would still give 0.5."""

FABRIC = (80, 90)
"""Compute capabilities whose L2 has two halves (GA100, GH100)."""

FABRIC_DRAM = 60.0
"""[%] DRAM use from which L2 there is judged by its ports: a stream reads 60 to 83 % in tags and data."""

COMPUTE_UNITS = ("int", "fp32", "fp64", "fp16", "xu", "tensor")
"""Units that are pipes of arithmetic."""


def measure(kernel: Kernel) -> Shares:
    """Return how full every unit was that the report speaks of.

    >>> from ncukit.model import RawKernel, Value
    >>> dram = Value("dram_throughput_pct", 91.5, "%")
    >>> k = Kernel("", RawKernel(0, "f", "f", "f"), {dram.id: dram})
    >>> measure(k).get("dram")
    91.5
    """
    return _Ruler(kernel).shares()


class _Ruler:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.number = kernel.number
        self.table = load_units()
        active = self.number("sm_active_pct")
        self.active = active / 100 if active else 1.0
        cc = self.number("compute_capability")
        self.cc = None if cc is None else int(cc)
        self.found: dict[str, Share] = {}
        self.members = self._members()

    def _members(self) -> dict[str, tuple[float, str, str]]:
        """Return per unit its largest member: (percent of elapsed time, raw name, what it is)."""
        best: dict[str, tuple[float, str, str]] = {}
        for breakdown in ("sm_throughput_pct", "memory_throughput_pct"):
            for raw, percent in self.kernel.breakdowns.get(breakdown, ()):
                member = self.table.member(raw)
                if member is not None:
                    scaled = percent * member.scale(self.cc)
                    if scaled > best.get(member.unit, (-1.0,))[0]:
                        best[member.unit] = (scaled, raw, member.name)
        return best

    def add(
        self,
        unit: str,
        percent: float,
        metric: str,
        *,
        value: float | None = None,
        name: str = "",
        resolved: bool = True,
    ) -> None:
        """Note that ``unit`` is ``percent`` full, in its own terms (active cycles inside the SM)."""
        entry = self.table.units[unit]
        elapsed = percent * self.active if entry.scope == "sm" else percent
        self.found[unit] = Share(
            entry,
            percent,
            elapsed,
            metric,
            percent if value is None else value,
            name or entry.label,
            resolved,
        )

    def first(self, *ids: str) -> tuple[str, float] | None:
        """Return the first of ``ids`` that is known, with its value."""
        return next(((id, value) for id in ids if (value := self.number(id)) is not None), None)

    def shares(self) -> Shares:
        self.dram()
        self.l2()
        self.pipes()
        self.tensor()
        self.l1()
        sm_side = any(
            self.number(id) is not None for id in ("sm_throughput_pct", "issue_busy_pct", "alu_busy_pct")
        )
        memory_side = self.number("memory_throughput_pct") is not None or (
            "dram" in self.found and ("l1" in self.found or "shared" in self.found or "l2" in self.found)
        )
        self.leftovers()
        return Shares(self.found, sm_side, memory_side)

    def dram(self) -> None:
        if hit := self.first("dram_throughput_pct", "roofline_dram_pct"):
            self.add("dram", hit[1], hit[0])
            return
        read, write = self.number("dram_read_pct"), self.number("dram_write_pct")
        if read is not None and write is not None:
            self.add("dram", read + write, "dram_read_pct" if read >= write else "dram_write_pct")
        elif read is not None and read >= self.table.units["dram"].full:
            self.add("dram", read, "dram_read_pct", name="DRAM reads alone")

    def l2(self) -> None:
        headline = self.number("l2_throughput_pct")
        member = self.members.get("l2")
        if self.cc in FABRIC and (self.found["dram"].percent if "dram" in self.found else 0.0) >= FABRIC_DRAM:
            headline, member = None, self.l2_ports()
        if member is None:
            if headline is not None:
                self.add("l2", headline, "l2_throughput_pct")
            return
        percent, raw, name = member
        if headline is not None and abs(headline - percent) <= SAME:
            self.add("l2", headline, "l2_throughput_pct", name=name)
        else:  # the headline exceeds every member on CC 9.0: judge by the member
            self.add("l2", percent, raw, name=name)

    def l2_ports(self) -> tuple[float, str, str] | None:
        """Return the busier port of L2: tags and data also count what crosses its fabric."""
        ports = (("l2_input_pct", "L2 input port"), ("l2_return_pct", "L2 return port"))
        return max(((p, id, name) for id, name in ports if (p := self.number(id)) is not None), default=None)

    def l1(self) -> None:
        headline = self.number("l1_throughput_pct")
        member = self.members.get("l1")
        others = max((s.percent for u, s in self.found.items() if u == "lsu"), default=0.0)
        if member is None:
            if headline is not None and abs(headline - others) > SAME:
                self._l1(headline, "l1_throughput_pct", "L1/TEX", data=True, resolved="lsu" in self.found)
            return
        percent, raw, name = member[0] / self.active, member[1], member[2]
        data = "wavefronts" in raw or "lsu_writeback" in raw
        # L1 works longer than its SM: the headline, a maximum by its own active cycles, is never exceeded
        if headline is not None and (percent >= headline - SAME or headline > max(percent, others) + SAME):
            self._l1(headline, "l1_throughput_pct", name, data=data)
        else:
            self._l1(percent, raw, name, data=data)

    def _l1(self, percent: float, metric: str, name: str, *, data: bool, resolved: bool = True) -> None:
        shared = self.number("shared_wavefront_share_pct")
        unit = "shared" if data and shared is not None and shared > MOSTLY else "l1"
        label = self.table.units[unit].label if unit == "shared" else name
        self.add(unit, percent, metric, name=label, resolved=resolved)

    def pipes(self) -> None:
        for unit in ("fp64", "fp16", "xu", "lsu", "issue"):
            if hit := self.first(*self.table.units[unit].metrics):
                self.add(unit, hit[1], hit[0])
        if "lsu" not in self.found:
            self.lsu_from_maxima()
        if hit := self.first("pipe_alu_pct", "alu_busy_pct"):
            self.add("int", hit[1], hit[0], name="ALU pipe")
        self.fma()
        if "fp64" not in self.found and (rate := self.number("roofline_fp64_pct")) is not None:
            self.add("fp64", rate, "roofline_fp64_pct")

    def lsu_from_maxima(self) -> None:
        """Read load/store issue from the maxima that contain it, as the printed pages give no pipe."""
        pipes, sm, memory = (
            self.number(id) for id in ("mem_pipes_busy_pct", "sm_throughput_pct", "memory_throughput_pct")
        )
        if sm is None:
            return
        if memory is not None and abs(sm - memory) <= SAME_READING:
            metric, value, name = (
                "sm_throughput_pct",
                sm,
                "load/store issue (SM and memory read the same)",
            )
        elif pipes is not None:
            metric, value, name = "mem_pipes_busy_pct", pipes, "pipes of memory instructions"
        else:
            return
        self.add("lsu", value / self.active, metric, value=value, name=name, resolved=False)

    def fma(self) -> None:
        """Name the FMA pipe after what it runs: FP32, packed half or IMAD."""
        fma = self.first("pipe_fma_pct", "fma_busy_pct")
        if fma is None:
            if (rate := self.number("roofline_fp32_pct")) is not None:
                self.add("fp32", rate, "roofline_fp32_pct")
            return
        heavy = self.number("fma_heavy_busy_pct")
        kind = self._runs(fma[1], heavy)
        if kind == "int":
            imad = ("fma_heavy_busy_pct", heavy) if heavy is not None and heavy > fma[1] else fma
            self._raise_to("int", imad[1], imad[0], "IMAD on the FMA pipe")
        else:
            self._raise_to(kind, fma[1], fma[0], self.table.units[kind].label)

    def _raise_to(self, unit: str, percent: float, metric: str, name: str) -> None:
        known = self.found.get(unit)
        if known is None or percent > known.percent:
            self.add(unit, percent, metric, name=name)

    def _runs(self, fma: float, heavy: float | None) -> str:
        half, integer = self.number("fma_pipe_half_pct"), self.number("fma_pipe_integer_pct")
        if half is not None and half > MOSTLY:
            return "fp16"
        if integer is not None:
            return "int" if integer > MOSTLY else "fp32"
        if heavy is not None and heavy - fma > HEAVY_LEAD:
            return "int"
        rate = self.number("roofline_fp32_pct")
        return "int" if rate is not None and rate < FP32_IS_IDLE * fma * self.active else "fp32"

    def tensor(self) -> None:
        """Judge tensor cores by operations over the dense peak; the pipe counter reads half on GeForce."""
        pipe = self.number("tensor_busy_pct")
        uses = uses_tensor(self.kernel)
        if uses is False or (uses is None and (pipe is None or pipe < TENSOR_WITHOUT_OPCODES)):
            return
        rates = {
            f"tensor_{t}_share_pct": value
            for t in TENSOR_TYPES
            if (value := self.number(f"tensor_{t}_share_pct"))
        }
        operations = sum(rates.values()) / self.active
        leading = max(rates, key=lambda id: rates[id], default="")
        exact = (
            leading
            and self.kernel.metrics[
                leading.replace("tensor_", "peak_flop_rate_tensor_").removesuffix("_share_pct")
            ].quality
            != "estimate"
        )
        if operations and (exact or pipe is None or operations >= pipe):
            self.add(
                "tensor",
                operations,
                leading,
                value=rates[leading],
                name="tensor cores, by operations",
            )
        elif pipe is not None:
            self.add("tensor", pipe, "tensor_busy_pct", name="tensor pipe")

    def leftovers(self) -> None:
        """Keep a maximum that no known member explains: something is that busy, unnamed."""
        if control := self.members.get("control"):
            self.add("control", control[0] / self.active, control[1], name=control[2])
        sm = self.number("sm_throughput_pct")
        if sm is not None and sm > SAME + max(
            (s.elapsed for u, s in self.found.items() if s.unit.scope == "sm" and u not in ("l1", "shared")),
            default=0.0,
        ):
            self.add("sm", sm / self.active, "sm_throughput_pct", value=sm)
        memory = self.number("memory_throughput_pct")
        inner = ("dram", "l2", "l1", "shared", "lsu")
        if memory is not None and memory > SAME + max(
            (s.elapsed for u, s in self.found.items() if u in inner), default=0.0
        ):
            self.add("memory", memory, "memory_throughput_pct")


def uses_tensor(kernel: Kernel) -> bool | None:
    """Return whether tensor instructions ran; None when neither opcodes nor operation counters say.

    Counters decide, never names: pipe use alone proves nothing where ``HFMA2.MMA`` runs on the tensor pipe.
    """
    known = [kernel.number("tensor_inst")] + [
        kernel.number(f"flops_tensor_{t}") for t in (*TENSOR_TYPES, "int4")
    ]
    numbers = [n for n in known if n is not None]
    if any(numbers):
        return True
    return False if kernel.number("tensor_inst") is not None or len(numbers) > 3 else None
