"""Hot lines, source and SASS in the terminal, in JSON and in Markdown."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from rich.cells import cell_len

from ncukit import cli
from ncukit.judge import diagnose
from ncukit.judge.sass import hot
from ncukit.judge.source_view import source_view
from ncukit.render.markdown import report_markdown
from ncukit.render.text import listing_text, show_text
from ncukit.schemas import text as schema
from tests.builders import code, kernel, raw_kernel
from tests.diagnoses import FILE, HOSTILE

TEXT = "\n".join(f"statement({n});" for n in range(1, 20))
ROWS: list[Any] = [
    ("LDG.E R2, [R4.64]", {"inst": 64, "sectors": 256, "ideal": 64, "lg_throttle": 20}, 7),
    ("FADD R3, R2, R2", {"inst": 64, "long_scoreboard": 700, "wait": 80}, 8),
    ("FFMA R9, R3, R3, R9", {"inst": 64, "wait": 150}, 7),
    ("STG.E [R6.64], R3", {"inst": 64, "drain": 50}, 12),
]


def launch(*rows: Any, **fields: Any) -> Any:
    return kernel(raw=raw_kernel("axpy", **code(*rows, **fields)), gpu_name="H100", kernel_duration=1e-3)


def shown(*rows: Any, verbose: bool = False, width: int = 80, **fields: Any) -> list[str]:
    found = diagnose(launch(*rows, **fields))
    text = show_text(FILE, [found], color=False, encoding="utf-8", verbose=verbose, width=width)
    block = text.partition("HOT LINES  ")[2].partition("\n\n")[0]
    return block.split("\n") if block else []


# ------------------------------------------------------------------- which lines are hot


def test_the_hottest_lines_come_first_with_reason_text_and_who_waits_for_whom() -> None:
    first, second, third = diagnose(launch(*ROWS, text=TEXT)).hot
    assert (first.place, first.text, first.amount, first.share) == ("a.cu:8", "statement(8);", 780, 78.0)
    assert (first.state, round(first.state_share, 1)) == ("long_scoreboard", 89.7)
    assert first.note == "FADD waits for LDG.E of a.cu:7"
    assert (second.place, second.amount) == ("a.cu:7", 170)  # two instructions, one line
    assert third.place == "a.cu:12"


def test_without_line_information_instructions_are_hot() -> None:
    (first, *_) = diagnose(launch(*(row[:2] for row in ROWS))).hot
    assert (first.place, first.text) == ("+0x10", "FADD R3, R2, R2")
    assert first.note == "FADD waits for LDG.E at +0x0"


def test_where_the_text_is_lost_the_hottest_instruction_stands_for_the_line() -> None:
    assert [one.text for one in diagnose(launch(*ROWS)).hot][:2] == ["FADD R3, R2, R2", "FFMA R9, R3, R3, R9"]


def test_without_samples_lines_are_ranked_by_executed_instructions() -> None:
    found = diagnose(launch(("NOP", {"inst": 3}, 1), ("EXIT", {"inst": 1}, 2))).hot
    assert [(one.place, one.unit, one.share) for one in found] == [
        ("a.cu:1", "inst", 75.0),
        ("a.cu:2", "inst", 25.0),
    ]


def test_no_more_than_ten_are_kept_and_none_without_cost() -> None:
    view = source_view(
        launch(*((f"FADD R{n}, R1, R1", {"wait": n}, n) for n in range(1, 15)), ("NOP", {}, 20))
    )
    assert [one.amount for one in hot(view)] == list(range(14, 4, -1))
    assert hot(None) == ()


# ------------------------------------------------------------------- ncukit show


def test_show_lists_the_hot_lines() -> None:
    caption, *lines = shown(*ROWS, text=TEXT)
    assert caption.startswith("by samples.")
    assert lines[0].split() == ["a.cu:8", "78.0", "%", "█████████▍··", "long_scoreboard", "90", "%"]
    assert lines[1:3] == ["      statement(8);", "      FADD waits for LDG.E of a.cu:7"]
    assert "      192 excess sectors" in lines


def test_only_five_unless_all_are_asked_for() -> None:
    rows = [(f"FADD R{n}, R1, R1", {"wait": 100 + n}, n) for n in range(1, 9)]
    few, all_ = shown(*rows, text=TEXT), shown(*rows, text=TEXT, verbose=True)
    assert few[-1].strip() == "3 more (--verbose), or all: --source, --sass"
    assert sum("wait 100 %" in line for line in few) == 5
    assert sum("wait 100 %" in line for line in all_) == 8


def test_instructions_without_samples_are_no_news() -> None:
    rows = [("NOP", {"inst": 1})] * 200
    assert shown(*rows)[-1].strip() == "no line has 1 % of them"


def test_a_launch_without_counters_by_instruction_has_no_hot_lines() -> None:
    text = show_text(FILE, [diagnose(kernel(gpu_name="H100"))], color=False, encoding="utf-8")
    assert "HOT LINES" not in text


# ------------------------------------------------------------------- listings


def listed(what: Any, *rows: Any, width: int = 80, encoding: str = "utf-8", **fields: Any) -> list[str]:
    made = launch(*rows, **fields)
    return listing_text(made, source_view(made), what, encoding=encoding, width=width).split("\n")


def test_the_source_is_listed_with_shares_and_what_stands_around() -> None:
    lines = listed("source", *ROWS, text=TEXT)
    assert lines[0].split() == ["axpy", "launch", "1"]
    assert lines[2] == "a.cu 100.0 % of samples; text from the report"
    assert lines[9].split() == ["7", "wait", "17.0", "%", "statement(7);"]
    assert lines[11].split() == ["9", "statement(9);"]


def test_the_sass_is_listed_with_offsets_and_lines() -> None:
    lines = listed("sass", *ROWS, text=TEXT)
    assert lines[2] == "axpy 4 instructions, 100.0 % of samples"
    assert lines[4].split() == ["0010", "long_scoreboard", "78.0", "%", "FADD", "R3,", "R2,", "R2", "8"]


def test_source_without_line_information_is_sass_and_says_how_to_get_lines() -> None:
    text = "\n".join(listed("source", *(row[:2] for row in ROWS)))
    assert "0010  long_scoreboard" in text
    assert "nvcc -lineinfo" in text


def test_nothing_to_list_says_what_would_bring_it() -> None:
    text = listing_text(kernel(), None, "sass", encoding="utf-8")
    assert "ncu --section SourceCounters" in text.replace("\n      ", "")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("what", ["source", "sass"])
def test_no_line_is_wider_than_the_terminal_and_no_name_steers_it(what: Any, encoding: str) -> None:
    rows = [(HOSTILE, {"inst": 1, "wait": 5}, 1), ("EXIT " + "R" * 200, {"inst": 1, "wait": 3}, 2)]
    file = f"/src/{HOSTILE.replace('/', '')}.cu"
    for width in (60, 80, 132):
        lines = listed(what, *rows, file=file, text=f"\t{HOSTILE}\nx", width=width, encoding=encoding)
        assert max(map(cell_len, lines)) <= width
        assert all(line.isprintable() for line in lines)


# ------------------------------------------------------------------- commands, JSON, Markdown


def test_markdown_has_the_hot_lines() -> None:
    text = report_markdown(FILE, [diagnose(launch(*ROWS, text=TEXT))])
    assert r"| `a.cu:8` | 78.0 % | long\_scoreboard 90 % | `statement(8);` |" in text
    assert "First reason" not in report_markdown(FILE, [replace(diagnose(launch(*ROWS)), hot=())])


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[object, str, str]]:
    """Run the command line in this process; returns exit code, output and errors."""

    def call(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["ncukit", *map(str, arguments)])
        code: object = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        return (code, *capsys.readouterr())

    return call


def test_show_takes_source_and_sass(run: Callable[..., Any], shared: Path) -> None:
    report = shared / "reports" / "ncu" / "sm89-rtx-4090-ncu2023.1-04.ncu-rep"
    status, out, _ = run("show", report, "--launch", 3, "--source")
    assert status == 0
    assert "tile[threadIdx.y][threadIdx.x] = mat[idx];"[:30] in out
    status, out, _ = run("show", report, "--launch", 3, "--sass", "--json")
    document = json.loads(out)
    Draft202012Validator(json.loads(schema("ncukit.kernel/1"))).validate(document)
    assert "STS [R11.X4], R2" in document["kernels"][0]["source"]["rows"]["sass"]


def test_source_and_sass_do_not_go_together(run: Callable[..., Any]) -> None:
    status, _, err = run("show", "x.ncu-rep", "--source", "--sass")
    assert status == 2
    assert "do not go together" in err
