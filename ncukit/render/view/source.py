"""Hot source lines and SASS: the listing that is printed, and the columns that the page's script lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ncukit import quantity
from ncukit.metrics.expression import NOT_ISSUED, STATES, by_pc
from ncukit.model import Kernel
from ncukit.model.source import (
    ENOUGH_SAMPLES,
    Cost,
    HotLine,
    SourceFile,
    SourceLine,
    SourceView,
    reason,
    share,
    unit,
    waits_for,
    weight,
)
from ncukit.render.by_instruction import packed
from ncukit.render.line import line
from ncukit.render.view.stalls import NAMES
from ncukit.render.words import plural

WHOLE = 40
"""Lines up to which a kernel's source is listed as a whole."""
HOTTEST = 10
"""Lines that are listed of a longer one."""
AROUND = 2
"""Lines listed before and after each of them."""
INSTRUCTIONS, FEW, VISIBLE = 20, 5, 1.0
"""Instructions that are printed, the hottest; after the first few only from this share [%] on."""
WARM, HOT = 3.0, 20.0
"""[%] Shares from which a line is tinted."""
IN_FOLD = 5
"""Hot lines in the fold of one of many launches."""
MOST_LINES = 15_000
"""Lines without instructions are left out of a page that would hold more lines than this."""

COLUMNS: dict[str, tuple[str, str, str]] = {
    "instructions": ("Executed", "inst", "Warp instructions executed."),
    "threads": ("Threads", "inst", "Active threads that were not predicated off, of 32 a warp instruction."),
    "sectors": ("Sectors", "sector", "32-byte sectors that global accesses need in L2."),
    "excess_sectors": ("Excess sectors", "sector", "Those beyond the ideal for the same bytes: uncoalesced."),
    "wavefronts": ("Wavefronts", "wavefront", "Passes of shared-memory accesses through the L1 data pipe."),
    "excess_wavefronts": ("Excess waves", "wavefront", "Those beyond the ideal: bank conflicts."),
    "local_sectors": ("Local sectors", "sector", "Sectors of local memory: spills and stack arrays."),
    "spills": ("Spills", "inst", "Instructions that the compiler marked as register spills."),
    "divergent": ("Divergent", "branch", "Branch targets at which threads of a warp parted."),
}
"""Costs that are columns where they are not zero everywhere: name of `Cost` -> heading, unit, meaning."""
RAW = {
    "excess_sectors": ("sectors", "ideal_sectors"),
    "excess_wavefronts": ("wavefronts", "ideal_wavefronts"),
}
"""What a column that is a difference is made of."""
STATUS = {
    "embedded": "text from the report",
    "found": "text from the disk, unchanged since",
    "changed": "changed since: text not shown",
    "missing": "source not found",
    "builtin": "library code of the compiler",
}


def source(kernel: Kernel, view: SourceView) -> dict[str, Any]:
    """Return the section of one launch."""
    shown = _columns(view)
    return {
        "sentence": line(_sentence(view)),
        "legend": [{"id": c, "name": NAMES[c]} for c in NAMES if view.total.categories.get(c)],
        "columns": shown,
        "caption": "The whole source" if _short(view) else "The hottest lines, with some around them",
        "lines": _listing(view, shown),
        "instructions": _instructions(view, shown),
        "count": plural(len(view.rows), "instruction"),
        "meanings": _meanings(kernel, view, shown),
        "zero": [COLUMNS[id][0].lower() for id in COLUMNS if getattr(view.total, id) == 0],
        "notes": [line(note) for note in view.notes],
        "data": _data(view, shown),
    }


def hot_table(lines: Sequence[HotLine], count: int = IN_FOLD) -> list[dict[str, Any]]:
    """Return the hottest lines of a launch in short: place, share, first reason, text.

    >>> hot_table([HotLine("a.cu:7", "x = y;", 9, "sample", 90.0, Cost(), "wait", 50.0)])[0]["reason"]
    'wait 50\\u202f%'
    """
    return [
        {
            "place": found.place,
            "share": quantity.short(found.share, "%"),
            "reason": _reason(found.state, found.state_share),
            "text": found.text,
            "note": found.note,
        }
        for found in lines[:count]
    ]


def hot_caption(lines: Sequence[HotLine]) -> str:
    """Return what the shares of `hot_table` are shares of.

    >>> hot_caption(())[:21]
    'Hot lines, by samples'
    """
    if lines and lines[0].unit == "inst":
        return "Hot lines, by executed instructions: no samples were taken."
    most = max((100 * one.amount / one.share for one in lines if one.share), default=ENOUGH_SAMPLES)
    if most < ENOUGH_SAMPLES:
        return f"Hot lines, by {plural(round(most), 'sample')}: too few to rank them."
    return "Hot lines, by samples. The line that waits is often the victim of another."


def _sentence(view: SourceView) -> str:
    if unit(view) == "inst":
        return "By executed instructions: which of them cost time is not known without samples."
    total = quantity.short(view.amount(view.total))
    if view.basis == "waiting":
        what = "samples of warps taken in cycles in which the scheduler issued nothing: those cost time."
    else:
        what = "samples of warps."
    return f"Where warps wait: shares of {total} {what} The waiting line is often the victim of another."


def _columns(view: SourceView) -> list[str]:
    """Return the costs that are worth a column: not zero everywhere, threads only where some are missing."""
    found = [id for id in COLUMNS if getattr(view.total, id)]
    total = view.total
    if "threads" in found and (not total.instructions or total.threads == 32 * total.instructions):
        found.remove("threads")
    return found


