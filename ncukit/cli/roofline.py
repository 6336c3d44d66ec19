"""``ncukit roofline``: the analytic bound of a computation from its shapes; each model is a command."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, MutableMapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from ncukit.cli.options import SHARED, chosen, open_report, rate, whole
from ncukit.cli.output import color, encoding, typed, width
from ncukit.errors import UsageError
from ncukit.media import line

if TYPE_CHECKING:
    from ncukit.model import Kernel, Roof
    from ncukit.model.work import Estimate


class _Models(MutableMapping[str, Any]):
    """The commands of the models: made from the signature of each when one is asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        from ncukit.roofline.models.estimate import MODELS

        model = name.replace("-", "_")
        if model not in self._made:
            if model not in MODELS:
                raise KeyError(name)
            self._made[model] = _command(model)
        return self._made[model]

    def __iter__(self) -> Iterator[str]:
        from ncukit.roofline.models.estimate import MODELS

        return (name.replace("_", "-") for name in MODELS)

    def __len__(self) -> int:
        from ncukit.roofline.models.estimate import MODELS

        return len(MODELS)

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]


class Models(TyperGroup):
    """The command ``roofline``, whose commands are the analytic models."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Models()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of the model ``cmd_name``, however it is written.

        Raises:
            UsageError: there is no such model; the hint names the nearest.
        """
        from ncukit.roofline.models.estimate import named

        return self.commands[named(cmd_name)]


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    models = typer.Typer(
        cls=Models, invoke_without_command=True, subcommand_metavar="MODEL [OPTIONS]", rich_markup_mode=None
    )
    models.callback()(roofline)
    app.add_typer(models, name="roofline")


def roofline(
    context: typer.Context,
    json: Annotated[
        bool, typer.Option("--json", help="List the models and their parameters as JSON.")
    ] = False,
) -> None:
    """Give the roofline bound of a computation from its shapes, with or without a report beside it.

    \b
    ncukit roofline                                   the models
    ncukit roofline gemm --m 8192 --n 8192 --k 8192 --dtype bf16 --gpu h100-sxm
    ncukit roofline gemm --m 64 --n 32 --k 128 --dtype fp16 --peak 200e12 --bandwidth 3e12 --json
    ncukit roofline softmax --rows 8192 --columns 4096 --report softmax.ncu-rep --launch 2
    ncukit roofline point --flops 2e12 --bytes 1e12 --seconds 0.020 --peak 200T --bandwidth 3T

    A model counts FLOPs (2 a multiply-add) and compulsory bytes (each input read once, each output written
    once).  Peaks come from --peak and --bandwidth, then from the report, then from the data sheet of --gpu,
    as a marked estimate; what none of them knows leaves the bound unknown.  A --gpu that names no product, or
    several, is an error that names the nearest.
    """  # fmt: skip
    if context.invoked_subcommand is not None:
        return
    if json:
        from ncukit.render.model.json import models_text as as_json

        print(as_json())
        return
    from ncukit.render.model.text import models_text

    print(models_text(encoding=encoding(), width=width()))


def _command(model: str) -> Any:
    """Return the command of ``model``: its parameters and those that every model has, as options."""
    from ncukit.render.model.shown import explained
    from ncukit.roofline.models.estimate import EXAMPLES, parameters

    def run(**values: Any) -> None:
        _run(model, {p.name: values.pop(p.name) for p in parameters(model)}, **values)

    options = {p.name: _option(p) for p in parameters(model)} | SHARED
    keyword = inspect.Parameter.KEYWORD_ONLY
    made = [inspect.Parameter(n, keyword, annotation=a, default=d) for n, (a, d) in options.items()]
    run.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]
    run.__annotations__ = {name: annotation for name, (annotation, _) in options.items()}
    given = {f"--{n.replace('_', '-')}": v for n, v in EXAMPLES[model].items()}
    example = " ".join(flag if v is True else f"{flag} {_written(v)}" for flag, v in given.items())
    name = model.replace("_", "-")
    help = "\n\n".join([*explained(model), f"\b\nncukit roofline {name} {example}"])
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, help=help)(run)
    return typer.main.get_command(app)


