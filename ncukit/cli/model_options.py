"""Options that every analytic model has on the command line, and how numbers are written there."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from ncukit.cli.options import Force, MeasuredCeilings

_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def rate(text: str | float) -> float:
    """Return a number such as 200e12 or 200T.

    >>> rate("200T"), rate("3.35e12")
    (200000000000000.0, 3350000000000.0)
    """
    digits = str(text)
    factor = _PREFIXES.get(digits[-1:], 1.0)
    try:
        number = float(digits[:-1] if factor != 1 else digits) * factor
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise typer.BadParameter(f"{text!r} is no number: write 200e12 or 200T")
    return number


def whole(text: str | int) -> int:
    """Return a whole number, also one written as 1e6.

    >>> whole("4096"), whole("1e6")
    (4096, 1000000)
    """
    try:
        return int(text) if str(text).lstrip("+-").isdecimal() else _integral(float(text))
    except (ValueError, OverflowError):
        pass
    raise typer.BadParameter(f"{text!r} is no whole number")


def _integral(number: float) -> int:
    if number != int(number):
        raise ValueError
    return int(number)


Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout (schema ncukit.roofline/1).")]
SHARED: dict[str, tuple[Any, Any]] = {
    "peak": (
        Annotated[
            float | None,
            typer.Option("--peak", parser=rate, metavar="FLOP/S", help="Peak rate: 200e12, or 200T."),
        ],
        None,
    ),
    "bandwidth": (
        Annotated[
            float | None,
            typer.Option("--bandwidth", parser=rate, metavar="BYTE/S", help="Memory bandwidth: 3e12, or 3T."),
        ],
        None,
    ),
    "gpu": (
        Annotated[
            str | None,
            typer.Option(metavar="NAME", help="Product whose data sheet gives what is not given: h100-sxm."),
        ],
        None,
    ),
    "seconds": (
        Annotated[
            float | None,
            typer.Option("--seconds", parser=rate, metavar="S", help="A measured time, to be checked."),
        ],
        None,
    ),
    "report": (
        Annotated[
            str | None,
            typer.Option(
                metavar="FILE", help="A report: its launch is held against the model, at its peaks."
            ),
        ],
        None,
    ),
    "launch": (
        Annotated[
            int | None,
            typer.Option("--launch", "-l", min=1, metavar="N", help="Launch N (from 1) of the report."),
        ],
        None,
    ),
    "kernel": (
        Annotated[
            str | None,
            typer.Option(
                "--kernel", "-k", metavar="NAME", help="The launch whose kernel's name contains NAME."
            ),
        ],
        None,
    ),
    "measured_ceilings": (MeasuredCeilings, None),
    "json": (Json, False),
    "output": (
        Annotated[
            Path | None,
            typer.Option("--output", "-o", metavar="PAGE.html", help="Write a page with the roofline."),
        ],
        None,
    ),
    "force": (Force, False),
}
"""Options that every model has: name -> annotation and default."""
