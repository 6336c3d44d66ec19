"""The numbers of a timeline, each with its full value and its meaning behind it."""

from __future__ import annotations

from ncukit import quantity
from ncukit.render.cells import Cell, Tips, plain


class Figures:
    """Makes the numbers of the page, each with its full value and meaning behind it."""

    def __init__(self, tips: Tips | None = None) -> None:
        self.tips = tips or Tips()

    def time(self, key: str, nanoseconds: float, meaning: str) -> Cell:
        """Return a duration [ns]."""
        return self.of(key, nanoseconds / 1e9, "s", meaning)

    def share(self, key: str, part: float, whole: float, meaning: str) -> Cell:
        """Return what ``part`` is of ``whole`` in percent, or words where there is no whole."""
        if not whole:
            return plain("no time")
        tip = self.tips.computed(
            0,
            key,
            quantity.full(100 * part / whole, "%"),
            "derived",
            meaning,
            "part / whole × 100",
            (("part", quantity.full(part / 1e9, "s")), ("whole", quantity.full(whole / 1e9, "s"))),
        )
        return {"text": quantity.short(100 * part / whole, "%"), "state": "exact", "tip": tip}

    def of(self, key: str, value: float | None, unit: str, meaning: str) -> Cell:
        """Return a number of the trace."""
        if value is None:
            return plain(quantity.MISSING)
        tip = self.tips.computed(0, key, quantity.full(value, unit), "exact", meaning, "")
        return {"text": quantity.short(value, unit), "state": "exact", "tip": tip}
