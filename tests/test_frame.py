"""Launches and comparisons as data frames: tidy, typed, with units; unknown is missing, never 0."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest

import ncukit
from ncukit.errors import UsageError
from ncukit.metrics import load
from ncukit.tables import CONTEXT
from tests.compared import A100, H100, compared, launch, unknown

SAMPLES = ncukit.demo_reports()


def two() -> list[Any]:
    return [
        launch("gemm", 0, **A100, kernel_duration=1e-3, dram_bytes=100),
        launch("gemm", 1, **H100, kernel_duration=5e-4, dram_bytes=unknown("dram_bytes", "no section")),
    ]


def test_wide_has_one_row_a_launch_and_one_column_a_metric() -> None:
    table = ncukit.frame(two(), form="wide")
    assert list(table.columns) == [*CONTEXT, *load().metrics]
    assert list(table["kernel_duration"]) == [1e-3, 5e-4]
    assert str(table["kernel_duration"].dtype) == "Float64"
    assert str(table["gpu_name"].dtype) == "string"
    assert table.attrs["units"]["dram_bytes"] == "byte"


def test_what_is_unknown_is_missing_and_never_zero() -> None:
    table = ncukit.frame(two(), form="wide")
    assert table["dram_bytes"].isna().tolist() == [False, True]
    assert table["spill_inst"].isna().all()


def test_long_has_one_row_a_launch_and_metric_with_its_evidence() -> None:
    table = ncukit.frame(two())
    assert len(table) == 2 * len(load().metrics)
    row = table[(table["metric"] == "dram_bytes") & (table["index"] == 1)].iloc[0]
    assert (row["unit"], row["reason"]) == ("byte", "no section")
    assert pandas.isna(row["value"])
    known = table[(table["metric"] == "dram_bytes") & (table["index"] == 0)].iloc[0]
    assert (known["value"], known["quality"]) == (100.0, "exact")
    assert pandas.isna(known["text"])
    text = table[table["metric"] == "gpu_name"].iloc[0]
    assert (text["text"], pandas.isna(text["value"])) == ("A100", True)


def test_by_puts_gpus_side_by_side() -> None:
    table = ncukit.frame(two(), by="gpu")
    assert list(table.columns) == ["A100", "H100"]
    assert table.columns.name == "gpu"
    row = table.loc["gemm", "kernel_duration"]
    assert list(row) == [1e-3, 5e-4]
    assert table.loc["gemm", "dram_bytes"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("by", "columns"),
    [("compute_capability", ["8.0", "9.0"]), ("name", ["gemm"]), ("file", ["test.ncu-rep"])],
)
def test_by_other_columns(by: Any, columns: list[str]) -> None:
    table = ncukit.frame(two(), by=by)
    assert list(table.columns) == columns
    if by == "name":  # the median of the launches that know it
        assert table.loc["kernel_duration", "gemm"] == pytest.approx(7.5e-4)


def test_several_reports_are_one_frame() -> None:
    reports = ncukit.read(SAMPLES[:3])
    assert len(reports) == 3
    table = reports.frame(form="wide")
    assert table["file"].nunique() == 3
    assert sorted(set(table["file"])) == sorted(str(path) for path in SAMPLES[:3])
    assert len(list(reports.kernels())) == len(table)
    assert len(list(reports.diagnoses())) == len(table)


def test_raw_metrics_join_on_demand_with_their_units() -> None:
    names = ["dram__bytes_read.sum", "launch__grid_size", "no_such__metric.sum"]
    table = ncukit.read(SAMPLES[0]).frame(form="wide", raw=names)
    assert table["dram__bytes_read.sum"].notna().all()
    assert table["no_such__metric.sum"].isna().all()
    assert table.attrs["units"]["dram__bytes_read.sum"] == "byte"
    long = ncukit.read(SAMPLES[:2]).frame(raw=names)
    assert set(names) <= set(long["metric"])
    lost = long[long["metric"] == "no_such__metric.sum"]
    assert set(lost["reason"]) == {"not in the report"}


def test_raw_text_is_text() -> None:
    table = ncukit.read(SAMPLES[0]).frame(form="wide", raw=["device__attribute_display_name"])
    assert str(table["device__attribute_display_name"].dtype) == "string"


def test_a_comparison_is_one_row_a_pair_and_metric() -> None:
    base = launch("gemm", **A100, kernel_duration=2e-3, l2_hit_rate_pct=50.0)
    other = launch("gemm", **{**A100, "compute_capability": 75}, kernel_duration=1e-3, l2_hit_rate_pct=50.0)
    table = ncukit.frame(compared(base, other))
    assert len(table) == len(load().metrics)
    rows = table.set_index("metric")
    assert rows.loc["kernel_duration", "change"] == -50.0
    assert rows.loc["kernel_duration", "ratio"] == 0.5
    assert rows.loc["kernel_duration", "reading"] == "better"
    assert rows.loc["l2_hit_rate_pct", "comparable"] == "no"
    assert pandas.isna(rows.loc["l2_hit_rate_pct", "change"])
    assert str(table["change"].dtype) == "Float64"
    assert table.attrs["units"]["kernel_duration"] == "s"


def test_a_change_from_zero_is_missing_not_infinite() -> None:
    table = ncukit.frame(compared(launch(spill_inst=0), launch(spill_inst=7)))
    row = table[table["metric"] == "spill_inst"].iloc[0]
    assert pandas.isna(row["change"])
    assert row["reading"] == "worse"


@pytest.mark.parametrize(
    "make",
    [
        lambda kernels: ncukit.frame(kernels),
        lambda kernels: ncukit.frame(kernels, form="wide"),
        lambda kernels: ncukit.frame(kernels, by="gpu"),
    ],
)
def test_no_launch_is_an_empty_frame_of_the_same_columns(
    make: Callable[[list[Any]], pandas.DataFrame],
) -> None:
    empty, some = make([]), make(two())
    assert len(empty) == 0
    if not isinstance(some.index, pandas.MultiIndex):
        assert list(empty.columns) == list(some.columns)
        assert dict(empty.dtypes) == dict(some.dtypes)


@pytest.mark.parametrize("wrong", [{"form": "tall"}, {"by": "colour"}])
def test_a_form_or_column_that_does_not_exist_is_refused_with_those_that_do(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="is no way to lay out a frame") as error:
        ncukit.frame(two(), **wrong)
    assert "is one of '" in error.value.hint


def test_frames_survive_parquet(tmp_path: Path) -> None:
    for form in ("wide", "long"):
        table = ncukit.frame(two(), form=form)  # type: ignore[arg-type]
        table.to_parquet(tmp_path / "t.parquet")
        back = pandas.read_parquet(tmp_path / "t.parquet")
        assert list(back.columns) == list(table.columns)
        assert len(back) == len(table)
