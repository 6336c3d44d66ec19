"""Counters over time: which are taken, in which unit, what is left out, and how a chart is drawn."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncukit.judge import diagnose
from ncukit.judge.facts import FEWEST, series
from ncukit.metrics.expression import sampled
from ncukit.model import Kernel
from ncukit.render.cells import Cells, Tips
from ncukit.render.view.series import HEIGHT, POINTS, WIDTH, axis_end, section
from tests.builders import kernel, raw_kernel

DRAM = "pmsampling:dram__throughput.avg.pct_of_peak_sustained_elapsed"
IPC = "pmsampling:sm__inst_executed_realtime.avg.per_cycle_active"


def over_time(**named: tuple[list[int], list[float]]) -> Kernel:
    names = {"dram": DRAM, "ipc": IPC}
    return kernel(raw=raw_kernel(series={names[k]: (tuple(t), tuple(v)) for k, (t, v) in named.items()}))


def charts(made: Kernel) -> dict[str, Any]:
    found = section(Cells(made, Tips()), diagnose(made))
    assert found is not None
    return found


def test_times_are_seconds_from_the_first_sample_in_order() -> None:
    (found,) = series(over_time(dram=([3000, 1000, 2000], [30.0, 10.0, 20.0])))
    assert (found.id, found.unit, found.raw) == ("dram", "%", DRAM)
    assert found.times == pytest.approx((0.0, 1e-6, 2e-6))
    assert found.values == (10.0, 20.0, 30.0)


def test_a_sample_that_is_no_number_is_left_out() -> None:
    (found,) = series(over_time(dram=([0, 1, 2, 3], [1.0, math.nan, 2.0, 3.0])))
    assert found.values == (1.0, 2.0, 3.0)


@pytest.mark.parametrize("values", [[0.0] * 5, [1.0] * (FEWEST - 1)])
def test_what_is_always_zero_or_has_too_few_samples_is_no_series(values: list[float]) -> None:
    assert series(over_time(dram=(list(range(len(values))), values))) == ()


def test_a_report_without_pm_sampling_has_no_charts() -> None:
    assert series(kernel()) == ()
    assert section(Cells(kernel(), Tips()), diagnose(kernel())) is None


def test_series_come_in_the_order_of_the_catalog() -> None:
    found = series(over_time(dram=([0, 1, 2], [1, 2, 3]), ipc=([0, 1, 2], [1, 2, 3])))
    order = [one.id for one in sampled()]
    assert [one.id for one in found] == sorted((one.id for one in found), key=order.index)


def test_the_names_of_a_series_are_unique() -> None:
    names = [name for one in sampled() for name in one.names]
    assert len(names) == len(set(names))
    assert len({one.id for one in sampled()}) == len(sampled())


# the charts


def test_a_chart_has_unit_ends_and_the_numbers_of_its_table() -> None:
    found = charts(over_time(ipc=([0, 1000, 2000, 3000], [1.0, 2.0, 3.0, 2.0])))
    (one,) = found["charts"]
    assert (one["top"], one["end"]) == ("3 inst/cycle", "3.00\u202fµs")
    assert (one["mean"], one["peak"], one["samples"]) == ("2 inst/cycle", "3 inst/cycle", "4")
    assert one["path"] == f"M0 {HEIGHT * 2 / 3:.1f}L100 {HEIGHT / 3:.1f}L200 0L300 {HEIGHT / 3:.1f}"


def test_zeros_before_and_after_are_cut_but_for_one_at_each_end() -> None:
    found = charts(over_time(dram=([*range(0, 9000, 1000)], [0, 0, 0, 5.0, 6.0, 5.0, 0, 0, 0])))
    assert found["charts"][0]["samples"] == "5"
    assert found["charts"][0]["end"] == "4.00\u202fµs"


def test_all_charts_share_one_time_scale() -> None:
    found = charts(over_time(dram=([0, 1000, 2000], [1, 2, 3]), ipc=([0, 2000, 4000], [1, 2, 3])))
    assert {one["end"] for one in found["charts"]} == {"4.00\u202fµs"}
    shorter = next(one for one in found["charts"] if one["id"] == "dram")
    assert max(numbers(shorter["path"])[::2]) == WIDTH / 2


def numbers(path: str) -> list[float]:
    return [float(x) for x in re.findall(r"[\d.]+", path)]


@given(st.lists(st.floats(0, 1e4), min_size=FEWEST, max_size=3 * POINTS).filter(any))
def test_a_chart_clips_nothing_and_its_band_spans_every_sample(values: list[float]) -> None:
    if max(values) < 1e-6:
        return
    (one,) = charts(over_time(ipc=([n * 1000 for n in range(len(values))], values)))["charts"]
    ys = numbers(one["band"] or one["path"])[1::2]
    assert min(ys) >= 0
    assert max(ys) <= HEIGHT
    assert len(numbers(one["path"])) <= 2 * POINTS
    kept = [y for y in values if y] or [0.0]
    scale = axis_end(max(kept), "inst/cycle")
    assert min(ys) == pytest.approx(HEIGHT * (1 - max(kept) / scale), abs=0.06)


@given(st.floats(1e-9, 1e12))
def test_an_axis_ends_at_or_above_the_peak_and_wastes_little(peak: float) -> None:
    assert peak * (1 - 1e-6) <= axis_end(peak, "x") <= 1.6 * peak


def test_a_sampled_window_longer_than_the_launch_is_said() -> None:
    made = over_time(dram=([0, 100_000, 200_000], [1.0, 2.0, 3.0]))
    made = kernel(raw=made.raw, kernel_duration=1e-5)
    words = "".join(p["text"] for p in charts(made)["foot"])
    assert "the sampled window holds more than it" in words
