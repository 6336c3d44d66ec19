"""Metrics for people: a launch and its families, or a metric and its launches, with reasons for gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ncukit import quantity
from ncukit.metrics import load
from ncukit.model import Kernel, Value
from ncukit.render import cells
from ncukit.render.text.parts import parted
from ncukit.render.text.terminal import Terminal, columns, pad
from ncukit.render.words import FAMILIES, signature

NAME = 36
"""Columns of a kernel name in a table of launches."""
QUALITY = {"exact": "", "derived": "derived", "estimate": "estimate", None: ""}
BARE = frozenset({"bool", "ratio", "%", "byte/block"})
"""Units that the short number already carries, or that need no word."""


def metrics_text(
    kernels: Sequence[Kernel],
    ids: Sequence[str] | None = None,
    *,
    color: bool,
    encoding: str,
    width: int = 80,
    verbose: bool = False,
) -> str:
    """Return the neutral metrics of ``kernels``, each with unit, quality and, if it is unknown, the reason.

    Without ``ids`` all metrics by family; unknown ones are counted, and listed only when ``verbose``.  With
    ``ids`` only those, in that order; of several launches one table a metric.

    Raises:
        KeyError: an id is not in the catalog.
    """
    t = Terminal(width, encoding, color)
    if not kernels:
        return "no launch"
    if ids and len(kernels) > 1:
        blocks = [_by_launch(t, kernels, id) for id in ids]
    elif ids:
        blocks = [[*_heading(t, kernels[0]), *_rows(t, [kernels[0].metrics[id] for id in ids], verbose=True)]]
    else:
        blocks = [_launch(t, kernel, verbose=verbose) for kernel in kernels]
    return t.page(line for n, block in enumerate(blocks) for line in (["", *block] if n else block))


def _heading(t: Terminal, kernel: Kernel) -> list[str]:
    where = f"launch {kernel.index + 1:,}"
    room = t.width - len(where) - 2
    name = t.cut_middle(t.text(kernel.name or "kernel without a name"), room)
    lines = t.beside(t.cut(name + t.text(signature(kernel.name, kernel.demangled)), room), where)
    cc = f", CC {kernel.compute_capability}" if kernel.compute_capability else ""
    lines.append(t.cut(t.text(f"{kernel.gpu or 'unknown GPU'}{cc}"), t.width))
    if kernel.failed:
        words = t.text(f"failed: {kernel.failed}; only device and launch values are true")
        lines += t.wrap(words, first="! ", indent="  ")
    return lines


def _launch(t: Terminal, kernel: Kernel, *, verbose: bool) -> list[str]:
    lines = _heading(t, kernel)
    families: dict[str, list[Value]] = {}
    for metric in load().metrics.values():
        families.setdefault(metric.family, []).append(kernel.metrics[metric.id])
    for family, values in families.items():
        lines += ["", FAMILIES.get(family, family), *_rows(t, values, verbose=verbose)]
    return lines


def _rows(t: Terminal, values: Iterable[Value], *, verbose: bool) -> list[str]:
    """Return a row for each known value, and the unknown ones with their reasons or as one count."""
    values = list(values)
    shown = [value for value in values if value.known]
    ids = max((len(value.id) for value in shown), default=0)
    rows = [(pad(value.id, ids), *_parted(t, value), _quality(value)) for value in shown]
    numeric = iter(columns([row for row in rows if row[1]], "<><<"))
    lines = [next(numeric) if row[1] else t.cut(f"  {row[0]}  {row[2]}", t.width) for row in rows]
    if doubts := [value for value in shown if not value.reliable]:
        for value in doubts:
            lines += t.wrap(t.text(f"{value.id}: {value.reason}"), first="  ! ", indent="    ")
    unknown = [value for value in values if not value.known]
    if verbose:
        for value in unknown:
            words = t.text(f"{value.id}: {value.reason or 'not collected'}")
            lines += t.wrap(words, first="  - ", indent="    ")
    elif unknown:
        kinds = Counter(value.brief for value in unknown)
        words = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        lines += t.wrap(t.text(f"{len(unknown)} unknown: {words}"), first="  - ", indent="    ")
    return lines


def _by_launch(t: Terminal, kernels: Sequence[Kernel], id: str) -> list[str]:
    """Return one metric of every launch."""
    metric = load().metrics[id]
    unit = f" [{metric.unit}]" if metric.unit else ""
    lines = t.wrap(t.text(f"{id}{unit}: {metric.meaning}"), indent="  ")
    rows = []
    for kernel in kernels:
        value = kernel.metrics[id]
        name = t.cut_middle(t.text(kernel.name or "kernel without a name"), NAME)
        words = _quality(value) if value.known else t.text(value.reason or "not collected")
        rows.append((str(kernel.index + 1), name, *_parted(t, value), words))
    return lines + [t.cut(line, t.width) for line in columns(rows, "><><<")]


def _parted(t: Terminal, value: Value) -> tuple[str, str]:
    """Return the number and, apart from it, its unit: ("67.4", "M wavefront"); words have no number."""
    if not value.known:
        return ("–", "")
    text = t.text(cells.text(value))
    if isinstance(value.value, str):
        return ("", text)
    digits, unit = parted(text)
    if value.unit not in BARE and value.unit not in quantity.SYMBOLS:
        unit = f"{unit} {value.unit}".strip()
    return (f"~ {digits}" if value.quality == "estimate" else digits), unit


def _quality(value: Value) -> str:
    return QUALITY[value.quality] if value.reliable else "unreliable"
