"""What is optional is installed into the environment in which ncukit runs, by what made that environment."""

from __future__ import annotations

import re
import sys
from importlib import metadata, util
from pathlib import Path
from typing import Any

import pytest
import yaml

from ncukit.run.tools import locate
from ncukit.run.tools.locate import install_command
from tests.conftest import CHECKOUT


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment named ncukit, with pip; its Python is not first on PATH."""
    home = tmp_path / "ncukit"
    (home / "bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(home))
    monkeypatch.setattr(sys, "executable", str(home / "bin" / "python"))
    monkeypatch.setattr(util, "find_spec", lambda name: name)
    return home


def test_a_plain_environment_is_named_by_its_python(environment: Path) -> None:
    assert install_command("query") == f"{environment}/bin/python -m pip install 'duckdb>=1.1'"


def test_the_python_on_path_needs_no_folder(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = environment / "bin" / "python"
    python.touch(0o755)
    monkeypatch.setenv("PATH", str(python.parent))
    assert install_command("query") == "python -m pip install 'duckdb>=1.1'"


def test_pipx_injects(environment: Path) -> None:
    (environment / "pipx_metadata.json").touch()
    assert install_command("cluster") == "pipx inject ncukit 'dask[distributed]>=2024.8'"


def test_uv_installs_where_there_is_no_pip(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    python = environment / "bin" / "python"
    assert install_command("host") == f"uv pip install --python {python} 'py-spy>=0.3.14'"


def test_a_checkout_names_its_own_extra(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(locate.metadata, "requires", missing)
    assert install_command("query").endswith(" -m pip install '.[query]'")


DOCUMENTS = [
    CHECKOUT / "README.md",
    *sorted((CHECKOUT / "docs").rglob("*.md")),
    *sorted((CHECKOUT / "docs").rglob("*.yml")),
]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_document_installs_ncukit_from_an_index(path: Path) -> None:
    """It is on none: what an index gave under this name would be something else."""
    found = re.findall(
        r"(?:pip3? install|pipx install|uv tool install)[^\n`]*", path.read_text(encoding="utf-8")
    )
    assert [line for line in found if re.search(r"[\s'\"]ncukit(?:\[|['\"]|\s|$)", line)] == []


def test_the_workflow_marks_what_it_installs() -> None:
    text = (CHECKOUT / "docs" / "compare-workflow.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    (marked,) = [line for line in text.splitlines() if workflow["env"]["NCUKIT"] in line]
    assert "# <-" in marked
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert [run for run in steps if "pip install" in run] == ['pip install "$NCUKIT"'] * 2
