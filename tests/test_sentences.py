"""Words are for people: with other sentences in the word files every number, order, bar and mark stays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ncukit.api import Report, demo_reports
from ncukit.diagnose import diagnose, ledger, rulebook
from ncukit.model import Diagnosis
from ncukit.render.json import diagnosis_data
from ncukit.render.text import show_text
from ncukit.render.view import page_view
from tests.conftest import reports

SENTENCES = frozenset(
    [
        "claim",
        "text",
        "open",
        "title",
        "change",
        "why",
        "expect",
        "watch",
        "watch_otherwise",
        "disproved_if",
        "cost",
    ]
)
"""Keys of the word files whose values people read."""
_PLACE = re.compile(r"(\{[\w-]+\})")
_LETTER = re.compile(r"[^\W\d_]")
_NUMBER = re.compile(r"\d[\d.,]*|█+|<- limit")
REAL = reports("ncu", "ncu-more")[::14][:5]


def marked(value: Any, key: str = "") -> Any:
    """Return an entry of a word file with every letter of its sentences replaced, but for placeholders."""
    if isinstance(value, Mapping):
        return {key: marked(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [marked(inner, key) for inner in value]
    if not isinstance(value, str) or key not in SENTENCES:
        return value
    parts = _PLACE.split(value)
    return "".join(part if n % 2 else _LETTER.sub("x", part) for n, part in enumerate(parts))


class Marked(dict[str, Any]):
    """The entries of a word file, each marked when it is asked for."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        super().__init__({name: marked(entries[name]) for name in entries})


def kept(tree: Any) -> Iterator[Any]:
    """Yield the cells, bars and marks of a view in their order, and nothing that is a sentence."""
    if isinstance(tree, Mapping):
        if {"tip", "state", "text"} <= tree.keys():
            yield tree["text"], tree["state"], tree.get("mark")
        for key in ("bar", "hot", "working", "pips", "severity", "cls", "id"):
            if isinstance(tree.get(key), str | int | float | None):
                yield key, tree.get(key)
        for inner in tree.values():
            yield from kept(inner)
    elif isinstance(tree, list | tuple):
        for inner in tree:
            yield from kept(inner)


def without_words(data: Any) -> Any:
    """Return the JSON of a diagnosis without its sentences."""
    if isinstance(data, Mapping):
        return {key: without_words(value) for key, value in data.items() if key not in SENTENCES}
    return [without_words(value) for value in data] if isinstance(data, list) else data


def outputs(report: Report, diagnoses: list[Diagnosis]) -> tuple[Any, ...]:
    file = report.file(len(diagnoses))
    view = page_view(file, diagnoses, generated="now")
    text = show_text(file, diagnoses, color=False, encoding="utf-8", width=100, verbose=True)
    return (
        list(kept(view)),
        [without_words(diagnosis_data(found)) for found in diagnoses],
        _NUMBER.findall(text),
    )


@pytest.mark.parametrize("path", [*demo_reports(), *REAL], ids=lambda path: path.name)
def test_other_sentences_change_no_number_order_bar_or_mark(
    path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Report(path)
    kernels = list(report.kernels(details=True))[:4]
    before = outputs(report, [diagnose(kernel) for kernel in kernels])
    for module in (ledger, rulebook):
        replaced = Marked(module.entries())
        monkeypatch.setattr(module, "entries", lambda replaced=replaced: replaced)
    others = [diagnose(kernel) for kernel in kernels]
    assert any("xx" in found.verdict.claim for found in others)
    assert outputs(report, others) == before
