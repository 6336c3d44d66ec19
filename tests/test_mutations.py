"""Damaged at random, a report is refused with exit code 4 or read: no traceback, no launch made of garbage.

Content has no checksum: a flipped bit inside a value cannot be seen.  More kinds and more of each:
``python -m tests.mutations``.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ncukit.api as ncukit
from ncukit.errors import ReportError
from tests.conftest import CHECKOUT, shared_folder
from tests.mutations import originals as sound
from tests.mutations.damage import damaged_bytes
from tests.mutations.run import run
from tests.torch_builder import training

SEEDS = 16
SMALL_REPORTS = (
    "sm120-rtx-5060-ti-ncu2025.2-01.ncu-rep",
    "sm75-gtx-1660-ti-ncu2022.4-01.ncu-rep",
    "sm75-rtx-2070-ncu2020.1-01.nsight-cuprof-report",
    "sm86-rtx-3070-ncu2022.3-03.ncu-rep",
)


def sound_reports() -> list[Path]:
    """Return small sound reports: the synthetic samples, and real ones where they are at hand."""
    real = [shared_folder() / "reports" / "ncu" / name for name in SMALL_REPORTS]
    return sorted((CHECKOUT / "reports" / "samples").glob("*.ncu-rep")) + [p for p in real if p.exists()]


def outcome(path: Path) -> str:
    """Read ``path``; return the error's code or "read".  A launch of garbage fails an assertion."""
    failure = None
    try:
        kernels = list(ncukit.read(path).kernels())
    except ReportError as error:
        failure = error
    if failure:
        assert failure.exit_code == 4
        assert failure.message
        assert failure.hint
        return failure.code
    assert kernels
    for kernel in kernels:
        assert kernel.name or kernel.demangled
        assert len(kernel.raw.metrics) > 10
        json.dumps(kernel.demangled, ensure_ascii=False).encode()
    return "read"


@pytest.fixture(scope="module")
def originals() -> list[Path]:
    return sound_reports()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_mutated_report_is_refused_or_read(seed: int, originals: list[Path], tmp_path: Path) -> None:
    original = originals[seed % len(originals)]
    path = tmp_path / "mutated.ncu-rep"
    path.write_bytes(damaged_bytes(seed, original.read_bytes()))
    outcome(path)


