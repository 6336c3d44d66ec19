"""Real shells complete commands and options, once `ncukit --install-completion` ran in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from ncukit import cli, demo_reports
from ncukit.cli.completion import values_of
from tests.command import ncukit

BASH = """
source ~/.bashrc
read -ra COMP_WORDS <<< "$TYPED"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
$(complete -p ncukit | sed 's/.*-F \\([^ ]*\\) .*/\\1/') ncukit
printf '%s\\n' "${COMPREPLY[@]}"
"""
# zsh completes at its line editor alone: its parts of that are named here, and print what they get.
ZSH = """
source ~/.zshrc
(( $+_comps[ncukit] )) || exit 1
_arguments() { print -r -- "$@" }
_files() { print files }
words=(${=TYPED}) CURRENT=$#words
$_comps[ncukit] # the first time it is only loaded
$_comps[ncukit]
"""
FISH = "complete --do-complete $TYPED"
COMPLETES = {"bash": ["bash", "--norc", "-c", BASH], "zsh": ["zsh", "-fc", ZSH], "fish": ["fish", "-c", FISH]}


@dataclass(frozen=True)
class Shell:
    """A shell of a user with a new home, where completion was installed."""

    name: str
    environ: dict[str, str]

    def run(self, *words: str, **variables: str) -> str:
        done = subprocess.run(
            words, env=self.environ | variables, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def completes(self, typed: str) -> str:
        return self.run(*COMPLETES[self.name], TYPED=typed)


@pytest.fixture(scope="module", params=COMPLETES)
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"no {name} on PATH")
    home = tmp_path_factory.mktemp("home")
    program = home / "bin" / "ncukit"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ncukit "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    user = Shell(name, {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb"})
    user.run(name, "-c", "ncukit --install-completion; true")
    return user


def test_commands(shell: Shell) -> None:
    shown = shell.completes("ncukit sh")
    assert "show" in shown
    assert "schema" not in shown


def test_options_of_a_command(shell: Shell) -> None:
    shown = shell.completes("ncukit show --fo")
    assert "--format" in shown
    assert "--sass" not in shown


def test_values_of_an_option(shell: Shell) -> None:
    shown = shell.completes("ncukit show --format m")
    assert "markdown" in shown
    assert "json" not in shown


def test_what_is_shown_is_what_is_installed(shell: Shell) -> None:
    shown = shell.run(shell.name, "-c", "ncukit --show-completion; true").strip()
    home = Path(shell.environ["HOME"])
    files = [path for path in home.rglob("*") if path.is_file() and "ncukit" in path.name]
    assert shown in [path.read_text(encoding="utf-8").strip() for path in files]


def every_parameter() -> Iterator[tuple[str, Any]]:
    """Yield each command with each of its parameters; of the models one."""
    for name, command in typer.main.get_command(cli.application()).commands.items():  # type: ignore[attr-defined]
        yield from ((name, parameter) for parameter in command.params)
        for inner in ["gemm"] if name == "roofline" else getattr(command, "commands", {}):
            yield from ((f"{name} {inner}", parameter) for parameter in command.commands[inner].params)


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What is offered for the last word of a command line, as bash asks for it, in this process."""

    def ask(typed: str, cwd: Path | None = None) -> list[str]:
        words = typed.split(" ")
        asked = {"_NCUKIT_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
        for name, value in asked.items():
            monkeypatch.setenv(name, value)
        done = ncukit(cwd=cwd)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    return ask


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("show --format ", ["text", "markdown", "json"]),
        ("profile --preset q", ["quick"]),
        ("ops --sort self", ["self-device", "self-cpu"]),
        ("dataset query fleet SQL --format c", ["csv"]),
        ("mfu --gpu h100", ["h100-sxm", "h100-pcie", "h100-nvl"]),
        ("roofline gemm --gpu rtx-4", ["rtx-4090"]),
        ("roofline kv-c", ["kv-cache-decode"]),
        ("metrics x.ncu-rep -m kernel_dur", ["kernel_duration"]),
        ("catalog kernel_dur", ["kernel_duration"]),
        ("probe gra", ["graph-breaks"]),
        ("probe copy mat", ["matmul"]),
        ("baseline s", ["set", "show"]),
        ("schema ncukit.mf", ["ncukit.mfu/1"]),
        ("report x", []),  # a file, which the shell completes
    ],
)
def test_values(typed: str, offered: list[str], offers: Callable[..., list[str]]) -> None:
    assert offers(f"ncukit {typed}") == offered


def test_names_of_baselines(tmp_path: Path, offers: Callable[..., list[str]]) -> None:
    sample = next(path for path in demo_reports() if path.stem == "copy-dram")
    assert ncukit("baseline", "set", "main", sample, cwd=tmp_path).returncode == 0
    assert offers("ncukit baseline show ma", cwd=tmp_path) == ["main"]


def test_every_choice_of_an_option_is_offered(offers: Callable[..., list[str]]) -> None:
    asked = set()
    for command, parameter in every_parameter():
        values = values_of(command.split()[-1], parameter)
        if values is not None and (option := parameter.opts[0]).startswith("-"):
            asked.add(f"{command} {option}")
            assert (found := offers(f"ncukit {command} {option} ")) == list(values())
            assert found
    assert asked > {"profile --preset", "metrics --metric", "dataset query --format", "roofline gemm --gpu"}
