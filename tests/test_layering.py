"""Imports run one way, and what is heavy or dangerous has one owner."""

from __future__ import annotations

import ast
import functools
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT

# Lower ranks know nothing of higher ones; a module may import its own rank (docs/architecture.md shows this).
RANKS = (
    {"errors", "media", "files", "signals", "folders", "quantity", "schemas", "record"},
    {"model", "run.tools", "metrics", "run.workload", "cluster"},
    {"report", "trace.reading", "metrics.normalise", "roofline", "run", "tables"},
    {"trace"},
    {"judge"},
    {"comparison", "dataset", "render"},
    {"api"},
    {"cli"},
    {"__main__"},
)
READING = frozenset({"events", "files", "nsys", "nsys_events", "torch_events"})
# Modules of ncukit/trace/ that read and conclude nothing.
RANK = {name: rank for rank, names in enumerate(RANKS) for name in names}
# The only places that may load these when they run; mentions for type checkers cost nothing.
OWNERS = {
    "ncu_report": ("report/native.py",),
    "pandas": ("tables.py",),
    "subprocess": ("run/tools/",),
    "torch": ("run/workload/",),
    "plotly": (),  # only its packaged JavaScript is read
    "pyarrow": ("dataset/",),
    "duckdb": ("dataset/survey.py",),
    "distributed": ("cluster.py",),
    "dask": (),
}
PACKAGE = CHECKOUT / "ncukit"
MODULES = sorted(PACKAGE.rglob("*.py"))
NAMES = [str(path.relative_to(PACKAGE)) for path in MODULES]


SHOWING: dict[str, frozenset[str]] = {
    "render/timeline/strip.py": frozenset({"activity", "intervals", "scope"}),
    "render/timeline/trace.py": frozenset({"activity", "scope"}),
}
"""Modules of ncukit/trace/ that drawing the events of a trace reads: columns, their arithmetic
and names, no judgement.  All else that is shown stands in records (ncukit/model/)."""

JUDGING = frozenset(
    {"render/advice.py", "render/run/load.py", "render/timeline/beside.py", "render/timeline/section.py"}
)
"""Modules that still judge: they open and judge what is shown beside a report.  The list only shrinks."""


@functools.cache
def imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """Return every module that ``path`` imports, and whether it is for type checkers only."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, bool]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in typing_only) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the layer"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                name = inner if node.module == "ncukit" or _is_module(inner) else str(node.module)
                yield name, id(node) in typing_only
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from ((str(a.value), False) for a in node.args[:1] if isinstance(a, ast.Constant))


def _is_module(dotted: str) -> bool:
    path = CHECKOUT.joinpath(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def layer(dotted: str) -> str:
    """Return the part of ncukit that a module belongs to.

    >>> layer("ncukit.report.native"), layer("ncukit.run.tools.ncu"), layer("ncukit.trace.nsys")
    ('report', 'run.tools', 'trace.reading')
    """
    parts = dotted.split(".")[1:]
    if parts[0] == "trace" and parts[-1] in READING:
        return "trace.reading"
    inner = ".".join(parts[:2])
    return inner if inner in RANK else parts[0]


@pytest.mark.parametrize("module", NAMES)
def test_imports_run_one_way(module: str) -> None:
    if module == "__init__.py":
        return
    own = layer(f"ncukit.{module.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}")
    for name, _ in imports(PACKAGE / module):
        if name.startswith("ncukit.") and (used := layer(name)) in RANK:
            assert RANK[used] <= RANK[own], f"{module} imports {name}"


@pytest.mark.parametrize("module", NAMES)
def test_each_heavy_library_is_imported_by_its_owner_only(module: str) -> None:
    for name, typing_only in imports(PACKAGE / module):
        owners = OWNERS.get(name.split(".")[0])
        if owners is not None and not typing_only:
            assert any(module.startswith(owner) for owner in owners), f"{module} imports {name}"


@pytest.mark.parametrize("module", [name for name in NAMES if name.startswith("render/")])
def test_rendering_judges_nothing(module: str) -> None:
    allowed = {f"ncukit.trace.{name}" for name in SHOWING.get(module, ())}
    judging = [
        name
        for name, typing_only in imports(PACKAGE / module)
        if name.startswith(("ncukit.judge", "ncukit.trace."))
        and not (typing_only or name in allowed or layer(name) == "trace.reading")
    ]
    assert bool(judging) == (module in JUDGING), f"{module} imports {', '.join(judging) or 'none'}"


def test_what_rendering_may_read_of_traces_is_read() -> None:
    for module, names in SHOWING.items():
        used = {name for name, _ in imports(PACKAGE / module)}
        assert {f"ncukit.trace.{name}" for name in names} <= used


def test_every_part_has_a_rank() -> None:
    parts = {name.split("/")[0].removesuffix(".py") for name in NAMES}
    assert parts - {"__init__"} <= RANK.keys()


def test_only_main_imports_the_command_line() -> None:
    users = {
        name
        for name in NAMES
        for used, _ in imports(PACKAGE / name)
        if used == "ncukit.cli" or used.startswith("ncukit.cli.")
    }
    assert {user for user in users if not user.startswith("cli/")} == {"__main__.py"}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Also not inside functions: a circle that is put off is one."""
    dotted = {name: _dotted(name) for name in NAMES}
    graph = {module: _used(PACKAGE / name, set(dotted.values())) for name, module in dotted.items()}
    graphlib.TopologicalSorter({module: used - {module} for module, used in graph.items()}).prepare()


def _dotted(name: str) -> str:
    path = name.removesuffix(".py").removesuffix("__init__").strip("/")
    return f"ncukit/{path}".strip("/").replace("/", ".")


def _used(path: Path, modules: set[str]) -> set[str]:
    """Return the modules that ``path`` imports when it runs, of a package the ones that it takes from it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in typing_only:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else str(node.module) for name in names}
        elif isinstance(node, ast.Import) and id(node) not in typing_only:
            found |= {alias.name for alias in node.names}
    return found & modules
