"""The charts of a launch in a real Chromium: drawn in both themes, in print, on a phone, without scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncukit.render import html
from ncukit.render.view import page_view
from tests.diagnoses import FILE, charted

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the page of a launch with every chart, the figure library beside it."""
    folder = tmp_path_factory.mktemp("charts")
    html.write_page(folder / "charts.html", page_view(FILE, [charted()], generated=""), plotly="directory")
    return folder


def color(tab: Any, selector: str, what: str) -> str:
    found: str = tab.locator(selector).first.evaluate(f"e => getComputedStyle(e).{what}")
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_memory_chart_has_its_boxes_lanes_and_names(visit: Callable[..., Any], scheme: str) -> None:
    tab = visit("charts", scheme=scheme)
    chart = tab.locator("svg.memchart")
    assert chart.locator("rect.box").count() == 7
    assert chart.locator("rect.hotx").count() == 1
    assert "84.6" in chart.text_content()
    assert tab.get_by_role("img", name="Memory chart of launch 1").is_visible()
    assert color(tab, ".memchart path.hot", "stroke") == color(tab, ".memchart rect.hotx", "stroke")
    assert color(tab, ".memchart text", "fill") == color(tab, "body", "color")


def test_words_of_the_memory_chart_stay_inside_it_and_do_not_cover_each_other(
    visit: Callable[..., Any],
) -> None:
    tab = visit("charts")
    boxes = tab.evaluate(
        """() => [...document.querySelectorAll('.memchart text')].map(e => {
        const b = e.getBoundingClientRect(), s = e.ownerSVGElement.getBoundingClientRect();
        const inside = b.left >= s.left - 1 && b.right <= s.right + 1;
        return [b.left, b.top + 2, b.right, b.bottom - 2, inside]; })"""
    )
    assert all(inside for *_, inside in boxes)
    for i, (x0, y0, x1, y1, _) in enumerate(boxes):
        for a0, b0, a1, b1, _ in boxes[i + 1 :]:
            assert x1 <= a0 or a1 <= x0 or y1 <= b0 or b1 <= y0


def test_lanes_differ_in_thickness_and_unused_ones_are_dashed(visit: Callable[..., Any]) -> None:
    tab = visit("charts")
    widths = tab.evaluate(
        "[...document.querySelectorAll('.memchart path[stroke-width]:not(.tip)')]"
        ".map(e => [e.className.baseVal, +e.getAttribute('stroke-width')])"
    )
    assert max(w for c, w in widths if c == "hot") > 10
    assert color(tab, ".memchart path.none", "strokeDasharray") != "none"
    assert color(tab, ".memchart path.hot:not(.tip)", "strokeDasharray") == "none"


def test_a_phone_shows_the_table_of_links_instead_of_the_chart(visit: Callable[..., Any]) -> None:
    tab = visit("charts", width=375)
    assert not tab.locator("svg.memchart").is_visible()
    assert tab.locator("table.links").first.is_visible()


def test_nothing_is_wider_than_the_window(visit: Callable[..., Any]) -> None:
    tab = visit("charts")
    for width in (375, 640, 830, 1020, 1181, 1350, 1600):
        tab.set_viewport_size({"width": width, "height": 768})
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


def test_occupancy_curves_are_drawn_and_change_with_the_theme(visit: Callable[..., Any]) -> None:
    tab = visit("charts", scheme="dark")
    figure = "document.querySelector('[data-fig=occupancy-1]')"
    assert tab.evaluate(f"{figure}.querySelectorAll('svg.main-svg').length") >= 1
    assert tab.evaluate(f"{figure}.data.filter(t => t.mode === 'markers').map(t => t.y[0])") == [24, 24, 24]
    dark = tab.evaluate(f"{figure}.data[0].line.color")
    tab.locator("#theme").click()
    assert tab.evaluate(f"{figure}.data[0].line.color") != dark
    assert tab.evaluate(f"{figure}.data[0].line.color").startswith("#")


def test_curves_stand_beside_each_other_and_on_a_phone_under_each_other(visit: Callable[..., Any]) -> None:
    layout = "document.querySelector('[data-fig=occupancy-1]')._fullLayout"
    tops = f"['yaxis', 'yaxis2', 'yaxis3'].map(axis => {layout}[axis].domain[0])"
    assert len(set(visit("charts").evaluate(tops))) == 1
    assert len(set(visit("charts", width=375).evaluate(tops))) == 3


def test_charts_over_time_are_there_without_scripts(visit: Callable[..., Any]) -> None:
    tab = visit("charts", java_script_enabled=False)
    assert tab.locator(".overtime svg").first.is_visible()
    assert tab.locator("svg.memchart").is_visible()
    assert tab.locator(".split .stack").count() == 3
    assert tab.get_by_role("img", name="DRAM throughput: mean").first.is_visible()


def test_print_shows_every_chart_in_light(visit: Callable[..., Any], tmp_path: Path) -> None:
    tab = visit("charts", scheme="dark")
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("svg.memchart").is_visible()
    assert color(tab, ".memchart text", "fill") == "rgb(26, 28, 31)"
    assert color(tab, ".overtime .curve", "stroke") == "rgb(42, 100, 164)"
    assert (
        tab.evaluate("document.querySelector('[data-fig=occupancy-1]')._fullLayout.font.color") == "#1a1c1f"
    )
    tab.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True)
    assert (tmp_path / "page.pdf").stat().st_size > 20_000
