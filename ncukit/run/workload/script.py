"""What a script declares, what a name in it means, and what the measured child hands back."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar, overload

from ncukit.errors import NcukitError, ReportFormatError, ReportNotFound, UsageError

# ---- What a measured child hands back: one JSON file, which appears only when whole, and an exit code

WRONG, UNUSABLE = 87, 88
"""Exit codes: the result is wrong; the script does not hold what was asked for."""


def write(path: Path, result: dict[str, Any]) -> None:
    """Write ``result`` beside ``path``, then rename."""
    result.setdefault("python", platform.python_version())
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(plain(result), ensure_ascii=False), encoding="utf-8")
    os.replace(beside, path)


def plain(value: Any) -> Any:
    """Return ``value`` as JSON data: dataclasses become objects, what JSON cannot hold its text, NaN null."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


# ---- What a name means in a script: looked up in its syntax tree, before anything runs

Kind = Literal["workload", "function", "gpu-kernel", "script"]

# Decorators that make a GPU kernel, by the end of their dotted name.
_DECORATORS = (
    *("triton.jit", "triton.autotune", "triton.heuristics", "gluon.jit", "cuda.jit", "cute.kernel"),
    *("jit.rawkernel", "warp.kernel", "taichi.kernel", "cuda.core.kernel", "roc.jit"),
)
# Calls that make a GPU kernel, and the position of the argument that names it in the GPU code.
_MAKERS = {
    "RawKernel": 1,
    "get_function": 0,
    "get_kernel": 0,
    "ElementwiseKernel": 3,
    "ReductionKernel": 6,
}
_WORKLOAD = ("ncukit.workload", "ncukit.run.workload.workload", "ncukit.run.workload.script.workload")


@dataclass(frozen=True)
class Meaning:
    """What a name means: ``kind``, where it stands, and the sentence that says so.

    ``pattern`` filters GPU kernels (None: the one with the most time); ``defaults`` are source texts.
    """

    kind: Kind
    name: str | None
    line: int | None
    pattern: str | None
    text: str
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Found:
    kind: Kind
    name: str
    line: int
    pattern: str | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    coroutine: bool = False


def look_up(path: Path, name: str | None, given: Iterable[str] = ()) -> Meaning:
    """Return what ``name`` means in the script at ``path``; ``given`` are parameters that the user sets.

    A workload comes first, then a plain function, then a GPU kernel; any other name filters GPU kernels while
    the script runs as it is.  Without a name the script's only workload is meant.

    Raises:
        ReportError: the script cannot be read or is no Python.
        UsageError: a function needs parameters, or several workloads could be meant.
    """
    found = list(_definitions(_tree(path)))
    workloads = {f.name: f for f in found if f.kind == "workload"}
    if name is None:
        if len(workloads) == 1:
            return _callable(path, next(iter(workloads.values())), set(given))
        if workloads:
            raise UsageError(
                f"{path.name} has {len(workloads)} workloads: {', '.join(workloads)}",
                f"say which with --kernel {next(iter(workloads))}",
            )
        text = "no --kernel: the script runs as it is, and the kernel with the most GPU time is measured"
        return Meaning("script", None, None, None, text)
    named = [f for f in found if f.name == name or (f.kind == "gpu-kernel" and f.pattern == name)]
    if named:
        last = named[-1]  # a later definition replaces the earlier ones
        if last.kind != "gpu-kernel":
            return _callable(path, last, set(given))
        text = (
            f"{name} is a GPU kernel (line {last.line}): the script runs as it is, "
            f"and its kernels are filtered by {last.pattern!r}"
        )
        return Meaning("gpu-kernel", name, last.line, last.pattern, text)
    text = (
        f"{path.name} defines no {name}: the script runs as it is, "
        f"and its GPU kernels are filtered by {name!r}"
    )
    return Meaning("script", name, None, name, text)


def _callable(path: Path, found: _Found, given: set[str]) -> Meaning:
    if found.coroutine:
        raise UsageError(
            f"{found.name} (line {found.line}) is a coroutine", "wrap it in a plain function that runs it"
        )
    if missing := [name for name in found.required if name not in given]:
        every = ", ".join(f"{name}=..." for name in missing)
        known = "".join(f", {name}={text}" for name, text in found.defaults.items())
        raise UsageError(
            f"{found.name} ({path.name}, line {found.line}) needs {', '.join(missing)} to be called",
            f"write @ncukit.workload({every}{known}) above it, and let it return "
            f"ncukit.Case(run=lambda: ...); or give {' '.join(f'--param {name}=VALUE' for name in missing)}",
        )
    what = "workload" if found.kind == "workload" else "function"
    text = f"{found.name} is a {what} (line {found.line}): it is called, and its GPU work is measured"
    return Meaning(found.kind, found.name, found.line, None, text, found.defaults)


