"""``ncukit profile``: the whole flow, from a script to a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ncukit.cli.output import complain, warn
from ncukit.errors import UsageError
from ncukit.media import command, line, word

if TYPE_CHECKING:
    from ncukit.run.options import ProfileOptions
    from ncukit.run.plan import Carried

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="TARGET [-- ARGS]...", help="A .py or .cu file, or after -- any command."),
]
Kernel = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        "-k",
        metavar="NAME",
        help="A workload or function of the script, else a GPU kernel's name.",
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the workload; A,B,C sweeps."),
]
Tool = Annotated[str | None, typer.Option(metavar="PATH", help="Use this one instead of the one found.")]
Timeout = Annotated[float, typer.Option(metavar="SECONDS", help="Stop a step after this long.")]
Flush = Annotated[
    bool, typer.Option("--l2-flush/--no-l2-flush", help="Flush the L2 before every timed call.")
]
SkipCheck = Annotated[bool, typer.Option("--skip-check", help="Do not compare with the reference.")]
Repeat = Annotated[
    int | None, typer.Option(metavar="N", help="Timed samples; default: what fits into a second.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
Env = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="NAME", help="Pass this variable on although it looks like a secret."),
]
CleanEnv = Annotated[bool, typer.Option("--clean-env", help="Pass on only variables that the tools need.")]


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(profile)


def profile(
    target: Words = None,
    kernel: Kernel = None,
    gpu_kernel: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Only GPU kernels of this name: a part, a glob, or regex:RE."),
    ] = None,
    param: Params = None,
    preset: Annotated[
        str, typer.Option(metavar="quick|standard|full", help="How many counters ncu collects.")
    ] = "standard",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="RUNDIR", help="Folder of the run, a new one.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="RUNDIR",
            help="Go on with a run that was broken off; if it is not your own, give its program too.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print every command that would run; run none.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the record of the run (ncukit.run/1).")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    skip_time: Annotated[bool, typer.Option("--skip-time", help="No clean timing.")] = False,
    skip_nsys: Annotated[bool, typer.Option("--skip-nsys", help="No timeline.")] = False,
    skip_ncu: Annotated[bool, typer.Option("--skip-ncu", help="No counters.")] = False,
    skip_check: SkipCheck = False,
    l2_flush: Flush = True,
    repeat: Repeat = None,
    timeout: Timeout = 1800.0,
    clock_control: Annotated[
        str, typer.Option(metavar="base|none", help="Whether ncu locks the clocks.")
    ] = "base",
    cache_control: Annotated[
        str, typer.Option(metavar="all|none", help="Whether ncu flushes caches before each pass.")
    ] = "all",
    replay_mode: Annotated[
        str, typer.Option(metavar="kernel|application", help="What ncu repeats for each pass.")
    ] = "kernel",
    graph_profiling: Annotated[
        str, typer.Option(metavar="node|graph", help="Kernels of CUDA graphs one by one, or graphs whole.")
    ] = "node",
    allow_collective: Annotated[
        bool, typer.Option("--allow-collective", help="Let the launch be one that waits for other GPUs.")
    ] = False,
    range_: Annotated[
        str | None,
        typer.Option("--range", "-r", metavar="NAME", help="Only launches inside this NVTX range."),
    ] = None,
    arch: Annotated[str, typer.Option(metavar="ARCH", help="For .cu files: native, sm_90, ...")] = "native",
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The interpreter of the script; default: this one.")
    ] = None,
    env: Env = None,
    clean_env: CleanEnv = False,
    ncu: Tool = None,
    nsys: Tool = None,
    nvcc: Tool = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask cluster whose workers with a GPU measure the points."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Time one kernel cleanly, trace it, measure one launch of it, and write the report.

    \b
    ncukit profile my_kernel.py --kernel gemm
    ncukit profile my_kernel.py --kernel gemm --param m=1024,2048,4096
    ncukit profile my_kernel.py -k gemm -p m=1024,2048 --dask tcp://head:8786 -o sweep
    ncukit profile reduce.cu --arch sm_90
    ncukit profile --gpu-kernel "regex:^gemm" -- python train.py --steps 10
    ncukit profile --range prefill -- python serve.py
    ncukit profile my_kernel.py --kernel gemm --dry-run
    ncukit profile --resume reports/gemm-H100-20260101T120000Z

    Ends with 5 where a part is missing (the page says which), with 3 where nothing of the GPU was seen.
    """
    from ncukit.run.options import ProfileOptions, sweep

    tools = {"ncu": ncu, "nsys": nsys, "nvcc": nvcc, "python": python}
    given: dict[str, Any] = {
        "kernel": kernel,
        "gpu_kernel": gpu_kernel,
        "params": sweep(param or []),
        "preset": preset,
        "skip_time": skip_time,
        "skip_nsys": skip_nsys,
        "skip_ncu": skip_ncu,
        "skip_check": skip_check,
        "l2_flush": l2_flush,
        "repeat": repeat,
        "timeout": timeout,
        "clock_control": clock_control,
        "cache_control": cache_control,
        "replay_mode": replay_mode,
        "graph_profiling": graph_profiling,
        "allow_collective": allow_collective,
        "range": range_,
        "arch": arch,
        "env": tuple(env or ()),
        "clean_env": clean_env,
        "tools": {name: path for name, path in tools.items() if path},
    }
    options = ProfileOptions(**given)
    words = target or []
    if resume is not None:
        if output is not None:
            raise UsageError("--resume goes on where the run is", "leave -o out")
        words, options = _recorded(resume, words, options)
    if dry_run:
        _print_plan(words, options, output, json=json, dask=dask, resume=resume)
        return
    from ncukit import api
    from ncukit.cli.output import Teller

    with Teller(quiet=quiet) as teller:
        carried = api.profile(
            words, options=options, output=output, resume=resume, listener=teller, dask=dask
        )
    _tell(carried, json=json, open_=open_)


