"""Model FLOPs utilisation as JSON (schema ``ncukit.mfu/1``) and as words."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ncukit import quantity
from ncukit.metrics.catalog import skus
from ncukit.render.text.terminal import Terminal, columns
from ncukit.render.words import plural
from ncukit.roofline.mfu import PER_PARAMETER, Mfu

SCHEMA = "ncukit.mfu/1"


def mfu_data(found: Mfu) -> dict[str, Any]:
    """Return the utilisation as JSON data: FLOP/s, percent 0 to 100."""
    peak = found.peak
    return {
        "schema": SCHEMA,
        "mfu": found.percent,
        "consistent": found.consistent,
        "achieved": found.achieved,
        "peak": None if peak.per_gpu is None else peak.per_gpu * found.gpus,
        "mode": found.mode,
        "params": found.params,
        "tokens_per_second": found.tokens_per_second,
        "dtype": found.dtype,
        "flop_per_token": {"parameters": found.flop_parameters, "attention": found.flop_attention},
        "attention": None if found.attention is None else asdict(found.attention),
        "gpu": {
            "count": found.gpus,
            "name": peak.name,
            "sku": peak.sku.id if peak.sku else None,
            "form": peak.sku.form if peak.sku else None,
            "precision": peak.precision,
            "peak": peak.per_gpu,
            "dense": True,
            "source": peak.source or None,
            "reason": peak.reason or None,
            "candidates": [sku.id for sku in peak.candidates],
        },
        "suspects": list(found.suspects),
        "notes": list(found.notes),
    }


def mfu_text(found: Mfu, *, width: int = 80, encoding: str = "utf-8") -> str:
    """Return the utilisation in words."""
    t, peak = Terminal(width, encoding), found.peak
    share = "unknown" if found.percent is None else quantity.short(found.percent, "%")
    lines = t.wrap(t.text(f"MFU  {share} of the dense {found.dtype.upper()} peak, {found.mode}"))
    if peak.per_gpu is None:
        lines += t.wrap(t.text(f"{peak.reason}: its peak is unknown."), first="  ! ", indent="    ")
    if found.consistent is False:
        lines += t.wrap("more than the GPUs can do: this is inconsistent", first="  ! ", indent="    ")
    per = PER_PARAMETER[found.mode]
    attention = quantity.short(found.flop_attention, "FLOP") if found.attention else "not counted"
    rate = "unknown"
    if peak.per_gpu is not None:
        rate = f"{plural(found.gpus, 'GPU')} x {quantity.short(peak.per_gpu, 'FLOP/s')}"
    rows = [
        ["achieved", quantity.short(found.achieved, "FLOP/s")],
        ["peak", f"{rate}, {peak.name}"],
        ["source", peak.source or "none"],
        ["a token", f"{per} x {quantity.short(found.params)} parameters, attention {attention}"],
        ["tokens", f"{quantity.short(found.tokens_per_second)} per second"],
    ]
    for name, text in rows:
        lines += t.wrap(t.text(text), first=f"  {name:8}  ", indent=" " * 12)
    if found.suspects:
        lines += ["", "suspects"]
        lines += [
            line for text in found.suspects for line in t.wrap(t.text(text), first="  - ", indent="    ")
        ]
    if peak.candidates:
        lines += ["", "could be meant"]
        given = [[sku.id, _rate(sku.peak.get(peak.precision)), sku.name] for sku in peak.candidates]
        lines += columns([[t.text(cell) for cell in row] for row in given], "<><")
    lines.append("")
    lines += [line for text in found.notes for line in t.wrap(t.text(text), first="  note: ", indent="    ")]
    return t.page(lines)


def skus_text(*, width: int = 80, encoding: str = "utf-8") -> str:
    """Return every known product with its dense BF16 peak, else FP16, and the source of it."""
    t = Terminal(width, encoding)
    rows = [["id", "BF16/FP16", "DRAM", "product"]]
    for sku in skus():
        rate = sku.peak.get("tensor_bf16", sku.peak.get("tensor_fp16"))
        rows.append([sku.id, _rate(rate), quantity.short(sku.dram_bandwidth, "byte/s"), sku.name])
    return t.page(t.cut(line, width) for line in columns(rows, "<>><"))


def _rate(value: float | None) -> str:
    return "unknown" if value is None else quantity.short(value, "FLOP/s")
