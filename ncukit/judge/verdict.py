"""The verdict on one launch: top-down elimination, evidence, confidence, the next experiment."""

from __future__ import annotations

from collections.abc import Sequence

from ncukit.judge.elimination import decide
from ncukit.judge.facts import Call, Facts
from ncukit.judge.ledger import claim, ledger
from ncukit.judge.remedies.proposal import propose
from ncukit.judge.wording import Wording
from ncukit.media import sentence
from ncukit.metrics import load
from ncukit.model import Finding, Verdict

SIDES = {
    "kernel_duration": "the duration",
    "sm_throughput_pct": "how busy the SMs were",
    "memory_throughput_pct": "how busy the memory system was",
    "dram_throughput_pct": "how busy DRAM was",
    "warps_issued_per_scheduler": "the issue rate",
}
"""What would have to be known to decide, in the order in which it is asked for."""

PARTS_OF_L1 = (
    "Which part of L1/TEX was busy (pipe_lsu_pct, lsu_wavefronts_pct): not in this file. A printed details "
    "page leaves it out: read the report or its raw page. `--section ComputeWorkloadAnalysis "
    "--section SpeedOfLight` collects it."
)

KNOWN_BY = {"dram_throughput_pct": "dram", "warps_issued_per_scheduler": "issue"}
"""Units whose share answers the same question."""

STALLS_DECIDE = ("undetermined", "latency-bound", "balanced")
NO_STALLS_NEEDED = ("small-grid", "tail")
"""Causes that the launch configuration shows, whatever the warps wait for."""

STALLS = "stall_cycles_global_memory_dependency"


def verdict(facts: Facts, findings: Sequence[Finding] = (), *, advise: bool = True) -> Verdict:
    """Return what limits the launch; ``findings`` of the rules choose the experiment, if one is advised."""
    call = decide(facts)
    wording = Wording(facts, call)
    first, others = propose(facts, call, findings) if advise else (None, ())
    if call.cls in ("failed", "undetermined"):
        return Verdict(
            call.cls,
            None,
            "high" if call.cls == "failed" else "low",
            claim(call, wording),
            experiment=first,
            missing=missing(facts, call),
            alternatives=others,
        )
    rows = ledger(call, wording)
    return Verdict(
        call.cls,
        call.limiter,
        rows.confidence(call.cap),
        claim(call, wording),
        rows.supporting,
        rows.against,
        first,
        missing(facts, call),
        others,
    )


def missing(facts: Facts, call: Call) -> tuple[str, ...]:
    """Return what was not collected and would decide (more), each with the options that collect it."""
    if call.cls == "failed":
        return ()
    lacking = list(SIDES) if call.cls == "undetermined" else []
    sentences = [_lacking(facts, id, SIDES[id]) for id in lacking if _unknown(facts, id)]
    if call.entry.endswith("/part-unknown"):
        sentences.append(PARTS_OF_L1)
    if facts.waits is None and call.cls in STALLS_DECIDE and call.limiter not in NO_STALLS_NEEDED:
        sentences.append(_lacking(facts, STALLS, "why warps wait"))
    return tuple(sentences)


def _unknown(facts: Facts, id: str) -> bool:
    """Return whether nothing says what ``id`` would, although it is counted on this GPU."""
    value = facts.kernel.metrics.get(id)
    never = value is not None and value.status == "absent"
    return not never and facts.number(id) is None and facts.shares.get(KNOWN_BY.get(id, "")) is None


def _lacking(facts: Facts, id: str, what: str) -> str:
    value = facts.kernel.metrics.get(id)
    reason = (value.reason if value is not None else None) or "not in the report"
    metric = load().metrics[id]
    command, unread = metric.command, value is not None and value.status == "missing"
    if command and unread and metric.collected_by != "always":
        return f"{sentence(what)}: not collected; `{command}` collects it."
    return f"{sentence(what)}: {reason}."
