"""The pages of operators and of ranks in a real Chromium: they fit, sort, filter and stay offline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncukit import api
from ncukit.render.ops.html import write_ops, write_ranks
from tests.test_ranks import rank
from tests.torch_builder import training

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ops")
    b = training(steps=40)
    for i in range(30):
        b.op(f"aten::{'very_' * 20}long_{i}", 50_000 + 100 * i, 50, shapes=[[1 << i % 20] * 4] * 6)
    b.frame("model.py(1): run", 0, 40_000)
    b.memory(100, 1 << 20, 1 << 20, 2 << 20)
    write_ops(folder / "ops.html", api.ops(b.write(folder / "t.json"), host=True))
    (folder / "ranks").mkdir()
    for i in range(3):
        rank(i, compute=300 + 50 * i, latest=500).write(folder / "ranks" / f"{i}.json")
    write_ranks(folder / "ranks.html", api.ranks(folder / "ranks"))
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["ops", "ranks"])
def test_pages_fit_every_width(visit: Callable[..., Any], name: str, scheme: str) -> None:
    tab = visit(name, scheme=scheme)
    for width in (375, 640, 1020, 1600) if scheme == "light" else (1366,):
        tab.set_viewport_size({"width": width, "height": 768})
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


@pytest.mark.parametrize("table", ["ops", "others"])
def test_names_keep_a_readable_width_on_a_phone(visit: Callable[..., Any], table: str) -> None:
    tab = visit("ops")
    tab.set_viewport_size({"width": 375, "height": 768})
    names = tab.locator(f"#{table} tbody th")
    assert names.count()
    assert all(names.nth(i).evaluate("e => e.offsetWidth") >= 120 for i in range(names.count()))


def test_operators_sort_and_filter(visit: Callable[..., Any]) -> None:
    tab = visit("ops")
    rows = tab.locator("#ops tbody tr")
    assert rows.count() == 20
    assert rows.first.locator("th").inner_text() == "aten::addmm"
    tab.click("#ops thead button:has-text('CPU itself')")
    cpu = [
        float(cell.get_attribute("data-s")) for cell in tab.locator("#ops tbody tr td:nth-of-type(5)").all()
    ]
    assert cpu == sorted(cpu, reverse=True) or cpu == sorted(cpu)
    tab.fill("[data-filter]", "addmm")
    assert tab.locator("#ops tbody tr:visible").count() == 1 + (
        tab.locator("#ops tbody tr:visible", has_text="AddmmBackward0").count()
    )


def test_a_number_tells_where_it_comes_from(visit: Callable[..., Any]) -> None:
    tab = visit("ops")
    tab.locator("#ops tbody tr").first.locator(".v").first.hover()
    assert "GPU work, also of operators inside" in tab.locator("#tip").inner_text()


def test_ranks_say_who_is_late(visit: Callable[..., Any]) -> None:
    tab = visit("ranks", java_script_enabled=False)
    assert "Rank 2 came last to 5 of 5 collectives" in tab.locator("#late").inner_text()
    assert tab.locator("#ranks tbody tr").count() == 3