def _data(view: SourceView, shown: Sequence[str]) -> dict[str, Any]:
    data = packed(view)
    if sum(len(file["lines"]) for file in data["files"]) > MOST_LINES:
        for file, found in zip(data["files"], view.files, strict=True):
            counted = [line for line in found.lines if line.cost]
            file["lines"] = [line.number for line in counted]
            file["texts"] = [line.text for line in counted]
    return data | {
        "weight": unit(view),
        "columns": [[id, COLUMNS[id][0], COLUMNS[id][1]] for id in shown],
        "status": {file.status: STATUS[file.status] for file in view.files},
        "names": NAMES,
    }


def _listing(view: SourceView, shown: Sequence[str]) -> list[dict[str, Any]]:
    """Return the lines that are printed: all of a short kernel, else the hottest with some around them."""
    rows: list[dict[str, Any]] = []
    scale = max((weight(view, x.cost) for f in view.files for x in f.lines if x.cost), default=0)
    many = len(view.files) > 1
    for file, lines in _chosen(view):
        if many:
            part = _percent(view, file.cost)
            rows.append({"file": file.name, "share": part, "status": STATUS[file.status]})
        rows += [_line(view, shown, one, scale) for one in lines]
    return rows


def _chosen(view: SourceView) -> Iterable[tuple[SourceFile, Sequence[SourceLine]]]:
    if _short(view):
        return [(view.files[0], view.files[0].lines)]
    costs = [(weight(view, one.cost), f, one.number) for f in view.files for one in f.lines if one.cost]
    costs.sort(key=lambda cost: -cost[0])
    near = {
        (f.path, n)
        for amount, f, number in costs[:HOTTEST]
        if amount
        for n in range(number - AROUND, number + AROUND + 1)
    }
    files = sorted(view.files, key=lambda f: -weight(view, f.cost))
    chosen = [(f, [one for one in f.lines if (f.path, one.number) in near]) for f in files]
    return [(f, lines) for f, lines in chosen if lines]


def _short(view: SourceView) -> bool:
    return len(view.files) == 1 and len(view.files[0].lines) <= WHOLE


def _line(view: SourceView, shown: Sequence[str], one: SourceLine, scale: int) -> dict[str, Any]:
    row = {"number": one.number, "text": one.text or "", "cost": one.cost is not None}
    if one.text is None and one.rows:
        hottest = max(one.rows, key=lambda i: weight(view, view.rows[i].cost))
        row |= {"lost": True, "text": view.rows[hottest].text}
    return row if one.cost is None else row | _cost(view, shown, one.cost, scale)


def _hottest(view: SourceView) -> list[int]:
    """Return the positions of the instructions that are printed, in the order of the code."""
    rows = sorted(range(len(view.rows)), key=lambda i: -weight(view, view.rows[i].cost))[:INSTRUCTIONS]
    return sorted(
        i for n, i in enumerate(rows) if share(view, view.rows[i].cost) >= (VISIBLE if n >= FEW else 1e-9)
    )


def _instructions(view: SourceView, shown: Sequence[str]) -> list[dict[str, Any]]:
    scale = max((weight(view, row.cost) for row in view.rows), default=0)
    rows = [(i, view.rows[i]) for i in _hottest(view)]
    return [
        {
            "offset": f"{row.offset:04x}",
            "text": row.text,
            "place": view.place(row) or "",
            "note": waits_for(view, (i,)),
            **_cost(view, shown, row.cost, scale),
        }
        for i, row in rows
    ]


def _cost(view: SourceView, shown: Sequence[str], cost: Cost, scale: int) -> dict[str, Any]:
    part = share(view, cost)
    return {
        "share": _percent(view, cost),
        "tint": "warm2" if part >= HOT else "warm" if part >= WARM else "",
        "bar": [
            {"id": id, "width": round(100 * n / scale, 2)}
            for id in NAMES
            if scale and (n := cost.categories.get(id, 0))
        ],
        "reason": _reason(*reason(cost)),
        "numbers": [_number(cost, id) for id in shown],
    }


def _number(cost: Cost, id: str) -> str:
    n = getattr(cost, id)
    if id == "threads":
        return quantity.short(n / cost.instructions) if n and cost.instructions else ""
    return quantity.short(n) if n else ""


def _percent(view: SourceView, cost: Cost) -> str:
    return quantity.short(share(view, cost), "%") if weight(view, cost) else ""


def _reason(state: str, part: float) -> str:
    return f"{state} {part:.0f}{quantity.NARROW}%" if state else ""


def _meanings(kernel: Kernel, view: SourceView, shown: Sequence[str]) -> list[dict[str, Any]]:
    """Return what each column counts, from which raw counters, and its sum over the launch."""
    found = []
    if unit(view) == "sample":
        states = sorted(name for name in kernel.raw.by_pc if name.startswith(STATES))
        ending = NOT_ISSUED if view.basis == "waiting" else ""
        found.append(
            {
                "name": "Samples",
                "text": "Stall samples by category; the first reason is the raw state with the most of them.",
                "raw": f"{STATES}*{ending}" if states else "",
                "total": quantity.full(view.amount(view.total), "sample"),
            }
        )
    names = by_pc()
    for id in shown:
        heading, of, meaning = COLUMNS[id]
        used = [next((n for n in names[part] if n in kernel.raw.by_pc), "") for part in RAW.get(id, (id,))]
        found.append(
            {
                "name": heading,
                "text": meaning,
                "raw": " − ".join(used),
                "total": quantity.full(getattr(view.total, id), of),
            }
        )
    return found
