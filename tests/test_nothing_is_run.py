"""Nothing of a stranger's folder is run: neither its modules nor what its git configuration names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import typer

from ncukit import cli
from ncukit.run import target
from tests import hostile
from tests.conftest import CHECKOUT
from tests.runs import furnished

PROGRAM: Any = typer.main.get_command(cli.application())
SHADOWED = sorted(
    {
        *sys.stdlib_module_names,
        *(name for name in packages_distributions() if name.isidentifier()),
        *("ncukit", "sitecustomize", "usercustomize", "msgspec", "torch", "triton", "cupy", "numba"),
    }
)
"""Modules that lie in the stranger's folder under the names of the standard library and of all packages."""
WORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "show": (("x.ncu-rep",), ("x.ncu-repz",)),
    "report": (("x.ncu-rep", "-o", "page.html"), ("--run", "run", "-o", "run.html")),
    "metrics": (("x.ncu-rep", "--json"), ("x.ncu-rep", "--raw", "--format", "csv")),
    "compare": (("x.ncu-rep", "y.ncu-rep"), ("x.ncu-rep", "y.ncu-rep", "-o", "compare.html")),
    "baseline": (("set", "one", "x.ncu-rep"), ("list",)),
    "timeline": (("x.sqlite",), ("x.json",)),
    "ops": (("x.json",), ("ranks",), ("SCRIPT", "--kernel", "gemm")),
    "index": ((".", "-o", "index.html", "--workers", "2"),),
    "mfu": (("--list",),),
    "advise": (("run",), ("x.ncu-rep",)),
    "probe": (("device",), ("allocator", "--script", "SCRIPT", "--kernel", "gemm", "--steps", "2")),
    "catalog": ((),),
    "doctor": ((), ("--bundle", "-o", "bundle.zip")),
    "demo": ((),),
    "schema": (("run",),),
    "roofline": (("gemm", "--m", "4096", "--n", "4096", "--k", "4096", "--gpu", "h100-sxm"),),
    "dataset build": ((".", "-o", "made", "--workers", "2"),),
    "dataset query": (("made", "select count(*) from launches"),),
    "profile": (("SCRIPT", "--kernel", "gemm", "--repeat", "3"), ("SCRIPT", "--kernel", "gemm", "--dry-run")),
    "time": (("SCRIPT", "--kernel", "gemm", "--repeat", "3"),),
    "experiment": (
        ("SCRIPT", "--baseline", "gemm", "--control", "n=8,16", "-n", "2", "--samples", "2", "--no-profile"),
    ),
}  # fmt: skip
"""What each command is given in the stranger's folder; SCRIPT is the user's own, elsewhere."""


def commands(command: Any = PROGRAM, path: str = "") -> Iterator[str]:
    """Yield every command of the program, those of ``dataset`` with both words; models are one command."""
    inner = getattr(command, "commands", {}) if path != "roofline" else {}
    for name, one in inner.items():
        yield from commands(one, f"{path} {name}".strip())
    if not inner:
        yield path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, stands: Path) -> Iterator[Path]:
    """A stranger's folder: inputs among hostile modules; beside it the user's script."""
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "canaries").mkdir()
    there = folder / "there"
    there.mkdir()
    for name in ("x", "y", "z"):
        hostile.report(there / f"{name}.ncu-rep")
    shutil.copyfile(there / "x.ncu-rep", there / "x.ncu-repz")
    hostile.torch_trace(there / "x.json")
    (there / "ranks").mkdir()
    for rank in range(2):
        hostile.torch_trace(there / "ranks" / f"rank{rank}.json", rank)
    hostile.nsys_export(there / "x.sqlite")
    hostile.run_directory(there / "run")
    for number, name in enumerate(SHADOWED):
        text = f"open({str(folder / 'canaries' / name)!r}, 'w').close()\n"
        if number % 2:
            (there / name).mkdir()
            (there / name / "__init__.py").write_text(text)
        else:
            (there / f"{name}.py").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        furnished(folder / "own", patch, stands)
        yield folder


def console(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run ``ncukit`` as its users do: by a script that lies elsewhere, without ``-P``."""
    program = cwd.parent / "ncukit-command"
    program.write_text(
        f"import sys\nsys.path.insert(1, {str(CHECKOUT)!r})\nfrom ncukit.cli import main\n"
        'if __name__ == "__main__":\n    main()\n'
    )
    return subprocess.run(
        [sys.executable, str(program), *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_every_command_is_tried_in_a_strangers_folder() -> None:
    assert set(commands()) == set(WORDS)


@pytest.mark.parametrize("command", WORDS)
def test_no_module_of_a_strangers_folder_is_imported(command: str, place: Path) -> None:
    for words in WORDS[command]:
        given = [str(place / "own" / "work.py") if word == "SCRIPT" else word for word in words]
        done = console(*command.split(), *given, cwd=place / "there")
        assert os.listdir(place / "canaries") == [], words
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode in (0, 3, 5), (words, done.stdout, done.stderr)


# ---- git -----------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    """Run git in ``folder`` and return what it prints."""
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a script."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "work.py").write_text("print(1)\n")
    (folder / ".gitattributes").write_text("*.py filter=evil\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_no_program_of_a_repository_s_configuration_is_run(repository: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\necho $0 >> '{canary}'\ncat\n")
    program.chmod(0o755)
    for name in (
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.process",
        "core.sshCommand",
        "core.pager",
    ):
        git(repository, "config", name, str(program))
    canary.unlink(missing_ok=True)
    (repository / "work.py").write_text("print(2)\n")
    found = target.git_data(repository / "work.py", os.environ)
    assert found is not None
    assert found["modified"]
    assert not canary.exists()


def test_no_transport_of_a_partial_clone_is_run(repository: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    tree = git(repository, "rev-parse", "HEAD^{tree}")
    (repository / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::touch {canary}",
        "protocol.ext.allow": "always",
    }.items():
        git(repository, "config", name, value)
    target.git_data(repository / "work.py", os.environ)
    assert not canary.exists()


def test_git_says_whether_the_script_is_as_committed(repository: Path) -> None:
    script = repository / "work.py"
    head = git(repository, "rev-parse", "HEAD")
    assert target.git_data(script, os.environ) == {"revision": head, "modified": False}
    script.write_bytes(b"print(1)\r\n")
    assert target.git_data(script, os.environ) == {"revision": head, "modified": False}
    script.write_text("print(2)\n")
    assert target.git_data(script, os.environ) == {"revision": head, "modified": True}
    (repository / "new.py").write_text("")
    assert target.git_data(repository / "new.py", os.environ) == {"revision": head, "modified": True}
    assert target.git_data(repository.parent / "outside.py", os.environ) is None
