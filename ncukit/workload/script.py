"""Run a script once and make the case that it declares."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ncukit.errors import NcukitError, UsageError
from ncukit.workload.declare import Case, parameters


def load(path: Path) -> ModuleType:
    """Execute the script at ``path`` once, as a module; what it raises passes through.

    Its folder comes first in the module search, as when Python runs it; ``__main__`` blocks do not run.
    """
    sys.path.insert(0, str(path.resolve().parent))
    name = path.stem if path.stem not in sys.modules else f"ncukit_script_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python script", "give a file whose name ends with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pickle and inspect look there
    spec.loader.exec_module(module)
    return module


def make_case(module: ModuleType, name: str, given: Mapping[str, Any]) -> tuple[Case, dict[str, Any], int]:
    """Return the case of the workload or function ``name``, its parameters, and how often run was called.

    A plain function is the measured region itself, unless it returns a `Case`: to see which, it is called.

    Raises:
        UsageError: the script does not define it, or it takes or returns something else.
    """
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"the script ran, but {name} is not a function then", "check what it is bound to")
    defaults = parameters(function)
    if defaults is None:
        made = _called(function, name, given)
        if isinstance(made, Case):
            return made, dict(given), 0
        return Case(run=lambda: function(**given)), dict(given), 1
    values = {**defaults, **given}
    made = _called(function, name, values)
    if callable(made) and not isinstance(made, Case):
        made = Case(run=made)
    if not isinstance(made, Case):
        raise UsageError(
            f"{name} returned {type(made).__name__}, not a Case",
            "return ncukit.Case(run=lambda: ...): the measured region, not its result",
        )
    return made, values, 0


def _called(function: Callable[..., Any], name: str, values: Mapping[str, Any]) -> Any:
    import inspect

    try:
        inspect.signature(function).bind(**values)
    except TypeError as error:
        raise UsageError(f"{name} cannot be called: {error}", "give its parameters with --param") from error
    except ValueError:  # a builtin without a signature
        pass
    return function(**values)


def parse_value(text: str) -> Any:
    """Return the value of a parameter as Python reads it, or the text itself.

    >>> parse_value("4096"), parse_value("1e-3"), parse_value("fp16"), parse_value("(1, 2)")
    (4096, 0.001, 'fp16', (1, 2))
    """
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def parse_parameters(pairs: list[str]) -> dict[str, Any]:
    """Return ``["m=4096"]`` as ``{"m": 4096}``.

    Raises:
        NcukitError: a pair has no name or no ``=``.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip().isidentifier():
            raise NcukitError(f"--param {pair} is not NAME=VALUE", "write --param m=4096")
        found[name.strip()] = parse_value(text.strip())
    return found
