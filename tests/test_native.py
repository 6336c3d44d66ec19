"""The walk over a report: it reads what is wanted, and nothing else."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ncukit import demo_reports
from ncukit.model import Wanted
from ncukit.report import native, source_code
from ncukit.report.reader import Source
from tests.conftest import each_report
from tests.ncurep import Device, Launch, write_report

ACTIONS, METRICS = 10_000, 500


class Metric:
    def __init__(self, number: int) -> None:
        self.number = number

    def kind(self) -> int:
        return source_code.DOUBLE

    def as_double(self) -> float:
        return float(self.number)

    def num_instances(self) -> int:
        return 0

    def has_correlation_ids(self) -> bool:
        return False


class Action:
    """A result whose metrics are built when they are asked for, and counted."""

    NameBase_FUNCTION, NameBase_DEMANGLED, NameBase_MANGLED = 0, 1, 2
    names = tuple(f"metric_{n}.sum" for n in range(METRICS))
    built = 0

    def name(self, base: int) -> str:
        return "k"

    def workload_type(self) -> int:
        return 0

    def metric_names(self) -> tuple[str, ...]:
        return self.names

    def metric_by_name(self, name: str) -> Metric | None:
        if name not in self.names:
            return None
        Action.built += 1
        return Metric(self.names.index(name))


class Context:
    """A report of many results, made one by one."""

    def num_ranges(self) -> int:
        return 1

    def range_by_idx(self, index: int) -> Context:
        return self

    def num_actions(self) -> int:
        return ACTIONS

    def action_by_idx(self, index: int) -> Action:
        return Action()


def results(wanted: Wanted) -> Iterator[native.Plain]:
    return native.results(Context(), wanted)


def test_c73_of_a_huge_report_only_the_wanted_metrics_are_read() -> None:
    wanted = frozenset(Action.names[:10]) | {"not.there"}
    Action.built = 0
    assert sum(len(result["metrics"]) for result in results(Wanted(wanted))) == 10 * ACTIONS
    assert Action.built <= ACTIONS * len(wanted)


def test_c73_the_memory_of_a_huge_report_is_that_of_one_result() -> None:
    wanted = Wanted(frozenset(Action.names[:10]))
    tracemalloc.start()
    for _ in results(wanted):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\x01\x02\x03\x04", "\\x01\\x02\\x03\\x04"),
        ("\n\n", "\\n\\n"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("safe\u202efdp", "safe\\u202efdp"),
        ("größe", "größe"),
    ],
)
def test_a_name_of_what_cannot_be_seen_is_shown_whole_and_escaped(name: str, shown: str, tmp_path: Path):
    launch = Launch(f"{name}(int)", function=name, mangled=name)
    report = write_report(tmp_path / "a.ncu-rep", [launch], Device())
    (kernel,) = Source(report).launches(Wanted())
    assert (kernel.function, kernel.demangled, kernel.mangled) == (shown, f"{shown}(int)", shown)


def every_metric(path: Path) -> Iterator[Any]:
    """Yield the metrics of a report and their correlation ids."""
    context = native.load(str(path))
    for r in range(context.num_ranges()):
        found = context.range_by_idx(r)
        for a in range(min(found.num_actions(), 3)):
            action = found.action_by_idx(a)
            for name in action.metric_names():
                metric = action.metric_by_name(name)
                yield metric
                if metric.has_correlation_ids():
                    yield metric.correlation_ids()


@pytest.mark.parametrize("sample", demo_reports(), ids=lambda path: path.stem)
def test_values_are_those_of_the_library(sample: Path) -> None:
    agree(sample)


@each_report("ncu")
def test_values_of_real_reports_are_those_of_the_library(report: Path) -> None:
    agree(report)


def agree(report: Path) -> None:
    kinds = set()
    for metric in every_metric(report):
        kinds.add(type(metric.value()))
        assert same(source_code.value(metric), metric.value()), metric.name()
        count = min(metric.num_instances(), 50)
        assert all(map(same, source_code.column(metric, count), map(metric.value, range(count)))), (
            metric.name()
        )
    assert {float, int, str} <= kinds


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a == b or a != a)
