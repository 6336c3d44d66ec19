"""Text that leaves ncukit steers nothing, whatever a name holds."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
import time

import pytest

from ncukit.media import command, dumps, line, visible, word
from ncukit.render import gfm
from ncukit.render.spreadsheet import inert
from ncukit.render.text.terminal import Terminal
from tests.conftest import CHECKOUT

HARMFUL = "a\x1b[2J\r# b\u2028\u202e\x9b\x85\n::error::c"


@pytest.mark.parametrize("through", [visible, gfm.code, gfm.escape, inert, Terminal().text])
def test_no_medium_lets_a_control_or_a_line_end_through(through: object) -> None:
    assert str(through(HARMFUL)).isprintable()  # type: ignore[operator]


def test_json_shows_no_control_and_says_the_same() -> None:
    text = dumps({HARMFUL: HARMFUL + "\ud800é"})
    assert text.isprintable()
    assert "é" in text
    assert json.loads(text) == {HARMFUL: HARMFUL + "\ud800é"}


@pytest.mark.parametrize("path", ["r$(touch PWNED)", "-rf.ncu-rep", "a b", "a'b", "`id`", "a\\nb"])
def test_a_path_is_one_word_of_a_shell_and_no_option(path: str) -> None:
    (only,) = shlex.split(word(path))
    assert only.removeprefix("./") == path
    assert not only.startswith("-")


@pytest.mark.parametrize("letter", ["x", "é", "漢"])
def test_a_name_of_a_megabyte_is_wrapped_in_linear_time(letter: str) -> None:
    name = letter * (1 << 20)
    began = time.perf_counter()
    lines = Terminal().wrap(name, indent="  ")
    assert time.perf_counter() - began < 10
    assert "".join(line.strip() for line in lines) == name


@pytest.mark.parametrize(
    "order", ["::set-output name=a::b", " \t::add-mask::x", "a ##[group]b", "##vso[task.x]"]
)
def test_a_log_of_ci_finds_no_command_in_a_line(order: str) -> None:
    for through in (line, gfm.code, gfm.escape, inert, lambda text: Terminal().page([text])):
        shown = through(order)
        assert not re.search(r"^\s*::|##\w*\[", shown, re.M), shown
    assert "##[" not in dumps(["##[group]b"])
    assert json.loads(dumps(order)) == order


@pytest.mark.parametrize("path", ["a\nb", "a\x1b[2J", "a\u202eb", "a\u00a0b", "a\udc80", "a##[group]b"])
def test_a_path_that_cannot_be_shown_is_not_suggested(path: str) -> None:
    assert word(path, "RUNDIR") == "RUNDIR"
    shown = command(["cat", path])
    assert line(shown) == shown


@pytest.mark.parametrize("argument", ["a\nb's\\", "\x1b[2J é", "a##[group]b", "", "a b", "--n=1"])
def test_bash_reads_a_printed_command_as_the_words_that_ran(argument: str) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    shown = command(["printf", "%s", argument])
    assert line(shown) == shown
    assert subprocess.run([bash, "-c", shown], capture_output=True, check=True).stdout == argument.encode()


MARKUP = (
    "# a", "- a", "1. a", "+ a", "---", "===", "    a", "https://evil.example",
    "www.evil.example", "a@evil.example",
    "#1", "GH-1", "@team", "&#x202e;", "&lt;b>", "![a](b)", "<b>", "a\r# b", "a`b", "a|b", "``` \n# a",
)  # fmt: skip


@pytest.mark.parametrize("name", MARKUP)
def test_markdown_shows_a_name_as_it_is(name: str) -> None:
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    shown = visible(name.replace("\n", " ")) if name != "    a" else " a"
    (start, inline, end) = parser.parse(gfm.escape(name))
    assert (start.type, end.type) == ("paragraph_open", "paragraph_close")
    assert {child.type for child in inline.children} <= {"text", "text_special"}
    said = "".join(child.content for child in inline.children)
    assert said.replace("\u200b", "").strip() == shown.strip()
    if re.search(r"[@#/]\w|www|GH-", name):
        assert not re.search(r"@\w|#\d|://|www\.|GH-\d", said)
    (_, inline, _) = parser.parse(gfm.code(name))
    (only,) = inline.children
    assert (only.type, only.content.strip()) == ("code_inline", visible(name).strip())
    (block,) = parser.parse("\n".join(gfm.fence([name, name])))
    assert block.content == f"{visible(name)}\n" * 2
    tokens = parser.parse("\n".join(gfm.table(("a", "b"), "ll", [[gfm.code(name), gfm.escape(name)]])))
    assert sum(token.type == "td_open" for token in tokens) == 2


FREE = {
    "ensure_ascii": {"media.py", "check.py", "data.py", "script.py", "html.py"},
    "quote": {"media.py", "locate.py"},
}
"""Who may write JSON or a shell's word by itself: what checks, makes keys, hands over to ncukit, escapes for
a page, and names the packages to install."""


def test_every_name_leaves_through_the_function_of_its_medium() -> None:
    for path in sorted((CHECKOUT / "ncukit").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "ensure_ascii":
                assert path.name in FREE["ensure_ascii"], f"{path}:{node.value.lineno}"
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "shlex.quote":
                assert path.name in FREE["quote"], f"{path}:{node.lineno}"
