"""The roofs of a roofline as the figure draws them: at the clocks of the run and of the data sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ncukit import quantity
from ncukit.model import Point, Roof
from ncukit.render.cells import Cells
from ncukit.render.figures import Ceiling
from ncukit.render.view.quality import is_short
from ncukit.render.words import LEVELS, PRECISIONS

CLOCKS = {"dram": "dram", "l1": "sm", "shared": "sm", "compute": "sm"}
"""Which clock a roof scales with; the data sheet's clock of L2 is not in a report."""
SAME = 0.03
"""Share by which a data sheet roof must differ from that of the run to be drawn."""


def ceilings(
    cells: Cells, roofs: tuple[Roof, ...], points: tuple[Point, ...], measured: tuple[Roof, ...] = ()
) -> list[Ceiling]:
    """Return the roofs of the precisions and levels used, at the clocks of the run and of the data sheet.

    ``measured`` are ceilings that were reached on this GPU: thin dashed lines of their own.

    Launches too short for a reliable clock get data sheet roofs only, dashed.
    """
    drawn: list[Ceiling] = []
    used = {p.precision for p in points} | {p.level for p in points}
    if "shared" in used:
        used.add("l1")
    for roof in roofs:
        if roof.name not in used and points:
            continue
        run = _ceiling(roof, roof.value, "nominal " if is_nominal(roof) else "", dashed=is_nominal(roof))
        value = sheet(cells, roof)
        if value is None:
            drawn.append(run)
        elif is_short(cells):
            drawn.append(_ceiling(roof, value, "nominal ", dashed=True))
        else:
            drawn.append(run)
            if abs(value / roof.value - 1) > SAME:
                drawn.append(_ceiling(roof, value, "data sheet ", sheet=True))
    return [*_said_once(drawn), *(measured_ceiling(roof) for roof in measured if roof.name in used)]


def measured_ceiling(roof: Roof) -> Ceiling:
    """Return a ceiling that was measured, as the figure draws it."""
    name, color = roof_name(roof)
    unit = rate_unit(roof.name) if roof.kind == "compute" else "byte/s"
    label = f"measured {name} {quantity.short(roof.value, unit)}"
    return Ceiling(roof.kind, roof.name, name, roof.value, label, f"measured {name}", color, True, True, True)


def _said_once(drawn: Sequence[Ceiling]) -> list[Ceiling]:
    """Return the ceilings, one label for those of the same height: "FP32, FP16 41.1 TFLOP/s"."""
    same: dict[tuple[str, bool, str], list[Ceiling]] = {}
    for c in drawn:
        same.setdefault((c.kind, c.sheet, quantity.significant(c.value)), []).append(c)
    first = {id(some[0]): some for some in same.values()}
    return [
        replace(
            c,
            label=c.label.replace(c.name, ", ".join(other.name for other in first[id(c)])),
            short=c.short.replace(c.name, ", ".join(other.name for other in first[id(c)])),
        )
        if id(c) in first
        else replace(c, label="", short="")
        for c in drawn
    ]


def is_nominal(roof: Roof) -> bool:
    """Return whether the roof already stands at the advertised clock, because that of the run is noise."""
    return roof.nominal


def sheet(cells: Cells, roof: Roof) -> float | None:
    """Return the roof at the clock that the device advertises; None where that is unknown or the same."""
    if is_nominal(roof):
        return None
    domain = CLOCKS.get("compute" if roof.kind == "compute" else roof.name)
    if domain is None:
        return None
    clock, most = cells.number(f"{domain}_clock"), cells.number(f"{domain}_clock_max")
    return roof.value * most / clock if clock and most else None


def rate_unit(precision: str) -> str:
    """Return the unit of the rates of ``precision``."""
    return {"inst": "inst/s", "tensor_int8": "OP/s", "tensor_int4": "OP/s"}.get(precision, "FLOP/s")


def _ceiling(roof: Roof, value: float, prefix: str, *, dashed: bool = False, sheet: bool = False) -> Ceiling:
    name, color = roof_name(roof)
    unit = rate_unit(roof.name) if roof.kind == "compute" else "byte/s"
    estimate = roof.quality == "estimate"
    rate = ("≈ " if estimate else "") + quantity.short(value, unit)
    label = f"{prefix}{rate}" if sheet else f"{prefix}{name} {rate}"
    slim = f"{name} {quantity.short(value)}" if roof.kind == "compute" else name
    return Ceiling(roof.kind, roof.name, name, value, label, slim, color, dashed or estimate, sheet)


def roof_name(roof: Roof) -> tuple[str, str]:
    """Return the name of a roof and its colour."""
    if roof.kind == "compute":
        name, color = PRECISIONS.get(roof.name, (roof.name, "--ink"))
        return ("issue" if roof.name == "inst" else name), color
    return LEVELS.get(roof.name, (roof.name, ""))[0], "--ink2"
