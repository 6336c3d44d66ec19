"""Make docs/images/*.png from the pages of bundled samples, with the Chromium on PATH.

python scripts/screenshots.py [FOLDER]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import ncukit

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDTH, HEIGHT = 1100, 800  # [CSS pixel]
MARGIN = 20  # [CSS pixel]
# Picture -> sample, section of its page; "": what is seen first.
PICTURES = {"report": ("transpose-bank-conflicts", ""), "roofline": ("gemm-tensor", "#kernel-1-roofline")}


def main(folder: Path = FOLDER) -> None:
    """Write one picture a section into ``folder``."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("screenshots.py: no chromium on PATH")
    samples = {path.stem: path for path in ncukit.demo_reports()}
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        for name, (sample, section) in PICTURES.items():
            page = ncukit.write_report(samples[sample], Path(work) / f"{name}.html", command="ncukit report")
            tab.goto(page.as_uri())
            target = folder / f"{name}.png"
            if section:
                tab.locator(section).scroll_into_view_if_needed()
                tab.locator(section).locator(".main-svg").first.wait_for()
                box = tab.locator(section).bounding_box()
                tab.screenshot(
                    path=target, clip={**box, "x": 0, "width": WIDTH, "height": box["height"] + MARGIN}
                )
            else:
                tab.screenshot(path=target)
            print(f"{target}: {target.stat().st_size / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
