"""An estimate in the terminal."""

from __future__ import annotations

from ncukit import quantity
from ncukit.model.work import SUSPECTS, Estimate
from ncukit.render.model.shown import (
    Shown,
    data_sheets,
    explained,
    origin,
    peaks,
    precision,
    ratio_rows,
    side,
)
from ncukit.render.text.terminal import Terminal, columns, pad
from ncukit.render.view.ceilings import rate_unit, roof_name
from ncukit.roofline.models.estimate import MODELS, parameters

HEAD = 13
"""Columns of the name of a row."""


def estimate_text(shown: Shown, *, color: bool, encoding: str, width: int = 80) -> str:
    """Return what a terminal of ``width`` columns shows of an estimate."""
    t = Terminal(width, encoding, color)
    bound = _bound(t, shown.estimate) + _measured(t, shown)
    blocks = [_work(t, shown.estimate), bound, _time(t, shown), _launch(t, shown)]
    blocks.append(_words(t, shown.estimate))
    lines = [t.cut_middle(t.text(f"{shown.estimate.model.name}  {shown.estimate.model.dtype}"), width)]
    for block in blocks:
        lines += ["", *block] if block else []
    return t.page(lines)


def models_text(*, encoding: str, width: int = 80) -> str:
    """Return the list of all models: name, what each is, what it must be told."""
    t = Terminal(width, encoding)
    lines = ["Analytic models: `ncukit roofline MODEL --help` explains each and its options", ""]
    left = max(map(len, MODELS)) + 2
    for name in MODELS:
        shown = name.replace("_", "-")
        lines += t.wrap(explained(name)[0], first=pad(f"  {shown}", left + 2), indent=" " * (left + 2))
        needed = " ".join(f"--{p.name.replace('_', '-')}" for p in parameters(name) if p.required)
        lines += t.wrap(needed, first=" " * (left + 4), indent=" " * (left + 4))
    return t.page(lines)


def _work(t: Terminal, estimate: Estimate) -> list[str]:
    model = estimate.model
    each = ", ".join(f"{precision(p)} {quantity.short(flop, 'FLOP')}" for p, flop in model.flop.items())
    one = len(model.flop) == 1
    rows = [
        (
            "FLOPs",
            _count(model.total_flop, "FLOP", "FLOP"),
            precision(next(iter(model.flop))) if one else each,
        ),
        ("Bytes", _count(model.bytes, "byte", "B"), _traffic(estimate)),
        ("Intensity", f"{quantity.significant(model.intensity)} FLOP/B", ""),
    ]
    if not model.flop:
        rows = [("FLOPs", "0 FLOP", "bytes alone set the time"), rows[1]]
    return [line for row in rows for line in _row(t, *row)]


def _bound(t: Terminal, estimate: Estimate) -> list[str]:
    lines: list[str] = []
    for name, value in peaks(estimate):
        number = quantity.short(value.number, value.unit) if value.known else "unknown"
        lines += _row(t, "Peak", number, f"{name}, {origin(value)}")
    link = estimate.model.memory == "link"
    known = estimate.bandwidth.known
    rate = quantity.short(estimate.bandwidth.number, "byte/s") if known else "unknown"
    lines += _row(
        t, "Bandwidth", rate, f"{'link, one way' if link else 'DRAM'}, {origin(estimate.bandwidth)}"
    )
    for source in data_sheets(estimate):
        lines += _row(t, "Data sheet", source, "")
    if estimate.ridge is not None:
        lines += _row(t, "Ridge", f"{quantity.significant(estimate.ridge)} FLOP/B", "")
    if estimate.bound is not None:
        lines += _row(t, "Bound", quantity.short(estimate.bound, "FLOP/s"), side(estimate))
    times = {"traffic": estimate.memory_seconds, "arithmetic": estimate.compute_seconds}
    parts = [f"{what} {quantity.short(time, 's')}" for what, time in times.items() if time]
    if estimate.floor is not None:
        lines += _row(t, "Time floor", quantity.short(estimate.floor.seconds, "s"), ", ".join(parts))
    elif parts:
        lines += _row(t, "Time floor", "unknown", f"at least the {parts[0]}")
    return lines


