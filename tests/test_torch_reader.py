"""Traces of torch's profiler as they are: read event by event, whatever version wrote them, or refused."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncukit.errors import ReportEmpty, ReportError, ReportFormatError, ReportNotFound
from ncukit.trace import events as json_events
from ncukit.trace.events import Events
from ncukit.trace.files import open_any_trace
from ncukit.trace.torch_events import read_torch
from tests.torch_builder import FLAVOURS, TorchBuilder, training

# ---- JSON, one event at a time -----------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text()
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(), v, max_size=3))
heads = st.dictionaries(st.text().filter(lambda key: key != "traceEvents"), values, max_size=4)


@settings(deadline=None, max_examples=80)
@given(st.lists(values, max_size=6), heads, heads, st.integers(1, 40), st.booleans())
def test_events_are_those_that_json_reads(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[Any],
    before: dict[str, Any],
    after: dict[str, Any],
    chunk: int,
    spaced: bool,
) -> None:
    path = tmp_path_factory.mktemp("events") / "t.json"
    data = {**before, "traceEvents": events, **after}
    path.write_text(
        json.dumps(data, indent=1 if spaced else None, ensure_ascii=not spaced), "utf-8", "surrogatepass"
    )
    try:
        path.read_text("utf-8")
    except UnicodeDecodeError:
        return  # lone surrogates: no file of torch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_events, "CHUNK", chunk)
        found = Events(path)
        assert list(found) == data["traceEvents"]
    assert {**found.head, "traceEvents": events} == data


def test_the_bare_list_of_events_will_do(tmp_path: Path) -> None:
    (path := tmp_path / "t.json").write_text('\ufeff [{"ph": "X"}, {"ph": "i"}] \n', encoding="utf-8")
    assert [event["ph"] for event in Events(path)] == ["X", "i"]


def test_numbers_that_no_json_may_hold_are_unknown(tmp_path: Path) -> None:
    text = '{"traceEvents": [{"a": inf, "b": -nan, "name": "f(inf, nan)"}, {"a": 1}]}'
    (path := tmp_path / "t.json").write_text(text)
    assert list(Events(path)) == [{"a": None, "b": None, "name": "f(inf, nan)"}, {"a": 1}]


BROKEN = {
    "empty": (b"", "empty"),
    "cut in an event": (b'{"traceEvents": [{"ph": "X", "na', "ends in the middle after 0|ends in the middle"),
    "cut between events": (b'{"traceEvents": [{"ph": "X"}, ', "ends in the middle after 1 events"),
    "cut after the events": (b'{"traceEvents": [{"ph": "X"}]', "ends in the middle"),
    "a comma too many": (b'{"traceEvents": [{"ph": "X"},, {"ph": "X"}]}' + b" " * 50, "Expecting value"),
    "no comma": (b'{"traceEvents": [{"ph": "X"} {"ph": "X"}]}', "']' is missing"),
    "two documents": (b'{"traceEvents": []}{"traceEvents": []}', "something follows"),
    "packed and cut": (gzip.compress(b'{"traceEvents": []}' * 9)[:-12], "damaged or ends early"),
    "packed and damaged": (b"\x1f\x8b\x08\x00" + b"\xff" * 40, "damaged or ends early"),
    "too deep": (b'{"traceEvents": [' + b"[" * 200_000 + b"]" * 200_000 + b"]}", "nested too deeply"),
    "no events": (b'{"traceEvents": {}}', "no traceEvents"),
    "another JSON": (b'{"a": 1}', "no traceEvents"),
    "no JSON": (b"<html>", "no JSON"),
    "numbers": (b"12", "no JSON"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_whole_trace_says_why(name: str, tmp_path: Path) -> None:
    content, why = BROKEN[name]
    (path := tmp_path / "t.json").write_bytes(content)
    with pytest.raises(ReportFormatError, match=why) as error:
        list(Events(path))
    assert str(path) in error.value.message
    assert error.value.exit_code == 4
    assert error.value.hint


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ReportNotFound, match="there is no file"):
        list(Events(tmp_path / "none.json"))
    with pytest.raises(ReportNotFound, match="directory"):
        list(Events(tmp_path))


def test_a_chrome_trace_of_another_program_is_no_trace_of_torch(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "toplevel", "name": "x", "ts": 1, "dur": 2, "pid": 1, "tid": 1}
    (path := tmp_path / "t.json").write_text(json.dumps([event]))
    with pytest.raises(ReportFormatError, match=r"not of torch's profiler.*toplevel"):
        read_torch(path)


def test_a_trace_of_nothing_says_so(tmp_path: Path) -> None:
    (b := TorchBuilder()).annotation("ProfilerStep#1", 0, 10)
    with pytest.raises(ReportEmpty, match="neither an operator nor work of a GPU"):
        read_torch(b.write(tmp_path / "t.json"))


def test_a_trace_of_torch_without_any_event_of_interest_is_empty_not_foreign(tmp_path: Path) -> None:
    """A profiler that was started and stopped writes only marks of its own."""
    mark = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "ts": 1, "dur": 2, "pid": "Spans"}
    (path := tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [mark]}))
    with pytest.raises(ReportEmpty, match="neither an operator nor work of a GPU"):
        read_torch(path)


def test_every_real_trace_that_is_cut_is_refused(shared: Path, tmp_path: Path) -> None:
    whole = (shared / "reports" / "torch" / "trace-05.json.gz").read_bytes()
    plain = gzip.decompress(whole)
    path = tmp_path / "t.json"
    for content in (
        *(whole[:n] for n in range(1, len(whole), 997)),
        *(plain[:n] for n in range(1, len(plain), 9973)),
    ):
        path.write_bytes(content)
        with pytest.raises(ReportError):
            read_torch(path)


def test_memory_is_that_of_a_few_events_however_long_the_trace(tmp_path: Path) -> None:
    b = TorchBuilder()
    b.launch("k" * 4000, 0, 5, 3)
    event = json.dumps(b.events[-1])
    (path := tmp_path / "t.json").write_text('{"traceEvents": [' + ",".join([event] * 3000) + "]}")
    tracemalloc.start()
    try:
        found = read_torch(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.trace.kernels) == 3000
    assert peak < path.stat().st_size / 2


# ---- versions of torch -------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_version_gives_the_same_rows(flavour: str, tmp_path: Path) -> None:
    found = read_torch(training(flavour).write(tmp_path / "t.json.gz"))
    trace = found.trace
    counts = [
        len(rows) for rows in (found.operators, trace.kernels, trace.copies, trace.memsets, trace.calls)
    ]
    assert counts == [21, 9, 3, 3, 18]
    assert trace.kernels.duration.sum() == 3 * 90_000
    assert trace.copies["bytes"].tolist() == [8192] * 3
    assert {trace.names[i] for i in found.operators["name"]} >= {"aten::addmm", "aten::mm", "aten::copy_"}
    assert not trace.notes[1:]
    assert found.recorded == {"shapes": True, "memory": False, "stacks": False}


def test_an_amd_gpu_has_no_compute_capability(tmp_path: Path) -> None:
    (gpu,) = read_torch(training("rocm").write(tmp_path / "t.json")).trace.gpus.values()
    assert gpu.name == "AMD Radeon Graphics"
    assert gpu.compute_capability is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [("CopyHostToDevice", 1), ("CopyDeviceToHost", 2), ("CopyDeviceToDevice", 8), ("Memcpy HtoD", 1)],
)
def test_copies_of_rocm_have_their_direction_by_either_name(name: str, kind: int, tmp_path: Path) -> None:
    (b := training("rocm")).copy(3000, 3010, 5, 4096)
    for event in b.events:
        if event.get("cat") == "gpu_memcpy":
            event["name"] = name
    assert set(read_torch(b.write(tmp_path / "t.json")).trace.copies["kind"].tolist()) == {kind}


def test_a_copy_that_does_not_say_its_size_is_noted(tmp_path: Path) -> None:
    b = training()
    for event in b.events:
        event.get("args", {}).pop("bytes", None)
    trace = read_torch(b.write(tmp_path / "t.json")).trace
    assert any("3 copies do not say how many bytes" in note for note in trace.notes)


def test_events_that_make_no_sense_are_counted(tmp_path: Path) -> None:
    b = training()
    b.launch("k", 0, 5, 3, grid=[1])
    b.launch("k", 0, 5, 3, device=1 << 70)
    b.events += [{"ph": "X"}, None, [], {"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "args": "x"}]
    trace = read_torch(b.write(tmp_path / "t.json")).trace
    assert any("3 events could not be read" in note for note in trace.notes)
    assert len(trace.kernels) == 9


def test_what_ends_before_it_begins_is_left_out_and_said(tmp_path: Path) -> None:
    b = training()
    b.launch("backwards", 0, 5, -50)
    b.op("aten::backwards", 5, -3)
    found = read_torch(b.write(tmp_path / "t.json"))
    assert any("they end before they begin: 2 events" in note for note in found.trace.notes)
    assert int(found.trace.kernels.duration.min()) >= 0
    assert "backwards" not in found.trace.names


def test_a_trace_is_recognised_by_what_it_holds_not_by_its_name(tmp_path: Path) -> None:
    trace = open_any_trace(training().write(tmp_path / "renamed.sqlite"))
    assert trace.file.format == "torch"
    packed = training().write(tmp_path / "t.gz")
    assert len(open_any_trace(packed).kernels) == 9
    (other := tmp_path / "b.sqlite").write_bytes(b"SQLite format 3\0")
    with pytest.raises(ReportError, match=r"database|damaged"):
        open_any_trace(other)
