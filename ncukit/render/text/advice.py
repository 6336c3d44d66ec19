"""What to do next, in a terminal: one short block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ncukit.model import Diagnosis, ReportFile
from ncukit.model.diagnosis import Advice
from ncukit.render.advice import of_launches
from ncukit.render.commands import typed
from ncukit.render.text.parts import flat, shell
from ncukit.render.text.terminal import Terminal, hot
from ncukit.render.view.advice import advice_view

if TYPE_CHECKING:
    from ncukit.render.timeline.beside import Beside


def advice_lines(t: Terminal, advice: Advice, *, verbose: bool = False) -> list[str]:
    """Return where to look next or that it is time to stop, why, and the commands."""
    found = t.tree(advice_view(advice))
    word = "STOP" if advice.stop else "NEXT"
    first, *rest = t.wrap(found["title"], first=f"{word}  ", indent="      ")
    lines = [first.replace(word, hot(word), 1) if advice.stop else first, *rest]
    said = [found["because"], found["bound"], *([found["until"]] if verbose else [])]
    lines += [text for part in said if part for text in t.wrap(flat(part), first="  ", indent="  ")]
    if advice.stop and found["layer"]:
        lines += t.wrap(f"Go on with {found['layer']}.", first="  ", indent="  ")
    for text in found["missing"] if verbose else []:
        lines += t.wrap(flat(text), first="  missing  ", indent=" " * 11)
    for command in advice.commands:
        lines += shell(t, command, "  ")
    return lines


def advice_of(file: ReportFile, diagnoses: Sequence[Diagnosis], beside: Beside | None) -> Advice:
    """Return the advice for a report, with commands that work in the current folder."""
    return of_launches(typed(file.path), diagnoses, beside, "" if beside is None else typed(beside.path))


def advice_text(advice: Advice, *, color: bool = False, encoding: str = "utf-8", width: int = 80) -> str:
    """Return what a terminal of ``width`` columns shows of ``advice``.  No newline at the end."""
    t = Terminal(width, encoding, color)
    return t.page(advice_lines(t, advice, verbose=True))
