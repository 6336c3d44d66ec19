"""Comparisons of reports, and the baselines that they are held against."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import gmtime, strftime
from typing import TYPE_CHECKING, Any, Literal

from ncukit.api.reports import PathLike, Report, Reports
from ncukit.errors import UsageError
from ncukit.model import Kernel

if TYPE_CHECKING:
    from ncukit.compare.options import CompareOptions
    from ncukit.compare.side import Choice
    from ncukit.model.comparison import Comparison, Side


def compare(
    base: PathLike | Iterable[PathLike] | Iterable[Kernel] | Report | Reports,
    *others: PathLike | Iterable[PathLike] | Iterable[Kernel] | Report | Reports,
    match: str | Iterable[str] = (),
    fail_on: str | Iterable[str] = (),
    options: CompareOptions | None = None,
) -> Comparison:
    """Compare ``base`` with ``others``: metrics side by side, what changed and why, what the gates say.

    A side is a report, several reports (repeats of one measurement), a folder of them, a run directory, the
    name of a baseline, or launches that were read already.  ``match`` and ``fail_on`` add to ``options``.

    Raises:
        UsageError: there is no other side, ``match`` names what is not there, or a gate is none.
        ReportError: a side cannot be used.

    >>> from ncukit.api import demo_reports
    >>> found = compare(demo_reports()[0], demo_reports()[0], fail_on=["dram_bytes > +5%"])
    >>> found.pairs[0].summary.trend, found.failed
    ('unchanged', False)
    """
    from dataclasses import replace

    from ncukit.compare import compare as against
    from ncukit.compare.gates import apply, parse
    from ncukit.compare.options import CompareOptions

    found = options or CompareOptions()
    if not others:
        raise UsageError("there is nothing to compare with", "give a base and at least one other side")
    found = replace(found, match=(*found.match, *_each(match)))
    gates = [*found.gates, *(parse(text) for text in (*found.fail_on, *_each(fail_on)))]
    sides = _sides((base, *others), found)
    comparison = against(sides[0], sides[1:], steering=found.steering, elements=found.elements)
    return apply(
        comparison,
        gates,
        allow_unknown=found.allow_unknown,
        beyond_noise=found.beyond_noise,
        chosen=found.kernel is not None,
    )


def _each(words: str | Iterable[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _sides(everything: tuple[Any, ...], options: CompareOptions) -> list[Side]:
    """Return the sides, repeats together or apart.

    Beside a baseline, which holds repeats as one, they are one in the others as well; two launches of one
    report that ``match`` names by number are compared with each other, also where they are repeats.
    """
    from dataclasses import replace

    everything = tuple(list(what) if isinstance(what, Iterator) else what for what in everything)
    sides = [_side(what, options.choice, number) for number, what in enumerate(everything)]
    apart = options.choice.apart
    if apart and any(side.holds_repeats for side in sides):
        apart = False
    elif options.steering.by_number and any(sides[0].same_report(side) for side in sides[1:]):
        apart = True
    if apart == options.choice.apart:
        return sides
    choice = replace(options.choice, apart=apart)
    return [
        side if side.kind == "baseline" else _side(everything[number], choice, number)
        for number, side in enumerate(sides)
    ]


def _side(what: Any, choice: Choice, number: int) -> Side:
    from ncukit.compare.side import read_side, side_of

    if isinstance(what, Report):
        what = what.path
    elif isinstance(what, Reports):
        what = what.paths
    elif not isinstance(what, str | os.PathLike):
        what = list(what)
        if any(isinstance(one, Kernel) for one in what):
            label = "base" if number == 0 else f"other {number}"
            return side_of((k for k in what if choice.keep(k)), label, apart=choice.apart)
    return read_side(what, choice)


def write_comparison(
    comparison: Comparison,
    output: PathLike,
    *,
    force: bool = False,
    plotly: Literal["inline", "directory"] = "inline",
    command: str = "",
) -> Path:
    """Write the page of a comparison and return where.

    Raises:
        UsageError: the output exists and ``force`` is not given.
    """
    from ncukit.render.compare.html import write_comparison as write

    return write(Path(output), comparison, force=force, plotly=plotly, command=command)


def set_baseline(
    name: str,
    what: PathLike | Iterable[PathLike],
    *,
    folder: PathLike | None = None,
    kernel: str | None = None,
    force: bool = False,
) -> Path:
    """Keep the neutral metrics of ``what`` as baseline ``name`` and return the file.

    Raises:
        UsageError: the baseline exists and ``force`` is not given, or the name is none.
        ReportError: ``what`` cannot be used.
    """
    from ncukit.compare import baseline
    from ncukit.compare.options import CompareOptions

    place = baseline.FOLDER if folder is None else Path(folder)
    baseline.path_of(place, name)
    side = _side(what, CompareOptions(kernel=kernel, lines=False, baselines=place).choice, 0)
    created = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())
    return baseline.write(place, name, side, created=created, force=force)
