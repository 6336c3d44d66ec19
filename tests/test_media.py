"""Text that leaves ncukit steers nothing, whatever a name holds."""

from __future__ import annotations

import json
import shlex
import time

import pytest

from ncukit.media import dumps, visible, word
from ncukit.render import gfm
from ncukit.render.spreadsheet import inert
from ncukit.render.text.terminal import Terminal

HARMFUL = "a\x1b[2J\r# b\u2028\u202e\x9b\x85\n::error::c"


@pytest.mark.parametrize("through", [visible, gfm.code, gfm.escape, inert, Terminal().text])
def test_no_medium_lets_a_control_or_a_line_end_through(through: object) -> None:
    assert str(through(HARMFUL)).isprintable()  # type: ignore[operator]


def test_json_shows_no_control_and_says_the_same() -> None:
    text = dumps({HARMFUL: HARMFUL + "\ud800é"})
    assert text.isprintable()
    assert "é" in text
    assert json.loads(text) == {HARMFUL: HARMFUL + "\ud800é"}


@pytest.mark.parametrize("path", ["r$(touch PWNED)", "-rf.ncu-rep", "a b", "a'b", "a\nb", "`id`"])
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
