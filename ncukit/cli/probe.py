"""``ncukit probe``: single questions about this machine and about torch on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ncukit.cli.options import Force
from ncukit.errors import UsageError
from ncukit.files import check_new
from ncukit.media import line


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(probe)


def probe(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="device, dtype, allocator, graph-breaks, copy, matmul."),
    ],
    shape: Annotated[
        str | None, typer.Option(metavar="4096x4096", help="dtype: the footprint of this shape.")
    ] = None,
    dtype: Annotated[
        list[str] | None, typer.Option(metavar="TYPE", help="dtype: only this type; repeatable.")
    ] = None,
    cc: Annotated[
        str | None, typer.Option("--cc", metavar="9.0", help="dtype: of this compute capability.")
    ] = None,
    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="allocator, graph-breaks: the script to run.")
    ] = None,
    kernel: Annotated[
        str | None, typer.Option("--kernel", "-k", metavar="NAME", help="Its workload or function.")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="A parameter of it; repeatable.")
    ] = None,
    steps: Annotated[int, typer.Option(min=2, metavar="N", help="allocator: steps to compare over.")] = 20,
    snapshot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="allocator: save torch.cuda.memory_snapshot() here.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the JSON to a file.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON (ncukit.probe/1) on stdout.")] = False,
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The interpreter that has torch; default: this one.")
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="Give up a probe after so long.")] = 600.0,
    force: Force = False,
) -> None:
    """Ask single questions: what GPU is here, what a type costs, what the allocator or torch.compile do.

    copy and matmul measure ceilings of this GPU; report, show and roofline draw them: --measured-ceilings.

    \b
    ncukit probe device
    ncukit probe dtype --shape 4096x4096 --dtype bf16 --cc 9.0
    ncukit probe allocator graph-breaks --script my_model.py --kernel step
    ncukit probe copy matmul -o ceilings.json

    Ends with 0 when at least one probe answered, else with 3.
    """
    import sys

    from ncukit import api
    from ncukit.api.runs import parse_shape
    from ncukit.cli.output import color, encoding, width
    from ncukit.render.probe import probe_json, probe_text, write_probe
    from ncukit.run.probes import ProbeOptions

    for target in (output, snapshot):
        if target is not None:
            check_new(target, force=force)
    pairs = [pair.partition("=") for pair in param or []]
    if bad := [name for name, equals, _ in pairs if not (name and equals)]:
        raise UsageError(f"--param {bad[0]} is not NAME=VALUE", "write --param m=4096")
    options = ProbeOptions(
        shape=None if shape is None else parse_shape(shape),
        dtypes=tuple(dtype or ()),
        compute_capability=cc,
        script=script,
        call=kernel,
        params={name: value for name, _, value in pairs},
        steps=steps,
        snapshot=snapshot,
        python=python or sys.executable,
        timeout=timeout,
    )
    found = api.probe(*names, options=options)
    if output is not None:
        print(line(str(write_probe(output, found, force=force))), file=sys.stderr)
    if json:
        print(probe_json(found))
    else:
        print(probe_text(found, color=color(), encoding=encoding(), width=width()))
    if not any(one.state == "done" for one in found):
        raise typer.Exit(3)
