"""A clock that jumps between steps: nothing is negative, nothing collides, nothing is lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ncukit.run.directory import RunDirectory
from ncukit.run.tools import doctor
from ncukit.run.tools.doctor import Examination
from tests.conftest import CHECKOUT
from tests.mutations.run import Ended
from tests.runs import RUN, Lab, whole

HOUR, MONTH = 3600, 30 * 24 * 3600
NOW = int(time.time()) + 3 * MONTH // 2
"""Time [s] of the clock: a month and two months before it lie on either side of the times of new files."""
JUMPS = {"back": (NOW, -HOUR), "forwards": (NOW, MONTH), "stands still": (NOW, 0)}
"""Time [s] at the first look at the clock, and how far it jumps each time somebody looks again."""
MARKUP = re.compile(r"(?s)<script.*?</script>|<style.*?</style>|<[^>]*>")
NEGATIVE = re.compile(r"(?<![\w.])[-−]\s?\d[\d.,]* ?(?:ns|µs|ms|s|min|h)\b")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clock that jumps, to be loaded before the C library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler for a stand-in clock")
    made = tmp_path_factory.mktemp("clock") / "clock.so"
    source = CHECKOUT / "tests" / "fakes" / "clock.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", made, source], check=True)
    return made


FORKS = """
import json, os, sys
from dataclasses import asdict
from pathlib import Path
from ncukit.dataset.rows import fingerprint
from tests.mutations.run import run
from tests.mutations.warm import warm

warm(dataset=True)
fingerprint()  # once: forks must not see sources that change meanwhile
for line in sys.stdin:
    words, folder, environ = json.loads(line)
    os.environ.clear()
    os.environ.update(environ)
    print(json.dumps(asdict(run(words, Path(folder)))), flush=True)
"""
"""Runs commands in forks of a process that has imported ncukit, and looks at no clock itself."""


Ncukit = Callable[..., Ended]


@pytest.fixture(scope="module")
def ncukit(library: Path) -> Iterator[Ncukit]:
    """Run ``ncukit`` under a clock that stands at ``start`` and jumps by ``step`` [s]."""
    environ = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(CHECKOUT)}
    process = subprocess.Popen(
        [sys.executable, "-c", FORKS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environ,
        cwd=CHECKOUT,
        text=True,
    )
    asks, answers = process.stdin, process.stdout
    assert asks is not None
    assert answers is not None

    def run(*words: object, clock: tuple[int, int]) -> Ended:
        start, step = clock
        jumping = {"LD_PRELOAD": str(library), "FAKE_CLOCK": f"{start} {step}", "PYTHONPATH": str(CHECKOUT)}
        json.dump(([*map(str, words)], os.getcwd(), {**os.environ, **jumping}), asks)
        print(file=asks, flush=True)
        return Ended(**json.loads(answers.readline()))

    with process:
        yield run


def test_the_clock_jumps_and_the_monotonic_one_does_not(library: Path) -> None:
    program = "import time as t; a, b = t.time(), t.time(); print(a - b, t.monotonic() <= t.monotonic())"
    env = {**os.environ, "LD_PRELOAD": str(library), "FAKE_CLOCK": f"{NOW} -{HOUR}"}
    said = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    back, steady = said.stdout.split()
    assert (float(back) >= HOUR, steady) == (True, "True")


def times(tree: Any, name: str = "") -> Iterator[float]:
    """Yield every duration [s] in JSON data."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from times(value, key)
    elif isinstance(tree, list):
        for value in tree:
            yield from times(value, name)
    elif isinstance(tree, int | float) and name in (
        *("seconds", "duration", "median", "iqr", "minimum", "maximum", "samples"),
        *("min", "max", "apart", "warm-up", "import", "case", "longest_gap", "busy"),
    ):
        yield tree


