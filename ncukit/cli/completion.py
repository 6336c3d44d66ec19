"""What a shell completes as the value of an option or argument: listed choices, and names that are known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ncukit.record import dataclass

_CHOICES = re.compile(r"[\w-]+(\|[\w-]+)+")
"""A metavar that lists all values: text|markdown|json."""


@dataclass(frozen=True)
class _Offer:
    """One value, as click describes it; typer exports no name of that class."""

    value: str
    type: str = "plain"
    help: str | None = None


def complete_values(command: Any) -> None:
    """Let the parameters of ``command``, and of the commands in it, complete their values."""
    for parameter in command.params:
        if (values := values_of(command.name, parameter)) is not None:
            parameter.shell_complete = _completer(values)
    for inner in getattr(command, "commands", {}).values():
        complete_values(inner)


def values_of(command: str, parameter: Any) -> Callable[[], Iterable[str]] | None:
    """Return what lists the values of ``parameter``; None where any text, or a file, is one."""
    metavar = parameter.metavar or ""
    if _CHOICES.fullmatch(metavar):
        return lambda: metavar.split("|")
    return _NAMES.get((command, parameter.name)) or _NAMES.get(("", parameter.name))


def _completer(values: Callable[[], Iterable[str]]) -> Callable[[Any, str], list[Any]]:
    def complete(context: Any, incomplete: str) -> list[Any]:
        return [_Offer(value) for value in values() if value.startswith(incomplete)]

    return complete


def _gpus() -> Iterable[str]:
    from ncukit.metrics.catalog import skus

    return [sku.id for sku in skus()]


def _metrics() -> Iterable[str]:
    from ncukit.metrics import load

    return load().metrics


def _dtypes() -> Iterable[str]:
    from ncukit.roofline.models.terms import BITS

    return BITS


def _probes() -> Iterable[str]:
    from ncukit.run.probes import NAMES

    return NAMES


def _schemas() -> Iterable[str]:
    from ncukit.schemas import names

    return names()


def _baselines() -> Iterable[str]:
    from ncukit.comparison.baseline import baseline_names
    from ncukit.comparison.options import load_settings

    return baseline_names(Path(load_settings().baselines))


_NAMES: Mapping[tuple[str, str], Callable[[], Iterable[str]]] = {
    ("", "gpu"): _gpus,
    ("", "dtype"): _dtypes,
    ("metrics", "metric"): _metrics,
    ("catalog", "id"): _metrics,
    ("compare", "fail_on"): _metrics,
    ("experiment", "watch"): _metrics,
    ("probe", "names"): _probes,
    ("schema", "name"): _schemas,
    ("baseline", "name"): _baselines,
}
"""By command ("": any) and parameter."""
