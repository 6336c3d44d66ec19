"""The page of a timeline: one self-contained file, without any library."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from ncukit.model.trace import LaunchChoice, Timeline
from ncukit.render.html import write_page
from ncukit.render.timeline.strip import strip
from ncukit.render.timeline.view import page_view
from ncukit.trace.files import sha256_of

if TYPE_CHECKING:
    from ncukit.trace.scope import Scope


def write_timeline(
    path: str | Path,
    scope: Scope,
    timeline: Timeline,
    choice: LaunchChoice | None = None,
    why_not: str = "",
    *,
    force: bool = False,
    command: str = "",
) -> Path:
    """Write the page of ``timeline``, which was made of ``scope``, to ``path`` and return it.

    Raises:
        UsageError: the file exists and ``force`` is not set, or it cannot be written.
    """
    around = None if choice is None else choice.launch.start
    lanes = strip(scope, timeline.main_device, around=around) if timeline.main_device is not None else {}
    generated = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    view = page_view(
        timeline,
        lanes,
        choice,
        why_not,
        sha256=sha256_of(timeline.file.path),
        generated=generated,
        command=command,
    )
    return write_page(path, view, force=force)
