"""What a script declares: workloads, and the case that each of them makes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from ncukit.errors import UsageError

MARK = "__ncukit_workload__"
"""Attribute of a decorated function: its parameters with their defaults."""

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Case:
    """One thing to measure: ``run`` is the measured region and nothing else.

    ``run`` returns its result where ``reference`` is given: the two are compared before anything is timed,
    with ``tolerance`` (relative; None: what the result's data type allows).  ``model`` holds the analytic
    FLOPs and bytes, from `ncukit.models`.

    Raises:
        UsageError: ``run`` or ``reference`` cannot be called.

    >>> Case(run=lambda: 6 * 7).run()
    42
    """

    run: Callable[[], Any]
    reference: Callable[[], Any] | None = None
    model: Any = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        for name in ("run", "reference"):
            value = getattr(self, name)
            if not callable(value) and not (name == "reference" and value is None):
                raise UsageError(
                    f"Case({name}=...) got {type(value).__name__}, which cannot be called",
                    f"pass a function: {name}=lambda: ...",
                )


@overload
def workload(function: Function, /) -> Function: ...
@overload
def workload(**defaults: Any) -> Callable[[Function], Function]: ...
def workload(*function: Any, **defaults: Any) -> Any:
    """Mark a function that makes a `Case`; keywords are its parameters with their defaults.

    The function itself stays as it is.  ``--param m=8192`` on the command line replaces a default.

    Raises:
        UsageError: a keyword is no parameter of the function, or a parameter has no default.

    >>> @workload(n=4)
    ... def add(n):
    ...     return Case(run=lambda: n + n)
    >>> add(3).run(), parameters(add)
    (6, {'n': 4})
    """

    def mark(made: Function) -> Function:
        setattr(made, MARK, {**_own_defaults(made, defaults), **defaults})
        return made

    return mark(function[0]) if function else mark


def parameters(function: Callable[..., Any]) -> Mapping[str, Any] | None:
    """Return the parameters of a workload with their defaults, None where ``function`` is none."""
    found: Mapping[str, Any] | None = getattr(function, MARK, None)
    return found


def _own_defaults(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    if not callable(function):
        raise UsageError("@ncukit.workload takes keywords only", "write @ncukit.workload(m=4096)")
    signature = inspect.signature(function).parameters.values()
    takes_any = any(p.kind is p.VAR_KEYWORD for p in signature)
    named = {p.name: p.default for p in signature if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    if unknown := [] if takes_any else sorted(set(given) - set(named)):
        raise UsageError(
            f"@ncukit.workload gives {unknown[0]!r}, which {function.__name__} does not take",
            f"it takes: {', '.join(named) or 'nothing'}",
        )
    own = {name: value for name, value in named.items() if value is not inspect.Parameter.empty}
    return own