def _measured(t: Terminal, shown: Shown) -> list[str]:
    lines: list[str] = []
    for roof in shown.measured:
        unit = rate_unit(roof.name) if roof.kind == "compute" else "byte/s"
        words = roof.note.removeprefix("measured: ")
        lines += _row(t, "Measured", quantity.short(roof.value, unit), f"{roof_name(roof)[0]}, {words}")
    return lines


def _time(t: Terminal, shown: Shown) -> list[str]:
    estimate = shown.estimate
    if estimate.seconds is None:
        return []
    lines = _row(t, "Time", quantity.short(estimate.seconds, "s"), shown.timed)
    if estimate.model.flop:
        share = f"{quantity.short(100 * estimate.achieved / estimate.bound, '%')} of the bound" if (
            estimate.bound and estimate.achieved is not None
        ) else ""  # fmt: skip
        lines += _row(t, "Achieved", quantity.short(estimate.achieved, "FLOP/s"), share)
    rate = quantity.short(estimate.achieved_bandwidth, "byte/s")
    lines += _row(t, "" if estimate.model.flop else "Achieved", rate, "of the model's bytes")
    words = {
        True: ("yes", "no faster than the bound"),
        False: ("no", "faster than the bound allows; one of these is wrong:"),
        None: ("unknown", "a peak that is unknown would decide"),
    }[estimate.consistent]
    lines += _row(t, "Consistent", *words)
    for key in estimate.suspects:
        lines += t.wrap(SUSPECTS[key][1], first=pad(f"  {key}", 16), indent=" " * 16)
    return lines


def _launch(t: Terminal, shown: Shown) -> list[str]:
    kernel, estimate = shown.kernel, shown.estimate
    if kernel is None:
        return []
    where = f"launch {kernel.index + 1}"
    lines = t.beside(t.cut_middle(t.text(f"Measured  {kernel.name}"), t.width - len(where) - 2), where)
    if kernel.gpu:
        lines.append(t.cut(t.text(f"  {kernel.gpu}"), t.width))
    rows = ratio_rows(estimate)
    table = [("", "measured", "model", "ratio")]
    table += [(row["name"], row["measured"], row["modelled"], row["ratio"]) for row in rows]
    lines += [t.text(line) for line in columns(table, "<>>>")]
    for row in rows:
        if row["id"] in ("flops", "dram_bytes") or row["ratio"] == quantity.MISSING:
            means = "" if row["ratio"] == quantity.MISSING else "above 1: "
            lines += t.wrap(t.text(f"{row['name']} {means}{row['text']}"), first="  ", indent="    ")
    signs = {True: "ok", False: "!", None: "-"}
    for check in estimate.checks:
        lines += t.wrap(t.text(check.message), first=f"  {pad(signs[check.ok], 2)} ", indent="     ")
    return lines


def _words(t: Terminal, estimate: Estimate) -> list[str]:
    lines: list[str] = []
    for name, texts in (("Counted", estimate.model.notes), ("Left out", estimate.model.assumptions)):
        for n, text in enumerate(texts):
            lines += t.wrap(text, first=pad(name if n == 0 else "", HEAD), indent=" " * (HEAD + 2))
    return lines


def _row(t: Terminal, name: str, value: str, words: str) -> list[str]:
    first = f"{pad(name, HEAD)}{value}"
    room = max(len(first) + 2, HEAD + 17)
    return t.wrap(words, first=pad(first, room), indent=" " * (HEAD + 17)) if words else [first]


def _count(value: float, unit: str, symbol: str) -> str:
    """Return a count in full up to a million, else short."""
    return f"{value:,.15g} {symbol}" if value < 1e6 else quantity.short(value, unit)


def _traffic(estimate: Estimate) -> str:
    model = estimate.model
    if model.memory == "link":
        return "sent by each rank"
    parts = {"read": model.read, "written": model.written}
    if not all(parts.values()):
        return ""
    return ", ".join(f"{what} {quantity.short(moved, 'byte')}" for what, moved in parts.items())