def _tree(path: Path) -> ast.Module:
    try:
        source = path.read_bytes()
    except FileNotFoundError as error:
        raise ReportNotFound(path, f"there is no file {path}", "check the path") from error
    except OSError as error:
        raise ReportNotFound(path, f"{path} cannot be read: {error.strerror}", "check the path") from error
    try:
        return ast.parse(source, str(path))
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        what = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ReportFormatError(
            path, f"{path}{line} is not valid Python: {what}", "correct it", code="script-unusable"
        ) from error


def _definitions(tree: ast.Module) -> Iterator[_Found]:
    aliases: dict[str, str] = {}
    for node in _statements(tree.body):
        aliases |= _imported(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _function(node, aliases)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            yield from _assigned(node, node.value, aliases)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run on import, those in branches too, without a ``__main__`` block."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            yield from _statements(node.orelse)
            continue
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, part, []))
            for handler in getattr(node, "handlers", []):
                yield from _statements(handler.body)


def _imported(node: ast.stmt) -> dict[str, str]:
    if isinstance(node, ast.Import):
        return {a.asname or _head(a.name): a.name if a.asname else _head(a.name) for a in node.names}
    if isinstance(node, ast.ImportFrom):
        return {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return {}


def _head(name: str) -> str:
    return name.partition(".")[0]


def _dotted(node: ast.expr, aliases: Mapping[str, str]) -> str:
    """Return the full dotted name that an expression calls or names, "" for anything else."""
    while isinstance(node, ast.Call):
        node = node.func
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        return ".".join((aliases.get(node.id, node.id), *parts))
    return ".".join(("", *parts)) if parts else ""


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, aliases: Mapping[str, str]) -> _Found:
    names = [_dotted(decorator, aliases) for decorator in node.decorator_list]
    if any(f".{name}".endswith(f".{end}") for name in names for end in _DECORATORS):
        return _Found("gpu-kernel", node.name, node.lineno, node.name)
    own = [*node.args.posonlyargs, *node.args.args]
    texts = map(ast.unparse, reversed(node.args.defaults))
    defaults = dict(zip((a.arg for a in reversed(own)), texts, strict=False))
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        own.append(argument)
        if default is not None:
            defaults[argument.arg] = ast.unparse(default)
    declared: dict[str, str] = {}
    for decorator, name in zip(node.decorator_list, names, strict=True):
        if name in _WORKLOAD and isinstance(decorator, ast.Call):
            declared = {k.arg: ast.unparse(k.value) for k in decorator.keywords if k.arg}
            if any(k.arg is None for k in decorator.keywords):  # **defaults: known only when it runs
                declared |= {a.arg: "..." for a in own}
    ordered = {a.arg: (defaults | declared)[a.arg] for a in own if a.arg in defaults | declared}
    return _Found(
        "workload" if any(name in _WORKLOAD for name in names) else "function",
        node.name,
        node.lineno,
        None,
        ordered,
        tuple(a.arg for a in own if a.arg not in ordered),
        isinstance(node, ast.AsyncFunctionDef),
    )


def _assigned(
    node: ast.Assign | ast.AnnAssign, call: ast.Call, aliases: Mapping[str, str]
) -> Iterator[_Found]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    maker = _dotted(call, aliases).rpartition(".")[2]
    jitted = any(f".{_dotted(call, aliases)}".endswith(f".{end}") for end in _DECORATORS)
    if maker not in _MAKERS and not jitted:
        return
    inside = call.args[0].id if jitted and call.args and isinstance(call.args[0], ast.Name) else None
    for target in targets:
        if isinstance(target, ast.Name):
            own = inside or _literal(call, _MAKERS.get(maker)) or target.id
            yield _Found("gpu-kernel", target.id, node.lineno, own)


def _literal(call: ast.Call, place: int | None) -> str | None:
    """Return the kernel's name as the call gives it, None where it is no plain text."""
    given = [k.value for k in call.keywords if k.arg == "name"]
    if place is not None and len(call.args) > place:
        given.append(call.args[place])
    return next((a.value for a in given if isinstance(a, ast.Constant) and isinstance(a.value, str)), None)


# ---- What a script declares: workloads, and the case that each of them makes

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


# ---- Run a script once and make the case that it declares


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
