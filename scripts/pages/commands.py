"""docs/commands.md: the help of every command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from ncukit import cli
from scripts.pages.words import plain

HEAD = """\
# Commands

Generated from the command line itself by `scripts/reference.py`; a test keeps it current.  `ncukit COMMAND
--help` prints the same.  Files and scripts in the examples are yours; what measures needs a GPU.

| group | commands |
| --- | --- |
{groups}

Results go to stdout, words and progress to stderr; progress is shown only on a terminal.  `-` reads stdin
where a command takes a file and that makes sense.  `NO_COLOR` is honoured.  Every command takes `--debug`,
which adds the traceback to an error.

Exit codes: 0 done; 1 another error of ncukit; 2 wrong use; 3 a tool failed; 4 an input file cannot be used;
5 a report was made and a part of it is missing; 10 a gate failed; 130 interrupted (SIGTERM 143,
SIGHUP 129); 141 the reader of stdout went away (`| head`).
[Troubleshooting](troubleshooting.md) has an entry for every error.

The tools are looked for in this order: `--ncu`, `--nsys`, `--nvcc PATH`; the variables `NCUKIT_NCU`,
`NCUKIT_NSYS`, `NCUKIT_NVCC`; `PATH`; the usual install folders, newest first.

## Completion

`ncukit --install-completion` adds completion of commands, options and values to the shell that it is
called from; open a new one then.  `ncukit --show-completion` prints the same, to be put somewhere by hand.
bash, zsh and fish are tested.  In zsh the first Tab of a session only loads it: press it twice.

| shell | written |
| --- | --- |
| bash | `~/.bash_completions/ncukit.sh`, and a line in `~/.bashrc` that loads it |
| zsh | `~/.zfunc/_ncukit`, and in `~/.zshrc` the lines that look there |
| fish | `~/.config/fish/completions/ncukit.fish` |

Removing ncukit leaves these where they are.
"""
GROUPS = {
    "measure": ("profile", "time", "experiment", "probe", "doctor"),
    "read one report or trace": ("show", "report", "metrics", "timeline", "ops", "advise"),
    "read many": ("compare", "baseline", "dataset", "index"),
    "calculate": ("roofline", "mfu"),
    "look up": ("catalog", "schema", "demo"),
}


def page() -> str:
    """Return the text of docs/commands.md."""
    groups = "\n".join(
        f"| {name} | {', '.join(f'[{c}](#{c})' for c in commands)} |" for name, commands in GROUPS.items()
    )
    program: Any = typer.main.get_command(cli.application())
    parts = [HEAD.format(groups=groups)]
    for name in (name for commands in GROUPS.values() for name in commands):
        parts += [f"\n{text}\n" for text in _entries(program.commands[name], name, 2)]
    return "".join(parts)


def _entries(command: Any, path: str, level: int) -> Iterator[str]:
    """Yield the text about a command, then about those in it."""
    yield "\n".join([f"{'#' * level} {path}", "", *_entry(command, path)]).rstrip()
    if path == "roofline":
        yield "The models and their parameters are in [Analytic models](models.md)."
        return
    for name, inner in getattr(command, "commands", {}).items():
        yield from _entries(inner, f"{path} {name}", level + 1)


def _entry(command: Any, path: str) -> Iterator[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    for block in examples_and_words(command.help):
        yield from block
        yield ""
    if arguments or options:
        yield "| argument, option | meaning |"
        yield "| --- | --- |"
        yield from (f"| `{_metavar(one) or one.name.upper()}` | {_meaning(one)} |" for one in arguments)
        yield from (f"| {_names(one)} | {_meaning(one)} |" for one in options if one.name != "help")


def examples_and_words(text: str) -> Iterator[list[str]]:
    """Yield the paragraphs of a help text; those that keep their lines are examples.

    >>> list(examples_and_words("Say it.\\n\\n\\b\\nncukit show\\nncukit report"))
    [['Say it.'], ['```text', 'ncukit show', 'ncukit report', '```']]
    """
    for block in text.strip().split("\n\n"):
        lines = [line.rstrip() for line in block.splitlines()]
        if lines and lines[0] == "\b":
            yield ["```text", *lines[1:], "```"]
        elif lines:
            yield [plain(" ".join(line.strip() for line in lines))]


def _names(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    metavar = "" if option.is_flag else _metavar(option)
    return f"{names} `{metavar}`" if metavar else names


def _metavar(parameter: Any) -> str:
    choices = getattr(parameter.type, "choices", ())
    text: str = parameter.metavar or "|".join(map(str, choices))
    return text.replace("|", " or ")  # a bar would end the cell


def _meaning(parameter: Any) -> str:
    words = [plain(parameter.help or "")]
    default = parameter.default
    if isinstance(default, str | int | float) and not isinstance(default, bool) and default != "":
        words.append(f"Default: `{default}`.")
    if parameter.required:
        words.append("Required.")
    return "  ".join(words)
