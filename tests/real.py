"""The shared real reports, each read and judged once for all tests that look at it."""

from __future__ import annotations

import functools
from pathlib import Path

from ncukit import api
from ncukit.model import Diagnosis


@functools.lru_cache(maxsize=2)
def judged(path: Path) -> tuple[api.Report, list[Diagnosis]]:
    """Return a report and the diagnosis of every launch of it.

    Few are kept: tests marked with `tests.conftest.each_report` run report by report.
    """
    report = api.read(path)
    return report, list(report.diagnoses())
