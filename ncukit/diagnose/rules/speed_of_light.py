"""Speed of Light: which unit leads, whether the GPU was busy at all, at which clocks."""

from __future__ import annotations

from ncukit.catalog.units import load_units
from ncukit.diagnose.facts import SHORT, TINY
from ncukit.diagnose.rule import Found, Gain, View, rule
from ncukit.diagnose.steps.grid import QUIET
from ncukit.diagnose.steps.idle import BUSY_SMS
from ncukit.diagnose.words import listed, short

SAME_NUMBER = 1.0
"""[points] Two maxima this close with the same leading member are one measurement."""

LOW_CLOCK = 90.0
"""[%] of the highest clock: below, seconds and bandwidths are not those of a free run."""

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
    rest = f"; the next, {ranked[1].name}, reaches {short(ranked[1].percent, '%')}" if len(ranked) > 1 else ""
    if len(ranked) > 1:
        k.share(ranked[1].unit.id)
    return Found(
        f"{first.name} is the busiest unit at {short(first.percent, '%')} of peak{rest}",
        "high" if first.full else "medium",
        advice="Give it less to do; nothing else can help before that.",
    )


@rule("nothing-busy", family="speed_of_light", needs=("sm_throughput_pct", "memory_throughput_pct"))
def nothing_busy(k: View) -> Found | None:
    """No unit reaches 60 % of peak: the time goes into waiting or into empty SMs."""
    if k.facts.shares.top >= QUIET:
        return None
    return Found(
        f"No unit is busy: compute throughput {short(k['sm_throughput_pct'], '%')}, memory throughput "
        f"{short(k['memory_throughput_pct'], '%')}",
        "medium",
        advice="Look for waiting or missing work; making any unit faster would change little.",
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
        f"Compute and memory throughput both read {short(k['sm_throughput_pct'], '%')} because both are the "
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
        member = load_units().member(raw)
        second = f", then {members[1][0]} at {short(members[1][1], '%')}" if len(members) > 1 else ""
        said.append(
            f"{word} throughput ({short(value, '%')}) is its {raw if member is None else member.name}"
        )
        names.append(f"{raw} at {short(percent, '%')}{second}")
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


@rule("nothing-measured", family="speed_of_light", needs=())
def nothing_measured(k: View) -> Found | None:
    """Neither throughputs nor stall reasons were collected."""
    if k.facts.shares.units or k.facts.waits is not None:
        return None
    has = [word for id, word in MEASURED.items() if k.get(id) is not None]
    return Found(
        "Neither throughputs, pipes nor stall reasons were collected"
        + (f", only {listed(has)}" if has else ", and no duration either"),
        "info",
        advice="Profile with --set full, or at least --section SpeedOfLight --section WarpStateStats.",
    )


MEASURED = {
    "kernel_duration": "the duration",
    "waves_per_sm": "the launch configuration",
    "achieved_occupancy_pct": "the achieved occupancy",
    "inst_executed": "instruction counts",
    "dram_bytes": "DRAM bytes",
}


@rule("idle-sms", family="speed_of_light", needs=("sm_active_pct",))
def idle_sms(k: View) -> Found | None:
    """SMs had no work for part of the elapsed cycles [%]."""
    idle = 100 - k["sm_active_pct"]
    if k["sm_active_pct"] >= BUSY_SMS:
        return None
    return Found(
        f"SMs are idle for {short(idle, '%')} of the elapsed cycles",
        "high" if idle >= 30 else "medium",
        advice="More or more equal blocks: split the work finer, or let each block fetch its next piece.",
        gain=Gain(idle, "global", "the idle time, if every SM worked to the end"),
    )


@rule("over-at-once", family="speed_of_light", needs=("kernel_duration",))
def over_at_once(k: View) -> Found | None:
    """The launch is so short [s] that starting it is a visible part of it."""
    duration = k["kernel_duration"]
    if duration >= SHORT:
        return None
    if duration < TINY:
        return Found(
            f"The launch takes {short(duration, 's')}: launch latency is most of what was measured",
            "high",
            advice="Do more in one launch: batch, fuse with a neighbour, or put the launches into a CUDA "
            "graph.",
        )
    return Found(
        f"The launch takes {short(duration, 's')}: ramp-up and drain are a visible part of it",
        "low",
        advice="Judge rates on a larger input; ratios of counters from different passes are noisy here.",
    )


@rule("sm-clock", family="speed_of_light", needs=("sm_clock_share_pct",))
def sm_clock(k: View) -> Found | None:
    """The SM clock [Hz] of the run was below the highest of the device."""
    if k["sm_clock_share_pct"] >= LOW_CLOCK:
        return None
    return Found(
        f"The SMs ran at {short(k.get('sm_clock'), 'hz')}, {short(k['sm_clock_share_pct'], '%')} of their "
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
        f"DRAM ran at {short(k.get('dram_clock'), 'hz')}, {short(k['dram_clock_share_pct'], '%')} of its "
        "highest clock",
        "info",
        advice="A full DRAM shows here in percent of peak, not in GB/s.",
    )
