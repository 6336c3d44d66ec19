"""What the page of a run shows besides the launch: clean time, isolation, what is missing, how it was run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from ncukit import quantity
from ncukit.media import command
from ncukit.model.run import Run, StepRecord, Timing
from ncukit.render.cells import Cell, Tips, plain
from ncukit.render.line import Line, bold, code, line, small
from ncukit.render.model.shown import ratio_rows, side
from ncukit.render.run.load import RunPage, launches_per_call
from ncukit.render.view.quality import fact
from ncukit.render.words import plural, shorten

TIMERS = {
    "cuda-events": "CUDA events, no profiler attached",
    "host-synchronised": "host clock with synchronisation, launching included: not GPU time alone",
    "host": "host clock on the CPU: not GPU time",
    "process": "the whole program once, host clock: not GPU time",
}
PROOFS = {"proven": ("ok", "proven"), "denied": ("bad", "denied"), "unknown": ("no", "not proven")}
STEPS = {
    "compile": "Compile",
    "timing": "Clean timing",
    "driver": "Driver",
    "timeline": "Timeline",
    "choice": "Choice of the launch",
    "counters": "Counters",
    "report": "Report",
}
UNCHANGED = {"base": "locked to base", "none": "not locked", "all": "flushed before every pass"}


def clean_time(timing: Timing | None, tips: Tips) -> Line:
    """Return the clean time as the masthead shows it: a GPU time, or words."""
    if timing is None:
        return line(_missing("not measured"))
    if not timing.is_gpu_time:
        return line(_missing("no GPU time"), " ", small(f"{seconds(timing.median)}, {TIMERS[timing.timer]}"))
    spread = f"n {timing.n:,}, IQR {seconds(timing.iqr)}, {'cold' if timing.l2_flush else 'warm'} L2"
    return line(_time(tips, "clean_time", timing.median, "Median without any profiler"), " ", small(spread))


def run_section(page: RunPage, tips: Tips) -> dict[str, Any]:
    """Return the section "How it was measured"."""
    run = page.run
    return {
        "sentence": line(_sentence(page)),
        "timing": _timing_rows(page.timing, tips) + _model_rows(page, tips),
        "against": _against(page),
        "isolation": _isolation(run),
        "reasons": [line(text) for text in (run.launch or {}).get("reasons", ())],
        "missing": missing(run),
        "notes": [line(note) for note in run.notes],
        "steps": [_step(step) for step in run.steps if step.name != "report"],
    }


def missing(run: Run) -> list[dict[str, Any]]:
    """Return what failed, each with its cause and what to do."""
    found = []
    for step in run.steps:
        if step.failure is not None:
            cause = step.failure
            found.append(
                {
                    "name": STEPS.get(step.name, step.name),
                    "code": str(cause.get("code", "")),
                    "text": line(shorten(str(cause.get("message", "")), 400)),
                    "hint": line(shorten(str(cause.get("hint", "")), 600)),
                }
            )
    return found


def quality_facts(page: RunPage, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the facts of the quality box, with what the run recorded in the place of what it did not."""
    run, found = page.run, {f["id"]: f for f in facts}
    if run.clock_control is not None and "clocks" in found:
        known = line(f"Clock control: {UNCHANGED.get(run.clock_control, run.clock_control)}. ")
        old = found["clocks"]
        kept = old.get("besides", old["text"])
        found["clocks"] = {**old, "text": known + kept}
        if run.clock_control == "none" and old["status"] == "ok":
            found["clocks"] = fact("clocks", "warn", "unlocked", known + kept)
    if run.cache_control is not None and "caches" in found:
        words = UNCHANGED.get(run.cache_control) if run.cache_control == "all" else "left as they were"
        status = "ok" if run.cache_control == "all" else "warn"
        text = line(f"Caches {words}. ", small("The clean time says whether its L2 was cold too."))
        found["caches"] = fact("caches", status, "cold" if status == "ok" else "warm", text)
    if run.isolation is not None:
        status, word = PROOFS[run.isolation.verdict]
        found["which"] = fact("which", status, word, line(sentence(run.isolation.words)))
    ordered = list(found.values())
    cautions = [f for f in ordered if f["status"] in ("warn", "bad")]
    return cautions + [f for f in ordered if f not in cautions] if len(cautions) > 2 else ordered


