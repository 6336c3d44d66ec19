"""`--help` says all there is: every command, every option, with examples that are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from ncukit import cli
from ncukit.cli.output import WrongUsage
from tests.documented import PAGES, Example, command_examples, help_examples

PROGRAM: Any = typer.main.get_command(cli.application())


def every(command: Any = PROGRAM, path: str = "ncukit") -> Iterator[tuple[str, Any]]:
    """Yield every command with the words that call it, groups too."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from every(inner, f"{path} {name}")


EVERY = dict(every())
EXAMPLES = [example for command in EVERY.values() for example in help_examples(command.help or "")]
SHOWN = [example for page in PAGES for example in command_examples(page)]


@pytest.mark.parametrize("path", EVERY)
def test_every_command_says_what_it_does_in_its_first_sentence(path: str) -> None:
    first = (EVERY[path].help or "").strip().split("\n\n")[0]
    assert first.endswith(".") or ":" in first, f"{path}: {first!r}"
    assert len(first) > 15


@pytest.mark.parametrize("path", EVERY)
def test_every_option_and_argument_has_help(path: str) -> None:
    silent = [p.name for p in EVERY[path].params if not (getattr(p, "help", None) or "").strip()]
    assert silent == []


@pytest.mark.parametrize("path", EVERY)
def test_every_option_is_spelt_out(path: str) -> None:
    options = [p for p in EVERY[path].params if p.param_type_name == "option"]
    assert [p.opts for p in options if not any(name.startswith("--") for name in p.opts)] == []


@pytest.mark.parametrize("path", [path for path in EVERY if path != "ncukit"])
def test_every_command_has_an_example_of_itself(path: str) -> None:
    assert any(
        f"{example.text} ".startswith(f"{path} ") for example in help_examples(EVERY[path].help or "")
    ), f"{path} --help shows no example"


def test_the_shell_can_complete() -> None:
    options = {name for parameter in PROGRAM.params for name in parameter.opts}
    assert {"--install-completion", "--show-completion"} <= options


def refused(example: Example) -> str:
    """Return what is wrong with a command, as its parser says; "" for a right one. Nothing runs."""
    words, command, path = example.words, PROGRAM, "ncukit"
    while getattr(command, "commands", {}) and words and words[0] in command.commands:
        command, path = command.commands[words[0]], f"{path} {words[0]}"
        words = words[1:]
    if command is PROGRAM:
        return f"there is no command {words[:1]}"
    if "--help" in words or getattr(command, "commands", {}):
        return ""
    try:
        command.make_context(path, words)
    except WrongUsage as error:
        return str(error.format_message())
    return ""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.text)
def test_what_help_shows_is_accepted(example: Example) -> None:
    assert refused(example) == ""


@pytest.mark.parametrize("example", SHOWN, ids=lambda example: f"{example.page}: {example.text}")
def test_what_the_documents_show_is_accepted(example: Example) -> None:
    assert refused(example) == ""


@pytest.mark.parametrize(
    "line",
    ["ncukit shwo a", "ncukit show --lunch 3 a", "ncukit show", "ncukit show a --launch x"],
)
def test_a_wrong_example_would_be_noticed(line: str) -> None:
    assert refused(Example("here", line)) != ""
