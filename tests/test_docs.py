"""What the documents say is true: commands, options, output, generated pages, links."""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from ncukit import cli
from scripts import reference
from tests.conftest import CHECKOUT

PAGES = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").glob("*.md")])
COMMANDS = typer.main.get_command(cli.application()).commands  # type: ignore[attr-defined]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of every ``ncukit COMMAND ...`` in the code of a page.

    >>> list(commands("Say `ncukit show a.ncu-rep | less` to see."))
    [['show', 'a.ncu-rep']]
    """
    for code in re.findall(r"```.*?```|`[^`]*`", text, re.S):
        for line in code.splitlines():
            if found := re.search(r"(?:^|[`$|] *)ncukit +([a-z-].*?)`*$", line.strip()):
                yield shlex.split(re.split(r" [|#>] |  +", found[1])[0], comments=True)


@each_page
def test_every_command_and_option_exists(page: Path) -> None:
    for words in commands(page.read_text(encoding="utf-8")):
        if words[0] == "COMMAND" or words[0].startswith("-"):
            continue
        command = COMMANDS.get(words[0])
        assert command is not None, f"ncukit {' '.join(words)}"
        command = getattr(command, "commands", {}).get("".join(words[1:2]), command)
        options = {
            name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)
        }
        used = {word.split("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)}
        assert used <= options | {"-h", "--help", "--debug"}, f"ncukit {' '.join(words)}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_readme(command: str) -> None:
    assert f"`{command}`" in README


def consoles(text: str) -> dict[str, list[str]]:
    """Return the output lines under each ``$ command`` of the console blocks."""
    found: dict[str, list[str]] = {}
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *lines = part.rstrip().splitlines()
            found[command] = lines
    return found


@functools.cache
def output(command: str, folder: Path) -> list[str]:
    argv = [sys.executable, "-m", *shlex.split(command)]
    (folder / "reports").exists() or (folder / "reports").symlink_to(CHECKOUT / "reports")
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.rstrip() for line in done.stdout.splitlines()]


@pytest.mark.parametrize("command", consoles(README))
def test_the_output_in_the_readme_is_real(command: str, tmp_path: Path) -> None:
    shown, real = consoles(README)[command], output(command, tmp_path)
    if command == "ncukit doctor":  # depends on the machine
        shown = [line.split()[1] for line in shown if line.startswith(("pass", "fail", "unknown"))]
        assert set(shown) <= {word for line in real for word in line.split()}
        return
    position = 0
    for line in shown:
        if line != "...":
            assert line in real[position:], f"not printed, or not in this order: {line}"
            position = real.index(line, position) + 1


def test_the_reference_of_metrics_is_current() -> None:
    assert reference.FILE.read_text(encoding="utf-8") == reference.reference(), "python scripts/reference.py"


def test_pictures_are_small() -> None:
    pictures = list((CHECKOUT / "docs" / "images").glob("*.png"))
    assert pictures
    assert [path.name for path in pictures if path.stat().st_size > 200_000] == []


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("http", "#")):
            assert (page.parent / target.split("#")[0]).exists(), target


@each_page
def test_files_that_are_named_exist(page: Path) -> None:
    for path in re.findall(
        r"`((?:ncukit|tests|scripts|benchmarks|docs|templates|reports|\.ci)/[\w./-]*)`",
        page.read_text(encoding="utf-8"),
    ):
        assert (CHECKOUT / path).exists(), path


def test_the_readme_begins_with_the_two_commands() -> None:
    (first, *_) = re.findall(r"```\n(.*?)```", README, re.S)
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]
