"""The first screen: class and limiter, the claim, the busiest units, the ledger, and the next experiment."""

from __future__ import annotations

from typing import Any

from ncukit.model import Diagnosis
from ncukit.render.cells import Cells, state
from ncukit.render.commands import pasteable
from ncukit.render.line import line
from ncukit.render.text.parts import flat, ledger, number, shell
from ncukit.render.text.terminal import Terminal, columns, hot, pad
from ncukit.render.view import head
from ncukit.render.view.rows import GLANCE
from ncukit.render.view.verdict import PIPS, basis, role_and_name
from ncukit.render.view.verdict import experiment as experiment_view
from ncukit.render.view.verdict import verdict as verdict_view

BAR = 32
"""Columns of a bar beside a unit, at most."""
LIMIT = "<- limit"
_WITHOUT = (("missing", "not collected"), ("absent", "not on this GPU"), ("flagged", "unreliable"))


def verdict(t: Terminal, cells: Cells, diagnosis: Diagnosis) -> list[str]:
    """Return what limits the launch, how sure that is, and what speaks for and against it."""
    found = t.tree(verdict_view(cells, diagnosis))
    lines = heading(t, diagnosis) + t.wrap(flat(found["claim"])) + [""] + glance(t, cells, found["glance"])
    blocks = [
        (name, [(number(e["n"]), flat(e["text"])) for e in found[key]])
        for name, key in (("for", "evidence"), ("against", "against"))
    ]
    if any(rows for _, rows in blocks):
        lines += ["", *ledger(t, blocks)]
    if found["missing"]:
        lines += lacking(t, diagnosis) + shell(t, found["collect"], "  collect   ")
    return lines


def lacking(t: Terminal, diagnosis: Diagnosis) -> list[str]:
    """Return what would have to be collected to decide, or to say more."""
    found = diagnosis.verdict
    if not found.missing:
        return []
    lines = ["", "missing to decide" if found.cls == "undetermined" else "not known"]
    for text in found.missing:
        lines += t.wrap(t.text(flat(line(text))), first="  - ", indent="    ")
    return lines


def heading(t: Terminal, diagnosis: Diagnosis, prefix: str = "VERDICT  ") -> list[str]:
    """Return class, limiter and confidence on one line; class and limiter are part of the verdict."""
    found = diagnosis.verdict
    what = t.text(found.cls)
    if found.limiter:
        kind, name = role_and_name(found.cls, found.limiter)
        what = t.text(f"{found.cls}, {name}" if kind == "pipe" else f"{found.cls}, {kind} {name}")
    if found.cls == "failed":
        sure = ""
    elif found.cls == "undetermined":
        sure = "no confidence"
    else:
        sure = f"confidence {found.confidence} ({PIPS[found.confidence]} of 3)"
    first, *rest = t.beside(prefix + what, sure)
    return [first.replace(what, hot(what), 1), *(line for line in rest if line)]


def glance(t: Terminal, cells: Cells, bars: list[dict[str, Any]]) -> list[str]:
    """Return the units by share of peak, busiest first, and the names of those that were not measured."""
    labels = max((len(bar["label"]) for bar in bars), default=0)
    numbers = max((len(bar["cell"]["text"]) for bar in bars), default=0)
    room = min(BAR, t.width - labels - numbers - len(LIMIT) - 8)
    lines = []
    for bar in bars:
        value = pad(number({**bar["cell"], "state": "exact"}), numbers, ">")
        line = f"  {pad(bar['label'], labels)}  {t.bar(bar['bar'], room)}  {value}"
        if bar["cell"]["state"] == "flagged":
            line += f"  ! {bar['cell']['mark']}"
        lines.append(hot(f"{line}  {LIMIT}") if bar["hot"] else line)
    if said := basis(cells, bars):
        lines += t.wrap(flat(t.tree(said)), first="  ", indent="  ")
    shown = {bar["label"] for bar in bars}
    values = {text: cells.value(id) for id, label, _ in GLANCE if (text := t.text(label)) not in shown}
    for why, words in _WITHOUT:
        if unknown := [label for label, value in values.items() if state(value) == why]:
            lines += t.wrap("; ".join(unknown), first=f"  {words}: ", indent="    ")
    return lines


def experiment(t: Terminal, diagnosis: Diagnosis, report: str) -> list[str]:
    """Return the one change that would test the verdict, and the result that would disprove it.

    ``report`` is the path of the report, for commands that name it.
    """
    found = diagnosis.verdict.experiment
    if found is None:
        return []
    shown = t.tree(experiment_view(found, diagnosis.verdict.alternatives))
    lines = t.wrap(flat(shown["title"]), first="NEXT EXPERIMENT  ", indent=" " * 17)
    for n, row in enumerate(shown["diff"]):
        lines.append(t.cut(f"  {'change' if n == 0 else '':9}  {row['text']}", t.width))
    rows = [(row["name"].lower(), flat(row["text"])) for row in shown["rows"]]
    rows += [("disproved", flat(shown["disproved"])), ("cost", flat(shown["cost"]))]
    for name, text in rows:
        if text:
            lines += t.wrap(text, first=f"  {name:9}  ", indent=" " * 13)
    for n, run in enumerate(found.run):
        lines += shell(t, pasteable(run, report), f"  {'run' if n == 0 else '':9}  ")
    return lines


def failure(t: Terminal, cells: Cells, diagnosis: Diagnosis) -> list[str]:
    """Return what is said in place of a verdict when the launch has no valid measurement."""
    found = t.tree(head.failure(cells, diagnosis))
    lines = heading(t, diagnosis) + t.wrap(f"{flat(found['claim'])}.") + t.wrap(flat(found["deck"])) + [""]
    lines += ledger(t, [("", [(number(e["n"]), flat(e["text"])) for e in found["ledger"]])])
    lines += ["", *t.wrap(flat(found["causes"]))]
    lines += shell(t, found["collect"], "  try       ")
    kept = [cells.value(id) for id in KEPT]
    rows = [(label, cells.of(v)) for v, label in zip(kept, KEPT.values(), strict=True) if v.known]
    if rows:
        lines += ["", "still true, because they were known before the launch"]
        lines += columns([(t.text(label), number(t.tree(cell))) for label, cell in rows], "<>")
    return lines


KEPT = {
    "grid_size": "blocks",
    "block_size": "threads per block",
    "registers_per_thread": "registers per thread",
    "waves_per_sm": "waves",
    "theoretical_occupancy_pct": "theoretical occupancy",
}
"""Launch values that stay true of a failed launch: neutral id -> label."""
