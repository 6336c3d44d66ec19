"""The page of an experiment as one self-contained file."""

from __future__ import annotations

import time
from pathlib import Path

from ncukit.model.experiment import ExperimentRecord
from ncukit.render.experiment.view import page_view
from ncukit.render.html import page, write_page


def experiment_page(record: ExperimentRecord, *, command: str = "") -> str:
    """Return the HTML of the page."""
    return page(page_view(record, generated=_now(), command=command))


def write_experiment(path: Path, record: ExperimentRecord, *, force: bool = False, command: str = "") -> Path:
    """Write the page of ``record`` to ``path`` and return it; the file appears only when whole.

    Raises:
        UsageError: the file exists and ``force`` is not set, or it cannot be written.
    """
    return write_page(path, page_view(record, generated=_now(), command=command), force=force)


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
