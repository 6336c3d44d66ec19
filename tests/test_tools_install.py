"""The script that installs ncu and nsys for the tests leaves alone what works."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncukit.run.tools.process import run

SCRIPT = Path(__file__).parents[1] / "scripts" / "install_nsight.sh"


def test_nothing_is_done_where_the_tools_work_already(ncu: Path) -> None:
    prefix = ncu.parents[1]
    if not (prefix / "libcuda").exists() or not (prefix / "samples").exists():
        pytest.skip(f"{prefix} was not made by the script")
    before = sorted((path, path.lstat().st_mtime_ns) for path in prefix.glob("*/*"))
    done = run([SCRIPT, prefix], timeout=60)
    assert (done.returncode, done.stdout) == (0, f"{prefix}: ncu and nsys work already")
    assert sorted((path, path.lstat().st_mtime_ns) for path in prefix.glob("*/*")) == before
