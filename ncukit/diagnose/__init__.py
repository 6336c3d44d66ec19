"""What limits a launch, and why: rules that find, steps that decide, an experiment that would disprove it.

What belongs here: judgement on neutral metrics.  Not here: reading, arithmetic on counters (normalise,
roofline), drawing.  ``timeline`` judges traces in the same manner.
"""

from ncukit.diagnose import rules as _rules  # registers the rules
from ncukit.diagnose.facts import Facts
from ncukit.diagnose.launch_facts import FactsOnDemand, keep_view
from ncukit.diagnose.rule import RULES, apply_rules
from ncukit.diagnose.verdict import verdict
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
