"""What the documents say is true: commands, options, output, generated pages, links; and the site builds."""

from __future__ import annotations

import ast
import doctest
import functools
import importlib
import os
import re
import resource
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import ncukit
from ncukit import cli
from ncukit.judge import RULES
from ncukit.run.tools import failures
from scripts import reference
from scripts.pages import codes, troubleshooting
from tests import command as commands
from tests.conftest import CHECKOUT
from tests.documented import PAGES, words

COMMANDS = typer.main.get_command(cli.application()).commands  # type: ignore[attr-defined]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)


def named(text: str) -> Iterator[list[str]]:
    """Yield the words of every ``ncukit COMMAND ...`` that stands in a sentence; blocks are no sentences.

    >>> list(named("Say `ncukit show a.ncu-rep | less` to see."))
    [['show', 'a.ncu-rep']]
    """
    for code in re.findall(r"`(ncukit [a-z][^`]*)`", re.sub(r"```.*?```", "", text, flags=re.S)):
        yield words(" ".join(code.split()))


@each_page
def test_every_command_and_option_in_a_sentence_exists(page: Path) -> None:
    for called in named(page.read_text(encoding="utf-8")):
        command = COMMANDS.get(called[0])
        assert command is not None, f"ncukit {' '.join(called)}"
        command = getattr(command, "commands", {}).get("".join(called[1:2]), command)
        options = {
            name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)
        }
        own = called[: called.index("--")] if "--" in called else called
        used = {word.split("=")[0] for word in own[1:] if re.match(r"--?[a-z]", word)}
        assert used <= options | {"-h", "--help", "--debug"}, f"ncukit {' '.join(called)}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_readme(command: str) -> None:
    assert f"`{command}`" in README


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_list_of_changes(command: str) -> None:
    assert f"`ncukit {command}" in (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")


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
    program, *words = shlex.split(command)
    assert program == "ncukit"
    (folder / "reports").exists() or (folder / "reports").symlink_to(CHECKOUT / "reports")
    done = commands.ncukit(*words, cwd=folder)
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


@pytest.mark.parametrize("name", reference.PAGES)
def test_what_is_generated_is_current(name: str) -> None:
    text = (reference.FOLDER / name).read_text(encoding="utf-8")
    assert text == reference.PAGES[name](), "python scripts/reference.py"


def test_every_error_code_has_an_entry() -> None:
    assert set(codes.codes()) == set(troubleshooting.entries())
    assert set(failures.CODES) <= set(codes.codes())


def test_every_entry_says_what_helps() -> None:
    for code, entry in troubleshooting.entries().items():
        assert entry["about"].endswith("."), code
        assert entry["try"], code
        assert entry["kind"] in troubleshooting.KINDS, code


def test_an_interruption_ends_with_the_code_of_its_signal() -> None:
    entry = troubleshooting.page().split("### interrupted\n")[1].split("\n### ")[0]
    assert entry.strip().startswith("*exit code 129, 130 or 143.*")


def test_every_exit_code_is_told() -> None:
    errors = set(re.findall(r"\d+", " ".join(re.findall(r"\*exit code ([^.]*)\.\*", troubleshooting.page()))))
    assert errors == {"1", "2", "3", "4", "129", "130", "143"}
    every = errors | {"0", "5", "10", str(cli.UNREAD)}
    table = README.split("## Exit codes")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([\d, ]+) \|", table, re.M)
    assert sorted(code for row in rows for code in row.split(", ")) == sorted(every)
    commands_page = (CHECKOUT / "docs" / "commands.md").read_text(encoding="utf-8")
    sentence = commands_page.split("\nExit codes: ")[1].split("\n\n")[0].split(".")[0]
    assert sorted(re.findall(r"\d+", sentence)) == sorted(every)


def test_the_buttons_that_the_page_on_reading_names_exist() -> None:
    """In italics beside "gives": what a click gives."""
    reading = (CHECKOUT / "docs" / "reading.md").read_text(encoding="utf-8")
    templates = "".join(path.read_text(encoding="utf-8") for path in (CHECKOUT / "templates").rglob("*.html"))
    named = re.findall(r"\*(\w+)\* gives", reading)
    assert named
    assert [name for name in named if f">{name}<" not in templates] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('raise UsageError("no", code="new-code")', ["new-code"]),
        ('raise UsageError("no", code="a" if b else "c")', ["a", "c"]),
        ('NEW = "new-code"\nraise ReportError(path, "no", code=NEW)', ["new-code"]),
        ('class Worse(NcukitError):\n    code = "new-code"', ["new-code"]),
        ('raise Fault("new-code", "is odd")', ["new-code"]),
        ("raise UsageError(str(error), code=error.code)", []),
    ],
)
def test_codes_are_found_where_errors_are_raised(source: str, found: list[str]) -> None:
    tree = ast.parse(source)
    errors = frozenset({"UsageError", "ReportError", "Fault", *codes.parents([tree])})
    assert [code for code, _ in codes.in_tree(tree, "here.py", errors)] == found


