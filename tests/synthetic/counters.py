"""The raw metrics of ncu's ``full`` set (2025.1, with its rooflines) for a modelled launch.

A hardware counter has a total, units that count it, the most that one unit counts in a cycle, and the
roll-ups that ncu collects of it, written in short:

    sum avg all          the value; ``all`` is avg, max, min and sum
    sum/s all/s          .per_second
    sum/c all/c all/ca   .per_cycle_elapsed, .per_cycle_active
    sum% avg% all% all%a .pct_of_peak_sustained_elapsed, .pct_of_peak_sustained_active
    sum^ avg^ all^       .peak_sustained
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.synthetic import source, tables, throughput
from tests.synthetic.gpu import SCHEDULERS
from tests.synthetic.model import Model
from tests.synthetic.source import Metrics


@dataclass(frozen=True)
class Unit:
    """Hardware units of one kind: how many, their elapsed and active cycles, how unequal they are."""

    count: int
    elapsed: int
    active: float
    most: float = 1.0
    least: float = 1.0
    """Load of the busiest and of the idlest unit, relative to the average."""


class Counters:
    """Collects metrics; every roll-up follows from the total of a counter."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.seconds = model.duration_us * 1e-6
        self.found: Metrics = {}
        gpu, idle = model.gpu, model.busy_sms < model.gpu.sms
        active = model.active_total / gpu.sms
        most, spread = model.active_busiest / active, model.kernel.spread
        least = 0.0 if idle else 1 - spread
        cycles = {"lts": model.cycles(gpu.l2_clock), "dram": model.cycles(gpu.dram_clock)}
        channels = gpu.bus_bits // 128
        self.units = {
            "sm": Unit(gpu.sms, model.elapsed, active, most, least),
            "smsp": Unit(SCHEDULERS * gpu.sms, model.elapsed, active, most, least),
            "lts": Unit(gpu.l2_slices, cycles["lts"], cycles["lts"], 1.01, 0.99),
            "fbpa": Unit(gpu.l2_slices, cycles["lts"], cycles["lts"], 1.005, 0.995),
            "dram": Unit(channels, cycles["dram"], cycles["dram"], 1.005, 0.995),
            # clocks: every unit counts the same
            "gpc clock": Unit(tables.GPCS, model.elapsed, model.elapsed),
            "sm clock": Unit(gpu.sms, model.elapsed, model.elapsed),
            "smsp clock": Unit(SCHEDULERS * gpu.sms, model.elapsed, model.elapsed),
            "lts clock": Unit(gpu.l2_slices, cycles["lts"], cycles["lts"]),
            "dram clock": Unit(channels, cycles["dram"], cycles["dram"]),
        }

    def count(self, name: str, unit: str, total: float, peak: float, rollups: str) -> None:
        """Add the roll-ups of counter ``name``."""
        u = self.units[unit]
        shares = {"avg": 1 / u.count, "max": u.most / u.count, "min": u.least / u.count, "sum": 1.0}
        for token in rollups.split():
            which, kind = token[:3], token[3:]
            for rollup in ("avg", "max", "min", "sum") if which == "all" else (which,):
                suffix, value = self._rollup(kind, rollup, total * shares[rollup], peak, u)
                self.found[f"{name}.{rollup}{suffix}"] = float(value)

    def _rollup(self, kind: str, rollup: str, value: float, peak: float, u: Unit) -> tuple[str, float]:
        most = peak * (u.count if rollup == "sum" else 1)
        match kind:
            case "":
                return "", value
            case "/s":
                return ".per_second", value / self.seconds
            case "/c":
                return ".per_cycle_elapsed", value / u.elapsed
            case "/ca":
                return ".per_cycle_active", value / u.active
            case "%":
                return ".pct_of_peak_sustained_elapsed", 100 * value / (most * u.elapsed)
            case "%a":
                return ".pct_of_peak_sustained_active", 100 * value / (most * u.active)
            case "^":
                return ".peak_sustained", most
        raise ValueError(f"unknown roll-up {kind!r}")

    def throughput(self, name: str, members: Iterable[str], kinds: str) -> None:
        """Add a throughput: for each roll-up the largest of its members, as a percentage of its peak.

        Of the active cycles ncu reports only the throughput of L1, not its members: they are the same counts.
        """
        names = list(members)
        sm = self.units["sm"]
        for kind in kinds.split():
            for rollup in ("avg", "max", "min", "sum"):
                active = f"{rollup}.pct_of_peak_sustained_active"
                elapsed = f"{rollup}.pct_of_peak_sustained_elapsed"
                if kind == "%":
                    found = [self.number(f"{member}.{elapsed}") for member in names]
                elif f"{names[0]}.{active}" in self.found:
                    found = [self.number(f"{member}.{active}") for member in names]
                else:
                    found = [self.number(f"{m}.{elapsed}") * sm.elapsed / sm.active for m in names]
                self.found[f"{name}.{elapsed if kind == '%' else active}"] = max(found)

    def number(self, name: str) -> float:
        """Return a metric that was added before."""
        value = self.found[name]
        assert isinstance(value, float), name
        return value

    def breakdown(self, name: str, members: Iterable[str]) -> None:
        """Add the strings that list the members of a throughput."""
        for rollup in ("avg", "max", "min", "sum"):
            suffix = f"{rollup}.pct_of_peak_sustained_elapsed"
            self.found[f"breakdown:{name}.{suffix}"] = ",".join(f"{member}.{suffix}" for member in members)


def metrics(model: Model) -> Metrics:
    """Return all raw metrics of a launch, sorted by name."""
    c = Counters(model)
    for name, unit, total, peak, rollups in (
        *tables.time(model),
        *tables.sm(model),
        *tables.l1(model),
        *tables.l2(model),
        *tables.dram(model),
        *tables.roofline(model),
    ):
        c.count(name, unit, total, peak, rollups)
    members = throughput.members(model)
    for name, (parts, kinds) in members.items():
        c.throughput(name, parts, kinds)
    for name in ("sm__throughput", "gpu__compute_memory_throughput"):
        c.breakdown(name, members[name][0])
    found = c.found | tables.ratios(model) | source.launch(model) | source.stalls(model)
    found |= source.by_opcode(model) | source.by_instruction(model)
    return dict(sorted(found.items()))
