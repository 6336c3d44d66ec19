"""One launch in full: what it is, what limits it, the next experiment, and what to trust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from ncukit.model import Diagnosis, Kernel, ReportFile
from ncukit.render.cells import Cells, Tips
from ncukit.render.commands import collect, pasteable, quoted, timeline
from ncukit.render.text import charts, sections, source, verdict
from ncukit.render.text.advice import advice_lines, advice_of
from ncukit.render.text.parts import flat, number, shell
from ncukit.render.text.terminal import Terminal, pad
from ncukit.render.view import head
from ncukit.render.view.quality import LACKS, quality

if TYPE_CHECKING:
    from ncukit.render.timeline.beside import Beside

SIGNS = {"ok": "", "warn": "!", "no": "-", "bad": "!!"}


def launch_lines(
    t: Terminal, file: ReportFile, diagnosis: Diagnosis, *, verbose: bool, beside: Beside | None = None
) -> list[str]:
    """Return everything about one launch, in the order in which it is read; ``beside`` is a trace."""
    cells = Cells(diagnosis.kernel, Tips())
    lines = title(t, file, cells, verbose=verbose)
    lacks: Sequence[str] = LACKS
    region: list[str] = []
    if beside is not None:
        from ncukit.render.text.region import region_of_launch

        lacks, region = LACKS[:1], region_of_launch(t, beside, diagnosis.kernel, verbose=verbose)
    facts = quality(cells, file)["facts"]
    failed = diagnosis.kernel.failed or diagnosis.verdict.cls == "failed"
    blocks = [verdict.failure(t, cells, diagnosis), region] if failed else [
        verdict.verdict(t, cells, diagnosis),
        verdict.experiment(t, diagnosis, file.path),
        region,
        trust(t, facts, file, diagnosis.kernel, verbose=verbose, lacks=lacks),
        sections.roofline(t, cells, diagnosis, verbose=verbose),
        charts.memory(t, cells, diagnosis, verbose=verbose),
        charts.split(t, diagnosis, verbose=verbose),
        sections.stalls(t, cells, diagnosis, verbose=verbose),
        charts.occupancy(t, cells, diagnosis, verbose=verbose),
        charts.series(t, cells, diagnosis, verbose=verbose),
        source.hot_lines(t, diagnosis, count=len(diagnosis.hot) if verbose else source.SHOWN),
        sections.findings(t, cells, diagnosis, verbose=verbose),
    ]  # fmt: skip
    advice = advice_lines(t, advice_of(file, [diagnosis], beside), verbose=verbose)
    blocks += [sections.opinion(t, diagnosis, verbose=verbose), advice, more(t, file)]
    for block in blocks:
        lines += ["", *block] if block else []
    return lines


def title(t: Terminal, file: ReportFile, cells: Cells, *, verbose: bool) -> list[str]:
    """Return name, place in the file, GPU, shape, and what is known about the time."""
    kernel = cells.kernel
    where = f"launch {cells.launch:,} of {max(file.launches, cells.launch):,}"
    lines = t.beside(name(t, head.heading(kernel), t.width - len(where) - 2), where)
    if verbose and not lines[0].startswith(t.text(kernel.demangled)):
        lines += t.wrap(t.text(kernel.demangled), first="  ", indent="    ")
    facts = {fact["id"]: flat(fact["text"]) for fact in t.tree(head.facts(cells))}
    shape = f"grid {facts['grid']}"
    if kernel.raw.workload in head.TOGETHER:
        shape = facts["grid"]
    elif not cells.value("grid_size").known:
        shape = "launch configuration: not recorded"
    lines += t.row(facts["gpu"], shape)
    duration = t.tree(cells["kernel_duration"])
    if kernel.failed:
        time = "no valid measurement"
    elif cells.value("kernel_duration").known:
        time = f"profiled {number(duration)} (one pass, not a benchmark)"
    else:
        time = f"duration: {number(duration)}"
    lines += t.row(time, "clean time: not measured")
    notes = [flat(t.tree(head.synthetic([kernel]))), *map(t.text, file.warnings)]
    return lines + [line for note in notes if note for line in t.wrap(note, first="! ", indent="  ")]


def name(t: Terminal, heading: dict[str, str], width: int) -> str:
    """Return a kernel's name and as much of its signature as fits; a long name is cut in its middle."""
    short = t.text(heading["name"])
    if cell_len(short) > width - len(t.ellipsis):
        return t.cut_middle(short, width)
    return t.cut(short + t.text(heading["signature"]), width)


def more(t: Terminal, file: ReportFile) -> list[str]:
    """Return the command that shows the same with every number."""
    command = pasteable(f"ncukit report {quoted(file.path)} --open", file.path)
    return hint(t, command, "the same with every number")


def hint(t: Terminal, command: str, words: str) -> list[str]:
    """Return a command and what it shows."""
    if cell_len(command) > t.width:
        return [*shell(t, command, ""), *t.wrap(words, first="    ", indent="    ")]
    first, *rest = t.row(t.text(command), words)
    return [first, *(f"    {line}" for line in rest)]


def trust(
    t: Terminal,
    facts: list[dict[str, Any]],
    file: ReportFile,
    kernel: Kernel,
    *,
    verbose: bool,
    lacks: Sequence[str] = LACKS,
) -> list[str]:
    """Return what to trust: what is in order on one line, then the cautions, then what is missing.

    ``lacks`` is what is missing beside the counters.
    """
    facts = t.tree(facts)
    fine = [fact["name"].lower() for fact in facts if fact["status"] == "ok"]
    words = f"ok: {', '.join(fine)}" if fine else "nothing is beyond doubt"
    lines = t.wrap(words, first="QUALITY  ", indent=" " * 9)
    for fact in facts if verbose else [fact for fact in facts if fact["status"] != "ok"]:
        text = flat(fact["text"]) if fact["status"] == "no" else f"{fact['said']}. {flat(fact['text'])}"
        first = f"  {SIGNS[fact['status']]:2} {pad(fact['name'].lower(), 12)}  "
        lines += t.wrap(text, first=first, indent=" " * len(first))
    words = ", ".join(lacks) + ("" if verbose else " (--verbose: the commands)")
    lines += t.wrap(words, first=f"  -  {pad('missing', 12)}  ", indent=" " * 19)
    if verbose:
        for run in (collect(kernel), *(timeline(file.path) if "timeline" in lacks else ())):
            lines += shell(t, pasteable(run, file.path), " " * 5)
    return lines
