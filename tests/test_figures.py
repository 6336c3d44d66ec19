"""Figures are plain Plotly dicts: what is drawn, in which colour, and that nothing is clipped or covered."""

from __future__ import annotations

import json
import math
import re
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncukit.render import labels
from ncukit.render.cloud import DENSE, MOST, TOP, cloud
from ncukit.render.figures import roofline
from ncukit.render.plot import PLOTS, Ceiling, Mark, ridges

DRAM = Ceiling("bandwidth", "dram", "DRAM", 607e9, "DRAM 607 GB/s", "DRAM")
L1 = Ceiling("bandwidth", "l1", "L1", 7.52e12, "L1 7.52 TB/s", "L1")
FP64 = Ceiling("compute", "fp64", "FP64", 235e9, "FP64 235 GFLOP/s", "FP64 235 G", "--p-fp64")
FP32 = Ceiling("compute", "fp32", "FP32", 15e12, "FP32 15.0 TFLOP/s", "FP32 15 T", "--p-fp32")
SHEET = Ceiling("compute", "fp64", "FP64", 370e9, "data sheet 370 GFLOP/s", "", "--p-fp64", sheet=True)
ROOFS = (DRAM, L1, FP64, FP32, SHEET)


def mark(x: float, y: float, level: str = "dram", **changed: Any) -> Mark:
    given = {
        "key": f"fp64@{level}", "group": "fp64", "level": level, "x": x, "y": y, "attainable": 235e9,
        "color": "--p-fp64", "label": "no roof", "hover": "FP64", "name": "FP64 DRAM",
        "share": "52.5 % of its roof",
    }  # fmt: skip
    return Mark(**{**given, **changed})


def drawn(figure: Any, symbol: str) -> list[dict[str, Any]]:
    return [
        trace
        for trace in figure["data"]
        if trace["mode"] == "markers" and any(symbol in s for s in _list(trace["marker"]["symbol"]))
    ]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_a_point_lies_where_its_numbers_say_and_its_shape_is_its_level() -> None:
    figure = roofline([mark(18.3, 123.5e9), mark(1.54, 123.5e9, "l1")], ROOFS, unit="FLOP")
    assert figure is not None
    (circle,) = drawn(figure, "circle")
    (triangle,) = drawn(figure, "triangle")
    assert (circle["x"], circle["y"]) == ([18.3], [123.5e9])
    assert triangle["x"] == [1.54]


def test_colours_are_tokens_that_the_page_resolves() -> None:
    figure = roofline([mark(18.3, 123.5e9), mark(1, 1e9, hot=True)], ROOFS, unit="FLOP")
    text = json.dumps(figure)
    assert "var(--p-fp64)" in text
    assert "var(--hot)" in text
    assert not re.search(r"#[0-9a-f]{3,8}\b", text)


def test_only_the_limiter_is_red() -> None:
    plain = json.dumps(roofline([mark(18.3, 123.5e9)], ROOFS, unit="FLOP"))
    assert "--hot" not in plain


def test_an_estimate_is_hollow_and_an_exact_point_is_not() -> None:
    figure = roofline([mark(18.3, 1e11, hollow=True), mark(2, 1e11, "l1")], ROOFS, unit="FLOP")
    assert drawn(figure, "circle")[0]["marker"]["symbol"] == ["circle-open"]
    assert drawn(figure, "triangle")[0]["marker"]["symbol"] == ["triangle-up"]


def test_a_data_sheet_roof_is_thin_and_dashed_and_the_roof_of_the_run_is_solid() -> None:
    figure = roofline([mark(18.3, 1e11)], ROOFS, unit="FLOP")
    assert figure is not None
    lines = [t["line"] for t in figure["data"] if t["mode"] == "lines"]
    assert {"color": "var(--ink3)", "width": 1, "dash": "dash"} in lines
    assert {"color": "var(--p-fp64)", "width": 2} in lines


def test_a_diagonal_rises_by_its_bandwidth_and_ends_at_the_highest_ceiling() -> None:
    figure = roofline([mark(18.3, 1e11)], (DRAM, FP64), unit="FLOP")
    assert figure is not None
    slope = next(
        t for t in figure["data"] if t["line"]["color"] == "var(--ink2)" and t["line"]["width"] == 1.6
    )
    (x0, x1, gap), (y0, y1, _) = slope["x"], slope["y"]
    assert gap is None
    assert y0 / x0 == pytest.approx(607e9, rel=1e-3)
    assert y1 == pytest.approx(235e9, rel=1e-3)
    assert x1 == pytest.approx(235 / 607, rel=1e-3)


def test_the_axes_hold_every_point_ridge_and_roof_with_half_a_decade_around() -> None:
    figure = roofline([mark(18.3, 1e9)], ROOFS, unit="FLOP")
    assert figure is not None
    left, right = figure["layout"]["xaxis"]["range"]
    bottom, top = figure["layout"]["yaxis"]["range"]
    assert left <= math.log10(235e9 / 7.52e12) - 0.49
    assert right >= math.log10(18.3) + 0.49
    assert bottom == pytest.approx(9 - 0.5, abs=0.01)
    assert top == pytest.approx(math.log10(15e12) + 0.5, abs=0.01)


def test_a_point_above_its_roof_is_drawn_where_it_is() -> None:
    figure = roofline([mark(1, 9e11, attainable=6e11)], (DRAM, FP64), unit="FLOP")
    assert figure is not None
    assert drawn(figure, "circle")[0]["y"] == [9e11]
    assert figure["layout"]["yaxis"]["range"][1] > math.log10(9e11)


