"""What ncu's own rules say: a second opinion, with global and local gains in columns of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ncukit import quantity
from ncukit.model import RuleResult
from ncukit.render.words import LIMITERS, plural

ABOUT: Mapping[str, frozenset[str]] = {
    "SharedMemoryConflicts": frozenset({"shared"}),
    "UncoalescedSharedAccess": frozenset({"shared"}),
    "UncoalescedGlobalAccess": frozenset({"dram", "l2", "l1", "lsu-issue"}),
    "MemoryCacheAccessPattern": frozenset({"dram", "l2", "l1"}),
    "MemoryL2Compression": frozenset({"dram", "l2"}),
    "SlowPipeLimiter": frozenset({"fp64", "fp32", "fp16", "int", "xu", "tensor"}),
    "FPInstructions": frozenset({"fp32", "fp64"}),
    "HighPipeUtilization": frozenset({"fp64", "fp32", "fp16", "int", "xu", "tensor", "lsu-issue"}),
    "IssueSlotUtilization": frozenset({"occupancy", "dependency", "synchronisation"}),
    "CPIStall": frozenset({"dependency", "synchronisation", "occupancy"}),
    "CPIStallBarrier": frozenset({"synchronisation"}),
    "CPIStallLongScoreboard": frozenset({"dependency", "dram", "l2", "l1"}),
    "ThreadDivergence": frozenset({"imbalance"}),
    "LaunchConfiguration": frozenset({"small-grid", "tail"}),
    "AchievedOccupancy": frozenset({"occupancy", "imbalance", "tail"}),
    "TheoreticalOccupancy": frozenset({"occupancy"}),
    "Occupancy": frozenset({"occupancy"}),
    "WorkloadImbalance": frozenset({"imbalance", "tail", "small-grid"}),
}
"""Rule -> the limiters it speaks of.  A rule that is not here is shown without a judgement."""

SENTENCE = (
    "A second opinion. Gains are ncu’s own: global is the share of the kernel’s time, local only that of one "
    "unit; the two cannot be compared."
)
_MARKUP = re.compile(r"@(?:section|url|source|sass):([^:@]*)(?::[^@]*)?@")
_PATH = re.compile(r"(?:/[\w.+-]+){2,}/?|[A-Za-z]:\\[\w.\\+-]+")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\).*", re.DOTALL)
_LONG = 90


def opinion(rules: Iterable[RuleResult], cls: str, limiter: str | None) -> dict[str, Any]:
    """Return the rules with a message, by global gain, what was dropped, and the errors as one line."""
    rows: list[dict[str, Any]] = []
    empty = errors = 0
    for rule in rules:
        texts = [(kind, title, readable(text)) for kind, title, text in rule.messages]
        errors += sum(kind == "error" for kind, _, _ in texts)
        said = [(title, text) for kind, title, text in texts if kind != "error" and (title or text)]
        empty += sum(kind != "error" and not title and not text for kind, title, text in texts)
        if said:
            rows.append(_row(rule, said, cls, limiter))
    rows.sort(key=lambda row: (-(row["gain"] or 0), row["global"] is None, row["name"]))
    notes = [f"{plural(len(rows), 'message')}." if rows else "No message."] if empty or errors else []
    if empty:
        notes.append(f"{plural(empty, 'rule')} without text {'is' if empty == 1 else 'are'} left out.")
    if errors:
        whose = "its" if errors == 1 else "their"
        notes.append(f"{plural(errors, 'rule')} ended in an error: {whose} metrics are missing.")
    return {"rows": rows, "note": " ".join(notes), "sentence": SENTENCE}


def readable(text: str) -> str:
    """Return a rule's message without markup, file paths and tracebacks.

    >>> readable("See @section:LaunchStats:Launch Statistics@, in /opt/nvidia/rules/x.py")
    'See Launch Statistics, in …'
    """
    text = _MARKUP.sub(_shown, _TRACEBACK.sub("", text))
    return " ".join(_PATH.sub("…", text).split())


def gains(rule: RuleResult) -> tuple[float | None, float | None]:
    """Return the (global, local) gain [%]; at most one of them is there."""
    if rule.speedup is None:
        return None, None
    return (rule.speedup, None) if rule.speedup_kind == "global" else (None, rule.speedup)


def agrees(rule: str, cls: str, limiter: str | None) -> bool | None:
    """Return whether a rule speaks of the limit of the verdict; None where it says nothing about it."""
    about = ABOUT.get(rule)
    if about is None or limiter is None or cls in ("failed", "undetermined"):
        return None
    return limiter in about


def against(rule: str, cls: str, limiter: str | None) -> str:
    """Return how a rule stands to the verdict, or nothing where it says nothing about it."""
    same = agrees(rule, cls, limiter)
    if same is None:
        return ""
    if same and limiter is not None:
        return f"Agrees: it speaks of {LIMITERS.get(limiter, limiter)}."
    return "Not the limit by this verdict."


def _shown(match: re.Match[str]) -> str:
    """Return the words that ncu shows for its markup: the last field, or the link text."""
    fields = match.group(0).strip("@").split(":")
    return fields[1] if fields[0] == "url" else fields[-1]


def _row(rule: RuleResult, said: list[tuple[str, str]], cls: str, limiter: str | None) -> dict[str, Any]:
    whole, part = gains(rule)
    title = said[0][0]
    words = " ".join(text for _, text in said if text)
    return {
        "name": rule.name or rule.id,
        "gain": whole,
        "global": None if whole is None else quantity.short(whole, "%"),
        "local": None if part is None else quantity.short(part, "%"),
        "title": title or _beginning(words),
        "message": words,
        "agrees": agrees(rule.id, cls, limiter),
        "against": against(rule.id, cls, limiter),
    }


def _beginning(text: str) -> str:
    return text if len(text) <= _LONG else text[:_LONG].rsplit(" ", 1)[0] + " …"
