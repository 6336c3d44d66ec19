"""Every example of the documents runs, or says what it needs: ``# needs a GPU``.

The examples of a page run one after another, in this process, in a folder of their own: what one writes the
next may read.  The bundled samples stand for the reports and traces that they name.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import ncukit
from ncukit import cli, demo_reports, demo_traces
from ncukit.cli import output
from ncukit.report.reader import Source
from tests.conftest import CHECKOUT
from tests.documented import PAGES, Example, blocks, command_examples, python_examples
from tests.test_ranks import LOG, rank
from tests.torch_builder import training

GENERATED = {"commands.md"}
"""The help texts again, whose examples `tests/test_help.py` parses."""
ELSEWHERE = {"dataset.md", "README.md"}
"""What `tests/test_dataset_docs.py` runs, with libraries that may be absent, and `tests/test_docs.py`."""
SAMPLES = {path.stem: path for path in demo_reports()}
STANDS_FOR = {
    r"gemm|mine|cublas": SAMPLES["gemm-tensor"],
    r"softmax": SAMPLES["several-launches"],
    r"slower": SAMPLES["copy-dram"],
    r"": SAMPLES["transpose-bank-conflicts"],
}
SCRIPT = """\
import ncukit

@ncukit.workload(n=1000)
def gemm(n):
    return ncukit.Case(run=lambda: sum(range(n)))

gemm_v1 = gemm_v2 = step = gemm
"""
COULD_NOT_RUN = ("profile", "time", "experiment")
TESTED_ELSEWHERE = ("doctor", "demo")
"""Slow, without options to get wrong: `tests/test_tools_doctor.py`, `tests/test_cli.py`."""


def provide(example: Example) -> None:
    """Put what an example reads into the current folder, as far as it is not there."""
    if "baseline set main" in example.text:
        shutil.rmtree(".ncukit", ignore_errors=True)
    elif re.search(r"[ \"]main[ \"]", example.text) and not Path(".ncukit").exists():
        ncukit.set_baseline("main", SAMPLES["gemm-tensor"])
    for name in re.findall(r"[\w/.-]+\.(?:ncu-rep|sqlite|py|json\.gz)\b|traces/|nccl\.txt", example.text):
        path = Path(name)
        if path.exists() or path.is_absolute():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        match name, path.suffix:
            case "traces/", _:
                for number in range(2):
                    path.mkdir(exist_ok=True)
                    rank(number).write(path / f"rank{number}.json.gz")
            case _, ".ncu-rep":
                sample = next(file for part, file in STANDS_FOR.items() if re.match(part, path.name))
                shutil.copy(sample, path)
            case _, ".sqlite":
                shutil.copy(demo_traces()[0], path)
            case _, ".gz":
                trace = training(steps=5)
                trace.annotation("ProfilerStep#3", 3000, 900)
                trace.write(path)
            case _, ".txt":
                path.write_text(LOG, encoding="utf-8")
            case _:
                path.write_text(SCRIPT, encoding="utf-8")


def run(example: Example, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Return exit code and errors of a command, run in this process; no browser is opened."""
    words = [word for word in example.words if word != "--open"]
    monkeypatch.setattr(sys, "argv", ["ncukit", *words])
    monkeypatch.setattr(output, "debug", False)
    said = io.StringIO()
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(said),
        pytest.raises(SystemExit) as ended,
    ):
        cli.main()
    return int(ended.value.code or 0), said.getvalue()


def commands(page: Path) -> list[Example]:
    """Return the commands of a page that are run here, in their order."""
    if page.name in ELSEWHERE | GENERATED:
        return []
    return [e for e in command_examples(page) if not e.needs and e.words[0] not in TESTED_ELSEWHERE]


def python(page: Path) -> list[Example]:
    """Return the blocks of Python of a page that are run here."""
    return [] if page.name == "dataset.md" else [e for e in python_examples(page) if not e.needs]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with the samples and the kernels of a checkout.

    Reports are read in this process: they are sound, and a child for each of them takes most of the time.
    """
    made = Source.__init__

    def here(source: Source, path: str, **how: Any) -> None:
        made(source, path, **how | {"isolate": False})

    monkeypatch.setattr(Source, "__init__", here)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(CHECKOUT / "reports" / "samples", "reports/samples")
    os.symlink(CHECKOUT / "kernels", "kernels")
    return tmp_path


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=lambda path: path.name)
@pytest.mark.usefixtures("place")
def test_the_commands_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for example in commands(page):
        provide(example)
        code, said = run(example, monkeypatch)
        assert (code, example.text) == (example.exit_code, example.text), said


@pytest.mark.parametrize("page", [p for p in PAGES if python(p)], ids=lambda path: path.name)
@pytest.mark.usefixtures("place")
def test_the_python_runs(page: Path) -> None:
    for example in python(page):
        provide(example)
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(example.text, page.name, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_what_measures_says_that_it_needs_a_gpu(page: Path) -> None:
    if page.name in GENERATED:
        return
    for example in command_examples(page):
        if example.words[0] in COULD_NOT_RUN and not {"--dry-run", "--help"} & set(example.words):
            assert example.needs, example.text


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_python_and_toml_are_sound(page: Path) -> None:
    for example in python_examples(page):
        compile(example.text, page.name, "exec")
    for _, code in blocks(page, "toml"):
        tomllib.loads(code)
