"""What is measured, and the table that says it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ncukit
from benchmarks import __main__ as program
from benchmarks import results
from benchmarks.measure import CHECKOUT, Row, in_turns, measured, ratio
from benchmarks.readers import Setting, repeat, setting, wanted_values

SAMPLE = {path.stem: path for path in ncukit.demo_reports()}["several-launches"]


def test_a_long_report_repeats_the_launches_of_another(tmp_path: Path) -> None:
    held = [kernel.metrics for kernel in ncukit.read(SAMPLE).kernels()]
    long = tmp_path / "long.ncu-rep"
    assert repeat(SAMPLE, long, 2 * len(held) + 1, len(held)) == 3 * len(held)
    assert [kernel.metrics for kernel in ncukit.read(long).kernels()] == 3 * held


def test_what_stands_beside_reads_as_many_launches(tmp_path: Path) -> None:
    printed = measured(wanted_values(SAMPLE, tmp_path)).out
    assert int(printed) == len(list(ncukit.read(SAMPLE).kernels()))


def test_the_memory_of_a_command_counts_all_its_processes() -> None:
    child = "import time; x = b'x' * 60_000_000; time.sleep(0.5)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}]); print('done')"
    cost = measured([sys.executable, "-c", program])
    assert cost.out == "done\n"
    assert 60e6 < cost.peak < 100e6


def test_a_command_that_fails_is_no_quick_one() -> None:
    with pytest.raises(SystemExit, match=r"failed: .*\nwords"):
        measured([sys.executable, "-c", "raise SystemExit('words')"])


def test_the_first_run_of_each_command_does_not_count(tmp_path: Path) -> None:
    slow_once = f"import os, time; os.path.exists('{tmp_path}/x') or time.sleep(1); open('{tmp_path}/x', 'w')"
    (median,) = in_turns([(sys.executable, "-S", "-c", slow_once)], 1)
    assert median < 1


@pytest.mark.parametrize(
    ("ours", "met"), [(1.5, True), (1.504, True), (1.51, False)]
)  # a bar is held to the two places that are shown
def test_a_bar_is_met_up_to_its_limit(ours: float, met: bool) -> None:
    row = ratio("x", ours, 1.0, "s", "typer", 1.5)
    assert row.met is met
    assert ("**MISSED**" in results.line(row)) is not met


def test_what_has_no_bar_is_neither_met_nor_missed() -> None:
    assert ratio("x", 9.0, 1.0, "s", "typer").met is None


def test_the_results_keep_older_ones_below_and_compare_with_them(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    for number in range(results.KEPT + 2):
        rows = [ratio("--help", 1.0 + number, 1.0, "s", "typer", 3.5), Row("page", "0.4 s")]
        results.write(path, rows, None, 12.0)
    sections = path.read_text(encoding="utf-8").split("\n## ")[1:]
    assert len(sections) == results.KEPT
    assert "| --help | 7.00 s | 1.00 s (typer) | 7.00 x | 6.00 x | 3.5 x | **MISSED** |" in sections[0]
    assert "bars missed: --help." in sections[0]
    assert "| --help | 3.00 s | 1.00 s (typer) | 3.00 x | 2.00 x | 3.5 x | met |" in sections[-1]
    assert "all bars met." in sections[-1]


def test_the_machine_is_described_without_its_name() -> None:
    import socket

    said = results.machine(None)
    assert "cores" in said
    assert ncukit.__version__ in said
    assert socket.gethostname() not in said


def test_a_missed_bar_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def part(here: Setting) -> Iterator[Row]:
        assert here.quick
        assert here.folder.is_dir()
        yield Row("a", "1 s", met=True)
        yield Row("b", "2 s", bar="1 s", met=False)

    monkeypatch.setattr(program, "PARTS", {"part": part})
    assert program.main(["--quick", "-o", str(tmp_path / "R.md")]) == 1
    assert "| b | 2 s |  |  |  | 1 s | **MISSED** |" in capsys.readouterr().out
    assert "bars missed: b." in (tmp_path / "R.md").read_text()


def test_a_part_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(["sped"])
    assert ended.value.code == 2
    assert "no part sped: there are speed," in capsys.readouterr().err


def test_without_real_reports_the_samples_are_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NCUKIT_SHARED", str(tmp_path))
    here = setting(tmp_path)
    assert not here.real
    assert here.reports == sorted((CHECKOUT / "reports" / "samples").glob("*.ncu-rep"))


def test_a_part_that_fails_is_missed_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(here: Setting) -> Iterator[Row]:
        yield Row("before", "1 s", met=True)
        measured([sys.executable, "-c", "raise SystemExit('no such thing')"])

    monkeypatch.setattr(program, "PARTS", {"broken": broken, "sound": lambda here: [Row("sound", "2 s")]})
    assert program.main(["--quick"]) == 1
    said = capsys.readouterr()
    assert "| broken | failed: SystemExit |  |  |  |  | **MISSED** |\n| sound | 2 s |" in said.out
    assert "no such thing" in said.err


def test_a_part_measures_at_a_small_size(tmp_path: Path) -> None:
    rows = list(program.timeline(setting(tmp_path, quick=True)))
    assert [row.met for row in rows] == [True] * 3
    assert all("of CPU" in row.ours and row.bar for row in rows)
