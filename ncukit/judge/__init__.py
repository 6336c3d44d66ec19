"""What limits a launch, and why: rules that find, steps that decide, an experiment that would disprove it.

In reading order: `shares` (how full each unit was, why warps waited), `facts` (what steps and rules ask),
`grid` and `elimination` (the steps, in their order), `wording` and `ledger` (evidence in words), `verdict`;
`remedies/` (what to try first); `rule` and `rules/`; `source_view` and `sass`; `occupancy`, `memory_flow`,
`places`; `layers` and `advice` (where to look next); `effect` and `conclusion` (what an experiment shows).
Not here: reading, arithmetic on counters, drawing.
"""

from ncukit.judge import rules as _rules  # registers the rules
from ncukit.judge.facts import Facts
from ncukit.judge.ledger import FactsOnDemand, keep_view
from ncukit.judge.rule import RULES, apply_rules
from ncukit.judge.verdict import verdict
from ncukit.model import Diagnosis, Kernel, Roofline
from ncukit.roofline import place

__all__ = ["RULES", "diagnose"]

del _rules


def diagnose(kernel: Kernel, roofline: Roofline | None = None) -> Diagnosis:
    """Return the diagnosis of one launch; its place on the roofline is computed when it is not given.

    >>> from ncukit.model import RawKernel
    >>> diagnose(Kernel("", RawKernel(0, "f", "f()", ""), {}, failed="the pass failed")).verdict.cls
    'failed'
    """
    facts = Facts.of(kernel)
    findings, skipped = apply_rules(facts)
    keep_view(facts)
    return Diagnosis(
        kernel,
        place(kernel) if roofline is None else roofline,
        verdict(facts, findings),
        findings,
        skipped,
        facts.hot,
        FactsOnDemand(kernel, facts),
    )
