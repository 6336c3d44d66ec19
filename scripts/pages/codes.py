"""Which error codes ncukit can end with, found in its source and in failures.toml.

A code is written as ``code="..."`` where an error is raised, as ``code = "..."`` in the class of an error, or
as an argument of `Failure` and `Fault`.  What only hands on the code of another error adds none.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[2] / "ncukit"
TABLE = SOURCE / "run" / "tools" / "failures.toml"
# What carries a code, and which argument it is where it is given by position.
CARRIERS = {"NcukitError": None, "Failure": 1, "Fault": 0}
_SPEAKS = re.compile(r"\bcode\b|\bFailure\(|\bFault\(|^class \w+\(\w+\):", re.MULTILINE)


@dataclass(frozen=True)
class Use:
    """One place that sets a code: the class of the error, the file with its line."""

    error: str
    place: str


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """Return the syntax tree of every module that speaks of codes or defines an error."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    return {path: ast.parse(text) for path, text in texts.items() if _SPEAKS.search(text)}


@functools.cache
def failures() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of failures.toml by code, in their order."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["failure"]:
        found[row["code"]].append(row)
    return dict(found)


@functools.cache
def codes() -> dict[str, list[Use]]:
    """Return every code that the source can end with, and where it is set.

    Raises:
        ValueError: a code is computed in a way that cannot be read from the source.
    """
    errors = frozenset(classes()) | CARRIERS.keys()
    found: dict[str, list[Use]] = defaultdict(list)
    for path, tree in trees().items():
        for code, use in in_tree(tree, path.name, errors):
            found[code].append(use)
    for code in failures():
        found[code].append(Use("ToolFailure", TABLE.name))
    return dict(sorted(found.items()))


@functools.cache
def classes() -> dict[str, str]:
    """Return the name of every class of errors in the source, with that of the class it comes from."""
    return parents(trees().values())


def parents(trees: Iterable[ast.Module]) -> dict[str, str]:
    """Return the name of every class of errors, with that of the class it comes from."""
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    found: dict[str, str] = {}
    for _ in range(5):  # levels of the tree of errors
        for node in classes:
            for base in map(_named, node.bases):
                if base == "NcukitError" or base in found:
                    found[node.name] = base
    return found


def in_tree(tree: ast.Module, file: str, errors: frozenset[str]) -> Iterator[tuple[str, Use]]:
    """Yield every code that a module sets on one of ``errors``."""
    constants = {_named(line.targets[0]): line.value for line in tree.body if isinstance(line, ast.Assign)}
    for node in ast.walk(tree):
        name, place, given = "Failure", f"{file}:{getattr(node, 'lineno', 0)}", []
        if isinstance(node, ast.ClassDef) and node.name in errors:
            name = node.name
            given = [
                line.value
                for line in node.body
                if isinstance(line, ast.Assign) and _named(line.targets[0]) == "code"
            ]
        elif isinstance(node, ast.Call) and _named(node.func) in errors:
            name = _named(node.func)
            given = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
            position = CARRIERS.get(name)
            if position is not None and len(node.args) > position:
                given.append(node.args[position])
        elif isinstance(node, ast.Dict):  # what a child process says of its error
            pairs = dict(zip(map(_constant, node.keys), node.values, strict=True))
            given = [pairs["code"]] if {"code", "message"} <= pairs.keys() else []
        for value in given:
            if isinstance(value, ast.Name):
                value = constants.get(value.id, value)
            yield from ((code, Use(name, place)) for code in _words(value, place))


def _words(value: ast.expr, place: str) -> Iterator[str]:
    """Yield the codes that ``value`` can be; none where it hands on another error's."""
    match value:
        case ast.Constant(value=str(word)):
            yield word
        case ast.IfExp(body=body, orelse=orelse):
            yield from _words(body, place)
            yield from _words(orelse, place)
        case ast.Attribute(attr="code") | ast.Subscript(slice=ast.Constant(value="code")):
            return
        case ast.Name(id="code") | ast.Call(func=ast.Name(id="str")):
            return  # a parameter, or a record that is read back
        case _:
            raise ValueError(f"{place}: the code {ast.unparse(value)} cannot be read from the source")


def _named(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None
