"""``ncukit ops``: operators of a PyTorch program, and ranks beside each other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncukit.cli.options import Force
from ncukit.cli.output import color, encoding, typed, width
from ncukit.cli.profile import CleanEnv, Env, Params, Quiet, Timeout
from ncukit.errors import UsageError
from ncukit.files import check_new
from ncukit.media import line

if TYPE_CHECKING:
    from ncukit.model.ops import Ops, Ranks

_SORTS = "device|self-device|cpu|self-cpu"


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(ops)


def ops(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET [-- ARGS]...",
            help="A trace (.json, .json.gz), a .py file, or a folder of traces, one a rank.",
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", "-k", metavar="NAME", help="The workload or function of the script."),
    ] = None,
    param: Params = None,
    range_: Annotated[
        str | None,
        typer.Option("--range", "-r", metavar="NAME", help="Of a trace, only inside this annotation."),
    ] = None,
    host: Annotated[
        bool, typer.Option("--host", help="Show Python functions beside the gaps of the GPU.")
    ] = False,
    nccl_log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What NCCL printed with NCCL_DEBUG=INFO.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Operators to show; 0: all. Default: 20, JSON all.")
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(metavar=_SORTS, help="Order; default: device, without a GPU self-cpu."),
    ] = None,
    calls: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="How often the region of a script runs.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="Write an HTML page.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON (ncukit.ops/1, ncukit.ranks/1) on stdout.")
    ] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The interpreter of the script; default: this one.")
    ] = None,
    timeout: Timeout = 1800.0,
    env: Env = None,
    clean_env: CleanEnv = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Say which PyTorch operators take the time, which kernels they launch, and what to profile next.

    \b
    ncukit ops trace.json.gz
    ncukit ops trace.json.gz --range "ProfilerStep#3" --sort self-cpu --top 5
    ncukit ops my_model.py --kernel step --param batch=64 -o step.html
    ncukit ops my_model.py --kernel step --host
    ncukit ops traces/ --nccl-log nccl.txt      one trace a rank: who is late, and why

    The trace of a run is kept for ui.perfetto.dev: beside the page, or in reports/.
    """
    words = target or []
    if not words:
        raise UsageError("there is nothing to look at", "give a trace, a Python script or a folder of traces")
    if output is not None:
        check_new(output, force=force)
    if Path(words[0]).is_dir():
        if kernel or param or range_ or host or top is not None or sort or calls or python:
            raise UsageError(
                f"{words[0]} is a folder of ranks: it has no table of operators",
                "give one of its traces, or leave out all options but --nccl-log and those of the output",
            )
        _ranks(words, nccl_log, output, json=json, open_=open_, force=force)
        return
    if nccl_log is not None:
        raise UsageError("--nccl-log goes with a folder of traces", "give the folder, one trace a rank")
    from ncukit.trace.operator_table import SORTS, ordered

    if sort is not None and sort not in SORTS:
        raise UsageError(f"--sort {sort} does not exist", f"there is: {', '.join(SORTS)}")
    script = words[0].endswith(".py")
    if script and range_ is not None:
        raise UsageError("a script runs its region alone: there is no range", "give --range with a trace")
    if not script and (kernel or param or calls or python):
        raise UsageError(f"{words[0]} is a trace: nothing is run", "leave out the options of a run")
    from dataclasses import replace

    from ncukit import api
    from ncukit.cli.output import Teller
    from ncukit.run.options import ProfileOptions, sweep

    kept: Path | None = None
    if script:
        kept = _beside(output, force) if output is not None else api.new_trace(kernel or Path(words[0]).stem)
        options = ProfileOptions(
            kernel=kernel,
            params=sweep(param or []),
            timeout=timeout,
            env=tuple(env or ()),
            clean_env=clean_env,
            tools={"python": python} if python else {},
        )
        with Teller(quiet=quiet) as teller:
            found = api.ops(words, host=host, calls=calls, trace=kept, options=options, listener=teller)
    else:
        found = api.ops(words, range=range_, host=host)
    for name in SORTS:
        if name == sort:
            found = replace(found, operators=ordered(found.operators, name))
    _tell(found, sort or "", top, kept, output, json=json, open_=open_, force=force)


def _beside(output: Path, force: bool) -> Path:
    """Return where the trace goes that is kept beside the page.

    Raises:
        UsageError: there is such a file already.
    """
    kept = output.with_suffix(".json.gz")
    check_new(kept, force=force)
    return kept


def _tell(
    found: Ops,
    sort: str,
    top: int | None,
    kept: Path | None,
    output: Path | None,
    *,
    json: bool,
    open_: bool,
    force: bool,
) -> None:
    from ncukit.render.ops.view import TOP

    shown = TOP if top is None else top or None
    trace = "" if kept is None else str(kept)
    if json:
        from ncukit.render.ops.json import ops_text as json_text

        print(json_text(found, top=top or None, kept=trace or None))
    if output is not None or open_:
        from ncukit.render.ops.html import write_ops

        page = output or Path(Path(found.file.path).name.split(".")[0] + "-ops.html")
        command = typed()
        write_ops(page, found, sort=sort, top=shown, kept=trace, force=force, command=command)
        _wrote(page, json=json, open_=open_)
    elif not json:
        from ncukit.render.ops.text import ops_text

        print(
            ops_text(
                found, sort=sort, top=shown, kept=trace, color=color(), encoding=encoding(), width=width()
            )
        )


def _wrote(page: Path, *, json: bool, open_: bool) -> None:
    print(line(str(page)), file=sys.stderr if json else sys.stdout)
    if open_:
        typer.launch(page.resolve().as_uri())


def _ranks(
    words: list[str],
    nccl_log: Path | None,
    output: Path | None,
    *,
    json: bool,
    open_: bool,
    force: bool,
) -> None:
    from ncukit import api

    if len(words) > 1:
        raise UsageError("give one folder of traces", "ncukit ops FOLDER")
    found: Ranks = api.ranks(words[0], nccl_log=nccl_log)
    if json:
        from ncukit.render.ops.ranks_json import ranks_text as json_text

        print(json_text(found))
    if output is not None or open_:
        from ncukit.render.ops.html import write_ranks

        page = output or Path(Path(words[0]).resolve().name + "-ranks.html")
        write_ranks(page, found, force=force, command=typed())
        _wrote(page, json=json, open_=open_)
    elif not json:
        from ncukit.render.ops.ranks_text import ranks_text

        print(ranks_text(found, color=color(), encoding=encoding(), width=width()))
