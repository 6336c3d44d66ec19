"""One fold a launch: number, name, duration, limit; then a sentence, the evidence and three short lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ncukit import quantity
from ncukit.model import Evidence
from ncukit.render.cells import text as short_text
from ncukit.render.line import line
from ncukit.render.view.families import metric_row
from ncukit.render.view.groups import Launch
from ncukit.render.view.kernels import plain_rows
from ncukit.render.view.opinion import gains
from ncukit.render.view.quality import missing
from ncukit.render.view.rows import Row
from ncukit.render.view.source import hot_caption, hot_table
from ncukit.render.view.verdict import evidence_cell, ledger
from ncukit.render.words import limited_by, listed

LAZY = 200
"""Launches from which folds and rows are built by the page's script when they are opened."""
EVIDENCE = 3
"""Lines of evidence in a fold."""
LISTS = (
    (
        Row("registers_per_thread", "Registers per thread"),
        Row("shared_mem_allocated", "Shared memory per block"),
        Row("waves_per_sm", "Waves"),
    ),
    (
        Row("achieved_occupancy_pct", "Occupancy, achieved"),
        Row("theoretical_occupancy_pct", "Occupancy, theoretical"),
        Row("sm_active_pct", "SMs with work"),
    ),
    (
        Row("l1_throughput_pct", "L1, active cycles"),
        Row("dram_throughput_pct", "DRAM"),
        Row("dram_bytes", "DRAM bytes"),
    ),
)


def folds(launches: Sequence[Launch], spell: dict[str, str], *, lazy: bool) -> list[dict[str, Any]]:
    """Return the folds in file order; with ``lazy`` only what stands on the closed ones."""
    heads = [
        {
            "n": launch.n,
            "name": spell[launch.cells.kernel.demangled],
            "duration": short_text(launch.cells.value("kernel_duration")),
            "limit": limited_by(launch.diagnosis.verdict.cls, launch.diagnosis.verdict.limiter),
        }
        for launch in launches
    ]
    if lazy:
        return heads
    return [head | _inside(launch) for head, launch in zip(heads, launches, strict=True)]


def island(launches: Sequence[Launch], spell: dict[str, str]) -> dict[str, Any]:
    """Return what the page's script builds folds and rows from; every text once."""
    words: dict[str, int] = {}

    def word(text: str) -> int:
        return words.setdefault(text, len(words))

    rows = [
        [
            word(launch.diagnosis.verdict.claim),
            [[*_spoken(launch, e), word(e.text)] for e in launch.diagnosis.verdict.evidence[:EVIDENCE]],
            [_value(launch, row.id) for rows in LISTS for row in rows],
            word(_note(launch)),
            [
                [word(hot["place"]), hot["share"], word(hot["reason"]), word(hot["text"]), word(hot["note"])]
                for hot in hot_table(launch.diagnosis.hot)
            ],
        ]
        for launch in launches
    ]
    table = plain_rows(launches, spell, word)
    return {
        "rows": rows,
        "lists": [[[row.id, row.label, row.aside] for row in rows] for rows in LISTS],
        "hot": hot_caption([line for launch in launches for line in launch.diagnosis.hot[:1]]),
        "table": table,
        "words": list(words),
    }


def _inside(launch: Launch) -> dict[str, Any]:
    verdict = launch.diagnosis.verdict
    return {
        "claim": line(verdict.claim),
        "evidence": [ledger(launch.cells, e) for e in verdict.evidence[:EVIDENCE]],
        "lists": [[metric_row(row, launch.cells) for row in rows] for rows in LISTS],
        "note": line(_note(launch)),
        "hot": hot_table(launch.diagnosis.hot),
        "hot_caption": hot_caption(launch.diagnosis.hot),
    }


def _spoken(launch: Launch, evidence: Evidence) -> list[Any]:
    cell = evidence_cell(launch.cells, evidence)
    return [cell["text"], cell["state"], cell["tip"]]


def _value(launch: Launch, id: str) -> list[str]:
    cell = launch.cells[id]
    return [cell["text"], cell["state"]]


def _note(launch: Launch) -> str:
    verdict = launch.diagnosis.verdict
    words = []
    if verdict.experiment is not None:
        words.append(f"Next experiment: {verdict.experiment.title}.")
    if rules := _rules(launch):
        words.append(f"ncu: {'; '.join(rules)}.")
    if lacks := missing(launch.cells):
        words.append(f"Not collected: {listed(lacks)}.")
    words.append(f"ncu ID {launch.n - 1}.")
    return " ".join(words)


def _rules(launch: Launch) -> list[str]:
    """Return ncu's rules with a gain, the kind of gain said with each."""
    said: list[str] = []
    for rule in launch.cells.kernel.raw.rules:
        whole, part = gains(rule)
        gain = whole if whole is not None else part
        if gain:
            kind = "global" if whole is not None else "local"
            said.append(f"{rule.name} ({kind} {quantity.short(gain, '%')})")
    return said
