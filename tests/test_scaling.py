"""Twice the launches are twice the work, counted in functions called: no clock, no load of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interruptions import NEVER, calls, stopped
from tests.mutations.run import run
from tests.mutations.warm import warm

HEAD = (
    '"ID","Process Name","Kernel Name","Grid Size","Block Size","sm__cycles_active.avg","dram__bytes.sum"\n'
    '"","","","","","cycle","Kbyte"\n'
)
ROW = '"{}","app","void gemm<float>(float*, int)","(128, 1, 1)","(256, 1, 1)","123,456.5","78.9"\n'
COMMANDS = {
    "metrics": ("metrics", "x.csv", "--json"),
    "show": ("show", "x.csv"),
    "report": ("report", "x.csv", "-o", "page.html", "--force"),
}


def written(folder: Path, launches: int) -> None:
    """Write what ncu prints of so many launches."""
    (folder / "x.csv").write_text(HEAD + "".join(map(ROW.format, range(launches))))


@pytest.mark.parametrize("command", COMMANDS)
def test_work_grows_with_the_number_of_launches(command: str, tmp_path: Path) -> None:
    warm()
    (tmp_path / "tmp").mkdir()
    found = []
    for launches in (250, 250, 500, 1000):  # the first fills caches
        written(tmp_path, launches)
        ended = stopped(COMMANDS[command], tmp_path, NEVER)
        assert ended.code == 0, ended.err
        found.append(calls(tmp_path))
    small, large = found[2] - found[1], found[3] - found[2]
    assert 1.8 < large / small < 2.2, found
    assert large / 500 < 2600, "functions called for each launch"


def test_json_of_any_length_takes_little_memory(tmp_path: Path) -> None:
    warm()
    written(tmp_path, 3000)
    ended = run(COMMANDS["metrics"], tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert len(ended.out) > 100e6
    assert ended.memory < 90e6


def test_why_a_rule_was_skipped_is_kept_once_for_all_launches(tmp_path: Path) -> None:
    from ncukit.api import read

    written(tmp_path, 2)
    first, second = read(tmp_path / "x.csv").diagnoses()
    assert len(first.skipped) > 50
    assert all(one is other for one, other in zip(first.skipped, second.skipped, strict=True))
