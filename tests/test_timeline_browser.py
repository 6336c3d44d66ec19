"""The page of a timeline in a real Chromium: the strip draws, zooms by mouse and keyboard, stays offline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncukit.api import diagnose
from ncukit.model import ReportFile
from ncukit.render.html import write_page
from ncukit.render.timeline.beside import beside
from ncukit.render.timeline.html import write_timeline
from ncukit.render.view import page_view
from ncukit.trace.launch_choice import choose_launch
from ncukit.trace.nsys import open_trace
from ncukit.trace.region import describe
from ncukit.trace.scope import whole
from tests.test_timeline_beside import measured
from tests.test_timeline_output import HOSTILE, training

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
PAGES = {"short": (20, "gemm(float*)"), "long": (3000, "gemm(float*)"), "hostile": (20, HOSTILE)}


REPORTS = (1, 4)
"""Launches of the reports that each trace is put beside."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("timelines")
    for name, (steps, kernel) in PAGES.items():
        builder = training(steps, kernel)
        builder.nvtx(HOSTILE if name == "hostile" else "epoch", 0, steps * 1_000_000)
        scope = whole(open_trace(builder.write(folder / f"{name}.sqlite")))
        write_timeline(folder / f"{name}.html", scope, describe(scope), choose_launch(scope))
        found = beside(folder / f"{name}.sqlite")
        for n in REPORTS:
            kernels = [measured(index=i, demangled=kernel) for i in range(n)]
            file = ReportFile("a.ncu-rep", 1, "0" * 64, n)
            view = page_view(file, [diagnose(k) for k in kernels], generated="now", beside=found)
            write_page(folder / f"{name}-{n}.html", view)
    return folder


def drawn(tab: Any) -> int:
    return tab.locator(".lanes rect").count()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_the_strip_draws_few_items_and_the_page_fits(
    visit: Callable[..., Any], name: str, scheme: str
) -> None:
    tab = visit(name, scheme=scheme)
    assert 10 < drawn(tab) < 4000
    assert tab.locator(".lanes .ph").count() == 0
    for width in (375, 640, 1020, 1600) if scheme == "light" else (1366,):
        tab.set_viewport_size({"width": width, "height": 768})
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


@pytest.mark.parametrize("n", REPORTS)
@pytest.mark.parametrize("name", PAGES)
def test_the_page_of_a_report_with_a_trace_fits_and_draws(
    visit: Callable[..., Any], name: str, n: int
) -> None:
    tab = visit(f"{name}-{n}")
    assert 10 < drawn(tab) < 4000
    assert "Region: " in tab.locator("p.region").first.inner_text()
    for width in (375, 640, 1020, 1600):
        tab.set_viewport_size({"width": width, "height": 768})
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
    assert tab.locator("#timeline, #kernel-1-timeline").count() == 1


def test_the_kernel_of_the_report_is_told_apart_in_the_strip(visit: Callable[..., Any]) -> None:
    tab = visit("short-1")
    own = tab.locator(".lanes rect.own")
    assert own.count() == 20
    own.nth(3).hover()
    assert "stream 7: gemm, 300" in tab.locator(".strip .said").inner_text()
    assert tab.locator(".lanes rect.kernel:not(.own)").count() == 20  # the collective


def test_every_lane_carries_its_name(visit: Callable[..., Any]) -> None:
    tab = visit("short")
    said = tab.locator(".lanes text").all_text_contents()
    for lane in (
        "ranges",
        "ranges 2",
        "host launches",
        "host waits",
        "stream 7",
        "stream 20",
        "to device",
        "GPU empty",
    ):
        assert lane in said
    assert any(text.startswith("longest gap") for text in said)


def test_zoom_works_by_button_key_wheel_and_drag(visit: Callable[..., Any]) -> None:
    tab = visit("short")
    shown = tab.locator(".strip .said")
    everything = shown.inner_text()
    tab.click("[data-zoom=in]")
    half = shown.inner_text()
    assert half != everything
    lanes = tab.locator(".lanes")
    lanes.focus()
    tab.keyboard.press("ArrowRight")
    moved = shown.inner_text()
    assert moved not in (half, everything)
    tab.keyboard.press("Home")
    assert shown.inner_text() == everything
    tab.keyboard.press("+")
    assert shown.inner_text() == half
    box = lanes.bounding_box()
    tab.mouse.move(box["x"] + 700, box["y"] + 40)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 600, box["y"] + 40)
    tab.mouse.up()
    dragged = shown.inner_text()
    assert dragged != half
    tab.keyboard.down("Control")
    tab.mouse.wheel(0, -100)
    tab.keyboard.up("Control")
    assert shown.inner_text() != dragged


def test_pointing_at_an_item_tells_what_it_is(visit: Callable[..., Any]) -> None:
    tab = visit("short")
    item = tab.locator(".lanes rect.kernel").nth(3)
    item.hover()
    said = tab.locator(".strip .said").inner_text()
    assert "stream 7: gemm, 300" in said


def test_a_long_trace_shows_a_part_in_full(visit: Callable[..., Any]) -> None:
    tab = visit("long")
    assert tab.locator(".lanes rect.many").count() > 0
    tab.click("[data-zoom=part]")
    assert tab.locator(".lanes rect.kernel:not(.many)").count() > 50
    for _ in range(6):
        tab.click("[data-zoom=in]")
    assert tab.locator(".lanes rect.kernel").count() > 0
    assert tab.locator(".lanes rect.many").count() == 0


def test_without_scripts_the_tables_are_there(visit: Callable[..., Any]) -> None:
    tab = visit("short", java_script_enabled=False)
    assert tab.locator(".lanes .ph").is_visible()
    assert tab.locator("#kernels table tbody tr").count() == 2
    assert "Kernels run" in tab.locator("#strip").inner_text()