def test_a_code_that_cannot_be_read_from_the_source_is_refused() -> None:
    tree = ast.parse('raise UsageError("no", code=f"no-{kind}")')
    with pytest.raises(ValueError, match="cannot be read"):
        list(codes.in_tree(tree, "here.py", frozenset({"UsageError"})))


def test_every_rule_has_an_entry_with_its_needs() -> None:
    text = (CHECKOUT / "docs" / "rules.md").read_text(encoding="utf-8")
    assert len(RULES) == text.count("\n### ")
    for rule in RULES.values():
        entry = text.split(f"\n### {rule.id}\n")[1].split("\n### ")[0]
        for need in rule.needs:
            assert all(id.removeprefix("@") in entry for id in ([need] if isinstance(need, str) else need))


def test_every_public_name_is_in_the_page_about_python() -> None:
    text = (CHECKOUT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [name for name in ncukit.__all__ if not re.search(rf"^(:::.*\.|### ){name}$", text, re.M)] == []


def test_every_part_of_the_package_is_in_the_architecture() -> None:
    text = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
    parts = [
        path.stem
        for path in (CHECKOUT / "ncukit").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    ]
    named = set(re.findall(r"`(\w+)/?`", "".join(re.findall(r"^\| `.*$", text, re.M))))
    assert [part for part in parts if not part.startswith("__") and part not in named] == []


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in (CHECKOUT / "scripts" / "pages").glob("[!_]*.py"))
)
def test_what_makes_the_pages_does_what_its_examples_say(name: str) -> None:
    if name == "doctests":
        pytest.importorskip("griffe", reason="griffe is not installed: pip install 'ncukit[docs]'")
    assert doctest.testmod(importlib.import_module(f"scripts.pages.{name}")).failed == 0


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


def build(config: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Build a site in strict mode; the test is skipped where mkdocs is not installed."""
    for module in ("mkdocs", "material", "mkdocstrings_handlers.python"):
        pytest.importorskip(module, reason=f"{module} is not installed: pip install 'ncukit[docs]'")
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(folder)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(argv, cwd=CHECKOUT, env=env, capture_output=True, text=True, check=False)


def test_the_site_builds_with_every_page_and_loads_nothing_from_a_network(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = build(CHECKOUT / "mkdocs.yml", tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 20  # [s] of one core

    pages = [path.relative_to(CHECKOUT / "docs") for path in (CHECKOUT / "docs").rglob("*.md")]
    assert [path for path in pages if not (tmp_path / path.with_suffix(".html")).exists()] == []

    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        tags = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", text)
        assert [tag for tag in tags if re.search(r"""(?:src|href)=["']?(?:https?:)?//""", tag)] == [], (
            page.name
        )

    api = (tmp_path / "api.html").read_text(encoding="utf-8")
    assert 'id="ncukit.api.reports.read"' in api
    assert "pycon" not in re.sub(r"<[^>]*>", "", api)  # examples are code, not text


@pytest.mark.parametrize("link", ["nowhere.md", "#nothing"])
def test_a_broken_link_stops_the_site(link: str, tmp_path: Path) -> None:
    config = f"INHERIT: {CHECKOUT / 'mkdocs.yml'}\ndocs_dir: docs\nnav: [index.md]\nplugins: []\n"
    (tmp_path / "mkdocs.yml").write_text(config, encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# One\n\n[two]({link})\n", encoding="utf-8")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 1
    assert link in done.stderr
