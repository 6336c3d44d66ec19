"""``ncukit mfu``: model FLOPs utilisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ncukit.errors import UsageError

if TYPE_CHECKING:
    from ncukit.roofline.mfu import Attention


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(mfu)


def mfu(
    params: Annotated[
        float | None,
        typer.Option(metavar="N", help="Parameters that a token uses (of experts: the active ones)."),
    ] = None,
    tokens_per_second: Annotated[
        float | None, typer.Option(metavar="RATE", help="Tokens per second of all GPUs together.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(metavar="NAME", help="h100-sxm (--list), or as the driver names it.")
    ] = None,
    gpus: Annotated[int, typer.Option(min=1, metavar="N", help="How many GPUs.")] = 1,
    dtype: Annotated[
        str, typer.Option(metavar="TYPE", help="Of the matrix products: bf16, fp8, ...")
    ] = "bf16",
    inference: Annotated[
        bool, typer.Option("--inference", help="Forward only: 2 FLOP a parameter and token instead of 6.")
    ] = False,
    layers: Annotated[int | None, typer.Option(metavar="N", help="Count attention: its layers.")] = None,
    hidden: Annotated[int | None, typer.Option(metavar="N", help="Heads times head size.")] = None,
    heads: Annotated[
        int | None, typer.Option(metavar="N", help="With --head-size, instead of --hidden.")
    ] = None,
    head_size: Annotated[int | None, typer.Option(metavar="N", help="With --heads.")] = None,
    sequence: Annotated[int | None, typer.Option(metavar="N", help="Tokens of a sequence.")] = None,
    causal: Annotated[
        bool, typer.Option("--causal", help="Count only the keys before each token, as few papers do.")
    ] = False,
    peak: Annotated[
        float | None,
        typer.Option(metavar="FLOPS", help="Dense peak of one GPU [FLOP/s], if it is not known."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the GPUs whose data sheet is known.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON (ncukit.mfu/1) on stdout.")] = False,
) -> None:
    """Say how much of the dense peak of its GPUs a model uses; recomputation is not counted as work.

    \b
    ncukit mfu --params 8e9 --tokens-per-second 64000 --gpus 8 --gpu h100-sxm
    ncukit mfu --params 8e9 --tokens-per-second 64000 --gpus 8 --gpu h100-sxm \\
        --layers 32 --hidden 4096 --sequence 8192 --json
    ncukit mfu --params 7e9 --tokens-per-second 2500 --gpu l4 --inference
    ncukit mfu --list

    A --gpu that names no product, or several with different peaks, is an error that names the nearest.
    """
    from ncukit.cli.output import encoding, width
    from ncukit.render.mfu import mfu_data, mfu_text, skus_text

    if list_:
        print(skus_text(width=width(), encoding=encoding()))
        return
    if params is None or tokens_per_second is None:
        lacking = "--params" if params is None else "--tokens-per-second"
        raise UsageError(f"{lacking} is missing", "ncukit mfu --help shows an example")
    if gpu is None and peak is None:
        raise UsageError("--gpu is missing", "give one of `ncukit mfu --list`, or --peak FLOP/s of one GPU")
    from ncukit import api

    found = api.mfu(
        params,
        tokens_per_second,
        gpu or "a GPU",
        gpus=gpus,
        dtype=dtype,
        mode="inference" if inference else "training",
        attention=_attention(layers, hidden, heads, head_size, sequence, causal),
        peak=peak,
    )
    if found.peak.per_gpu is None and found.peak.sku is None:
        from ncukit.metrics.catalog import find_sku, no_sku

        raise no_sku(find_sku(found.peak.name), "--peak")
    if json:
        from ncukit.media import dumps

        print(dumps(mfu_data(found)))
    else:
        print(mfu_text(found, width=width(), encoding=encoding()))


def _attention(
    layers: int | None,
    hidden: int | None,
    heads: int | None,
    head_size: int | None,
    sequence: int | None,
    causal: bool,
) -> Attention | None:
    from ncukit.roofline.mfu import Attention

    if (heads is None) != (head_size is None):
        raise UsageError("--heads and --head-size go together", "or give --hidden, their product")
    if heads is not None and head_size is not None:
        if hidden is not None and hidden != heads * head_size:
            raise UsageError(
                f"--hidden {hidden} is not --heads {heads} times --head-size {head_size}", "give one of them"
            )
        hidden = heads * head_size
    given = {"--layers": layers, "--hidden": hidden, "--sequence": sequence}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == len(given):
        if causal:
            raise UsageError("--causal is about attention", f"add {', '.join(missing)}")
        return None
    if layers is None or hidden is None or sequence is None:
        raise UsageError("attention needs its whole shape", f"add {', '.join(missing)}")
    return Attention(layers, hidden, sequence, causal)
