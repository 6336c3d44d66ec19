"""`ncukit.pattern` finds what `re.compile` finds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncukit.pattern import pattern

TEXTS = st.text(alphabet="aAbB1 \n.", max_size=12)
EXPRESSIONS = st.sampled_from([r"a(b?)", r"^b.", r"(?P<x>[ab])|(\d)", r"\bA\b", ""])
FLAGS = st.sampled_from([0, re.IGNORECASE, re.DOTALL | re.MULTILINE])


@given(EXPRESSIONS, FLAGS, TEXTS)
def test_it_finds_what_the_standard_one_finds(expression: str, flags: int, text: str) -> None:
    ours, standard = pattern(expression, flags), re.compile(expression, flags)
    for _ in "first", "again":
        for how in ("match", "search", "fullmatch"):
            found, expected = getattr(ours, how)(text), getattr(standard, how)(text)
            assert (found and (found.span(), found.groups())) == (
                expected and (expected.span(), expected.groups())
            )
        assert ours.findall(text) == standard.findall(text)
        assert ours.sub("-", text) == standard.sub("-", text)
        assert ours.split(text) == standard.split(text)
    assert (ours.pattern, ours.flags, ours.groups) == (standard.pattern, standard.flags, standard.groups)


def test_it_is_compiled_at_its_first_use() -> None:
    wrong = pattern("(")
    with pytest.raises(re.error):
        wrong.search("")
    with pytest.raises(AttributeError):
        pattern("a").no_such_thing  # noqa: B018