def _recorded(path: Path, words: list[str], options: ProfileOptions) -> tuple[list[str], ProfileOptions]:
    """Return target and options of a run that goes on; what is given beside --resume must be what it was.

    Nothing that is run comes from a record that another user may have made.

    Raises:
        UsageError: the target is to be given again.
    """
    from dataclasses import replace

    from ncukit.run.directory import own, read_record
    from ncukit.run.options import ProfileOptions

    run = read_record(path)
    if words and not own(run):
        return words, options
    recorded = ProfileOptions.from_dict(run.options)
    target = run.target
    source = target.get("source")
    known = [*([source] if source else target.get("program", [])), *target["args"]]
    if not own(run):
        raise _to_be_given(path, f"{path} is not a run that you began in this folder", known, recorded)
    if not words and any("***" in word for word in known):
        raise _to_be_given(path, f"{path} does not hold the secrets of its command", known, recorded)
    default = ProfileOptions()
    plain = all(
        getattr(options, name) == getattr(default, name)
        for name in ProfileOptions.__dataclass_fields__
        if name != "timeout"
    )
    timeout = options.timeout if options.timeout != default.timeout else recorded.timeout
    return words or known, replace(recorded if plain else options, timeout=timeout)


def _to_be_given(path: Path, why: str, known: list[str], recorded: ProfileOptions) -> UsageError:
    recorded_command = command(["ncukit", "profile", *recorded.words(), "--", *known])
    how = f"ncukit profile --resume {word(path, 'RUNDIR')} OPTIONS -- PROGRAM ARGS"
    return UsageError(
        f"{why}; its record says: {recorded_command}",
        f"if that is what you want to run, give it yourself: {how}",
        code="run-not-own",
    )


def _print_plan(
    words: list[str],
    options: ProfileOptions,
    output: Path | None,
    *,
    json: bool,
    dask: str | None,
    resume: Path | None,
) -> None:
    from ncukit.run.directory import read_record
    from ncukit.run.plan import check_asked, plan
    from ncukit.run.target import resolve

    target = resolve(words, options)
    if resume is not None:
        check_asked(resume, read_record(resume), target, options)
    planned = [
        (point, step) for point in options.points for step in plan(target.at(point), options, output=output)
    ]
    if json:
        from ncukit.media import dumps

        rows = [
            {"step": step.step, "command": list(step.command), "note": step.note, "params": point}
            for point, step in planned
        ]
        print(dumps({"schema": "ncukit.plan/1", "steps": rows}))
        return
    print(f"# {line(target.meaning)}")
    if dask is not None:
        print(f"# each point on a worker of {line(dask)} that declares a GPU, one at a time on each GPU")
    for point, step in planned:
        at = f" [{', '.join(f'{k}={v}' for k, v in point.items())}]" if len(options.points) > 1 else ""
        print(line(f"# {step.step}{at}{': ' if step.note else ''}{step.note}"))
        if step.command:
            print(command(step.command))


def _tell(carried: Carried, *, json: bool, open_: bool) -> None:
    """Print what a run came to, and end with its exit code."""
    from ncukit.run.directory import PAGE

    page = carried.directory / PAGE
    made = page.is_file() and carried.evidence
    if json:
        from ncukit.media import dumps

        extra = {"directory": str(carried.directory), "page": str(page) if made else None}
        print(dumps({**carried.run.as_dict(), **extra}))
    else:
        print(line(str(page if made else carried.directory)))
    if open_ and made:
        typer.launch(page.resolve().as_uri())
    if carried.failure is not None:
        others = [step.failure for step in carried.run.steps if step.failure is not None]
        warn(str(other["message"]) for other in others if other["message"] != carried.failure.message)
        complain(carried.failure.error())
        raise typer.Exit(5 if made else 3)