def provenance_rows(page: RunPage, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the provenance, with what the run recorded in the place of what it did not."""
    run = page.run
    tools = ", ".join(f"{name} {tool.get('version') or 'missing'}" for name, tool in run.tools.items())
    driver = " / ".join(str(part) for part in (run.driver.get("kernel"), run.driver.get("cuda")) if part)
    gpu = run.gpu or {}
    own: dict[str, Line] = {
        "Profiled with": line(
            *(_command_line(step) for step in run.steps if step.name == "counters" and step.command)
        )
        or line("ncu did not run."),
        "Versions": line(f"ncukit {run.version}, {tools or 'no tools'}; driver {driver or 'unknown'}."),
        "Clock control": line(f"{run.clock_control or 'ncu did not run'}."),
        "Cache control": line(f"{run.cache_control or 'ncu did not run'}."),
        "GPU": line(f"{gpu.get('name') or 'none'}; UUID ", code(str(gpu.get("uuid") or "unknown"))),
    }
    found = [{"name": row["name"], "text": own.pop(row["name"], row["text"])} for row in rows]
    extra: list[tuple[str, Line]] = [("Run", line(f"{run.created}, ", code(page.path.name)))]
    if run.git:
        changed = ", modified" if run.git.get("modified") else ""
        extra.append(("Revision", line(code(str(run.git["revision"])), changed)))
    if source := run.target.get("source"):
        hashed = code(str(run.target.get("sha256")))
        extra.append(("Program", line(code(PurePath(str(source)).name), ", sha256 ", hashed)))
    if withheld := run.environment.get("withheld"):
        extra.append(("Withheld", line(f"variables that look like secrets: {', '.join(withheld)}")))
    rest = [{"name": name, "text": text} for name, text in (*own.items(), *extra)]
    return found[:-1] + rest + found[-1:]


def sentence(words: str) -> str:
    """Return words as a sentence: capital first, full stop last."""
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith('.') else '.'}"


def seconds(value: float) -> str:
    """Return a duration [s] in words."""
    return quantity.short(value, "s")


def _sentence(page: RunPage) -> str:
    run = page.run
    gained = [
        ("a clean time", page.timing is not None and page.timing.is_gpu_time),
        (f"a timeline ({page.tracer})", page.timeline is not None),
        ("counters", page.diagnosis is not None),
    ]
    have = [name for name, there in gained if there]
    lack = [name.split(" (")[0].removeprefix("a ") for name, there in gained if not there]
    proof = f" Isolation {run.isolation.words}." if run.isolation is not None else ""
    text = f"This run has {', '.join(have) or 'nothing of the GPU'}"
    return f"{text}{'; missing: ' + ', '.join(lack) if lack else ''}.{proof}"


def _timing_rows(timing: Timing | None, tips: Tips) -> list[dict[str, Any]]:
    if timing is None:
        return []
    t = timing
    rows: list[tuple[str, Line]] = [
        ("Clock", line(TIMERS.get(t.timer, t.timer))),
        ("Median", line(_time(tips, "clean_median", t.median, f"Median, {TIMERS.get(t.timer, t.timer)}"))),
    ]
    if t.n > 1:
        rows.append(
            (
                "Spread",
                line(f"{quantity.span(t.min, t.max, 's')}, quartiles {seconds(t.iqr)} apart, n {t.n:,}"),
            )
        )
    if t.calls_per_sample > 1:
        rows.append(("Sample", line(f"the mean of {t.calls_per_sample:,} calls")))
    if t.l2_flush is not None:
        rows.append(
            ("L2", line("flushed before every sample" if t.l2_flush else "left warm (--no-l2-flush)"))
        )
    if t.warmup is not None:
        how = "two successive timings agreed" if t.settled else "the limit: timings did not settle"
        rows.append(("Warm-up", line(f"{plural(t.warmup, 'call')}, until {how}")))
    if checked := t.correctness.get("state"):
        words = {"passed": "correct", "failed": "wrong", "not-checked": "not checked"}.get(checked, checked)
        rows.append(("Result", line(bold(words), f": {t.correctness.get('detail') or ''}")))
    if t.params:
        rows.append(("Parameters", line(", ".join(f"{k} = {v}" for k, v in t.params.items()))))
    rows += [("Clocks", text) for text in _clocks(t.clocks)]
    rows += [("Note", line(note)) for note in t.notes]
    return [{"name": name, "text": text} for name, text in rows]


def _clocks(clocks: Mapping[str, Any]) -> list[Line]:
    found = []
    for when in ("before", "after"):
        facts = clocks.get(when) or {}
        if reason := facts.get("reason"):
            return [line(f"not read: {reason}")]
        if facts.get("sm_clock") is not None:
            hot = f", {facts['temperature']} °C" if facts.get("temperature") is not None else ""
            slow = f"; throttled: {', '.join(facts['throttled'])}" if facts.get("throttled") else ""
            text = f"SM {quantity.short(facts['sm_clock'], 'hz')} {when} timing{hot}{slow}"
            found.append(line(text))
    return found


def _model_rows(page: RunPage, tips: Tips) -> list[dict[str, Any]]:
    model, timing = page.model, page.timing
    if model is None or timing is None:
        return []
    flop, moved = model.total_flop, model.bytes
    text = f"{model.name}: {quantity.short(flop, 'FLOP')}, {quantity.short(moved, 'byte')} at least"
    rows = [{"name": "Model", "text": line(text)}]
    if timing.is_gpu_time and timing.median > 0:
        rates = (
            quantity.short(flop / timing.median, "FLOP/s"),
            quantity.short(moved / timing.median, "byte/s"),
        )
        rows.append({"name": "At the clean time", "text": line(f"{', '.join(rates)} of the model's work")})
    return rows


def _against(page: RunPage) -> dict[str, Any] | None:
    """Return the captured launch against the model of the case: bound, floor, ratios."""
    found = page.estimate
    if found is None:
        return None
    texts = [f"{found.model.name} in {found.model.dtype}."]
    if found.floor is not None:
        bound = f"{quantity.short(found.bound, 'FLOP/s')}, " if found.bound else ""
        texts.append(f"Bound at the peaks of the profiled run: {bound}{side(found)}.")
        texts.append(f"Time floor {seconds(found.floor.seconds)}.")
        if page.timing is not None and page.timing.is_gpu_time and found.seconds:
            times = quantity.significant(found.seconds / found.floor.seconds)
            texts.append(f"The clean time is {times} times the floor, at clocks of its own.")
    texts += [f"Unknown: {why}." for why in found.missing]
    if (several := launches_per_call(page)) > 1:
        texts.append(f"The model describes all {several} launches of a call, the counters one of them.")
    return {"sentence": line(" ".join(texts)), "ratios": ratio_rows(found)}


def _isolation(run: Run) -> dict[str, Any] | None:
    proof = run.isolation
    if proof is None:
        return None
    status, word = PROOFS[proof.verdict]
    return {
        "status": status,
        "word": word,
        "text": line(sentence(proof.words)),
        "repeated": proof.repeated,
        "rows": [
            {
                "name": row.name,
                "chosen": shorten(row.chosen or "unknown", 160),
                "captured": shorten(row.captured or "unknown", 160),
                "same": {True: "same", False: "different", None: "not compared"}[row.same],
                "bad": row.same is False,
            }
            for row in proof.compared
        ],
    }


def _step(step: StepRecord) -> dict[str, Any]:
    exit_code = "–" if step.exit_code is None else str(step.exit_code)
    return {
        "name": STEPS.get(step.name, step.name),
        "state": step.state,
        "seconds": "–" if step.seconds is None else seconds(step.seconds),
        "exit": exit_code,
        "attempts": step.attempts,
        "command": _command(step),
        "brief": shorten(_command(step), 80),
        "notes": [line(note) for note in step.notes] if step.name != "choice" else [],
    }


def _command(step: StepRecord) -> str:
    """Return the command with base names only."""
    return command(_base_name(word) for word in step.command)


def _base_name(word: str) -> str:
    option, equals, value = word.partition("=")
    if equals and option.startswith("--") and "/" in value:
        return f"{option}={PurePath(value).name}"
    return PurePath(word).name if word.startswith("/") else word


def _command_line(step: StepRecord) -> Any:
    return code(shorten(_command(step), 2000))


def _time(tips: Tips, key: str, value: float, meaning: str) -> Cell:
    tip = tips.computed(0, key, quantity.full(value, "s"), "exact", meaning, "")
    return {"text": seconds(value), "state": "exact", "tip": tip}


def _missing(words: str) -> Cell:
    return {**plain(words), "state": "missing"}
