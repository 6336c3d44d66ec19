"""Pages in a real Chromium: from opening one until its first figure is drawn."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Row, measured
from benchmarks.readers import SAMPLES, Setting, repeat, wanted_values
from benchmarks.speed import report

LAUNCHES = 150
WATCH = """
new MutationObserver((_, observer) => {
  if (!document.querySelector('.fig svg.main-svg')) return;
  window.drawn = performance.now();
  observer.disconnect();
}).observe(document, {childList: true, subtree: true});
"""


def pages(setting: Setting) -> Iterator[Row]:
    """Open the page of one launch and that of many."""
    from tests.conftest import CHROMIUM, CHROMIUM_ARGUMENTS

    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        yield Row("pages in a browser", "not measured: playwright is not installed")
        return
    if CHROMIUM is None:
        yield Row("pages in a browser", "not measured: no chromium on PATH")
        return
    many = setting.folder / "many.ncu-rep"
    several = SAMPLES / "several-launches.ncu-rep"
    launches = repeat(several, many, LAUNCHES, int(measured(wanted_values(several, setting.folder)).out))
    files = {"one launch": SAMPLES / "gemm-tensor.ncu-rep", f"{launches} launches": many}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
        for label, file in files.items():
            command = report(file, setting.folder)
            measured(command)
            page = Path(command[-1])
            times = [opened(browser, page) for _ in range(1 if setting.quick else 5)]
            size = page.stat().st_size / 1e6
            yield Row(
                f"page of {label}: first figure", f"{statistics.median(times):.2f} s", found=f"{size:.1f} MB"
            )
        browser.close()


def opened(browser: Any, page: Path) -> float:
    """Return the time [s] from opening ``page`` in an empty context to its first figure."""
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    tab = context.new_page()
    tab.add_init_script(WATCH)
    tab.goto(page.as_uri())
    tab.locator(".fig svg.main-svg").first.wait_for(state="attached")
    milliseconds: float = tab.evaluate("window.drawn")
    context.close()
    return milliseconds / 1000
