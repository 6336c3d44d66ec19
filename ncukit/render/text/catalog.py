"""The catalog for people: the list of neutral metrics, or all about one of them."""

from __future__ import annotations

import re

from ncukit.metrics import Metric, Source, load
from ncukit.render.text.parts import shell
from ncukit.render.text.terminal import Terminal, pad
from ncukit.render.words import FAMILIES

DIRECTIONS = {
    "higher": "higher is better",
    "lower": "lower is better",
    "neutral": "neither high nor low is good as such",
}
_TOKENS = re.compile(r"\{([^}]*)\}|(\"[^\"]*\"|@\w+|\d[\d.]*(?:e[+-]?\d+)?|[A-Za-z_]\w*|[()])|([-+*/<>=]+|,)")


def catalog_text(metric: Metric | None, *, encoding: str = "utf-8", width: int = 80) -> str:
    """Return the list of all neutral metrics by family, or everything about ``metric``.

    >>> print(catalog_text(load().metrics["l2_throughput_pct"]).splitlines()[0])
    l2_throughput_pct [%]                                             Speed of light
    """
    t = Terminal(width, encoding)
    return t.page(_list(t) if metric is None else _one(t, metric))


def readable(expression: str) -> str:
    """Return the expression of a source without its braces, breakable at its operators.

    >>> readable("{a.sum}/100*@peak_dram_bandwidth*1e-9")
    'a.sum / 100 * @peak_dram_bandwidth * 1e-9'
    """
    parts = []
    for raw, word, operator in _TOKENS.findall(expression):
        parts.append(raw or word or (", " if operator == "," else f" {operator} "))
    return "".join(parts).replace("( - ", "(-")


def _list(t: Terminal) -> list[str]:
    lines: list[str] = []
    family = ""
    metrics = load().metrics.values()
    for metric in metrics:
        if metric.family != family:
            family = metric.family
            lines += [*([""] if lines else []), FAMILIES.get(family, family)]
        lines += t.beside(f"  {metric.id}", t.text(metric.unit))
        lines += t.wrap(t.text(metric.meaning), first="    ", indent="    ")
    return [*lines, "", *t.wrap(f"{len(metrics)} metrics; `ncukit catalog ID` shows where one comes from.")]


def _one(t: Terminal, metric: Metric) -> list[str]:
    unit = f" [{metric.unit}]" if metric.unit else ""
    lines = t.beside(t.text(metric.id + unit), FAMILIES.get(metric.family, metric.family))
    lines += t.wrap(t.text(f"{metric.meaning}."))
    lines += ["", *_fact(t, "direction", DIRECTIONS[metric.direction])]
    if metric.range is not None:
        low, high = ("" if end is None else f"{end:g}" for end in metric.range)
        words = f"{low} to {high}" if low and high else f"{low} or more" if low else f"up to {high}"
        lines += _fact(t, "range", words)
    always = metric.collected_by == "always"
    lines += _fact(t, "collected", "with every report" if always else metric.collected_by)
    if metric.command:
        lines += shell(t, f"ncu {metric.command}", pad("command", 11))
    lines += _fact(t, "absent in", metric.absent)
    lines += _fact(t, "note", metric.note)
    lines += ["", "sources: the first one wins whose counters are all in the report"]
    for n, source in enumerate(metric.sources, 1):
        lines += t.wrap(t.text(readable(source.expr)), first=f"  {n:2}  ", indent=" " * 6, whole=True)
        about = [source.quality, *_where(source), source.collected_by, source.note]
        lines += t.wrap(t.text("; ".join(part for part in about if part)), first=" " * 6, indent=" " * 6)
    if any("@" in source.expr for source in metric.sources):
        lines += ["", *t.wrap("@ID is another metric of the catalog.")]
    return lines


def _fact(t: Terminal, name: str, text: str) -> list[str]:
    return t.wrap(t.text(text), first=f"{name:9}  ", indent=" " * 11) if text else []


def _where(source: Source) -> list[str]:
    """Return the compute capabilities that a source holds for, if not all."""
    if source.cc is None:
        return []
    low, high = (f"{end // 10}.{end % 10}" for end in source.cc)
    if source.cc[0] == source.cc[1]:
        return [f"CC {low}"]
    if source.cc[1] >= 999:
        return [f"CC {low} and above"]
    return [f"up to CC {high}"] if source.cc[0] == 0 else [f"CC {low} to {high}"]
