"""``ncukit experiment``: one control changed, everything else fixed, and what the repetitions show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ncukit.cli.output import color, encoding, width
from ncukit.cli.profile import CleanEnv, Env, Flush, Quiet, SkipCheck, Timeout, Tool, Words
from ncukit.errors import UsageError
from ncukit.media import line


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(experiment)


def experiment(
    target: Words = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="NAME", help="The workload to beat; of a command, the text for {}."
        ),
    ] = None,
    variant: Annotated[
        str | None, typer.Option("--variant", metavar="NAME", help="The workload that should beat it.")
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=A,B",
            help="Instead: one workload, the baseline with NAME=A, the variant with NAME=B.",
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of both sides; repeatable."),
    ] = None,
    hypothesis: Annotated[
        str, typer.Option(metavar="TEXT", help="What should happen and why, kept in the record.")
    ] = "",
    watch: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC:lower|higher",
            help="How a metric of the profiled pair moves if the hypothesis is right; repeatable.",
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", "-n", metavar="N", help="Pairs of fresh processes.")
    ] = 10,
    samples: Annotated[
        int | None,
        typer.Option(metavar="N", help="Timed calls in each process; default: what fits into a second."),
    ] = None,
    end_to_end: Annotated[
        str | None,
        typer.Option(
            metavar="CMD", help="Time a whole command: {} is the side's name, {NAME} a control or parameter."
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:higher]",
            help="A number in the command's JSON output; the first decides; default: its duration.",
        ),
    ] = None,
    same: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A value in that JSON that both sides must agree on; repeatable."),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="REL", help="Tolerance where the case declares none; default: that of the data type."
        ),
    ] = None,
    skip_check: SkipCheck = False,
    profile: Annotated[
        bool, typer.Option("--profile/--no-profile", help="Profile one run of each side at the end.")
    ] = True,
    gpu_kernel: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="The GPU kernel to profile; as for profile.")
    ] = None,
    range: Annotated[
        str | None,
        typer.Option("--range", "-r", metavar="NAME", help="The NVTX range that metrics of a trace are of."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder of the experiment, a new one."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the record (ncukit.experiment/1).")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    l2_flush: Flush = True,
    timeout: Timeout = 1800.0,
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The interpreter of the script; default: this one.")
    ] = None,
    env: Env = None,
    clean_env: CleanEnv = False,
    ncu: Tool = None,
    nsys: Tool = None,
    quiet: Quiet = False,
) -> None:
    """Compare two kernels, or two values of one parameter, and say only what the repetitions show.

    \b
    ncukit experiment my_kernel.py --baseline gemm_v1 --variant gemm_v2
    ncukit experiment my_kernel.py --baseline gemm_v1 --variant gemm_v2 --watch dram_bytes:lower
    ncukit experiment my_kernel.py --baseline gemm --control tile=64,128 --param n=4096
    ncukit experiment --end-to-end 'python serve.py --engine {}' --baseline eager --variant graph

    Results are checked first, and a wrong one ends it (exit code 1).  Then fresh processes alternate without
    any profiler; less than the run-to-run variation is "not shown".  The profiled pair is for diagnosis only.
    """
    from ncukit import api
    from ncukit.cli.output import Teller
    from ncukit.run.bench import ExperimentOptions, goal, prediction
    from ncukit.run.options import sweep

    if (end_to_end is None) == (not target):
        raise UsageError(
            "there is no one thing to experiment with",
            "give a .py file with --baseline and --variant, or --end-to-end 'COMMAND {}'",
        )
    params = sweep(param or [])
    if several := [name for name, values in params.items() if len(values) > 1]:
        raise UsageError(f"--param {several[0]} has several values", f"write --control {several[0]}=A,B")
    tools = {"python": python, "ncu": ncu, "nsys": nsys}
    options = ExperimentOptions(
        params={name: values[0] for name, values in params.items()},
        command=end_to_end is not None,
        control=control,
        hypothesis=hypothesis,
        predictions=tuple(prediction(text) for text in watch or ()),
        repeats=repeats,
        samples=samples,
        goals=tuple(goal(text) for text in metric or ()),
        same=tuple(same or ()),
        tolerance=tolerance,
        skip_check=skip_check,
        profile=profile,
        gpu_kernel=gpu_kernel,
        range=range,
        l2_flush=l2_flush,
        timeout=timeout,
        env=tuple(env or ()),
        clean_env=clean_env,
        tools={name: path for name, path in tools.items() if path},
    )
    with Teller(quiet=quiet) as teller:
        record = api.experiment(
            [end_to_end] if end_to_end is not None else target or [],
            baseline=baseline,
            variant=variant,
            options=options,
            output=output,
            listener=teller,
        )
    page = Path(record.directory or "") / "experiment.html"
    if json:
        from ncukit.render.experiment.json import experiment_text as as_json

        print(as_json(record))
    else:
        from ncukit.render.experiment.text import experiment_text

        print(experiment_text(record, color=color(), encoding=encoding(), width=width()))
        print(f"\n{line(str(page))}")
    if open_:
        typer.launch(page.resolve().as_uri())
