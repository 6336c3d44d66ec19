"""What ``import ncukit`` hands out, and what it costs."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys

import pytest

import ncukit
from ncukit import api
from tests.conftest import CHECKOUT

HEAVY = {"pandas", "plotly", "ncu_report", "numpy", "jinja2", "pyarrow", "torch", "pydantic"}
EVERY_START = {
    "import ncukit": ["-c", "import ncukit"],
    "import the verbs": ["-c", "from ncukit import Report, read, diagnose, write_report"],
    "ncukit --help": ["-m", "ncukit", "--help"],
    "ncukit --version": ["-m", "ncukit", "--version"],
    "ncukit metrics --help": ["-m", "ncukit", "metrics", "--help"],
}


def test_all_is_sorted() -> None:
    assert ncukit.__all__ == sorted(ncukit.__all__)


def test_all_is_what_a_type_checker_sees() -> None:
    tree = ast.parse((CHECKOUT / "ncukit" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(ncukit.__all__)


def test_no_module_of_the_verbs_has_the_name_of_a_verb() -> None:
    """Else importing the module would put it in the verb's place."""
    modules = {path.stem for path in (CHECKOUT / "ncukit" / "api").glob("*.py")}
    assert not modules & {*ncukit.__all__, *api.__all__}


def test_the_verbs_are_what_their_modules_say() -> None:
    assert api.__all__ == sorted(name for names in api._MODULES.values() for name in names)
    assert all(callable(getattr(api, name)) for name in api.__all__)


@pytest.mark.parametrize("name", ncukit.__all__)
def test_every_public_name_exists_and_is_described(name: str) -> None:
    found = getattr(ncukit, name)
    assert inspect.getdoc(found)
    assert callable(found) or inspect.ismodule(found)


@pytest.mark.parametrize("name", ncukit.__all__)
def test_everything_public_of_a_public_class_is_described(name: str) -> None:
    found = getattr(ncukit, name)
    if inspect.isclass(found):
        for member, value in vars(found).items():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member} has no docstring"


TWICE = """
import ncukit
sample = ncukit.demo_reports()[0]
for _ in range(2):
    (kernel,) = ncukit.read(sample).kernels()
    ncukit.diagnose(kernel)
import ncukit.judge.verdict, ncukit.report.reader
ncukit.diagnose(*ncukit.read(sample).kernels())
from ncukit import diagnose, read
diagnose(*read(sample).kernels())
"""


def test_no_part_bears_the_name_of_a_verb() -> None:
    parts = {path.stem for path in (CHECKOUT / "ncukit").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not parts & set(ncukit.__all__)


def test_the_package_lists_its_verbs() -> None:
    assert dir(ncukit) == sorted([*ncukit.__all__, "__version__"])


def test_loading_parts_leaves_the_verbs() -> None:
    done = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Source'"):
        ncukit.Source  # noqa: B018


@pytest.mark.parametrize("start", EVERY_START)
def test_starting_imports_nothing_heavy(start: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *EVERY_START[start]], capture_output=True, text=True, check=True
    )
    loaded = {
        line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line
    }
    assert "ncukit" in loaded
    assert not loaded & HEAVY


def test_a_report_goes_to_another_process_as_its_path() -> None:
    import pickle

    report = ncukit.read(ncukit.demo_reports()[0])
    sent = pickle.loads(pickle.dumps(report))
    assert sent.path == report.path
    assert [kernel.name for kernel in sent.kernels()] == [kernel.name for kernel in report.kernels()]


def test_a_path_of_bytes_is_a_path() -> None:
    (sample, *_) = ncukit.demo_reports()
    assert ncukit.read(os.fsencode(sample)).path == str(sample)  # type: ignore[arg-type]


def test_what_is_no_kernel_is_named() -> None:
    with pytest.raises(TypeError, match=r"takes a Kernel, .*, not 'a.ncu-rep'"):
        ncukit.diagnose("a.ncu-rep")  # type: ignore[arg-type]
