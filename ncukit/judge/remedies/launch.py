"""What remedies ask of one launch: its shape, its idle time, how full each unit was, who makes warps wait."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping

from ncukit.judge.facts import Facts
from ncukit.judge.grid import RAMP
from ncukit.judge.occupancy import WHOLE
from ncukit.model.source import ENOUGH_SAMPLES, SassRow
from ncukit.record import dataclass

FLOOR = 3e-6
"""[s] Launch and drain that no change inside a kernel takes away."""
LOADS = frozenset({"LDG", "LD"})
SCOREBOARDS = ("long_scoreboard", "short_scoreboard")


@dataclass(frozen=True)
class Launch:
    """One launch as an expert looks at it before naming a change.

    Shares are fractions (0 to 1); what is None was not measured.
    """

    facts: Facts

    def number(self, id: str) -> float | None:
        """Return metric or signal ``id``, None where it may not be used."""
        return self.facts.kernel.number(id)

    def value(self, id: str, default: float = 0.0) -> float:
        """Return metric or signal ``id``, ``default`` where it is unknown."""
        found = self.facts.kernel.number(id)
        return default if found is None else found

    def unit(self, id: str) -> float:
        """Return how full unit ``id`` was (0 to 1); 0 where it was not measured."""
        share = self.facts.shares.units.get(id)
        return 0.0 if share is None else share.percent / 100

    def fullness(self, id: str) -> float:
        """Return the share of what the best kernels get out of unit ``id`` (0 to 1); 0 where not measured."""
        share = self.facts.shares.units.get(id)
        return 0.0 if share is None else share.fullness / 100

    @functools.cached_property
    def busiest(self) -> float:
        """How full the busiest unit was (0 to 1), issue slots included."""
        return self.facts.shares.top / 100

    @functools.cached_property
    def measured(self) -> bool:
        """Whether the report says how busy anything was."""
        return bool(self.facts.shares.ranked())

    @functools.cached_property
    def duration(self) -> float | None:
        """Profiled time [s]."""
        return self.number("kernel_duration")

    @functools.cached_property
    def blocks(self) -> float | None:
        """Blocks of the grid."""
        return self.number("grid_size")

    @functools.cached_property
    def sms(self) -> float:
        """SMs that the launch may use."""
        return self.number("usable_sm_count") or self.number("sm_count") or 1.0

    @functools.cached_property
    def resident(self) -> float:
        """Blocks that fit one SM."""
        return max(1.0, self.value("resident_block_limit", 1.0))

    @functools.cached_property
    def rounds(self) -> float:
        """Blocks an SM."""
        return self.value("blocks_per_sm") if self.blocks is None else self.blocks / self.sms

    @functools.cached_property
    def active(self) -> float | None:
        """Share of the time in which a mean SM had work."""
        found = self.number("sm_active_pct")
        return None if found is None else found / 100

    @functools.cached_property
    def predicted(self) -> float:
        """Share of the time in which a mean SM has work if all blocks take equally long, in rounds."""
        return self.rounds if self.rounds <= 1 else self.rounds / math.ceil(self.rounds - WHOLE)

    @functools.cached_property
    def ramp(self) -> float:
        """Share of the time that launch, ramp and drain may take."""
        return RAMP / self.duration if self.duration else 0.0

    @functools.cached_property
    def floor(self) -> float:
        """Share of the time that any launch takes, whatever it does."""
        return min(1.0, FLOOR / self.duration) if self.duration else 0.0

    @functools.cached_property
    def own(self) -> float | None:
        """Time [s] in which the busiest SM worked, if all its blocks were alike; the rest is the launch."""
        if self.active is None or self.duration is None or not self.blocks:
            return None
        return self.active * self.sms / min(self.blocks, self.sms) * self.duration

    @functools.cached_property
    def issue(self) -> float | None:
        """Share of the issue slots of working SMs that were used."""
        found = self.number("issue_busy_pct")
        return None if found is None else found / 100

    @functools.cached_property
    def eligible(self) -> float | None:
        """Eligible warps a scheduler and cycle."""
        return self.number("warps_eligible_per_scheduler")

    @functools.cached_property
    def shared(self) -> float:
        """Shared memory [byte] that a block asked for, without what the driver takes."""
        return self.value("shared_mem_static") + self.value("shared_mem_dynamic")

    @functools.cached_property
    def ways(self) -> float | None:
        """Wavefronts of the L1 data stage a request of the LSU; 1 is the least."""
        data, requests = self.data_stage, self.unit("lsu")
        return data / requests if data and requests else None

    @functools.cached_property
    def data_stage(self) -> float:
        """How full the data stage of L1 and shared memory was."""
        return max(self.unit("l1"), self.unit("shared"), self.value("lsu_wavefronts_pct") / 100)

    # ---- instructions

    @functools.cached_property
    def rows(self) -> tuple[SassRow, ...]:
        """The instructions in address order; empty where the report has none."""
        return self.facts.source.rows if self.facts.source is not None else ()

    @functools.cached_property
    def counts(self) -> Mapping[str, int]:
        """Executed warp instructions by opcode without modifiers."""
        found: Counter[str] = Counter()
        for row in self.rows:
            found[opcode(row)] += row.cost.instructions or 0
        return found

    def executed(self, *opcodes: str) -> float:
        """Return the share of executed instructions with these opcodes."""
        total = sum(self.counts.values())
        return sum(self.counts[name] for name in opcodes) / total if total else 0.0

    @functools.cached_property
    def sampled(self) -> bool:
        """Whether there are enough samples to say where warps wait."""
        source = self.facts.source
        return source is not None and source.amount(source.total) >= ENOUGH_SAMPLES

    @functools.cached_property
    def waits(self) -> Mapping[tuple[str, str], float]:
        """Share of the waiting samples by raw state and by the opcode that produces what is waited for."""
        if not self.sampled:
            return {}
        found: Counter[tuple[str, str]] = Counter()
        for row in self.rows:
            cause = "" if row.producer is None else opcode(self.rows[row.producer])
            for state, amount in row.cost.states.items():
                found[state, cause] += amount
        total = sum(found.values())
        return {key: amount / total for key, amount in found.items()} if total else {}

    def waits_for(self, *causes: str, states: tuple[str, ...] = SCOREBOARDS) -> float:
        """Return the share of waiting samples for results of these opcodes."""
        return sum(v for (state, cause), v in self.waits.items() if cause in causes and state in states)

    def stalled(self, *states: str) -> float:
        """Return the share of warp latency in these states of the catalog."""
        return 0.0 if self.facts.waits is None else self.facts.waits.of(*states) / 100

    @functools.cached_property
    def pipelined(self) -> bool:
        """Whether loads run ahead of their use: barriers in memory, TMA or warp-group MMA."""
        return self.facts.warp_specialised


def opcode(row: SassRow) -> str:
    """Return the opcode of ``row`` without modifiers."""
    return row.opcode.split(".", 1)[0]