def _written(value: object) -> str:
    """Return a value as one types it.

    >>> _written(2e12), _written("fp16"), _written(4096)
    ('2e12', 'fp16', '4096')
    """
    return f"{value:g}".replace("e+", "e") if isinstance(value, float) else str(value)


def _option(parameter: Any) -> tuple[Any, Any]:
    """Return annotation and default of the option of one parameter; what is missing is told all at once."""
    flag = f"--{parameter.name.replace('_', '-')}"
    if parameter.type is bool:
        names = f"{flag}/--no-{flag[2:]}"
        return Annotated[bool, typer.Option(names, help=f"{parameter.meaning}.")], parameter.default
    parser = {int: whole, float: rate}.get(parameter.type)
    metavar = {int: "N", float: "X"}.get(parameter.type, "NAME")
    need = " [required]" if parameter.required else ""
    option = typer.Option(flag, parser=parser, metavar=metavar, help=f"{parameter.meaning}{need}.")
    return Annotated[parameter.type | None, option], parameter.default


def _run(
    model: str,
    arguments: dict[str, Any],
    *,
    peak: float | None,
    bandwidth: float | None,
    gpu: str | None,
    seconds: float | None,
    report: str | None,
    launch: int | None,
    kernel: str | None,
    measured_ceilings: Path | None,
    json: bool,
    output: Path | None,
    force: bool,
) -> None:
    from ncukit.render.model.shown import Shown
    from ncukit.roofline.models.estimate import GIVEN, estimate, make, parameters

    if lacking := [p for p in parameters(model) if p.required and arguments[p.name] is None]:
        flags = [f"--{p.name.replace('_', '-')}" for p in lacking]
        words = "; ".join(f"{flag}: {p.meaning}" for flag, p in zip(flags, lacking, strict=True))
        raise UsageError(f"{model.replace('_', '-')} needs {', '.join(flags)}", words)
    measured = None if report is None else _launch(report, launch, kernel)
    if report is None and (launch or kernel):
        raise UsageError("--launch and --kernel choose from a report, and there is none", "add --report FILE")
    if gpu is not None and (peak is None or bandwidth is None):
        from ncukit.metrics.catalog import find_sku, no_sku

        if (meant := find_sku(gpu)).sku is None:
            raise no_sku(meant, "--peak with --bandwidth")
    found = estimate(
        make(model, arguments), peak=peak, bandwidth=bandwidth, gpu=gpu, seconds=seconds, kernel=measured
    )
    timed = GIVEN if seconds is not None else "profiled launch, no benchmark" if found.seconds else ""
    reached = () if measured_ceilings is None else _reached(measured_ceilings, found, measured)
    shown = Shown(model, arguments, found, measured, timed, reached)
    if output is not None:
        from ncukit.render.model.page import write_estimate

        command = typed(names=True)
        print(line(str(write_estimate(output, shown, force=force, command=command))), file=sys.stderr)
    if json:
        from ncukit.render.model.json import estimate_text as as_json

        print(as_json(shown))
    elif output is None:
        from ncukit.render.model.text import estimate_text

        print(estimate_text(shown, color=color(), encoding=encoding(), width=width()))


def _reached(path: Path, estimate: Estimate, kernel: Kernel | None) -> tuple[Roof, ...]:
    """Return the measured ceilings of the precisions and the memory of an estimate."""
    from ncukit.roofline.place import read_measured

    found, used = read_measured(path), {estimate.model.memory, *estimate.model.flop}
    if kernel is not None and kernel.gpu not in (None, found.device):
        raise UsageError(
            f"{path} was measured on {found.device}, the launch on {kernel.gpu}", "measure on that GPU"
        )
    return tuple(roof for roof in found.roofs if roof.name in used)


def _launch(file: str, launch: int | None, name: str | None) -> Kernel:
    """Return the one launch of a report that the options choose."""
    some = chosen(open_report(file).kernels(), [launch] if launch else None, name)
    found = list(islice(some, 1 if launch else 5))  # a number names one launch: the rest need not be read
    if not found:
        raise UsageError(f"{file} holds no launch", "profile again with a filter that matches")
    if len(found) > 1:
        names = ", ".join(dict.fromkeys(k.name for k in found))
        raise UsageError(f"several launches could be meant: {names}", "choose one with --launch N")
    return found[0]
