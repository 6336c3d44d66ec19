"""Rules on which unit leads, at which clocks, and on how schedulers issue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.judge.elimination import fed
from ncukit.judge.facts import SHORT, TINY
from ncukit.judge.grid import BUSY_SMS, QUIET
from ncukit.judge.places import first_place, places
from ncukit.judge.rule import Found, Gain, View, rule
from ncukit.judge.shares import COMPUTE_UNITS, states
from ncukit.media import listed
from ncukit.metrics.catalog import load_units
from ncukit.model.diagnosis import Severity
from ncukit.model.shares import DISAGREE, Share
from ncukit.quantity import brief

if TYPE_CHECKING:
    from ncukit.model.source import Cost


# ---- Speed of Light: which unit leads, whether the GPU was busy at all, at which clocks

SAME_NUMBER = 1.0
"""[points] Two maxima this close with the same leading member are one measurement."""

LOW_CLOCK = 90.0
"""[%] of the highest clock: below, seconds and bandwidths are not those of a free run."""

SAME_BASE = 1.0
"""[points] Below this, shares of working and of elapsed time need not be told apart."""

LISTED = 3
"""Units named behind the busiest one."""

WELL_FILLED = 75.0
"""[%] Occupancy from which a lack of warps does not explain that nothing is busy."""

ANY_THROUGHPUT = (
    "sm_throughput_pct",
    "memory_throughput_pct",
    "dram_throughput_pct",
    "dram_read_pct",
    "roofline_dram_pct",
    "roofline_fp32_pct",
    "issue_busy_pct",
)


@rule("busiest-unit", family="speed_of_light", needs=(ANY_THROUGHPUT,))
def busiest_unit(k: View) -> Found | None:
    """One unit is near its peak [%]; which one is what a maximum over many units does not say."""
    ranked = k.facts.shares.ranked()
    if not ranked or ranked[0].percent < QUIET:
        return None
    first = ranked[0]
    k.share(first.unit.id)
    rest = f"; the next, {ranked[1].name}, reaches {brief(ranked[1].percent, '%')}" if len(ranked) > 1 else ""
    if len(ranked) > 1 and first.percent < min(first.unit.reach, ranked[1].percent):
        rest += f"; of {first.name} good kernels get no more than {first.unit.reach:.0f} %"
    return Found(
        f"{first.name} is the busiest unit at {_reached(first)}{rest}",
        "high" if first.full else "medium",
        advice="Give it less to do; nothing else can help before that."
        if first.elapsed >= QUIET
        else "Give the idle SMs work first; then this unit less to do.",
        detail=_listed(k, ranked[1:], "Behind it"),
    )


def _reached(share: Share) -> str:
    """Return the share of peak; of a unit inside the SM both ways where idle SMs tell them apart."""
    of_peak = f"{brief(share.percent, '%')} of peak"
    if abs(share.percent - share.elapsed) < SAME_BASE:
        return of_peak
    return f"{of_peak} while an SM has work ({brief(share.elapsed, '%')} of the whole time)"


def _listed(k: View, units: list[Share], words: str) -> str:
    """Return how busy ``units`` are, and DRAM and the leading arithmetic pipe whatever their place."""
    always = [
        next((s for s in units if s.unit.id == "dram"), None),
        max((s for s in units if s.unit.id in COMPUTE_UNITS), key=lambda s: s.percent, default=None),
    ]
    shown = [s for i, s in enumerate(units) if i < LISTED or s in always]
    for share in shown:
        k.share(share.unit.id)
    parts = [f"{share.name} {brief(share.percent, '%')}" for share in shown]
    return f"{words}: {listed(parts)}." if parts else ""


@rule(
    "nothing-busy",
    family="speed_of_light",
    needs=(
        ("sm_throughput_pct", "issue_busy_pct"),
        ("memory_throughput_pct", "dram_throughput_pct", "dram_read_pct"),
    ),
)
def nothing_busy(k: View) -> Found | None:
    """No unit reaches 60 % of peak: the time goes into waiting or into empty SMs."""
    ranked = k.facts.shares.ranked()
    if k.facts.shares.top >= QUIET:
        return None
    level: Severity = "medium"
    compute, memory = k.get("sm_throughput_pct"), k.get("memory_throughput_pct")
    if compute is not None and memory is not None:
        seen = f"compute throughput {brief(compute, '%')}, memory throughput {brief(memory, '%')}"
        advice = "Look for waiting or missing work; making any unit faster would change little."
    elif ranked:
        level, advice = "low", "What was not measured may be busy: collect --section SpeedOfLight."
        busiest = max(ranked, key=lambda s: s.percent)
        k.share(busiest.unit.id)
        seen = f"the busiest known, {busiest.name}, reaches {brief(busiest.percent, '%')}"
    else:
        return None
    occupancy = k.get("achieved_occupancy_pct")
    full = occupancy is not None and occupancy >= WELL_FILLED
    return Found(
        f"No unit is busy: {seen}" + (f", although occupancy is {brief(occupancy, '%')}" if full else ""),
        level,
        advice=advice,
        detail=_listed(k, sorted(ranked, key=lambda s: -s.percent), "In order"),
    )


@rule("one-number-twice", family="speed_of_light", needs=("sm_throughput_pct", "memory_throughput_pct"))
def one_number_twice(k: View) -> Found | None:
    """Compute and memory throughput [%] read the same because both are the load/store pipe."""
    leaders = [
        k.facts.kernel.breakdowns.get(id, ())[:1] for id in ("sm_throughput_pct", "memory_throughput_pct")
    ]
    units = {member.unit for leader in leaders for raw, _ in leader if (member := load_units().member(raw))}
    if units != {"lsu"} or abs(k["sm_throughput_pct"] - k["memory_throughput_pct"]) > SAME_NUMBER:
        return None
    return Found(
        f"Compute and memory throughput both read {brief(k['sm_throughput_pct'], '%')} because both are the "
        "load/store pipe",
        "info",
        advice="Read it as one limit: the number of load and store instructions.",
    )


@rule(
    "leading-metrics",
    family="speed_of_light",
    needs=("@breakdown", ("sm_throughput_pct", "memory_throughput_pct")),
)
def leading_metrics(k: View) -> Found | None:
    """Compute and memory throughput [%] are maxima over many counters: which one leads each."""
    said, names = [], []
    for id, word in (("sm_throughput_pct", "compute"), ("memory_throughput_pct", "memory")):
        members, value = k.facts.kernel.breakdowns.get(id, ()), k.get(id)
        if not members or value is None:
            continue
        raw, percent = members[0]
        second = f", then {members[1][0]} at {brief(members[1][1], '%')}" if len(members) > 1 else ""
        said.append(f"{word} throughput ({brief(value, '%')}) is its {_spoken(raw)}")
        names.append(f"{raw} at {brief(percent, '%')}{second}")
    if not said:
        return None
    return Found(
        f"{' and '.join(said)}: both are maxima over many counters"
        if len(said) > 1
        else f"{said[0]}: a maximum over many counters",
        "info",
        detail=f"{'; '.join(names)}.",
        advice="Compare members, not maxima: the lists differ between GPUs.",
    )


SPOKEN = {
    "sm__pipe_shared_cycles_active": "shared pipe, which tensor and FP64 work use",
    "sm__pipe_tc_cycles_active": "tensor-memory pipe, on which copies count as well",
    "gpu__compute_memory_access_throughput_internal_activity": "internal activity of the memory system",
}
"""Leading counters that stand for no unit of their own."""


def _spoken(raw: str) -> str:
    """Return what the counter ``raw`` measures in words, where they are known."""
    member = load_units().member(raw)
    return SPOKEN.get(raw.split(".")[0], raw) if member is None else member.name


@rule("idle-sms", family="speed_of_light", needs=("sm_active_pct",))
def idle_sms(k: View) -> Found | None:
    """SMs had no work for part of the elapsed cycles [%]."""
    idle = 100 - k["sm_active_pct"]
    if k["sm_active_pct"] >= BUSY_SMS:
        return None
    return Found(
        f"SMs are idle for {brief(idle, '%')} of the elapsed cycles",
        "high" if idle >= 30 else "medium",
        advice="More or more equal blocks: split the work finer, or let each block fetch its next piece.",
        gain=Gain(idle, "global", "the idle time, if every SM worked to the end"),
    )


@rule("over-at-once", family="speed_of_light", needs=("kernel_duration",))
def over_at_once(k: View) -> Found | None:
    """The launch is so short [s] that starting it is a visible part of it."""
    duration, instructions = k["kernel_duration"], k.get("inst_executed")
    if duration >= SHORT:
        return None
    detail = "" if instructions is None else f"It executes {brief(instructions)} warp instructions in all."
    if duration < TINY:
        return Found(
            f"The launch takes {brief(duration, 's')}: launch latency is most of what was measured",
            "high",
            advice="Do more in one launch: batch, fuse with a neighbour, or put the launches into a CUDA "
            "graph.",
            detail=detail,
        )
    return Found(
        f"The launch takes {brief(duration, 's')}: ramp-up and drain are a visible part of it",
        "low",
        advice="Judge rates on a larger input; ratios of counters from different passes are noisy here.",
        detail=detail,
    )


@rule("sm-clock", family="speed_of_light", needs=("sm_clock_share_pct",))
def sm_clock(k: View) -> Found | None:
    """The SM clock [Hz] of the run was below the highest of the device."""
    if k["sm_clock_share_pct"] >= LOW_CLOCK:
        return None
    return Found(
        f"The SMs ran at {brief(k.get('sm_clock'), 'hz')}, {brief(k['sm_clock_share_pct'], '%')} of their "
        "highest clock",
        "info",
        advice="Peaks and percentages hold at this clock; do not compare seconds with a run at another one.",
    )


@rule("dram-clock", family="speed_of_light", needs=("dram_clock_share_pct",))
def dram_clock(k: View) -> Found | None:
    """The DRAM clock [Hz] of the run was below the highest of the board."""
    if k["dram_clock_share_pct"] >= LOW_CLOCK or (k.get("kernel_duration") or 1.0) < SHORT:
        return None
    return Found(
        f"DRAM ran at {brief(k.get('dram_clock'), 'hz')}, {brief(k['dram_clock_share_pct'], '%')} of its "
        "highest clock",
        "info",
        advice="A full DRAM shows here in percent of peak, not in GB/s.",
    )


@rule(
    "intensity",
    family="speed_of_light",
    needs=("arithmetic_intensity_dram", "ridge_point_fp32_dram", "flops_total"),
)
def intensity(k: View) -> Found | None:
    """How much arithmetic [FLOP] is done for each byte of DRAM traffic, against what the GPU could do."""
    done, ridge = k["arithmetic_intensity_dram"], k["ridge_point_fp32_dram"]
    if not k["flops_total"] or k.get("tensor_inst") != 0 or not ridge:
        return None  # tensor work has roofs of its own
    side = "below" if done < ridge else "above"
    return Found(
        f"The kernel does {brief(done)} FLOP for each byte of DRAM traffic, {side} the {brief(ridge)} at "
        "which FP32 and DRAM limit alike",
        "info",
        advice="Below that point only fewer bytes or more reuse can make full use of the arithmetic."
        if done < ridge
        else "Above it DRAM is no limit, however the data is laid out.",
    )


# ---- Scheduler and warp state: issue rate, eligible warps, how full a warp is

LOW_ISSUE = 0.6
"""[warp/cycle] Issue rate below which a scheduler wastes a visible part of its slots (ncu's own rule)."""

HALF_EMPTY = 24.0
"""[thread] Active threads per warp below which a quarter of the lanes is lost."""

PREDICATED = 6.0
"""[thread] Active threads per instruction that are predicated off."""


@rule("low-issue", family="scheduler", needs=("warps_issued_per_scheduler",))
def low_issue(k: View) -> Found | None:
    """A scheduler issues far less than one instruction a cycle."""
    issued = k["warps_issued_per_scheduler"]
    if issued >= LOW_ISSUE:
        return None
    rate = f"{brief(issued)} instructions a cycle" if issued else "nothing"
    eligible = k.get("warps_eligible_per_scheduler")
    warps = k.get("warps_active_per_scheduler")
    known = eligible is not None and warps is not None
    seen = f": of {brief(warps)} warps {brief(eligible)} are eligible" if known else ""
    return Found(
        f"Each scheduler issues {rate}{seen}",
        "low" if any(share.full for share in k.facts.shares.units.values()) else "medium",
        advice="More warps, or more independent instructions within each.",
        gain=Gain(100 * (1 - issued), "local", "of the issue slots, if every cycle issued an instruction"),
    )


@rule("well-fed", family="scheduler", needs=("warps_eligible_per_scheduler", "warps_issued_per_scheduler"))
def well_fed(k: View) -> Found | None:
    """More warps are ready than can issue: occupancy and latency are not the limit."""
    if fed(k.facts) is not True or k["warps_issued_per_scheduler"] < LOW_ISSUE:
        return None
    k.get("warps_per_scheduler")
    return Found(
        f"{brief(k['warps_eligible_per_scheduler'])} warps are ready for each issue slot and "
        f"{brief(100 * k['warps_issued_per_scheduler'], '%')} of the slots are used: there are enough warps",
        "info",
        advice="Fewer instructions for the same work are the lever; more occupancy is not.",
    )


@rule("stalls-disagree", family="scheduler", needs=("stall_cycles_selected", "stall_samples_selected"))
def stalls_disagree(k: View) -> Found | None:
    """Counters and samples saw different executions."""
    apart = k.facts.waits.disagreement if k.facts.waits is not None else None
    if apart is None or apart < DISAGREE:
        return None
    for state in states():
        k.get(f"stall_cycles_{state}")
        k.get(f"stall_samples_{state}")
    return Found(
        f"Stall counters and stall samples differ by {brief(apart, '%')}: the kernel did not do the same "
        "in every pass",
        "low",
        advice="Look for work that depends on timing or on what an earlier pass left behind; trust neither "
        "alone.",
    )


@rule("divergence", family="scheduler", needs=("active_threads_per_warp",))
def divergence(k: View) -> Found | None:
    """Only part of each warp's 32 threads is active."""
    threads = k["active_threads_per_warp"]
    if threads >= HALF_EMPTY:
        return None
    lost = 100 * (1 - threads / 32)
    severity: Severity = "high" if threads < 8 else "medium"
    where = places(k.source, _lost, "lane")
    return Found(
        f"{brief(threads)} of 32 threads are active in a mean warp instruction: {brief(lost, '%')} of the "
        "lanes are lost",
        severity,
        advice="Let the threads of a warp take the same branch and the same number of iterations; sort or "
        "bin the work.",
        detail=f"Of the idle lanes {first_place(where)}." if where else "",
        gain=k.relief(lost, "issue", *COMPUTE_UNITS),
        places=where,
    )


def _lost(cost: Cost) -> int | None:
    """Return how many lanes had nothing to do, summed over the executed instructions."""
    if cost.instructions is None or cost.threads is None:
        return None
    return max(0, 32 * cost.instructions - cost.threads)


@rule("predication", family="scheduler", needs=("active_threads_per_warp", "predicated_on_threads_per_warp"))
def predication(k: View) -> Found | None:
    """Active threads execute instructions that are predicated off for them."""
    off = k["active_threads_per_warp"] - k["predicated_on_threads_per_warp"]
    if off < PREDICATED:
        return None
    return Found(
        f"{brief(off)} of {brief(k['active_threads_per_warp'])} active threads are predicated off in a "
        "mean instruction",
        "low",
        advice="Short branches became predicates: skip whole warps instead where the condition is uniform.",
        gain=Gain(
            100 * off / k["active_threads_per_warp"],
            "local",
            "of the lanes that are active and predicated off",
        ),
    )
