"""Real shells complete commands and options, once `ncukit --install-completion` ran in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

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


def test_what_is_shown_is_what_is_installed(shell: Shell) -> None:
    shown = shell.run(shell.name, "-c", "ncukit --show-completion; true").strip()
    home = Path(shell.environ["HOME"])
    files = [path for path in home.rglob("*") if path.is_file() and "ncukit" in path.name]
    assert shown in [path.read_text(encoding="utf-8").strip() for path in files]
