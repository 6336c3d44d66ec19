"""What a notebook shows of a launch, a comparison and a roofline: tables without script or style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from ncukit import quantity
from ncukit.media import clean
from ncukit.model import Kernel, Point, Roofline
from ncukit.model.comparison import Comparison, Pair
from ncukit.render import cells
from ncukit.render.compare.changes import SHORT_CLASS, change_text, ranked, reading
from ncukit.render.compare.names import LABELS
from ncukit.render.compare.page import pair_words
from ncukit.render.view.rows import FAMILIES
from ncukit.render.words import LEVELS, PRECISIONS, plural, shorten

ROWS = 15
PAIRS = 20
_MAIN = (
    *("kernel_duration", "sm_throughput_pct", "memory_throughput_pct", "dram_throughput_pct"),
    *("l2_throughput_pct", "l1_throughput_pct", "dram_bytes", "flops_total", "achieved_occupancy_pct"),
    *("registers_per_thread", "grid_size", "block_size"),
)
"""What is shown of a launch."""


def kernel_html(kernel: Kernel) -> str:
    """Return a launch as a small table: name, GPU, the main metrics, how many are unknown."""
    labels = {row.id: row.label for family in FAMILIES for row in family.rows} | LABELS
    rows = [
        (labels.get(id, id), cells.text(value), value.quality or "", id)
        for id in _MAIN
        if (value := kernel.metrics.get(id)) is not None
    ]
    unknown = sum(not value.known for value in kernel.metrics.values())
    foot = f"{plural(len(kernel.metrics) - unknown, 'metric')} known, {unknown} unknown"
    if kernel.failed:
        foot = f"failed: {kernel.failed}"
    head = f"{shorten(kernel.name, 80)} on {kernel.gpu or 'unknown GPU'}, launch {kernel.index + 1}"
    return _table(head, ("Metric", "Value", "Quality", "Id"), rows, foot, right={1})


def comparison_html(comparison: Comparison) -> str:
    """Return a comparison: the claim and what changed of one pair, or one row a pair."""
    pairs = comparison.pairs
    if len(pairs) == 1:
        return _pair(pairs[0])
    rows = [
        (shorten(pair.other.kernel.name, 60), *pair_words(pair), pair.summary.claim) for pair in pairs[:PAIRS]
    ]
    left = len(pairs) - len(rows)
    foot = f"{left} more" if left else ""
    head = f"{plural(len(pairs), 'pair')} against {comparison.base.label}"
    return _table(
        head, ("Kernel", "Base", "Other", "Change", "Reading", "What it says"), rows, foot, right={1, 2, 3}
    )


def roofline_html(roofline: Roofline) -> str:
    """Return the points of a roofline with their share of the roof, and what is missing."""
    rows = [_point(point) for point in roofline.points]
    foot = " ".join(roofline.missing)
    return _table(
        "Roofline", ("Point", "Intensity", "Achieved", "Attainable", "Share"), rows, foot, right={1, 2, 3, 4}
    )


def _pair(pair: Pair) -> str:
    changed = ranked(pair.rows)
    rows = [
        (
            LABELS.get(row.id, row.id),
            cells.text(row.base),
            cells.text(row.other),
            change_text(row),
            "" if row.explains is None else quantity.short(row.explains, "%"),
            " ".join(reading(row)[:2]).strip(),
            SHORT_CLASS[row.comparable],
        )
        for row in changed[:ROWS]
    ]
    others = sum(row.reading == "not-comparable" for row in pair.rows)
    unknown = sum(row.reading == "unknown" for row in pair.rows)
    foot = f"{max(0, len(changed) - ROWS)} more changed, {others} not comparable, {unknown} unknown"
    head = f"{pair.summary.claim}. {pair.summary.deck}"
    names = ("Metric", "Base", "Other", "Change", "Explains", "Reading", "Comparable")
    return _table(head, names, rows, foot, right={1, 2, 3, 4})


def _point(point: Point) -> tuple[str, ...]:
    precision = PRECISIONS.get(point.precision, (point.precision, ""))[0]
    level = LEVELS.get(point.level, (point.level, ""))[0]
    unit = "inst/s" if point.precision == "inst" else "FLOP/s"
    about = "≈ " if point.quality == "estimate" else ""
    return (
        f"{precision}, {level}",
        "unknown" if point.intensity is None else f"{about}{quantity.significant(point.intensity)}",
        quantity.short(point.achieved, unit),
        "no roof" if point.attainable is None else quantity.short(point.attainable, unit),
        "" if point.share is None else quantity.short(point.share, "%"),
    )


def _table(
    head: str,
    names: Sequence[str],
    rows: Iterable[Sequence[str]],
    foot: str,
    right: set[int],
) -> str:
    """Return a table; everything in it is text, whatever it holds."""

    def cell(tag: str, text: str, n: int) -> Markup:
        style = Markup(' style="text-align:right"') if n in right else Markup(' style="text-align:left"')
        return Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), style, clean(text))  # noqa: S704 - format escapes the text

    def row(tag: str, texts: Sequence[str]) -> Markup:
        return Markup("<tr>{}</tr>").format(
            Markup("").join(cell(tag, text, n) for n, text in enumerate(texts))
        )

    body = Markup("").join(row("td", texts) for texts in rows)
    return str(
        Markup(
            "<div><p>{}</p><table><thead>{}</thead><tbody>{}</tbody></table><p><small>{}</small></p></div>"
        ).format(clean(head), row("th", names), body, clean(foot))
    )
