"""``ncukit doctor``: what of the tool chain works here, and the fix for what does not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncukit.cli.options import Force
from ncukit.errors import UsageError
from ncukit.files import check_new
from ncukit.media import line

if TYPE_CHECKING:
    from ncukit.run.tools.doctor import Examination

Tool = Annotated[
    str | None, typer.Option(metavar="PATH", help="The tool to look at instead of the one found.")
]


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(doctor)


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON on stdout.")] = False,
    bundle: Annotated[bool, typer.Option("--bundle", help="Write a zip file for a bug report.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write the bundle.")
    ] = None,
    force: Force = False,
    ncu: Tool = None,
    nsys: Tool = None,
    nvcc: Tool = None,
) -> None:
    """Check every link from Python to the GPU's counters: pass, fail or unknown, and the fix.

    Ends with 0 whatever it finds; scripts read `--json`: `can.count` says whether a kernel can be measured.

    \b
    ncukit doctor
    ncukit doctor --json
    ncukit doctor --bundle -o bug.zip     no secrets in it
    """
    import os
    import sys

    if output is not None and not bundle:
        raise UsageError("-o names the file of --bundle", "add --bundle, or write: ncukit doctor > FILE")
    if output is not None:
        check_new(output, force=force)
    from ncukit.run.tools.doctor import Machine, examine

    given = {name: path for name, path in (("ncu", ncu), ("nsys", nsys), ("nvcc", nvcc)) if path}
    examination = examine(Machine(os.environ, tools=given))
    if bundle:
        from ncukit.run.tools.doctor import write_bundle

        path = write_bundle(examination, output)
        print(f"wrote {line(str(path))}", file=sys.stderr)
    if json:
        from ncukit.media import dumps

        print(dumps(examination.as_dict()))
    elif not bundle:
        print(_text(examination))


def _text(examination: Examination) -> str:
    from ncukit.run.tools.doctor import COUNTING, READING, TRACING

    summary = {
        "read reports": READING,
        "trace a program (nsys)": TRACING,
        "measure a kernel (ncu)": COUNTING,
    }
    wide = max(len(check.id) for check in examination.checks)
    lines = []
    for check in examination.checks:
        lines.append(f"{check.state:7}  {check.id:{wide}}  {line(check.detail)}")
        if check.fix and check.state != "pass":
            lines.append(f"{'':7}  {'':{wide}}  fix: {line(check.fix)}")
    lines.append("")
    for what, links in summary.items():
        state, why = examination.can(*links), ", ".join(examination.hindered(*links))
        known = "unknown" if state is None else "does not work here"
        lines.append(f"{what}: works" if state else f"{what}: {known}, see {line(why)}")
    return "\n".join(lines)
