"""Many launches: the table first, what they share, and the launch that costs most in short."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from statistics import median
from typing import TYPE_CHECKING

from ncukit import quantity
from ncukit.model import Diagnosis, ReportFile
from ncukit.render.advice import costliest
from ncukit.render.cells import Cells, Tips
from ncukit.render.commands import pasteable, quoted
from ncukit.render.line import line
from ncukit.render.text.advice import advice_lines, advice_of
from ncukit.render.text.launch import hint, more, name, trust
from ncukit.render.text.parts import flat, ledger, number, parted
from ncukit.render.text.source import hot_lines
from ncukit.render.text.terminal import Terminal, columns, pad
from ncukit.render.text.verdict import glance, heading, lacking
from ncukit.render.view import head, overall
from ncukit.render.view.groups import Group, Launch, by_kernel, by_verdict, share
from ncukit.render.view.quality import LACKS
from ncukit.render.view.verdict import evidence_cell
from ncukit.render.view.verdict import glance as bars
from ncukit.render.words import plural, signature

if TYPE_CHECKING:
    from ncukit.render.timeline.beside import Beside

ROWS = 20
"""Rows of the table unless everything is asked for."""
EVIDENCE = 3
"""Lines of evidence of the launch that costs most."""
NAME = 18
"""Columns that a kernel name has at least."""
_WORD = re.compile(r"\w*$")
"""The last, perhaps incomplete, word."""


def many_lines(
    t: Terminal,
    file: ReportFile,
    diagnoses: Sequence[Diagnosis],
    *,
    verbose: bool,
    beside: Beside | None = None,
) -> list[str]:
    """Return the table, the verdict for the whole file, the costliest launch in short, and what to trust."""
    if not diagnoses:
        return ["no launch"]
    tips = Tips()
    launches = [Launch(Cells(d.kernel, tips), d) for d in diagnoses]
    kernels = by_kernel(launches)
    rows = kernels if len(kernels) < len(launches) else [Group((launch,)) for launch in _by_time(launches)]
    first = launches[costliest(diagnoses, beside)]
    lacks: Sequence[str] = LACKS
    region: list[str] = []
    if beside is not None:
        from ncukit.render.text.region import region_of_launches

        lacks, region = LACKS[:1], region_of_launches(t, beside, launches, verbose=verbose)
    facts, kernel = overall.quality(launches, file)["facts"], first.cells.kernel
    blocks = [
        _title(t, file, launches, len(kernels)),
        _table(t, launches, rows, verbose=verbose),
        _verdict(t, launches),
        _launch(t, first),
        *([region] if region else []),
        trust(t, facts, file, kernel, verbose=verbose, lacks=lacks),
        advice_lines(t, advice_of(file, diagnoses, beside), verbose=verbose),
        _hints(t, file, first),
    ]
    return [text for n, block in enumerate(blocks) for text in (["", *block] if n else block)]


def _title(t: Terminal, file: ReportFile, launches: Sequence[Launch], kernels: int) -> list[str]:
    of = f" of the {file.launches:,} in it" if file.launches > len(launches) else ""
    what = f"{plural(len(launches), 'launch')}{of}, {plural(kernels, 'kernel')}"
    file_name = t.cut_middle(t.text(head.file_name(file)), max(20, t.width - len(what) - 2))
    kernels_of = [x.cells.kernel for x in launches]
    gpus = sorted({f"{k.gpu or 'unknown GPU'}, CC {k.compute_capability or '?'}" for k in kernels_of})
    total = quantity.short(_total(launches), "s")
    lines = t.beside(file_name, what) + t.row(*(t.text(gpu) for gpu in gpus))
    known = _total(launches) is not None
    time = f"profiled {t.text(total)} in total (one pass each, not a benchmark)"
    lines += t.row(time if known else "duration: not collected", "clean time: not measured")
    notes = [flat(head.synthetic(kernels_of)), *file.warnings]
    return lines + [text for note in notes if note for text in t.wrap(t.text(note), first="! ", indent="  ")]


def _table(t: Terminal, launches: Sequence[Launch], rows: Sequence[Group], *, verbose: bool) -> list[str]:
    """Return one row a kernel, or a launch where no name repeats, the most time first."""
    shown = rows if verbose else rows[:ROWS]
    single = all(len(group.launches) == 1 for group in rows)
    totals = [_total(group.launches) for group in shown]
    medians = [_median(group) for group in shown]
    whole = _total(launches)
    cells = [
        [
            number_of(group, single=single), total,
            _percent(share(x, whole) if x is not None and whole else None),
            *([] if single else [middle]), *_limit(t, group),
        ]
        for group, x, total, middle in zip(
            shown, totals, quantity.together(totals, "s"), quantity.together(medians, "s"), strict=True
        )
    ]  # fmt: skip
    unit, unit_of_median = (quantity.scale(x, "s") if any(x) else "" for x in (totals, medians))
    heads = [
        ["launch", "duration", "share", "limit", ""],
        ["", unit, "%", "", ""],
    ] if single else [
        ["n", "total", "share", "median", "limit", ""],
        ["", unit, "%", unit_of_median, "", ""],
    ]  # fmt: skip
    body = columns(t.tree([*heads, *cells]), ">>><>" if single else ">>>><>", indent=0)
    room = max(NAME, t.width - max(map(len, body)) - 2)
    named = ["kernel", "", *_names(t, shown, room)]
    room = max(len(text) for text in named)
    lines = [t.cut(f"{pad(text, room)}  {row}", t.width) for text, row in zip(named, body, strict=True)]
    if len(shown) < len(rows):
        rest = _total([x for group in rows[len(shown) :] for x in group.launches])
        part = (
            f", {quantity.short(share(rest, whole), '%')} of the time" if rest is not None and whole else ""
        )
        lines.append(t.text(f"{plural(len(rows) - len(shown), 'row')} more{part} (--verbose)"))
    return lines


def _names(t: Terminal, groups: Sequence[Group], room: int) -> list[str]:
    """Return the names as they fit; two kernels of one function from where they differ."""
    kernels = [group.first.cells.kernel for group in groups]
    rests: dict[str, set[str]] = {}
    for kernel in kernels:
        rests.setdefault(kernel.name, set()).add(signature(kernel.name, kernel.demangled))
    found = []
    for kernel in kernels:
        spelled = head.heading(kernel)
        if len(same := rests[kernel.name]) > 1:
            pairs = zip(min(same), max(same), strict=False)
            alike = len(
                _WORD.sub("", "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)))
            )
            rest = signature(kernel.name, kernel.demangled)
            spelled = {**spelled, "signature": f"…{rest[alike:]}" if alike else rest}
        found.append(name(t, spelled, room))
    return found


def number_of(group: Group, *, single: bool) -> str:
    """Return the number of a launch, or how many launches a kernel has."""
    return f"{group.first.n:,}" if single else f"{len(group.launches):,}"


def _limit(t: Terminal, group: Group) -> tuple[str, str]:
    """Return class and limiter that most of the time shares, and the number that leads its evidence."""
    verdicts = by_verdict(group.launches)
    first = verdicts[0].first
    found = first.diagnosis.verdict
    words = found.cls.removesuffix("-bound") + (f":{found.limiter}" if found.limiter else "")
    if len(verdicts) > 1:
        words += f" +{len(verdicts) - 1}"
    return words, t.cut(t.text(_leading(first)), 13)


def _leading(launch: Launch) -> str:
    """Return the number that leads the evidence; one without a unit in it carries its noun."""
    if not launch.diagnosis.verdict.evidence:
        return ""
    first = launch.diagnosis.verdict.evidence[0]
    text = number(evidence_cell(launch.cells, first))
    noun = first.unit if first.unit.isalpha() and first.unit not in quantity.SYMBOLS else ""
    return f"{text} {noun}{'' if text == '1' or noun == 'inst' else 's'}" if noun else text


def _verdict(t: Terminal, launches: Sequence[Launch]) -> list[str]:
    found = t.tree(overall.verdict(launches, by_verdict(launches)))
    lines = t.wrap(f"{flat(found['claim'])}.", first="VERDICT  ", indent=" " * 9)
    said = [e for e in (*found["evidence"], *found["against"]) if parted(e["n"]["text"])[0] != "0"]
    rows = [(number(e["n"]), flat(e["text"])) for e in said]
    return [*lines, *ledger(t, [("", rows)])]


def _launch(t: Terminal, launch: Launch) -> list[str]:
    """Return the verdict of one launch without its tables."""
    cells, found = launch.cells, launch.diagnosis.verdict
    lines = [f"LAUNCH {launch.n:,}  " + name(t, head.heading(cells.kernel), t.width - 16)]
    lines += heading(t, launch.diagnosis, "") + t.wrap(t.text(flat(line(found.claim))))
    if found.cls != "failed":
        lines += ["", *glance(t, cells, t.tree(bars(cells, launch.diagnosis)))]
    some = [(number(evidence_cell(cells, e)), flat(line(e.text))) for e in found.evidence[:EVIDENCE]]
    lines += ["", *ledger(t, [("", t.tree(some))])] if some else []
    if launch.diagnosis.hot:
        lines += ["", *hot_lines(t, launch.diagnosis, count=1)]
    lines += lacking(t, launch.diagnosis)
    if found.experiment is not None:
        title = t.text(flat(line(found.experiment.title)))
        lines += ["", *t.wrap(title, first="NEXT EXPERIMENT  ", indent=" " * 17)]
    return lines


def _hints(t: Terminal, file: ReportFile, launch: Launch) -> list[str]:
    show = pasteable(f"ncukit show {quoted(file.path)} --launch {launch.n}", file.path)
    return [*hint(t, show, "this launch in full (or --kernel NAME)"), *more(t, file)]


def _by_time(launches: Sequence[Launch]) -> list[Launch]:
    return sorted(launches, key=lambda launch: (launch.setup, -(_duration(launch) or 0)))


def _duration(launch: Launch) -> float | None:
    """Return the duration [s] of a valid measurement."""
    return None if launch.cells.kernel.failed else launch.duration


def _total(launches: Sequence[Launch]) -> float | None:
    known = [d for launch in launches if (d := _duration(launch)) is not None]
    return sum(known) if known else None


def _median(group: Group) -> float | None:
    known = [d for launch in group.launches if (d := _duration(launch)) is not None]
    return median(known) if known else None


def _percent(value: float | None) -> str:
    return quantity.short(value, "%").removesuffix(f"{quantity.NARROW}%")
