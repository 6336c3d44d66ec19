"""How busy a GPU was, and what each way of saying so can and cannot tell."""

from __future__ import annotations

from typing import Any

from ncukit import quantity
from ncukit.model.ops import Utilisation
from ncukit.render.cells import Cell, plain
from ncukit.render.timeline.figures import Figures
from ncukit.render.words import plural

UNASKED = Utilisation.__dataclass_fields__["unseen"].default
SAYS = {
    "busy": (
        "some kernel ran, however small; kernels that overlap count once",
        "how much of the GPU it used",
    ),
    "sampled": (
        "what nvidia-smi could have shown: its counter is the same share, over windows of 1/6 s to 1 s",
        "short gaps, small grids, waiting collectives: 100 % is reached by one block that spins",
    ),
    "seen": (
        "what NVML said while the region ran: the number that nvidia-smi prints",
        "the same: it cannot tell a full GPU from one block; it also counts other programs",
    ),
    "occupancy": (
        "warps that fit, by the profiler's estimate from the launch configuration",
        "whether these warps were stalled: ncu measures that",
    ),
}
"""What a number says, and what it cannot say."""


def _seen(u: Utilisation, figures: Figures) -> Cell:
    if not u.seen:
        return plain("not measured")
    mean = sum(u.seen) / len(u.seen)
    cell = figures.of(f"u{u.device}v", mean, "%", f"Mean of {len(u.seen):,} samples")
    return {**cell, "text": f"{cell['text']} ({min(u.seen)}–{max(u.seen)})"}


def utilisation(u: Utilisation, figures: Figures) -> dict[str, Any]:
    """Return the rows about one GPU."""
    key = f"u{u.device}"
    if u.low is None or u.high is None:
        sampled = plain("too short")
    else:
        cell = figures.of(f"{key}n", u.high, "%", "Largest share of any window; computed, not measured")
        sampled = {**cell, "text": quantity.span(u.low, u.high, "%"), "state": "estimate"}
    occupancy = figures.of(f"{key}o", u.occupancy, "%", "Weighted by the time of the kernels")
    if u.occupancy is not None:
        occupancy = {**occupancy, "state": "estimate"}
    cells = {
        "busy": ("Union of kernels", figures.of(f"{key}b", u.busy, "%", "Of the time of the GPU's work")),
        "sampled": ("As nvidia-smi samples", sampled),
        "seen": ("nvidia-smi, measured", _seen(u, figures)),
        "occupancy": ("Estimated occupancy", occupancy),
    }
    return {
        "device": f"GPU {u.device}" if u.device >= 0 else "GPU unknown",
        "span": figures.time(f"{key}s", u.span, "From its first work to its last"),
        "gaps": plural(u.gaps, "gap"),
        "gap_time": figures.time(f"{key}g", u.gap_time, "Neither kernel, copy nor memory set"),
        "longest": figures.time(f"{key}l", u.longest_gap, "Longest of them"),
        "rows": [
            {"name": name, "cell": cell, "says": SAYS[what][0], "not": SAYS[what][1]}
            for what, (name, cell) in cells.items()
            if what != "seen" or u.seen or u.unseen != UNASKED
        ],
    }
