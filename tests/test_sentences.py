"""Words are for people: with other sentences in the word files every number, order, bar and mark stays."""

from __future__ import annotations

import codecs
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import ncukit
from ncukit.api import Report, demo_reports
from ncukit.judge import diagnose, ledger, rule
from ncukit.judge.remedies import proposal
from ncukit.model import Diagnosis
from ncukit.render.html import page
from ncukit.render.json import diagnosis_data
from ncukit.render.markdown import report_markdown
from ncukit.render.text import show_text
from ncukit.render.view import page_view
from ncukit.run.tools import failures
from ncukit.run.tools.failures import Context
from ncukit.run.tools.process import Completed
from tests import command
from tests.conftest import reports
from tests.tools_printed import PRINTED

SENTENCES = frozenset(
    [
        *("claim", "text", "open", "title", "change", "why", "expect", "watch", "watch_otherwise"),
        *("disproved_if", "cost", "message", "hint", "bare", "container", "wsl"),
    ]
)
"""Keys of the word files whose values people read."""
NAMES = frozenset(
    [
        *(
            "metric",
            "finding",
            "include",
            "needs",
            "when",
            "min",
            "max",
            "open_min",
            "open_max",
            "counts",
            "remedies",
        ),
        *("for", "against", "experiment", "id", "code", "level", "tools", "patterns", "without_gpu"),
    ]
)
"""Keys of the word files whose values programs read, or that hold other keys."""
FILES = sorted(Path(ncukit.__file__).parent.glob("**/*.toml"))
_NAME = re.compile(r"(\{[\w-]+\}|`[^`]*`|\w*_\w+|--[\w-]+)")
"""What a sentence names: placeholders, code, metrics, options."""
_LETTER = re.compile(r"[^\W\d_]")
GATE = 10
"""Exit code of a gate that failed."""
SAMPLE, OTHER = demo_reports()[:2]
REAL = reports("ncu", "ncu-more")[::14][:5]


def marked(value: Any, key: str = "") -> Any:
    """Return an entry of a word file with every letter of its sentences replaced, but for names.

    Different sentences stay different: each letter becomes the one 13 further on.
    """
    if isinstance(value, Mapping):
        return {key: marked(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [marked(inner, key) for inner in value]
    if not isinstance(value, str) or key not in SENTENCES:
        return value
    parts = _NAME.split(value)
    return "".join(part if n % 2 else codecs.encode(part, "rot13") for n, part in enumerate(parts))


def shape(text: str) -> str:
    """Return what stays of an output whatever its words say: numbers, order, bars and marks."""
    return " ".join(_LETTER.sub("x", text).split())


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


def keys(table: Any, *, depth: int = 0) -> Iterator[str]:
    """Yield the keys of a word file, but for those of its outermost tables."""
    if isinstance(table, Mapping):
        for key, inner in table.items():
            if depth <= 0:
                yield key
            yield from keys(inner, depth=depth - 1)
    elif isinstance(table, list):
        for inner in table:
            yield from keys(inner, depth=depth)


def mark_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace every sentence of every word file from now on."""
    for module, name in ((ledger, "entries"), (proposal, "entries"), (proposal, "words"), (rule, "entries")):
        replaced = Marked(getattr(module, name)())
        monkeypatch.setattr(module, name, lambda replaced=replaced: replaced)
    tables = tomllib.loads(Path(failures.__file__).with_name("failures.toml").read_text())["failure"]
    rows = failures.rows(marked(tables))
    monkeypatch.setattr(failures, "_table", lambda: rows)


def outputs(report: Report, diagnoses: list[Diagnosis]) -> tuple[Any, ...]:
    file = report.file(len(diagnoses))
    view = page_view(file, diagnoses, generated="now")
    text = show_text(file, diagnoses, color=False, encoding="utf-8", width=100, verbose=True)
    data = [diagnosis_data(found) for found in diagnoses]
    return (
        list(kept(view)),
        [without_words(found) for found in data],
        shape(json.dumps(data, default=str)),
        shape(text),
        shape(report_markdown(file, diagnoses)),
        shape(page(view, plotly="directory")),
    )


@pytest.mark.parametrize("path", [*demo_reports(), *REAL], ids=lambda path: path.name)
def test_other_sentences_change_no_number_order_bar_or_mark(
    path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Report(path)
    kernels = list(report.kernels(details=True))[:4]
    before = outputs(report, [diagnose(kernel) for kernel in kernels])
    mark_sentences(monkeypatch)
    others = [diagnose(kernel) for kernel in kernels]
    assert outputs(report, others) == before


def test_the_sentences_of_every_verdict_and_rule_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report(demo_reports()[0])
    kernel = next(iter(report.kernels(details=True)))
    claim = diagnose(kernel).verdict.claim
    mark_sentences(monkeypatch)
    assert diagnose(kernel).verdict.claim != claim
    assert shape(diagnose(kernel).verdict.claim) == shape(claim)


@pytest.mark.parametrize(
    "words", [("show", SAMPLE), ("compare", SAMPLE, OTHER, "--fail-on", "kernel_duration > +5%")]
)
@pytest.mark.parametrize("format", ["text", "json", "markdown"])
def test_other_sentences_change_no_exit_code(
    words: tuple[Any, ...], format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = command.ncukit(*words, "--format", format)
    assert before.returncode == (GATE if words[0] == "compare" else 0)
    mark_sentences(monkeypatch)
    done = command.ncukit(*words, "--format", format)
    assert (done.returncode, shape(done.stdout)) == (before.returncode, shape(before.stdout))


@pytest.mark.parametrize(
    ("tool", "exit_code", "lines"),
    [p[2:] for p in PRINTED],
    ids=[f"{p[0]}-{n}" for n, p in enumerate(PRINTED)],
)
def test_other_sentences_change_no_cause_of_a_failure(
    tool: str, exit_code: int, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Completed(("ncu",), exit_code, lines=tuple(("stdout", line) for line in lines))
    found = failures.classify(ended, Context(tool=tool, gpu=True))
    mark_sentences(monkeypatch)
    other = failures.classify(ended, Context(tool=tool, gpu=True))
    assert found is not None
    assert other is not None
    assert (other.message != found.message) == (found.id != "tool-failed")  # ncu's own words
    assert (other.id, other.code, other.level, other.evidence) == (
        found.id,
        found.code,
        found.level,
        found.evidence,
    )
    assert other.error().exit_code == found.error().exit_code


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_key_of_a_word_file_is_words_or_a_name(file: Path) -> None:
    assert file.name in ("verdicts.toml", "remedies.toml", "rules.toml", "failures.toml"), (
        "mark its sentences too"
    )
    used = set(keys(tomllib.loads(file.read_text(encoding="utf-8")), depth=1))
    assert used <= SENTENCES | NAMES
