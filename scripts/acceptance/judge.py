"""What each step must show, read from what its command printed and wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ncukit
from scripts.acceptance.outcome import Check, Outcome

NOT_MEASURED = ("permission", "library-not-loaded", "busy")
"""Codes of a machine that lets nobody read its counters: that is then the result."""
COUNTER_RATIO = (0.9, 1.35)
"""Counted work against the analytic model: padding of tiles costs up to a third; less work than the model
needs is wrong."""
BYTE_RATIO = (0.5, 4.0)
"""DRAM bytes against the compulsory ones: caches that keep the output save half, re-reading costs more."""


WORK = (("flop", "flops_total", COUNTER_RATIO), ("bytes", "dram_bytes", BYTE_RATIO))


def ends_with(*codes: int) -> Any:
    """Return a judge that only looks at the exit code."""

    def judge(outcome: Outcome) -> tuple[Check, ...]:
        return (_code(outcome, *codes),)

    return judge


def doctor(outcome: Outcome) -> tuple[Check, ...]:
    """The tool chain is looked at whole; what does not work is listed with its remedy."""
    checks = outcome.document().get("checks", [])
    broken = [f"{check['id']}: {check['state']}" for check in checks if check["state"] not in ("pass", "ok")]
    return (
        Check("links checked", "1 or more", str(len(checks)), bool(checks)),
        Check("links that do not work", "noted", "; ".join(broken) or "none"),
    )


def probes(outcome: Outcome) -> tuple[Check, ...]:
    """Every probe gives a result; one that cannot says why."""
    found = outcome.document().get("probes", [])
    listed = [
        Check(
            f"probe {probe['name']}",
            "done",
            _flat(probe["result"]) if probe["state"] == "done" else f"{probe['state']}: {probe['reason']}",
            probe["state"] == "done",
        )
        for probe in found
    ]
    return (_code(outcome, 0), *listed)


def profiled(expect: Mapping[str, Any], model: Mapping[str, Any] | None = None) -> Any:
    """Return the judge of a profiled workload: ``expect`` is its header's, ``model`` its analytic work."""

    def judge(outcome: Outcome) -> tuple[Check, ...]:
        run, timing, metrics = outcome.document(), outcome.file("timing.json"), outcome.file("metrics.json")
        code = (run.get("error") or {}).get("code")
        if code in NOT_MEASURED:
            page = "a page from timing and trace" if run.get("page") else "no page"
            return (_code(outcome, 5), Check("counters", "measured", f"not measured ({code}); {page}"))
        kernel = (metrics.get("kernels") or [{}])[0]
        return (
            _code(outcome, 0),
            *_diagnosis(expect, kernel),
            *_region(expect, outcome),
            *_isolation(run),
            *_work(timing.get("model") or model, kernel.get("metrics", {})),
            *_times(timing, kernel.get("metrics", {}), run),
        )

    return judge


def refuses(code: str, *exit_codes: int) -> Any:
    """Return the judge of a command that must fail with the stable ``code``."""

    def judge(outcome: Outcome) -> tuple[Check, ...]:
        found = outcome.error().get("code") or "no error"
        return (_code(outcome, *exit_codes), Check("error code", code, str(found), found == code))

    return judge


def compared(outcome: Outcome) -> tuple[Check, ...]:
    """The experiment tells the tiled product from the naive one."""
    record = outcome.document()
    conclusion = record.get("conclusion") or {}
    code = conclusion.get("code", "none")
    return (
        _code(outcome, 0),
        Check("conclusion", "improved", code, code == "improved"),
        Check("its words", "noted", conclusion.get("claim", "")),
    )


def swept(points: int) -> Any:
    """Return the judge of a sweep: every point is there."""

    def judge(outcome: Outcome) -> tuple[Check, ...]:
        found = outcome.document().get("points", [])
        return (_code(outcome, 0), Check("points", str(points), str(len(found)), len(found) == points))

    return judge


