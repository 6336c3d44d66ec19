"""What docs/dataset.md shows runs: its Python with the libraries that are installed, its SQL with ncukit."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
from pathlib import Path

import pytest

from ncukit import demo_reports
from ncukit.api import build_dataset, query_dataset
from ncukit.dataset.rows import CONTEXT, DOUBTS, PARTITION
from tests.conftest import CHECKOUT

PAGE = (CHECKOUT / "docs" / "dataset.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
QUERIES = [shlex.split(line) for line in PAGE.splitlines() if line.startswith("ncukit dataset query")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with reports and the dataset of them."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "runs" / "deep").mkdir(parents=True)
    for sample in demo_reports():
        shutil.copy(sample, folder / "runs" / "deep")
    build_dataset(folder / "runs", folder / "fleet", workers=1)
    return folder


def libraries(code: str) -> list[str]:
    """Return the libraries that an example imports first."""
    return [
        alias.name for node in ast.parse(code).body if isinstance(node, ast.Import) for alias in node.names
    ]


@pytest.mark.parametrize("code", EXAMPLES, ids=lambda code: libraries(code)[0])
def test_the_example_runs_and_prints(
    code: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for library in libraries(code):
        pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.chdir(place)
    exec(compile(code, "docs/dataset.md", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert re.search(r"\d", printed)
    assert "%20" not in printed


def test_there_is_an_example_for_each_library() -> None:
    assert {name.split(".")[0] for code in EXAMPLES for name in libraries(code)} == {
        *("ncukit", "pyarrow", "pandas", "polars", "duckdb"),
    }


@pytest.mark.parametrize("words", QUERIES, ids=lambda words: words[4][:40])
def test_the_query_is_answered(words: list[str], place: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    assert query_dataset(place / words[3], words[4]).rows


def test_every_column_beside_the_metrics_is_told() -> None:
    told = set(re.findall(r"`(\w+)`", "".join(line for line in PAGE.splitlines() if line.startswith("| `"))))
    assert {*CONTEXT, *DOUBTS, PARTITION} <= told
