"""Every real report becomes a page that holds together: markup, links, evidence, figures, size."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from ncukit.render import html
from ncukit.render.markdown import report_markdown
from ncukit.render.view import page_view
from tests.conftest import each_report
from tests.real import judged
from tests.test_html import Page
from tests.test_markdown import cells, tables

FIGURE = 15_000


@each_report()
def test_a_real_report_is_a_sound_page_and_sound_markdown(report: Path) -> None:
    source, found = judged(report)
    view = page_view(
        source.file(len(found)), found, generated="2026-11-29 17:50 UTC", command="ncukit report x"
    )
    text = html.page(view, plotly="directory")
    page = Page(text)
    assert page.faults == []
    assert page.open == []
    assert [id for id, count in Counter(page.ids).items() if count > 1] == []
    targets = {value[1:] for tag, name, value in page.attributes if (tag, name) == ("a", "href")}
    assert targets <= set(page.ids)
    tips = page.island("tips")["k"]
    keys = [v.partition("/") for _, name, v in page.attributes if name == "data-t"]
    assert [key for launch, _, key in keys if key not in tips.get(launch, {})] == []
    assert all(len(json.dumps(f, separators=(",", ":"))) < FIGURE for f in view["figures"].values())
    assert len(text.encode()) < 1_000_000 + max(0, len(found) - 51) * 4500
    failed = sum(d.kernel.failed is not None for d in found)
    if failed:
        assert "failed" in "".join(page.text)
    assert str(report.parent) not in text
    markdown = report_markdown(source.file(len(found)), found)
    assert len(markdown) < 65_536  # the most that GitHub takes
    for table in tables(markdown):
        assert {len(cells(row)) for row in table} == {len(cells(table[0]))}, table[0]
