"""Print long JSON whole or not at all."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from ncukit.render.json import report_text

IN_MEMORY = 32 << 20
"""[byte] of JSON that are kept in memory; more goes through a temporary file."""


def print_report(file: str, launches: Iterable[str], region: Mapping[str, Any] | None = None) -> None:
    """Print the JSON object of one file as one line.

    It is printed when the last launch was read: a file that breaks in the middle prints its error alone.
    """
    with tempfile.SpooledTemporaryFile(
        IN_MEMORY, "w+", encoding="utf-8", errors="backslashreplace", newline=""
    ) as buffer:  # a file may have a name that is no UTF-8
        for piece in report_text(file, launches, region):
            buffer.write(piece)  # writelines would look at the size when all is in memory
        buffer.write("\n")
        buffer.seek(0)
        shutil.copyfileobj(buffer, sys.stdout)
