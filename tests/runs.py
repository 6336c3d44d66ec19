"""A place to try `ncukit profile`: stand-ins for driver, nsys and ncu, a script and the launches it makes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ncukit.run.tools import locate
from tests.fakes import install
from tests.fakes.driver import build

CHILD = Path(__file__).resolve().parents[1] / "ncukit" / "run" / "workload" / "child.py"

WORKLOAD = """
import os, ncukit

with open(os.environ["RUNS"], "a") as file:      # one line each time the script's body runs
    file.write(f"{os.getpid()}\\n")
CALLS = 0

@ncukit.workload(n=64, scale=2)
def gemm(n, scale):
    data = list(range(n))

    def run():
        global CALLS
        CALLS += 1
        with open(os.environ["RUNS"] + ".calls", "a") as file:
            file.write(f"{os.getpid()}\\n")
        return [scale * x for x in data]

    return ncukit.Case(run=run, reference=lambda: [scale * x for x in data])
"""
"""A workload without torch: its children are quick, and say how often they ran."""

GEMM = {
    "name": "sm90_gemm_f16(Params)",
    "grid": [64, 2, 1],
    "block": [384, 1, 1],
    "registers": 168,
    "shared": 200_000,
    "duration": 120_000,
    "metrics": {"sm__throughput.avg.pct_of_peak_sustained_elapsed": 61.0},
}

RUN = ("profile", "work.py", "--kernel", "gemm", "--repeat", "3")
"""Profile the workload, quickly."""


def gemm(**changes: Any) -> dict[str, Any]:
    """Return a launch inside the marked region."""
    return {**GEMM, "repeat": 10, "ranges": ["ncukit"], **changes}


@dataclass(frozen=True)
class Outcome:
    """What a command came to."""

    code: int
    out: str
    err: str
    folder: Path | None

    @property
    def record(self) -> dict[str, Any]:
        """The run's record."""
        assert self.folder is not None
        found: dict[str, Any] = json.loads((self.folder / "run.json").read_text())
        return found

    def step(self, name: str) -> dict[str, Any]:
        """The record of a step."""
        found: dict[str, Any] = next(step for step in self.record["steps"] if step["name"] == name)
        return found


class Lab:
    """A folder with a script, in which commands run with stand-ins for the tools; ``shared`` holds those."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, shared: Path) -> None:
        self.folder, self._patch = folder, monkeypatch
        self.state = folder / "state"
        self.state.mkdir()
        monkeypatch.chdir(folder)
        for name in list(os.environ):
            if name.startswith(("NCUKIT_", "CUDA_")):
                monkeypatch.delenv(name)
        self.env(
            XDG_CACHE_HOME=str(shared / "cache"),
            XDG_STATE_HOME=str(shared / "state"),
            RUNS=str(folder / "runs"),
            NCUKIT_FAKE_STATE=str(self.state),
            NCUKIT_FAKE_DEVICE=json.dumps({"name": "NVIDIA H100 Test", "cc": [9, 0]}),
        )
        self.env(**install(shared / "bin"))

    def env(self, **variables: str) -> None:
        """Set environment variables."""
        for name, value in variables.items():
            self._patch.setenv(name, value)

    def without(self, tool: str) -> None:
        """Take a tool away."""
        self._patch.delenv(f"NCUKIT_{tool.upper()}")
        self._patch.setenv("PATH", "/usr/bin:/bin")
        self._patch.setattr(locate, "FOLDERS", {"ncu": (), "nsys": (), "nvcc": ()})

    def script(self, text: str = WORKLOAD, name: str = "work.py") -> Path:
        """Write a script."""
        path = self.folder / name
        path.write_text(text)
        return path

    def launches(self, *entries: Mapping[str, Any]) -> None:
        """Say what the program launches on the GPU."""
        self.env(NCUKIT_FAKE_LAUNCHES=json.dumps(entries))

    def __call__(self, *words: str) -> Outcome:
        """Run ``ncukit`` with ``words`` in this process."""
        from ncukit.cli import main

        self._patch.setattr(sys, "argv", ["ncukit", *words])
        before = set(self.runs())
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            try:
                main()
                code = 0
            except SystemExit as stop:
                code = int(stop.code or 0)
        new = [path for path in self.runs() if path not in before]
        return Outcome(code, out.getvalue(), err.getvalue(), new[0] if new else None)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start ``ncukit`` as a process of its own."""
        command = [sys.executable, "-m", "ncukit", *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def runs(self) -> list[Path]:
        """Return the run directories so far."""
        return sorted(path.parent for path in self.folder.glob("*/*/run.json"))

    def calls(self, tool: str) -> list[list[str]]:
        """Return the command lines that a stand-in was given, without questions."""
        file = self.state / "calls.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        found = [json.loads(line) for line in lines]
        asked = ("--version", "--help", "--list-chips", "--list-sections", "--query-metrics")
        return [
            line
            for line in found
            if line[0] == tool and not set(line) & set(asked) and line[1:2] != ["export"]
        ]

    def bodies(self) -> list[str]:
        """Return the process of each execution of the script's body."""
        return (self.folder / "runs").read_text().split()

    def marks(self) -> list[str]:
        """Return what the profiler's switch was told, in order, without flushes."""
        file = self.state / "marks.txt"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if not line.startswith("flush")]


def furnished(folder: Path, monkeypatch: pytest.MonkeyPatch, shared: Path) -> Lab:
    """Return a lab with a GPU, the workload and what it launches; skips without a compiler."""
    folder.mkdir(exist_ok=True)
    lab = Lab(folder, monkeypatch, shared)
    with_driver(lab, shared / "lib")
    lab.script()
    lab.launches({"name": "void fill(float*)", "repeat": 3}, gemm())
    return lab


def wait_for(met: Callable[[], object], process: subprocess.Popen[str], seconds: float = 60) -> None:
    """Wait until ``met()``; where it never is, end ``process`` and fail with what it said."""
    end = time.monotonic() + seconds
    while not met():
        if (ended := process.poll() is not None) or time.monotonic() > end:
            process.kill()
            _, err = process.communicate()
            state = f"ended with {process.returncode}" if ended else f"was still at it after {seconds} s"
            pytest.fail(f"waited in vain for a process that {state}: {err}")
        time.sleep(0.02)


def with_driver(lab: Lab, library: Path) -> None:
    """Give the lab a driver with a GPU, compiled once into ``library``; skips without a compiler."""
    variables = build(library)
    if variables is None:
        pytest.skip("no C compiler for a stand-in driver")
    lab.env(**variables)


def whole(folder: Path) -> Iterator[Path]:
    """Yield every file of a run directory after checking that it is whole."""
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        data = path.read_bytes()
        if path.suffix == ".json":
            json.loads(data)
        elif path.suffix == ".html":
            assert data.rstrip().endswith(b"</html>"), path
        elif path.suffix == ".ncu-rep":
            from ncukit.model import Wanted
            from ncukit.report.reader import Source

            assert list(Source(path).launches(Wanted()))
        elif path.suffix == ".sqlite":
            import sqlite3

            with closing(sqlite3.connect(path)) as database:
                assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        yield path
