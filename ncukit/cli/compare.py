"""``ncukit compare``: kernel against kernel, version against version, GPU against GPU; gates for CI."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncukit.cli.options import Force, KernelName
from ncukit.cli.output import color, complain, encoding, typed, width
from ncukit.errors import NcukitError, UsageError
from ncukit.files import check_new
from ncukit.media import line

if TYPE_CHECKING:
    from ncukit.model.comparison import Comparison

GATE_FAILED = 10
"""Exit code of a comparison that a gate failed."""
FORMATS = ("text", "markdown", "json", "junit", "github", "html")
SUFFIXES = {
    **{".html": "html", ".htm": "html", ".md": "markdown"},
    **{".json": "json", ".xml": "junit", ".txt": "text"},
}


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(compare)


def compare(
    base: Annotated[
        str,
        typer.Argument(
            metavar="BASE",
            help="A report, a folder of reports that repeat one measurement, a run directory, or the name of "
            "a baseline.",
        ),
    ],
    others: Annotated[
        list[str], typer.Argument(metavar="OTHER...", help="What is compared with it: the same kinds.")
    ],
    outputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="File to write; its ending says how (.html .md .json .xml .txt); repeatable.",
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option("--format", metavar="|".join(FORMATS), help="How to print on stdout; text by default."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="GATE",
            help="Fail when this holds, such as 'dram_bytes > +5%'; repeatable.",
        ),
    ] = None,
    allow_unknown: Annotated[
        bool | None,
        typer.Option("--allow-unknown/--no-allow-unknown", help="Undecidable gates do not trip."),
    ] = None,
    beyond_noise: Annotated[
        bool | None,
        typer.Option("--beyond-noise/--no-beyond-noise", help="Changes within the noise do not trip."),
    ] = None,
    match: Annotated[
        list[str] | None,
        typer.Option(
            "--match",
            "-m",
            metavar="BASE=OTHER",
            help="Pair these kernels or launch numbers; the word order pairs by position alone; repeatable.",
        ),
    ] = None,
    kernel: KernelName = None,
    elements: Annotated[
        list[float] | None,
        typer.Option(
            "--elements",
            min=1,
            metavar="N",
            help="Output elements, for quantities per element: once for all, or once for each side.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Settings instead of the nearest ncukit.toml."),
    ] = None,
    plotlyjs: Annotated[
        str, typer.Option(metavar="inline|directory", help="Plotly inside the page, or once beside many.")
    ] = "inline",
    force: Force = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what is folded by default.")] = False,
) -> None:
    """Put neutral metrics side by side, say what changed and why, and fail on gates.

    \b
    ncukit compare before.ncu-rep after.ncu-rep
    ncukit compare before.ncu-rep after.ncu-rep -o diff.html --open
    ncukit compare a100.ncu-rep h100.ncu-rep b200.ncu-rep --match gemm_v1=gemm_v2
    ncukit compare main new.ncu-rep --fail-on 'dram_bytes > +5%' --fail-on 'kernel_duration > 1.02x'
    ncukit compare main new.ncu-rep --format github -o diff.md -o gates.xml

    Launches pair by name and by grid, NVTX range or order; the only kernel of each side whatever its name,
    which is said.  A gate names what must not be: a change in percent (+5%) or points (+3pt), a factor
    (1.02x), or a value (0, 2ms).  Gates of [compare] in ncukit.toml count as well.  Exit code 10: a gate
    failed; without gates 1: no launch of one side matches the other.
    """  # fmt: skip
    how = "json" if json else format or ("text" if not outputs and not open_ else None)
    if how is not None and how not in FORMATS:
        raise UsageError(f"--format {how} is not known", f"use one of: {', '.join(FORMATS)}")
    if plotlyjs not in ("inline", "directory"):
        raise UsageError(f"--plotlyjs {plotlyjs} is not known", "use inline or directory")
    page = open_ or how == "html"
    targets = _targets(list(outputs or ()), how if format else None, page=page, force=force)
    if how == "html" or any(SUFFIXES.get(target.suffix) is None for target, _ in targets):
        how = None  # it is what a file is written as
    comparison = _compared(
        base, others, fail_on, allow_unknown, beyond_noise, match, kernel, elements, config,
        lines=bool({"html", "json"} & {how, *(kind for _, kind in targets)}),
    )  # fmt: skip
    for target, kind in targets:
        _write(target, kind, comparison, plotlyjs, verbose=verbose)
        print(line(str(target)), file=sys.stderr if how else sys.stdout)
    if how is not None:
        print(_text(how, comparison, verbose=verbose))
    if open_:
        typer.launch(next(target for target, kind in targets if kind == "html").resolve().as_uri())
    if comparison.failed:
        failed = [outcome for outcome in comparison.gates if outcome.failed]
        more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        first = f"{failed[0].gate}: {failed[0].message}".replace("\u202f", " ")
        hint = "--allow-unknown and --beyond-noise loosen gates"
        complain(NcukitError(f"a gate failed: {first}{more}", hint))
        raise typer.Exit(GATE_FAILED)
    if not comparison.gates and comparison.unpaired:
        nothing = _nothing_compared(comparison)
        complain(nothing)
        raise typer.Exit(nothing.exit_code)


def _nothing_compared(comparison: Comparison) -> NcukitError:
    """Return the error for sides without a launch of the base; what was printed says why of each launch."""
    sides = ", ".join(
        f"{against.other.label} against {comparison.base.label}" for against in comparison.unpaired
    )
    return NcukitError(
        f"nothing was compared of {sides}: no launch of one matches one of the other",
        "--match BASE=OTHER pairs kernels whose names differ, --match order pairs by position",
        code="nothing-compared",
    )


def _compared(
    base: str,
    others: list[str],
    fail_on: list[str] | None,
    allow_unknown: bool | None,
    beyond_noise: bool | None,
    match: list[str] | None,
    kernel: str | None,
    elements: list[float] | None,
    config: Path | None,
    *,
    lines: bool,
) -> Comparison:
    from ncukit.api import compare as run
    from ncukit.comparison.options import CompareOptions, load_settings

    settings = load_settings(file=config)
    return run(
        base,
        *others,
        options=CompareOptions(
            match=tuple(match or ()),
            kernel=kernel,
            fail_on=tuple(fail_on or ()),
            gates=settings.gates,
            allow_unknown=settings.allow_unknown if allow_unknown is None else allow_unknown,
            beyond_noise=settings.beyond_noise if beyond_noise is None else beyond_noise,
            elements=tuple(elements or ()),
            lines=lines,
            baselines=settings.baselines,
        ),
    )


def _targets(outputs: list[Path], format: str | None, *, page: bool, force: bool) -> list[tuple[Path, str]]:
    """Return the files to write and how, before any work is done; ``format`` where an ending does not say."""
    if page and not any((SUFFIXES.get(path.suffix) or format) == "html" for path in outputs):
        outputs.append(Path("compare.html"))
    targets = []
    for path in outputs:
        kind = SUFFIXES.get(path.suffix) or format
        if kind is None:
            raise UsageError(f"{path}: its ending says no format", f"use one of: {', '.join(SUFFIXES)}")
        check_new(path, force=force)
        targets.append((path, kind))
    return targets


def _write(target: Path, kind: str, comparison: Comparison, plotlyjs: str, *, verbose: bool) -> None:
    from ncukit.api import write_comparison

    if kind == "html":
        command = typed(names=True)
        plotly = "directory" if plotlyjs == "directory" else "inline"
        write_comparison(comparison, target, force=True, plotly=plotly, command=command)  # type: ignore[arg-type]
        return
    from ncukit.files import write_text

    write_text(target, _text(kind, comparison, verbose=verbose, terminal=False) + "\n")


def _text(kind: str, comparison: Comparison, *, verbose: bool, terminal: bool = True) -> str:
    if kind == "json":
        from ncukit.render.compare.json import comparison_text as as_json

        return as_json(comparison)
    if kind == "markdown":
        from ncukit.render.compare.markdown import markdown_text

        return markdown_text(comparison).rstrip("\n")
    if kind == "junit":
        from ncukit.render.compare.junit import junit_text

        return junit_text(comparison).rstrip("\n")
    if kind == "github":
        from ncukit.render.compare.github import github_text

        return github_text(comparison)
    from ncukit.render.compare.text import comparison_text

    if not terminal:
        return comparison_text(comparison, color=False, encoding="utf-8", width=100, verbose=verbose)
    return comparison_text(comparison, color=color(), encoding=encoding(), width=width(), verbose=verbose)
