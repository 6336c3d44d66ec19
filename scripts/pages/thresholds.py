"""The numbers that a rule decides by, with the reason that stands beside each in the source."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ncukit.judge.rule import Function


@dataclass(frozen=True)
class Threshold:
    """A number: the name of its constant, or the comparison it stands in; and why it is what it is."""

    text: str
    reason: str


def thresholds(function: Function) -> list[Threshold]:
    """Return the thresholds of a rule and of what it calls in its own module, each once."""
    module = sys.modules[function.__module__]
    found: dict[str, Threshold] = {}
    for node in _reached(module, function.__name__):
        for one in (*_constants(module, node), *_comparisons(module, node)):
            found.setdefault(one.text, one)
    return list(found.values())


def _reached(module: ModuleType, name: str) -> Iterator[ast.FunctionDef]:
    """Yield the function ``name`` of a module and those that it calls there."""
    functions = {node.name: node for node in _tree(module).body if isinstance(node, ast.FunctionDef)}
    open_, seen = [name], set()
    while open_:
        node = functions[open_.pop()]
        if node.name not in seen:
            seen.add(node.name)
            yield node
            open_ += [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in functions]


def _constants(module: ModuleType, node: ast.FunctionDef) -> Iterator[Threshold]:
    names = dict.fromkeys(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id.isupper())
    for name in names:
        value = getattr(module, name, None)
        if _number(value) or (isinstance(value, tuple) and value and all(map(_number, value))):
            yield Threshold(f"{name} = {_shown(value)}", _reason(module, name))


def _comparisons(module: ModuleType, node: ast.FunctionDef) -> Iterator[Threshold]:
    """Yield comparisons with a number other than 0 whose reason stands behind them."""
    lines = inspect.getsource(module).splitlines()
    for part in ast.walk(node):
        if not isinstance(part, ast.Compare):
            continue
        numbers = [c.value for c in (part.left, *part.comparators) if isinstance(c, ast.Constant)]
        reason = lines[part.lineno - 1].partition("  # ")[2]
        if reason and any(_number(number) and number for number in numbers):
            yield Threshold(_read(part), reason)


def _reason(module: ModuleType, name: str) -> str:
    """Return what stands beside the definition of ``name``: the text under it, or the comment behind it."""
    tree, lines = _tree(module), inspect.getsource(module).splitlines()
    for node, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name and node.module:
                    return _reason(sys.modules[node.module], alias.name)
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in names:
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                return " ".join(str(below.value.value).split())
            return lines[node.lineno - 1].partition("  # ")[2]
    return ""


def _read(comparison: ast.Compare) -> str:
    """Return a comparison with ``k["metric"]`` as the metric alone."""
    return re.sub(r"k(?:\.get)?[\[(]'(\w+)'[\])]", r"\1", ast.unparse(comparison))


@functools.cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return (" to " if len(value) == 2 else ", ").join(map(_shown, value))
    return f"{value:g}"
