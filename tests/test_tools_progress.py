"""The progress line of ncu, whole or in pieces, in all its versions."""

from __future__ import annotations

import pytest

from ncukit.run.tools.process import Progress, last_progress, parse_progress

LINE = '==PROF== Profiling "k" - 0 (1/1): 0%....50%....100% - 40 passes'


@pytest.mark.parametrize(
    ("text", "progress"),
    [
        (LINE, Progress("k", 100, 40, 1, 1)),
        ('==PROF== Profiling "k" - 3 (4/12): 0%', Progress("k", 0, None, 4, 12)),
        ('==PROF== Profiling "k" - 0 (1/1): 0%....50%', Progress("k", 50, None, 1, 1)),
        ('==PROF== Profiling "k" - 0: 0%....50%....100% - 1 pass', Progress("k", 100, 1)),
        ('==PROF== Profiling "k": 0%....50%....100% - 8 passes', Progress("k", 100, 8)),
        ('==PROF== Profiling "void f<(int)5>(char const*)" - 0: 0%', Progress("void f<(int)5>(char const*)")),
        ('hello==PROF== Profiling "k" - 0: 0%..epoch 1: 77% done..50%', Progress("k", 50)),
        (
            '==PROF== Profiling "k" - 0: 0%==WARNING== Launching the workload is taking more time',
            Progress("k"),
        ),
        ('==PROF== Profiling "k" - 0', None),
        ("==PROF== Connected to process 7 (/usr/bin/python3)", None),
        ("training: 50%", None),
    ],
)
def test_progress_is_read_from_what_there_is(text: str, progress: Progress | None) -> None:
    assert parse_progress(text) == progress


def test_the_last_launch_counts() -> None:
    lines = [LINE, '==PROF== Profiling "m" - 1 (2/2): 0%', "output of the program", "....50%"]
    assert str(last_progress(lines)) == '50 % of "m"'
    assert last_progress(["nothing", "here"]) is None


@pytest.mark.parametrize("length", range(len(LINE) + 1))
def test_a_growing_line_never_goes_back(length: int) -> None:
    now, later = parse_progress(LINE[:length]), parse_progress(LINE)
    assert later is not None
    assert now is None or now.percent <= later.percent
