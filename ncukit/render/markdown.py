"""The diagnosis of a report as GitHub Markdown, for pull requests and issues: the rest is folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ncukit import quantity
from ncukit.model import Diagnosis, ReportFile
from ncukit.render.advice import of_launches
from ncukit.render.cells import Cells, Tips
from ncukit.render.gfm import code, escape, fence, flat, fold, table
from ncukit.render.text.parts import number
from ncukit.render.view import head, overall
from ncukit.render.view.advice import advice_view
from ncukit.render.view.findings import findings
from ncukit.render.view.groups import Launch, by_kernel, by_verdict, names, share
from ncukit.render.view.memory import memory
from ncukit.render.view.occupancy import section as occupancy
from ncukit.render.view.quality import quality
from ncukit.render.view.source import hot_caption, hot_table
from ncukit.render.view.split import section as split
from ncukit.render.view.verdict import verdict
from ncukit.render.words import limited_by, plural

FINDINGS = 5
"""Findings in sight; the others are folded."""
ROWS = 30
"""Rows of a table of kernels."""
FOOTER = (
    "Profiled one pass at a time: durations are no benchmark. Percentages are shares of peak in this run."
)


def report_markdown(file: ReportFile, diagnoses: Sequence[Diagnosis]) -> str:
    """Return what a pull request needs of ``diagnoses``: one launch in full, or the table of all of them."""
    lines = _launch(file, diagnoses[0]) if len(diagnoses) == 1 else _launches(file, diagnoses)
    lines += _advice(advice_view(of_launches(head.file_name(file), diagnoses)))
    return "\n".join([*lines, f"<sub>{escape(FOOTER)}</sub>", ""]).replace(quantity.NARROW, " ")


def _launch(file: ReportFile, diagnosis: Diagnosis) -> list[str]:
    cells, kernel = Cells(diagnosis.kernel, Tips()), diagnosis.kernel
    gpu = escape(kernel.gpu or "unknown GPU")
    lines = [f"### {code(kernel.name or 'kernel')} on {gpu}", "", escape(head.brand(file, kernel)), ""]
    if kernel.failed or diagnosis.verdict.cls == "failed":
        found = head.failure(cells, diagnosis)
        return [*lines, f"**failed**: {flat(found['claim'])}. {flat(found['deck'])}", ""]
    found = verdict(cells, diagnosis)
    role = f", {escape(found['role'])}" if found["role"] else ""
    sure = (
        f" ({escape(found['confidence']['word'].removesuffix('.').lower())})" if found["confidence"] else ""
    )
    lines += [f"**{escape(found['cls'])}**{role}{sure}: {flat(found['claim'])}", ""]
    if found["deck"]:
        lines += [flat(found["deck"]), ""]
    lines += _facts(cells)
    lines += _glance(found["glance"])
    if found["basis"]:
        lines += [flat(found["basis"]), ""]
    for title, key in (("For", "evidence"), ("Against", "against")):
        lines += _ledger(title, found[key])
    if found["missing"]:
        lines += ["**Missing to decide**", "", *(f"- {flat(text)}" for text in found["missing"]), ""]
    lines += _experiment(found["experiment"])
    lines += _findings(findings(cells, diagnosis))
    lines += _hot(diagnosis)
    lines += _folded("Memory", _memory(memory(cells, diagnosis)))
    lines += _folded("Issue slots and occupancy", [*_split(split(diagnosis)), *_occupancy(cells, diagnosis)])
    return lines + _folded("Report quality", _quality(quality(cells, file)))


def _facts(cells: Cells) -> list[str]:
    facts = [(fact["name"], flat(fact["text"])) for fact in head.facts(cells) if fact["id"] != "gpu"]
    return ["; ".join(f"{escape(name)}: {text}" for name, text in facts) + ".", ""]


def _glance(bars: list[dict[str, Any]]) -> list[str]:
    if not bars:
        return []
    rows = [
        (escape(bar["label"]), escape(number(bar["cell"])), "**limit**" if bar["hot"] else "") for bar in bars
    ]
    return [*table(("Unit", "Of peak", ""), "lrl", rows), ""]


def _ledger(title: str, lines: list[dict[str, Any]]) -> list[str]:
    if not lines:
        return []
    return [f"**{title}**", "", *(f"- {escape(number(e['n']))} {flat(e['text'])}" for e in lines), ""]


def _experiment(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    lines = [f"**Next experiment: {flat(found['title'])}**", ""]
    if found["diff"]:
        lines += fence((row["text"] for row in found["diff"]), "diff")
    lines += [f"- {escape(row['name'])}: {flat(row['text'])}" for row in found["rows"]]
    if found["disproved"]:
        lines.append(f"- **Disproved if** {flat(found['disproved'])}")
    return [*lines, ""]


def _findings(found: dict[str, Any]) -> list[str]:
    rows = [_finding(row) for row in found["rows"]]
    if not rows:
        return []
    columns, align = ("Finding", "Global gain", "Local gain", "Try", "Disproved if"), "lrrll"
    lines = ["**Findings**", "", *table(columns, align, rows[:FINDINGS]), ""]
    return lines + _folded(
        f"{len(rows) - FINDINGS} more", table(columns, align, rows[FINDINGS:]) if rows[FINDINGS:] else []
    )


def _finding(row: dict[str, Any]) -> tuple[str, ...]:
    told = {r["name"]: flat(r["text"]) for r in row["rows"]}
    title = flat(row["title"]) + (f" {code(row['source'])}" if row["source"] else "")
    gains = (escape(row[kind] or "–") for kind in ("global", "local"))
    return (title, *gains, told.get("Try", "–"), told.get("Disproved if", "–"))


def _hot(diagnosis: Diagnosis) -> list[str]:
    rows = [
        (code(row["place"]), escape(row["share"]), escape(row["reason"]), code(row["text"]))
        for row in hot_table(diagnosis.hot)
    ]
    if not rows:
        return []
    lines = [escape(hot_caption(diagnosis.hot)), ""]
    return [*lines, *table(("Line", "Share", "First reason", "Source or SASS"), "lrll", rows), ""]


def _memory(found: dict[str, Any]) -> list[str]:
    rows = [
        (
            escape(row["what"]),
            *(escape(number(row[key])) if row[key] else "" for key in ("bytes", "count", "share")),
        )
        for row in found["links"]
        if row["used"] is not False
    ]
    return [*table(("Link", "Bytes", "Requests", "Of peak"), "lrrr", rows), ""] if rows else []


def _split(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    rows = [
        (escape(r["name"]), escape(r["share"]), escape(r["slots"] or "–"), flat(r["resources"]))
        for r in found["rows"]
    ]
    lines = [flat(found["sentence"]), ""]
    return (
        [*lines, *table(("Cause", "Waiting", "All slots", "Resources behind it"), "lrrl", rows), ""]
        if rows
        else lines
    )


def _occupancy(cells: Cells, diagnosis: Diagnosis) -> list[str]:
    found = occupancy(cells, diagnosis, curves=False)[0]
    lines = [f"Occupancy: {flat(found['sentence'])}", ""]
    if found["limits"]:
        rows = [
            (
                escape(r["name"]) + (" (binds)" if r["binds"] else ""),
                escape(str(r["blocks"])),
                escape(r["takes"]),
                escape(r["next"]),
            )
            for r in found["limits"]
        ]
        lines += [*table(("Limit", "Blocks", "A block takes", "One more at"), "lrrr", rows), ""]
    return [*lines, *(f"- {flat(words)}" for words in found["lift"]), ""]


def _quality(found: dict[str, Any]) -> list[str]:
    rows = [(escape(f["name"]), escape(f["word"]), flat(f["text"])) for f in found["facts"]]
    return [flat(found["sentence"]), "", *table(("Fact", "", ""), "lll", rows), ""]


def _advice(found: dict[str, Any]) -> list[str]:
    layer = f" Go on with {escape(found['layer'])}." if found["stop"] and found["layer"] else ""
    lines = [f"**{escape(found['word'])}: {escape(found['title'])}.**{layer}", ""]
    said = " ".join(flat(found[key]) for key in ("because", "bound", "until") if found[key])
    lines += [said, ""]
    lines += [f"- Missing: {flat(text)}" for text in found["missing"]] + ([""] if found["missing"] else [])
    return lines + fence(found["commands"].splitlines()) if found["commands"] else lines


def _folded(title: str, lines: list[str]) -> list[str]:
    """Return ``lines`` folded behind ``title``; nothing where there are none."""
    return fold(title, lines) if lines else []


def _launches(file: ReportFile, diagnoses: Sequence[Diagnosis]) -> list[str]:
    tips = Tips()
    launches = [Launch(Cells(d.kernel, tips), d) for d in diagnoses]
    kernels = by_kernel(launches)
    found = overall.verdict(launches, by_verdict(launches))
    title = f"{plural(len(launches), 'launch')} of {plural(len(kernels), 'kernel')}"
    lines = [f"### {title} in {code(head.file_name(file))}", "", f"{flat(found['claim'])}.", ""]
    for name, key in (("For", "evidence"), ("Against", "against")):
        lines += _ledger(name, found[key])
    whole = sum(launch.weight for launch in launches)
    rows = []
    for name, group in list(zip(names(kernels), kernels, strict=True))[:ROWS]:
        limits = dict.fromkeys(
            limited_by(x.diagnosis.verdict.cls, x.diagnosis.verdict.limiter) for x in group.launches
        )
        rows.append(
            (code(name), f"{len(group.launches):,}", escape(quantity.short(group.time, "s")),
             escape(quantity.short(share(group.time, whole), "%")), escape(", ".join(limits)))
        )  # fmt: skip
    lines += table(("Kernel", "Launches", "Total", "Share", "Limited by"), "lrrrl", rows)
    if len(kernels) > ROWS:
        lines += ["", f"{plural(len(kernels) - ROWS, 'kernel')} more."]
    lines.append("")
    return lines + _folded("Report quality", _quality(overall.quality(launches, file)))