def results(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each result in ``data``, found by the reader's own walk."""
    from ncukit.report.blocks import _fields

    pos = 8 + int.from_bytes(data[4:8], "little")
    while pos < len(data):
        begin = pos + 4 + int.from_bytes(data[pos : pos + 4], "little")
        found, _ = _fields(data[pos + 4 : begin]) or ({}, False)
        pos = begin + found.get(5, 0)
        entry = 0
        while begin < pos:
            end = begin + 4 + int.from_bytes(data[begin : begin + 4], "little")
            if entry >= found.get(1, 0):
                yield begin + 4, end
            begin, entry = end, entry + 1


def test_a_result_whose_content_is_lost_is_named(originals: list[Path], tmp_path: Path) -> None:
    data = originals[0].read_bytes()
    begin, end = next(results(data))
    path = tmp_path / "x.ncu-rep"
    for content in (bytes(end - begin), b"\xff" * (end - begin)):
        path.write_bytes(data[:begin] + content + data[end:])
        with pytest.raises(ReportError, match=r"damaged inside|crashed"):
            list(ncukit.read(path).kernels())


def test_bytes_that_are_not_text_do_not_reach_a_page(shared: Path, tmp_path: Path) -> None:
    data = (shared / "reports" / "ncu" / "sm86-rtx-3070-ncu2022.3-03.ncu-rep").read_bytes()
    path = tmp_path / "latin1.ncu-rep"
    path.write_bytes(data.replace(b"VecAdd_kernel", b"VecAdd_k\xe4rnel"))
    for isolate in (True, False):
        (kernel,) = ncukit.read(path, isolate=isolate).kernels()
        assert kernel.demangled == "VecAdd_k\ufffdrnel"


# ---- small inputs that once ended in an internal error ----


def events(trace: Path) -> Any:
    return json.loads(trace.read_text())


@pytest.mark.parametrize(
    ("change", "command"),
    [
        pytest.param(
            {"deviceProperties": [{"id": 0, "name": ["A40"]}]}, "ops", id="a GPU whose name is a list"
        ),
        pytest.param({"deviceProperties": [{"id": 0, "numSms": "many"}]}, "ops", id="SMs that are no number"),
        pytest.param({"pytorch_version": [2]}, "ops", id="a version of torch that is a list"),
        pytest.param({"distributedInfo": "rank 0"}, "ops", id="distributedInfo that is a text"),
    ],
)
def test_odd_heads_of_torch_traces_are_unknown(change: dict[str, Any], command: str, tmp_path: Path) -> None:
    data = {**events(training(steps=1).write(tmp_path / "x.json")), **change}
    (tmp_path / "x.json").write_text(json.dumps(data))
    ended = run((command, "x.json"), tmp_path)
    assert (ended.fault(), ended.code) == (None, 0), ended.err


def test_a_process_number_beyond_all_bounds_is_no_process(tmp_path: Path) -> None:
    data = events(training(steps=1).write(tmp_path / "x.json"))
    for event in data["traceEvents"]:
        if isinstance(event.get("pid"), int):
            event["pid"] = 2**64
    (tmp_path / "x.json").write_text(json.dumps(data))
    assert run(("ops", "x.json"), tmp_path).fault() is None


def test_a_trace_of_calls_without_operators_is_read(tmp_path: Path) -> None:
    data = events(training(steps=1).write(tmp_path / "x.json"))
    data["traceEvents"] = [event for event in data["traceEvents"] if event.get("cat") != "cpu_op"]
    (tmp_path / "x.json").write_text(json.dumps(data))
    ended = run(("ops", "x.json"), tmp_path)
    assert (ended.fault(), ended.code) == (None, 0), ended.err


def test_a_kernel_of_another_century_takes_no_memory(tmp_path: Path) -> None:
    data = events(training(steps=1).write(tmp_path / "x.json"))
    last = max((e for e in data["traceEvents"] if e.get("cat") == "kernel"), key=lambda e: e["ts"])
    last["ts"] += 4e15  # µs: windows of 1/6 s over all of it would fill 190 GB
    (tmp_path / "x.json").write_text(json.dumps(data))
    ended = run(("ops", "x.json"), tmp_path)
    assert (ended.fault(), ended.code) == (None, 0), ended.err
    assert ended.memory < 300e6


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"clocks": {"before": [1]}}, "clocks.before must be object or null"),
        ({"clocks": {"after": {"throttled": "x"}}}, "clocks.after.throttled must be array or null"),
        ({"device": "A40"}, "device must be object or null"),
        ({"samples": [None]}, "samples[0] must be number"),
    ],
)
def test_odd_timings_are_refused_with_the_place(change: dict[str, Any], place: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    timing = {**json.loads(sound.timings()[0]), **change}
    (tmp_path / "run" / "timing.json").write_text(json.dumps(timing))
    (tmp_path / "run" / "run.json").write_bytes(sound.records()[0])
    ended = run(("report", "--run", "run", "-o", "p.html"), tmp_path)
    assert ended.code == 4
    assert f"is damaged: {place}" in " ".join(ended.err.split())


@pytest.mark.parametrize(
    "model", [{"flop": {"fp32": "x"}}, {"read": None}, {"flop": []}, {"written": -1}, {"name": None}]
)
def test_an_odd_model_of_a_case_is_no_model(model: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    timing = json.loads(sound.timings()[0])
    timing["model"] = {**timing["model"], **model}
    (tmp_path / "run" / "timing.json").write_text(json.dumps(timing))
    (tmp_path / "run" / "run.json").write_bytes(sound.records()[0])
    ended = run(("report", "--run", "run", "-o", "p.html"), tmp_path)
    assert (ended.fault(), ended.code) in ((None, 0), (None, 5)), ended.err


def test_a_repetition_without_the_value_of_its_goal_is_refused(tmp_path: Path) -> None:
    record = json.loads(sound.experiments()[0])
    record["repetitions"][3]["values"] = {}
    (tmp_path / "experiment.json").write_text(json.dumps(record))
    with pytest.raises(ReportError, match=r"repetitions\[3\].values has no time_per_output_token"):
        ncukit.read_experiment(tmp_path)
