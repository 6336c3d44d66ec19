"""Phases that a program names: free without a profiler, a range of its own with one."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import threading
import timeit
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import ncukit
from ncukit.errors import UsageError
from ncukit.run.workload import annotation as module
from ncukit.run.workload.annotation import Ranges
from ncukit.trace.nsys import open_trace
from ncukit.trace.region import describe
from ncukit.trace.scope import in_range
from tests.nsys_builder import Builder


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Any]]]:
    """What a listening profiler hears: (start, name) and (end, the same number as its start)."""
    events: list[tuple[str, Any]] = []

    def start(name: str) -> int:
        events.append(("start", name))
        return len(events)

    monkeypatch.setattr(module, "_made", Ranges("test", start, lambda id: events.append(("end", id))))
    return events


def test_a_phase_is_one_range_as_context_manager(heard: list[tuple[str, Any]]) -> None:
    with ncukit.annotate("prefill"):
        heard.append(("work", None))
    assert heard == [("start", "prefill"), ("work", None), ("end", 1)]


def test_a_phase_is_one_range_a_call_as_decorator(heard: list[tuple[str, Any]]) -> None:
    @ncukit.annotate("decode")
    def factorial(n: int) -> int:
        """Count down."""
        return 1 if n == 0 else n * factorial(n - 1)

    assert factorial(2) == 2
    assert factorial.__doc__ == "Count down."
    assert heard == [("start", "decode")] * 3 + [("end", 3), ("end", 2), ("end", 1)]


def test_a_phase_ends_when_its_work_fails(heard: list[tuple[str, Any]]) -> None:
    @ncukit.annotate("inner")
    def fails() -> None:
        raise ValueError

    with pytest.raises(ValueError), ncukit.annotate("outer"):  # noqa: PT011
        fails()
    assert heard[2:] == [("end", 2), ("end", 1)]


def test_one_phase_in_two_threads_ends_in_each_what_it_started(heard: list[tuple[str, Any]]) -> None:
    phase, inside, leave = ncukit.annotate("shared"), threading.Event(), threading.Event()

    def other() -> None:
        with phase:
            inside.set()
            leave.wait(5)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(5)
    with phase:
        pass
    assert heard[-1] == ("end", 2)  # its own, although the other thread's is open since before
    leave.set()
    thread.join()
    assert heard[-1] == ("end", 1)


def test_a_phase_of_an_async_function_lasts_until_it_is_done(heard: list[tuple[str, Any]]) -> None:
    @ncukit.annotate("fetch")
    async def fetch() -> int:
        await asyncio.sleep(0)
        heard.append(("work", None))
        return 3

    assert asyncio.run(fetch()) == 3
    assert [what for what, _ in heard] == ["start", "work", "end"]


def test_a_generator_is_refused_because_its_call_does_nothing() -> None:
    def batches() -> Iterator[int]:
        yield 1

    with pytest.raises(UsageError, match="generator"):
        ncukit.annotate("load")(batches)


@pytest.mark.parametrize("name", ["", 3, None])
def test_a_phase_needs_a_name(name: Any) -> None:
    with pytest.raises(UsageError):
        ncukit.annotate(name)


def test_without_a_listener_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_made", None)
    monkeypatch.setattr(module, "_start", lambda name: pytest.fail("a range was made"))
    with ncukit.annotate("quiet"):
        ncukit.annotate("quiet")(lambda: None)()


def test_without_a_listener_a_phase_costs_less_than_ten_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is about 0.2 µs as decorator, 0.4 µs as context manager; the bar leaves room for a busy machine."""
    monkeypatch.setattr(module, "_made", None)
    phase = ncukit.annotate("quiet")(lambda: None)
    assert min(timeit.repeat(phase, number=2000, repeat=5)) / 2000 < 10e-6


def test_a_listener_is_looked_for_where_nvtx_looks() -> None:
    code = "from ncukit.run.workload import annotation as a; print(a._made is None)"
    for given, silent in (({}, "True"), ({module.LISTENER: "libnothing.so"}, "False")):
        env = {k: v for k, v in os.environ.items() if k != module.LISTENER} | given
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True
        )
        assert done.stdout.strip() == silent


# In traces


PROGRAM = """
import ncukit, threading

@ncukit.annotate("decode")
def step():
    return sum(range(1000))

with ncukit.annotate("prefill"):
    worker = threading.Thread(target=step)
    worker.start()
    worker.join()
step()
"""


def test_a_real_nsys_sees_the_phases_as_start_end_ranges(nsys: Path, tmp_path: Path) -> None:
    if find_spec("nvtx") is None:
        pytest.skip("the nvtx package is not installed")
    script, out = tmp_path / "work.py", tmp_path / "trace"
    script.write_text(PROGRAM)
    argv = [str(nsys), "profile", "-t", "nvtx", "--sample=none", "--cpuctxsw=none", "-o", str(out)]
    env = {**os.environ, "PYTHONPATH": str(Path(ncukit.__file__).parents[1])}
    subprocess.run([*argv, sys.executable, str(script)], check=True, capture_output=True, env=env, timeout=60)
    export = [str(nsys), "export", "--type", "sqlite", "-o", f"{out}.sqlite", f"{out}.nsys-rep"]
    subprocess.run(export, check=True, capture_output=True, timeout=60)
    query = (
        "SELECT eventType, coalesce(text, value), end - start FROM NVTX_EVENTS "
        "LEFT JOIN StringIds ON id = textId WHERE eventType IN (59, 60) ORDER BY start"
    )
    with closing(sqlite3.connect(f"{out}.sqlite")) as database:
        rows = database.execute(query).fetchall()
    assert [row[:2] for row in rows] == [(60, "prefill"), (60, "decode"), (60, "decode")]
    assert rows[0][2] > rows[1][2] > 0


def test_a_phase_is_a_range_of_the_timeline_with_kernels_of_other_threads(tmp_path: Path) -> None:
    """Autograd launches from a thread of its own: a start/end range holds those kernels too."""
    built = Builder()
    main, autograd = None, 77
    built.nvtx("prefill", 0, 10_000, type=60)
    built.nvtx("decode", 10_000, 40_000, type=60)
    for number, (thread, start) in enumerate(((main, 1_000), (autograd, 12_000), (autograd, 20_000))):
        launch = ("cudaLaunchKernel_v7000", start, start + 200)
        built.kernel(f"k{number}", start + 500, start + 4_500, tid=thread, call=launch)
    trace = open_trace(built.write(tmp_path / "trace.sqlite"))
    found = describe(in_range(trace, "decode"))
    assert found.range == "decode"
    assert [kernel.short for kernel in found.kernels] == ["k1", "k2"]
    (decode,) = [r for r in found.ranges if r.name == "decode"]
    assert (decode.style, decode.kernels, decode.other_threads) == ("start/end", 2, 2)


def test_torchs_profiler_records_the_phase(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    target = tmp_path / "trace.json"
    with torch.profiler.profile() as profile:
        with ncukit.annotate("prefill"):
            torch.ones(4) + 1
        ncukit.annotate("decode")(lambda: torch.ones(4) * 2)()
    profile.export_chrome_trace(str(target))
    events = json.loads(target.read_text())["traceEvents"]
    named = [e["name"] for e in events if e.get("cat") == "user_annotation"]
    assert [name for name in named if name in ("prefill", "decode")] == ["prefill", "decode"]
