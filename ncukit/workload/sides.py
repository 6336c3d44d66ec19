"""Before an experiment: do both sides compute what they should?

Both cases are made in one process, each after the same seeds: cases that draw their inputs get the same.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ncukit.workload import script
from ncukit.workload.correct import Comparison, compare

SEED = 0


def check(options: argparse.Namespace, result: dict[str, Any]) -> bool:
    """Compare each side with its reference, and a variant without one with the baseline.

    Returns whether nothing is wrong; ``result["correctness"]`` has an entry for each side.
    """
    module = script.load(Path(options.script))
    found: list[dict[str, Any]] = []
    result["correctness"] = found
    base: Any = None
    for side, call, given in (
        ("baseline", options.baseline, options.baseline_param),
        ("variant", options.call, options.param),
    ):
        seed()
        case, _, _ = script.make_case(module, call, script.parse_parameters(given))
        tolerance = options.tolerance if case.tolerance is None else case.tolerance
        value = case.run()
        if case.reference is not None:
            row = _row(side, "its reference", compare(value, case.reference(), tolerance))
        elif side == "baseline":
            row = _unchecked(side, "the case has no reference")
        elif options.call == options.baseline and options.param != options.baseline_param:
            row = _unchecked(side, "the case has no reference, and a parameter may change what is computed")
        elif value is None and base is None:
            row = _unchecked(side, "run() returns nothing, and the case has no reference")
        else:
            row = _row(side, "the baseline's result", compare(value, base, tolerance))
        found.append(row)
        if row["state"] == "failed":
            print(f"wrong result of the {side}: {row['detail']}", file=sys.stderr)
            return False
        base = value
    return True


def seed() -> None:
    """Seed what a case may draw its inputs from."""
    import random

    random.seed(SEED)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(SEED)
    for name, call in (("torch", "manual_seed"), ("cupy", "random.seed")):
        function: Any = sys.modules.get(name)
        for part in call.split("."):
            function = getattr(function, part, None)
        if function is not None:
            function(SEED)


def _row(side: str, against: str, comparison: Comparison) -> dict[str, Any]:
    return {
        "side": side,
        "state": "passed" if comparison.passed else "failed",
        "against": against,
        "detail": comparison.detail,
        "tolerance": comparison.tolerance,
        "error": comparison.error,
        "elements": comparison.elements,
    }


def _unchecked(side: str, why: str) -> dict[str, Any]:
    return {"side": side, "state": "not-checked", "against": "nothing", "detail": why}
