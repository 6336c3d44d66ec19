"""``ncukit time``: clean timing, no profiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ncukit.cli.profile import (
    CleanEnv,
    Env,
    Flush,
    Kernel,
    Params,
    Quiet,
    Repeat,
    SkipCheck,
    Timeout,
    Tool,
    Words,
)
from ncukit.media import line

if TYPE_CHECKING:
    from ncukit.model.run import Timing


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(time)


def time(
    target: Words = None,
    kernel: Kernel = None,
    param: Params = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON (ncukit.timing/1), one object a line.")
    ] = False,
    l2_flush: Flush = True,
    repeat: Repeat = None,
    skip_check: SkipCheck = False,
    timeout: Timeout = 1800.0,
    arch: Annotated[str, typer.Option(metavar="ARCH", help="For .cu files: native, sm_90, ...")] = "native",
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The interpreter of the script; default: this one.")
    ] = None,
    env: Env = None,
    clean_env: CleanEnv = False,
    nvcc: Tool = None,
    quiet: Quiet = False,
) -> None:
    """Check the result and time a workload without any profiler.

    A time by the host's clock is labelled so: it is no GPU time.

    \b
    ncukit time my_kernel.py --kernel gemm
    ncukit time my_kernel.py --kernel gemm --param m=1024,2048 --json
    """
    from ncukit import api
    from ncukit.cli.output import Teller
    from ncukit.run.options import ProfileOptions, sweep

    tools = {name: path for name, path in (("python", python), ("nvcc", nvcc)) if path}
    options = ProfileOptions(
        kernel=kernel,
        params=sweep(param or []),
        l2_flush=l2_flush,
        repeat=repeat,
        skip_check=skip_check,
        timeout=timeout,
        arch=arch,
        env=tuple(env or ()),
        clean_env=clean_env,
        tools=tools,
    )
    with Teller(quiet=quiet) as teller:
        timings = api.time(target or [], options=options, listener=teller)
    for timing in timings:
        if json:
            from ncukit.media import dumps

            print(dumps(timing.as_dict()))
        else:
            print(_text(timing))


def _text(timing: Timing) -> str:
    from ncukit import quantity
    from ncukit.render.run.parts import TIMERS

    gpu = (timing.device or {}).get("name")
    words = [line(f"{name}={value}") for name, value in timing.params.items()]
    lines = [
        f"{' '.join(words) + ': ' if words else ''}{quantity.short(timing.median, 's')} median"
        f" ({TIMERS.get(timing.timer, timing.timer)}{f', {gpu}' if gpu else ''})"
    ]
    if timing.n > 1:
        span = quantity.span(timing.min, timing.max, "s")
        flush = {True: ", L2 flushed", False: ", L2 warm", None: ""}[timing.l2_flush]
        lines.append(f"  {span}, quartiles {quantity.short(timing.iqr, 's')} apart, n {timing.n:,}{flush}")
    if timing.correctness.get("state"):
        detail = line(str(timing.correctness.get("detail", "")))
        lines.append(f"  result {timing.correctness['state']}: {detail}")
    lines += [f"  note: {line(note)}" for note in timing.notes]
    return "\n".join(lines)
