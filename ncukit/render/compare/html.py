"""The page of a comparison as one self-contained file."""

from __future__ import annotations

import time
from pathlib import Path

from ncukit.model.comparison import Comparison
from ncukit.render.compare.page import page_view
from ncukit.render.html import Plotly, write_page


def write_comparison(
    path: str | Path,
    comparison: Comparison,
    *,
    force: bool = False,
    plotly: Plotly = "inline",
    command: str = "",
) -> Path:
    """Write the page of ``comparison`` to ``path`` and return it; the file appears only when whole.

    Raises:
        UsageError: the file exists and ``force`` is not set, or it cannot be written.
    """
    generated = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return write_page(
        path, page_view(comparison, generated=generated, command=command), force=force, plotly=plotly
    )