def test_ticks_are_decades_with_names() -> None:
    axis = roofline([mark(18.3, 1e11)], ROOFS, unit="FLOP")["layout"]["yaxis"]  # type: ignore[index]
    assert dict(zip(axis["tickvals"], axis["ticktext"], strict=True))[1e12] == "1\u202fT"
    assert axis["title"]["text"] == "FLOP / s"


def test_a_ridge_belongs_to_the_roof_of_the_limiter() -> None:
    points = [mark(18.3, 123.5e9, hot=True), mark(1, 14e12, group="fp32", attainable=15e12)]
    assert [(r.name, round(r.x, 3)) for r in ridges(points, ROOFS)] == [
        ("FP64, DRAM", 0.387),
        ("FP64, L1", 0.031),
    ]


def test_there_is_no_figure_without_a_point() -> None:
    assert roofline([], ROOFS, unit="FLOP") is None
    assert roofline([mark(0, 0)], ROOFS, unit="FLOP") is None


def test_points_of_one_precision_that_nearly_coincide_share_a_label_and_nest() -> None:
    points = [mark(1, 1e11, "l1", name="L1"), mark(1.05, 1e11, "l2", name="L2"), mark(1.1, 1e11, name="DRAM")]
    figure = roofline(points, ROOFS, unit="FLOP")
    assert figure is not None
    wide = [a["text"] for a in figure["layout"]["annotations"] if a.get("wide")]
    assert any("L1, L2, DRAM" in text for text in wide)
    sizes = [t["marker"]["size"][0] for t in figure["data"] if "customdata" in t]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3


def test_a_name_in_a_label_is_text_for_plotly_too() -> None:
    figure = roofline([mark(1, 1e11, name="<a href='x'>y</a>", hover="<img>")], ROOFS, unit="FLOP")
    text = json.dumps(figure)
    assert "<a " not in text
    assert "<img" not in text


points = st.lists(
    st.builds(
        mark,
        st.floats(min_value=1e-3, max_value=1e4),
        st.floats(min_value=1e6, max_value=1e15),
        st.sampled_from(["dram", "l2", "l1"]),
        attainable=st.none() | st.floats(min_value=1e6, max_value=1e15),
    ),
    min_size=1,
    max_size=9,
)


@given(points)
def test_no_label_covers_another_at_either_width(marks: list[Mark]) -> None:
    figure = roofline(marks, ROOFS, unit="FLOP")
    assert figure is not None
    layout = figure["layout"]
    (left, right), (bottom, top) = layout["xaxis"]["range"], layout["yaxis"]["range"]
    for name, (width, height) in PLOTS.items():
        boxes = []
        for a in layout["annotations"]:
            if a.get(name) and not a.get("along"):
                x = (a["x"] - left) / (right - left) * width + a.get("xshift", 0)
                y = (a["y"] - bottom) / (top - bottom) * height + a.get("yshift", 0)
                boxes.append(labels.box_of(a["text"], x, y, a["xanchor"], a["yanchor"]))
        assert not any(_overlap(a, b) > 2 for a, b in combinations(boxes, 2))


def _overlap(a: labels.Box, b: labels.Box) -> float:
    return min(min(a.right, b.right) - max(a.left, b.left), min(a.top, b.top) - max(a.bottom, b.bottom))


@given(points)
def test_a_figure_is_small_and_plain_json(marks: list[Mark]) -> None:
    text = json.dumps(roofline(marks, ROOFS, unit="FLOP"), separators=(",", ":"), allow_nan=False)
    assert len(text) < 15_000


def launches(count: int) -> tuple[list[Mark], list[float]]:
    marks = [
        mark(
            10 ** (-2 + (i * 37 % 401) / 100),
            10 ** (8 + (i * 53 % 499) / 100),
            key=str(i + 1),
            name=f"{i + 1} k",
        )
        for i in range(count)
    ]
    return marks, [1e-6 * (1 + i % 97) for i in range(count)]


def test_area_is_duration_and_the_longest_is_labelled() -> None:
    marks = [mark(1, 1e10, key="1", name="1 short"), mark(10, 1e11, key="2", name="2 long")]
    figure = cloud(marks, [1e-6, 1e-4], ROOFS, unit="FLOP")
    assert figure is not None
    (trace,) = [t for t in figure["data"] if "hovertemplate" in t]
    size = dict(zip(trace["customdata"], trace["marker"]["size"], strict=True))
    assert size["2"] == 30
    assert size["1"] == 6
    slim = [a["text"] for a in figure["layout"]["annotations"] if a.get("slim")]
    assert "2 long" in slim


@pytest.mark.parametrize("count", [1, 51, 154, MOST + 1, DENSE - 1, DENSE, 10_000])
def test_a_figure_of_many_launches_stays_small(count: int) -> None:
    marks, weights = launches(count)
    figure = cloud(marks, weights, ROOFS, unit="FLOP")
    assert len(json.dumps(figure, separators=(",", ":"), allow_nan=False)) < 15_000


def test_a_crowd_is_one_density_and_the_longest_launches() -> None:
    marks, weights = launches(DENSE)
    figure = cloud(marks, weights, ROOFS, unit="FLOP")
    assert figure is not None
    density, *circles = [t for t in figure["data"] if "hovertemplate" in t]
    assert density["marker"]["symbol"] == "square"
    assert sum(density["customdata"]) == DENSE
    assert sum(len(t["x"]) for t in circles) == TOP
