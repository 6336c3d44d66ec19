"""docs/metrics.md: the reference of the neutral metrics, from the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from ncukit.judge import RULES
from ncukit.judge.rule import Need
from ncukit.metrics import Metric, load
from ncukit.render.text.catalog import DIRECTIONS, readable
from ncukit.render.words import FAMILIES
from scripts.pages.words import plain

HEAD = """\
# Neutral metrics

Generated from the catalog by `scripts/reference.py`; a test keeps it current.  `ncukit catalog ID` prints one
entry in the terminal, `ncukit catalog --json` all of them for programs.

There are {count} metrics.  Each has sources in order: the first one wins whose raw counters are all in the
report.  A raw counter is written with its whole name, `@ID` is another metric of this catalog.  Units are
base SI, percent is 0 to 100.  Quality, where a source does not say otherwise, is *exact*: the counter itself.
*Derived* is computed from counters; an *estimate* rests on an assumption that its note names.  A metric that
no source yields is unknown, never 0.
"""


def page() -> str:
    """Return the text of docs/metrics.md."""
    metrics = load().metrics.values()
    parts = [HEAD.format(count=len(metrics))]
    for family, members in groupby(metrics, key=lambda metric: metric.family):
        parts.append(f"\n## {FAMILIES.get(family, family)}\n")
        for metric in members:
            parts.append("\n" + "\n".join(_entry(metric)) + "\n")
    return "".join(parts)


def needed(needs: Iterable[Need]) -> set[str]:
    """Return every metric among the needs of a rule."""
    return {id for need in needs for id in ([need] if isinstance(need, str) else need)}


def anchor(metric: Metric) -> str:
    """Return the anchor of the heading of a metric.

    >>> anchor(load().metrics["dram_bandwidth"]), anchor(load().metrics["l2_hit_rate_pct"])
    ('dram_bandwidth-bytes', 'l2_hit_rate_pct')
    """
    return re.sub(r"[^\w\s-]", "", f"{metric.id} {metric.unit}").strip().replace(" ", "-").lower()


def _entry(metric: Metric) -> Iterator[str]:
    """Yield the lines about one metric."""
    unit = f" [{metric.unit}]" if metric.unit else ""
    yield f"### `{metric.id}`{unit}"
    yield ""
    words = "" if metric.direction == "neutral" else f"; {DIRECTIONS[metric.direction]}"
    collected = "with every report" if metric.collected_by == "always" else metric.collected_by
    about = [f"{metric.meaning}{words}", f"Collected: {collected}"]
    if metric.absent:
        about.append(f"Absent: {metric.absent}")
    yield "  ".join(plain(sentence).rstrip(".") + "." for sentence in (*about, metric.note) if sentence)
    if rules := [rule.id for rule in RULES.values() if metric.id in needed(rule.needs)]:
        yield ""
        yield f"Rules that need it: {', '.join(f'[{id}](rules.md#{id})' for id in rules)}."
    yield ""
    for number, source in enumerate(metric.sources, 1):
        about = [source.quality] if source.quality != "exact" else []
        if source.cc is not None:
            low, high = source.cc
            about.append(
                f"CC {low / 10:.1f} to {high / 10:.1f}" if high < 999 else f"CC {low / 10:.1f} and above"
            )
        about += [plain(note) for note in (source.collected_by, source.note) if note]
        yield f"{number}. `{readable(source.expr)}`" + (f": {'; '.join(about)}" if about else "")
