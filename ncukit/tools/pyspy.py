"""py-spy: samples the Python stack of a program from outside; it is optional."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ncukit.tools.run import Completed

RATE = 500
"""Samples a second: each one stops the program for a moment."""
VARIABLE = "NCUKIT_PY_SPY"
_SAMPLES = re.compile(r"Samples: (\d+)")
_REFUSED = re.compile(r"permission denied|operation not permitted|ptrace|must be run as root", re.IGNORECASE)


def find(environ: Mapping[str, str]) -> Path | None:
    """Return the py-spy to use: NCUKIT_PY_SPY, PATH, or beside this interpreter; None where there is none."""
    if given := environ.get(VARIABLE):
        return Path(given) if shutil.which(given) else None
    found = shutil.which("py-spy", path=environ.get("PATH")) or shutil.which(
        "py-spy", path=str(Path(sys.executable).parent)
    )
    return Path(found) if found else None


def argv(tool: Path, output: Path, command: Sequence[str]) -> tuple[str, ...]:
    """Return the command that samples ``command`` `RATE` times a second: with times, also while it waits.

    >>> argv(Path("py-spy"), Path("s.json"), ["python", "x.py"])[-4:]
    ('s.json', '--', 'python', 'x.py')
    """
    options = ("record", "--format", "chrometrace", "--rate", str(RATE), "--idle", "--full-filenames")
    return (str(tool), *options, "--output", str(output), "--", *command)


def refused(done: Completed, output: Path) -> str:
    """Return why py-spy did not sample, "" where it did."""
    if _REFUSED.search(done.output) and not output.is_file():
        return "py-spy may not look into the process (ptrace is not permitted here)"
    samples = _SAMPLES.search(done.output)
    if not output.is_file() or (samples is not None and samples[1] == "0"):
        said = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")
        return f"py-spy took no sample{': ' + said.strip() if said else ''}"
    return ""