def skipped(outcome: Outcome) -> tuple[Check, ...]:
    """Whether ncu counts launches outside the marks for ``--launch-skip``: noted, and never assumed."""
    found = outcome.document()
    inside, after = found.get("inside", []), found.get("after_one", [])
    what = "launches outside the marks count for --launch-skip"
    if len(inside) != 3 or len(after) != 1:
        return (Check(what, "no", f"unknown: captured {inside} and {after}"),)
    counted = after[0] != inside[1]
    return (Check(what, "no", f"{'yes' if counted else 'no'}: of {inside} it took {after[0]}", not counted),)


def _code(outcome: Outcome, *codes: int) -> Check:
    found = "stopped" if outcome.code is None else str(outcome.code)
    return Check("exit code", " or ".join(map(str, codes)), found, outcome.code in codes)


def _diagnosis(expect: Mapping[str, Any], kernel: Mapping[str, Any]) -> list[Check]:
    verdict = kernel.get("verdict") or {}
    named = ":".join(filter(None, (verdict.get("class"), verdict.get("limiter"))))
    allowed = [one for one in expect["verdict"] if not one.startswith("region ")]
    found = {finding["id"] for finding in kernel.get("findings", [])}
    checks = [Check("verdict", " or ".join(allowed), named or "none", named in allowed)]
    for wanted in expect.get("findings", ()):
        seen = sorted(found & set(wanted.split("|")))
        checks.append(
            Check("finding", wanted.replace("|", " or "), ", ".join(seen) or "not found", bool(seen))
        )
    for unwanted in expect.get("absent", ()):
        said = "found" if unwanted in found else "not found" if kernel else "unknown: no counters"
        checks.append(Check("no finding", unwanted, said, unwanted not in found if kernel else None))
    return checks


def _region(expect: Mapping[str, Any], outcome: Outcome) -> list[Check]:
    """The class of the traced region, from whichever trace the run has."""
    if not expect.get("region"):
        return []
    names = ("timeline.sqlite", "timeline.json.gz")
    traces = [outcome.folder / name for name in names if outcome.folder and (outcome.folder / name).exists()]
    try:
        found = ncukit.timeline(traces[0]).region.cls if traces else "no trace"
    except ncukit.NcukitError as error:
        found = error.message
    return [Check("region", " or ".join(expect["region"]), found, found in expect["region"])]


def _isolation(run: Mapping[str, Any]) -> list[Check]:
    proof = (run.get("isolation") or {}).get("verdict", "unknown")
    return [Check("the launch captured is the launch chosen", "proven", proof, proof == "proven")]


def _work(model: Mapping[str, Any] | None, metrics: Mapping[str, Any]) -> list[Check]:
    """Counters against the analytic model, as measured / model."""
    checks = []
    for what, metric, (low, high) in WORK:
        analytic, counted = (model or {}).get(what), (metrics.get(metric) or {}).get("value")
        if not analytic or counted is None:
            reason = (metrics.get(metric) or {}).get("reason") or "no model"
            checks.append(Check(f"{metric} / model", f"{low} to {high}", f"unknown: {reason}"))
            continue
        ratio = counted / analytic
        checks.append(Check(f"{metric} / model", f"{low} to {high}", f"{ratio:.3f}", low <= ratio <= high))
    return checks


def _times(timing: Mapping[str, Any], metrics: Mapping[str, Any], run: Mapping[str, Any]) -> list[Check]:
    clean, profiled_time = timing.get("median"), (metrics.get("kernel_duration") or {}).get("value")
    seconds = {step["name"]: step["seconds"] for step in run.get("steps", []) if step.get("seconds")}
    took = ", ".join(f"{name} {value:.1f}" for name, value in seconds.items())
    both = "unknown"
    if clean and profiled_time:
        both = f"{clean * 1e6:.2f} / {profiled_time * 1e6:.2f} us ({timing.get('timer')})"
    return [
        Check("clean time of a call / profiled kernel", "noted", both),
        Check("seconds of each step", "noted", took),
    ]


def _flat(value: Any, limit: int = 300) -> str:
    if isinstance(value, Mapping):
        value = ", ".join(f"{key} {_flat(one)}" for key, one in value.items() if one is not None)
    if isinstance(value, list):
        value = "; ".join(map(_flat, value))
    return str(value)[:limit]
