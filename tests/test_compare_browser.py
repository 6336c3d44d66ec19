"""The page of a comparison in a real Chromium: it draws, stays offline, fits small screens and prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncukit.render import html
from ncukit.render.compare.page import page_view
from tests.test_compare_output import comparison

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
FIGURES = {"versions": 1, "gpus": 2, "many": 1, "hostile": 2}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the pages, the figure library beside them."""
    folder = tmp_path_factory.mktemp("pages")
    for kind in FIGURES:
        view = page_view(comparison(kind), generated="2026-11-29 17:50 UTC")
        html.write_page(folder / f"{kind}.html", view, plotly="directory")
    return folder


@pytest.mark.parametrize("kind", FIGURES)
def test_the_page_draws_and_does_not_scroll_sideways(kind: str, visit: Callable[..., Any]) -> None:
    tab = visit(kind, width=375)
    tab.locator(".main-svg").first.wait_for()
    for width in (375, 1366):
        tab.set_viewport_size({"width": width, "height": 768})
        assert tab.locator(".js-plotly-plot:visible").count() == FIGURES[kind]
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_a_number_opens_its_evidence_on_both_sides(visit: Callable[..., Any]) -> None:
    tab = visit("versions")
    cells = tab.locator("#changes tr", has_text="dram_bytes").first.locator("[data-t]")
    for position, value in ((0, "100,000,000"), (1, "70,000,000")):
        cells.nth(position).hover()
        assert value in (tab.locator("#tip").text_content() or "")


def test_a_deep_link_opens_a_pair(visit: Callable[..., Any]) -> None:
    tab = visit("many", hash="#pair-3-changes")
    assert tab.locator("#pair-3").get_attribute("open") is not None
