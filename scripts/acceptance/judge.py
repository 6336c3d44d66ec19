"""What each step must show, read from what its command printed and wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scripts.acceptance.measured import Measured
from scripts.acceptance.outcome import Check, Outcome

NOT_MEASURED = ("permission", "library-not-loaded", "busy")
"""Codes of a machine that lets nobody read its counters: that is then the result."""
NO_NSYS = ("tool-missing", "tool-too-old")
WORK = (("flop", "flops_total", (0.9, 1.35)), ("bytes", "dram_bytes", (0.5, 4.0)))
"""Counted work against the analytic model: padding of tiles costs up to a third, less work than the model
needs is wrong; caches that keep the output save half of the bytes, re-reading costs more.  The header of a
workload may say otherwise."""


def ends_with(*codes: int) -> Any:
    """Return a judge that only looks at the exit code."""

    def judge(outcome: Outcome) -> tuple[Check, ...]:
        return (_code(outcome, *codes),)

    return judge


def environment(outcome: Outcome) -> tuple[Check, ...]:
    """Torch starts and sees a GPU; its versions are noted."""
    found = outcome.document()
    noted = [Check(name, "noted", str(value)) for name, value in found.items() if name != "gpu"]
    gpu = found.get("gpu")
    return (_code(outcome, 0), Check("GPU of torch", "any", str(gpu), bool(gpu)), *noted)


def doctor(outcome: Outcome) -> tuple[Check, ...]:
    """The tool chain is looked at whole; what does not work is listed with its remedy."""
    checks = outcome.document().get("checks", [])
    broken = [f"{check['id']}: {check['state']}" for check in checks if check["state"] != "pass"]
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
    """Return the judge of a profiled workload: ``expect`` is its header's, ``model`` its analytic work.

    Without nsys a program that cannot be marked has no timeline, and the run is incomplete.  Without
    counters its page rests on timing and trace; where there are none either, nothing was seen of the GPU.
    """

    def judge(outcome: Outcome) -> tuple[Check, ...]:
        found = Measured.of(outcome)
        code = found.failure("counters")
        if code in NOT_MEASURED:
            page = "a page from timing and trace" if found.run.get("page") else "no page"
            return (
                _code(outcome, 5 if found.seen_without_counters else 3),
                Check("page", "yes" if found.seen_without_counters else "noted", page, _page(found)),
                Check("counters", "measured", f"not measured ({code})"),
                *_region(expect, found),
                *_times(found),
            )
        no_timeline = found.failure("timeline") in NO_NSYS
        return (
            _code(outcome, 5 if no_timeline else 0),
            *_diagnosis(expect, found.kernel),
            *_region(expect, found),
            *_isolation(found, no_timeline),
            *_work(found, model, expect.get("counted", {})),
            *_times(found),
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
    """Return the judge of a sweep: every point is there, with counters where they can be read."""

    def judge(outcome: Outcome) -> tuple[Check, ...]:
        found = outcome.document().get("points", [])
        there = Check("points", str(points), str(len(found)), len(found) == points)
        codes = {(point.get("error") or {}).get("code") for point in found}
        if codes and codes <= set(NOT_MEASURED):
            return (_code(outcome, 5), there, Check("counters", "measured", f"not measured ({codes.pop()})"))
        return (_code(outcome, 0), there)

    return judge


def skipped(outcome: Outcome) -> tuple[Check, ...]:
    """Whether ncu counts launches outside the marks for ``--launch-skip``: noted, and never assumed."""
    found = outcome.document()
    inside, after = found.get("inside", []), found.get("after_one", [])
    what = "launches outside the marks count for --launch-skip"
    if len(inside) != 3 or len(after) != 1:
        said = found.get("said") or "ncu printed no grid"
        return (Check(what, "no", f"unknown: captured {inside} and {after}; {said}"),)
    counted = after[0] != inside[1]
    return (Check(what, "no", f"{'yes' if counted else 'no'}: of {inside} it took {after[0]}", not counted),)


def _code(outcome: Outcome, *codes: int) -> Check:
    found = "stopped" if outcome.code is None else str(outcome.code)
    return Check("exit code", " or ".join(map(str, codes)), found, outcome.code in codes)


def _page(found: Measured) -> bool | None:
    return bool(found.run.get("page")) if found.seen_without_counters else None


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


def _region(expect: Mapping[str, Any], found: Measured) -> list[Check]:
    """The class of the traced region, from whichever trace the run has."""
    if not expect.get("region"):
        return []
    said = found.region or "no trace"
    return [Check("region", " or ".join(expect["region"]), said, said in expect["region"])]


def _isolation(found: Measured, no_timeline: bool) -> list[Check]:
    proof = found.run.get("isolation") or {}
    verdict, words = proof.get("verdict", "unknown"), str(proof.get("words", ""))
    met = None if verdict == "unknown" and no_timeline else verdict == "proven"
    said = verdict if met or not words else words
    return [Check("the launch captured is the launch chosen", "proven", said, met)]


def _work(found: Measured, model: Mapping[str, Any] | None, ranges: Mapping[str, Any]) -> list[Check]:
    """Counters of the launch against the analytic model of the call, as measured / model.

    They are judged only where that launch makes up the call.
    """
    work = found.timing.get("model") or model or {}
    why = None if model is not None else found.other_launches
    checks = []
    for what, metric, usual in WORK:
        analytic, counted = work.get(what), found.metric(metric)
        judged = ranges.get(what, usual)
        expected = f"{judged[0]} to {judged[1]}" if judged and not why else "noted"
        if not analytic or counted is None:
            reason = "the model has none" if not analytic else found.reason(metric)
            checks.append(
                Check(f"{metric} / model", "noted" if not analytic else expected, f"unknown: {reason}")
            )
            continue
        ratio = counted / analytic
        met = judged[0] <= ratio <= judged[1] if judged and not why else None
        said = f"{ratio:.3f}" + (f" (not judged: {why})" if why else "")
        checks.append(Check(f"{metric} / model", expected, said, met))
    return checks


def _times(found: Measured) -> list[Check]:
    clean, profiled_time = found.timing.get("median"), found.metric("kernel_duration")
    seconds = {step["name"]: step["seconds"] for step in found.run.get("steps", []) if step.get("seconds")}
    took = ", ".join(f"{name} {value:.1f}" for name, value in seconds.items())
    parts = []
    if clean:
        timer = found.timing.get("timer")
        what = "the whole program" if timer == "process" else "a call"
        parts.append(f"{what} {clean * 1e6:.2f} us ({timer})")
    if profiled_time:
        parts.append(f"the launch under ncu {profiled_time * 1e6:.2f} us")
    return [
        Check("clean against profiled time", "noted", ", ".join(parts) or "unknown"),
        Check("seconds of each step", "noted", took),
    ]


def _flat(value: Any, limit: int = 300) -> str:
    if isinstance(value, Mapping):
        value = ", ".join(f"{key} {_flat(one)}" for key, one in value.items() if one is not None)
    if isinstance(value, list):
        value = "; ".join(map(_flat, value))
    return str(value)[:limit]
