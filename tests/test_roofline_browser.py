"""The page of an analytic model in a real Chromium: it draws, stays offline and fits small screens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncukit import demo_reports, models, read
from ncukit.render import html
from ncukit.render.model.page import page_view
from ncukit.render.model.shown import Shown

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
GIVEN = "2026-11-29 17:50 UTC"


def alone() -> Shown:
    """Two precisions, no time, two roofs of a data sheet."""
    model = models.attention(4, 16, 2048, 2048, 128, "fp16")
    return Shown("attention", {}, models.estimate(model, gpu="h100-sxm"))


def beside() -> Shown:
    """A launch of another size than the model's, with checks that fail."""
    (gemm,) = (path for path in demo_reports() if path.stem == "gemm-tensor")
    (kernel,) = read(gemm).kernels()
    found = models.estimate(models.gemm(4096, 4096, 4096), kernel=kernel)
    return Shown("gemm", {}, found, kernel, "profiled launch, no benchmark")


def impossible() -> Shown:
    """A time below the floor: the point lies above its roof."""
    found = models.estimate(models.point(2e12, 1e12), peak=200e12, bandwidth=3e12, seconds=0.020)
    return Shown("point", {}, found, timed="given")


SHOWN = {"alone": alone, "beside": beside, "impossible": impossible}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the pages, the figure library beside them."""
    folder = tmp_path_factory.mktemp("pages")
    for name, make in SHOWN.items():
        html.write_page(folder / f"{name}.html", page_view(make(), generated=GIVEN), plotly="directory")
    return folder


@pytest.mark.parametrize("name", SHOWN)
def test_the_page_draws_and_does_not_scroll_sideways(name: str, visit: Callable[..., Any]) -> None:
    tab = visit(name, width=375)
    tab.locator(".main-svg").first.wait_for()
    for width in (375, 1366):
        tab.set_viewport_size({"width": width, "height": 768})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_the_suspects_of_an_impossible_time_are_beside_the_figure(visit: Callable[..., Any]) -> None:
    tab = visit("impossible")
    assert tab.locator("#bound dt").all_text_contents() == ["bytes", "flops", "timing", "memory-level"]


def test_a_launch_has_a_section_of_its_own(visit: Callable[..., Any]) -> None:
    tab = visit("beside")
    row = tab.locator("#measured tbody tr").first.all_text_contents()[0]
    assert row.replace("\u202f", " ").startswith("FLOPs1.10 TFLOP137 GFLOP8tiles")
    assert tab.locator("#measured .checks .warn").count() == 2
    assert visit("alone").locator("#measured").count() == 0
