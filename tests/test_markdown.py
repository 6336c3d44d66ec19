"""A diagnosis as Markdown: well-formed for GitHub, complete, short, and harmless whatever the names are."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ncukit import cli, demo_reports
from ncukit.judge import diagnose
from ncukit.render.advice import of_launches
from ncukit.render.gfm import escape
from ncukit.render.markdown import ROWS, report_markdown
from ncukit.render.view import head
from tests import diagnoses
from tests.builders import kernel
from tests.diagnoses import FILE, HOSTILE, transpose

PAGES = {
    "launch": [transpose()],
    "fp64": [diagnoses.fp64()],
    "undetermined": [diagnoses.undetermined()],
    "failed": [diagnoses.failed()],
    "many": [*diagnoses.many(51), diagnoses.failed(51)],
    "hostile": [transpose(name=HOSTILE, gpu_name=HOSTILE)],
    "empty": [diagnose(kernel())],
}


def text(name: str) -> str:
    found = PAGES[name]
    return report_markdown(replace(FILE, launches=len(found)), found)


def tables(markdown: str) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in markdown.splitlines():
        if line.startswith("|"):
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [table for table in found if table]


def cells(row: str) -> list[str]:
    return re.split(r"(?<!\\)\|", row)[1:-1]


@pytest.mark.parametrize("name", PAGES)
def test_every_table_has_a_rule_and_rows_of_one_width(name: str) -> None:
    for table in tables(text(name)):
        assert set("".join(cells(table[1]))) <= set(" :-")
        assert {len(cells(row)) for row in table} == {len(cells(table[0]))}, table[0]


@pytest.mark.parametrize("name", PAGES)
def test_it_ends_with_where_to_look_next(name: str) -> None:
    advice = of_launches(head.file_name(FILE), PAGES[name])
    _, said = text(name).rsplit("\n**Stop here: " if advice.stop else "\n**Next: ", 1)
    assert said.startswith(f"{escape(advice.title)}.**")
    assert all(command in said for command in advice.commands)
    assert said.count("- Missing: ") == len(advice.missing)
    assert "<details>" not in said


@pytest.mark.parametrize("name", PAGES)
def test_a_markdown_parser_sees_every_table_and_no_stray_html(name: str) -> None:
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(text(name))
    assert sum(token.type == "table_open" for token in tokens) == len(tables(text(name)))
    inline = [child for token in tokens for child in token.children or []]
    html = [t.content for t in (*tokens, *inline) if t.type in ("html_block", "html_inline")]
    allowed = re.compile(r"</?(details|summary|sub)>|[^<>]+")
    assert [h for h in html if allowed.sub("", h).strip()] == []


@pytest.mark.parametrize("name", PAGES)
def test_folds_are_closed_with_an_empty_line_on_both_sides(name: str) -> None:
    lines = text(name).splitlines()
    assert sum(x.startswith("<details>") for x in lines) == lines.count("</details>")
    for n, line in enumerate(lines):
        if line.startswith("<details>"):
            assert lines[n + 1] == ""
        if line == "</details>":
            assert lines[n - 1] == ""


def test_one_launch_says_class_numbers_for_and_against_the_experiment_and_what_disproves_it() -> None:
    found = text("launch")
    assert found.startswith("### `transposeCoalesced` on NVIDIA RTX A4500")
    for words in (
        "**memory-bound**, level: shared memory (high confidence)",
        "| L1/TEX | 90.5 % | **limit** |",
        "**For**",
        "**Against**",
        "**Next experiment: Pad the shared tile by one column**",
        "+   __shared__ float tile[TILE][TILE + 1];",
        "**Disproved if** the conflicts go to 0",
        "no benchmark",
    ):
        assert words in found, words


def test_what_is_missing_is_said_instead_of_evidence() -> None:
    assert "**Missing to decide**" in text("undetermined")
    assert "**failed**: The counters of this launch are not a measurement" in text("failed")


def test_a_name_is_never_markup_nor_a_mention() -> None:
    found = report_markdown(FILE, [transpose(name="a`|<img src=x>@team[x](y)")])
    name = r"``a`\\?\|<img src=x>@team\[x\]\(y\)``"  # as code, in a table with its bar escaped
    assert re.search(name, found)
    rest = re.sub(name, "", found)
    assert "<img" not in rest
    assert "@team" not in rest


def test_many_launches_are_one_table_in_the_order_of_their_time() -> None:
    found = text("many")
    (first, *_) = tables(found)
    *known, failed = (cells(row)[3] for row in first[2:])
    totals = [float(re.sub(r"[^\d.]", "", total)) for total in known]
    assert failed.strip() == "–"
    assert totals == sorted(totals, reverse=True)
    assert len(first) <= ROWS + 2


def test_it_is_short_enough_for_a_comment() -> None:
    assert len(text("launch")) < 20_000  # GitHub takes 65,536
    assert len(report_markdown(FILE, diagnoses.many(300))) < 20_000


# The command


def shown(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["ncukit", "show", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_show_prints_markdown_and_json_by_format(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = str(demo_reports()[0])
    assert shown(monkeypatch, sample, "--launch", "1", "--format", "markdown") == 0
    assert capsys.readouterr().out.startswith("### `")
    assert shown(monkeypatch, sample, "--format", "json") == 0
    assert capsys.readouterr().out.startswith('{"schema": "ncukit.kernel/1"')


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--format", "latex"), "--format latex is not known"),
        (("--format", "markdown", "--json"), "prints the diagnosis alone"),
        (("--format", "markdown", "--sass"), "prints the diagnosis alone"),
    ],
)
def test_a_format_that_does_not_exist_or_does_not_fit_is_a_wrong_use(
    words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(monkeypatch, str(demo_reports()[0]), *words) == 2
    captured = capsys.readouterr()
    assert message in captured.err + captured.out
