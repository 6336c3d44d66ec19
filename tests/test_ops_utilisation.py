"""What NVML says while a region runs, beside what the trace proves."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncukit.model.ops import Ops
from ncukit.render.ops.json import ops_data
from ncukit.render.ops.text import ops_text
from ncukit.run.workload import timing
from ncukit.run.workload.timing import MISSING, Watch
from ncukit.trace.intervals import union
from ncukit.trace.operator_table import analyse_operators, sampled
from ncukit.trace.torch_events import read_torch
from tests.torch_builder import training


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A driver that says 40 %, then 100 %, and so on."""
    made = ModuleType("pynvml")
    said = iter([40, 100] * 10_000)
    made.nvmlInit = lambda: None  # type: ignore[attr-defined]
    made.nvmlShutdown = lambda: None  # type: ignore[attr-defined]
    made.nvmlDeviceGetHandleByUUID = lambda uuid: uuid  # type: ignore[attr-defined]
    made.nvmlDeviceGetUtilizationRates = lambda handle: SimpleNamespace(gpu=next(said))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", made)
    monkeypatch.setattr(timing, "EVERY", 0.001)
    return made


@given(st.lists(st.tuples(st.integers(-50, 250), st.integers(1, 60)), max_size=8), st.integers(1, 70))
def test_the_least_and_the_most_busy_window_are_those_of_all_windows(
    work: list[tuple[int, int]], window: int
) -> None:
    busy = union([begin for begin, _ in work], [begin + length for begin, length in work])
    inside = [any(begin <= t < begin + length for begin, length in work) for t in range(200)]
    shares = [100 * sum(inside[at : at + window]) / window for at in range(0, 201 - window, window)]
    assert sampled(busy, 0, 200, window) == (min(shares), max(shares))


def test_nvml_is_asked_while_the_region_runs_and_no_longer(nvml: ModuleType) -> None:
    with Watch("GPU-1") as seen:
        while len(seen.samples) < 4:
            time.sleep(0.001)
    count = len(seen.samples)
    assert seen.samples[:4] == [40, 100, 40, 100]
    time.sleep(0.01)
    assert len(seen.samples) == count
    assert seen.as_dict() == {"samples": seen.samples, "reason": ""}
    assert not any(thread.name.startswith("Watch") for thread in threading.enumerate())


def test_a_driver_that_fails_is_a_reason_and_not_an_error(nvml: ModuleType) -> None:
    def fail(uuid: str) -> None:
        raise RuntimeError("Not Supported")

    nvml.nvmlDeviceGetHandleByUUID = fail  # type: ignore[attr-defined]
    with Watch("GPU-1") as seen:
        seen._done.wait(0.05)
    assert seen.as_dict() == {"samples": [], "reason": "NVML: Not Supported"}


def test_without_the_library_the_reason_is_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with Watch("GPU-1") as seen:
        pass
    assert seen.reason == MISSING


@pytest.fixture
def ops(tmp_path: Path) -> Ops:
    return analyse_operators(read_torch(training().write(tmp_path / "t.json")))


def test_sums_and_spans_say_what_they_are(ops: Ops) -> None:
    shown = " ".join(ops_text(ops).split())
    assert "3 copies, together 24.6 kB in 30.0 µs" in shown  # not each of 24.6 kB
    assert "calls first to last, on the CPU: " in shown
    assert "BUSY GPU 0, first to last work 2.46 ms" in shown


def test_the_measured_number_stands_beside_the_busy_share(ops: Ops) -> None:
    found = replace(ops, utilisation=(replace(ops.utilisation[0], seen=(40, 100, 100), unseen=""),))
    (data,) = ops_data(found)["utilisation"]
    assert data["nvidia_smi"] == {"samples": 3, "mean": 80.0, "low": 40, "high": 100, "why_not": None}
    assert data["busy"] == pytest.approx(100 * 270 / 2460)
    shown = ops_text(found)
    assert "80.0 % (40–100)  nvidia-smi, measured" in shown
    assert "it cannot tell a full GPU from one block" in " ".join(shown.split())


def test_what_was_not_asked_for_is_not_shown_and_unknown_in_json(ops: Ops) -> None:
    assert "nvidia-smi, measured" not in ops_text(ops)
    said = ops_data(ops)["utilisation"][0]["nvidia_smi"]
    assert (said["mean"], said["samples"]) == (None, 0)
    assert "--host" in said["why_not"]
    failed = replace(ops, utilisation=(replace(ops.utilisation[0], unseen=MISSING),))
    assert "not measured  nvidia-smi, measured" in ops_text(failed)