@pytest.mark.parametrize("jump", ["back", "forwards"])
def test_a_run_under_a_clock_that_jumps(jump: str, lab: Lab, ncukit: Ncukit) -> None:
    for number in (1, 2):
        done = ncukit(*RUN, clock=JUMPS[jump])
        assert done.code == 0, done
        assert len(lab.runs()) == number  # neither run touches the other
    for folder in lab.runs():
        list(whole(folder))
        record = json.loads((folder / "run.json").read_text())
        assert (record["status"], record["isolation"]["verdict"]) == ("complete", "proven")
        found = [*times(record), *times(json.loads((folder / "timing.json").read_text()))]
        assert len(found) > 8
        assert all(0 <= seconds < 600 for seconds in found), found
        assert not NEGATIVE.findall(MARKUP.sub(" ", (folder / "report.html").read_text()))
    again = ncukit("profile", "--resume", lab.runs()[0], clock=(NOW - MONTH, -HOUR))
    assert again.code == 0, again
    assert len(lab.bodies()) == 6  # nothing is done again
    index = ncukit("index", "reports", "--workers", "1", clock=(NOW - MONTH, -HOUR))
    assert index.code == 0, index
    assert "gemm" in (lab.folder / "reports" / "index.html").read_text()


def test_runs_of_one_second_have_names_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    now = datetime.fromtimestamp(NOW, UTC)
    made = [RunDirectory.create(None, "gemm", now=now) for _ in range(3)]
    assert len({directory.path for directory in made}) == 3
    for directory in made:
        directory.close()


@pytest.mark.parametrize("jump", JUMPS)
def test_a_dataset_is_brought_up_to_date_whatever_the_clock_says(
    jump: str, tmp_path: Path, without_code: Path, ncukit: Ncukit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    report = tmp_path / "in" / "a.ncu-rep"
    shutil.copy(without_code / "copy-dram.ncu-rep", report)
    os.utime(report, (NOW + 10 * MONTH,) * 2)  # of the future
    words = ("dataset", "build", "in", "-o", "fleet", "--workers", "1", "--json")

    def built(clock: tuple[int, int]) -> dict[str, Any]:
        done = ncukit(*words, clock=clock)
        assert done.code == 0, done
        found: dict[str, Any] = json.loads(done.out)
        return found

    assert built(JUMPS[jump])["read"] == 1
    assert built((NOW - MONTH, 0))["read"] == 0
    os.utime(report, (NOW - 10 * MONTH,) * 2)  # touched, by a clock that had gone back: the same content
    assert built((NOW - 2 * MONTH, 0))["read"] == 0
    shutil.copy(without_code / "gemm-tensor.ncu-rep", report)
    os.utime(report, (NOW - 20 * MONTH,) * 2)  # another content, and older than the old one
    assert built((NOW - 2 * MONTH, 0))["read"] == 1


def test_a_clock_of_1970_is_no_obstacle(
    tmp_path: Path, without_code: Path, ncukit: Ncukit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without a battery; a zip file knows no time before 1980."""
    monkeypatch.chdir(tmp_path)
    for name in ("NCU", "NSYS", "NVCC"):  # the real tools would wait by this clock
        monkeypatch.setenv(f"NCUKIT_{name}", "/bin/true")
    done = ncukit("doctor", "--bundle", clock=(10, 1))
    (made,) = tmp_path.glob("*.zip")
    assert made.name.startswith("ncukit-doctor-1970")
    assert zipfile.ZipFile(made).testzip() is None, done
    done = ncukit("report", without_code / "copy-dram.ncu-rep", "-o", "page.html", clock=(10, 1))
    assert done.code == 0, done
    assert "1970-01-01" in (tmp_path / "page.html").read_text()


class Still:
    """A clock that stands still."""

    @staticmethod
    def now(zone: Any) -> datetime:
        return datetime.fromtimestamp(NOW, zone)


def test_bundles_of_one_second_have_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "datetime", Still)
    made = [doctor.write_bundle(Examination("bare", ())) for _ in range(3)]
    assert len(set(made)) == 3
