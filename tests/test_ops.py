"""Operators: what launched what, sums that are those of the trace, allocators, how busy the GPU was."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncukit.errors import UsageError
from ncukit.model.ops import Operator, Ops, Stay
from ncukit.model.trace import Columns
from ncukit.trace.host_functions import from_samples, from_stacks
from ncukit.trace.intervals import union
from ncukit.trace.operator_table import SORTS, against_torch, analyse_operators, ordered, sampled, utilisation
from ncukit.trace.operators import nest, within
from ncukit.trace.scope import whole
from ncukit.trace.torch_events import read_torch
from tests.conftest import no_shared, shared_folder
from tests.torch_builder import FLAVOURS, TorchBuilder, training

US = 1000
Analysed = Callable[[TorchBuilder], Ops]


@pytest.fixture
def analysed(tmp_path: Path) -> Analysed:
    """Write a builder's trace, read it back and analyse it."""
    return lambda builder: analyse_operators(read_torch(builder.write(tmp_path / "t.json")))


def named(ops: Ops, name: str) -> Operator:
    (found,) = (o for o in ops.operators if o.name == name)
    return found


# ---- a small training, as every version of torch writes it ------------------------------------------


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_operators_have_what_they_and_those_inside_launched(flavour: str, analysed: Analysed) -> None:
    ops = analysed(training(flavour))
    linear, addmm, copy = (named(ops, f"aten::{name}") for name in ("linear", "addmm", "copy_"))
    assert (linear.calls, linear.device_total, linear.device_self) == (3, 3 * 55 * US, 0)
    assert (addmm.device_self, addmm.device_total, addmm.kernel_launches) == (3 * 55 * US, 3 * 55 * US, 6)
    assert [(k.short, k.n, k.total) for k in addmm.kernels] == [
        ("gemm", 3, 90 * US),
        ("splitKreduce_kernel", 3, 60 * US),
    ]
    assert (addmm.memsets, addmm.copies) == (3, 0)
    assert (copy.copies, copy.copy_bytes, copy.copy_time) == (3, 3 * 8192, 30 * US)
    assert (copy.device_self, copy.kernel_launches) == (30 * US, 0)
    assert (addmm.shapes, addmm.types) == ("16, 64x32, 32x16", "float, float, float")


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_cpu_time_of_an_operator_is_without_those_inside(flavour: str, analysed: Analysed) -> None:
    ops = analysed(training(flavour))
    linear = named(ops, "aten::linear")
    assert (linear.cpu_total, linear.cpu_self) == (300 * US, 60 * US)
    assert ops.cpu_self == 3 * (60 + 100 + 100 + 100) * US  # threads add up, nesting does not


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_waits_are_found_where_the_cpu_waits(flavour: str, analysed: Analysed) -> None:
    ops = analysed(training(flavour))
    item, copy = named(ops, "aten::item"), named(ops, "aten::copy_")
    assert (item.waits, item.wait_calls) == (3 * 80 * US, 3)
    assert (copy.waits, copy.wait_calls) == (3 * 20 * US, 3)
    assert named(ops, "aten::addmm").waits == 0


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_backward_runs_in_a_thread_of_its_own(flavour: str, analysed: Analysed) -> None:
    ops = analysed(training(flavour))
    node = named(ops, "autograd::engine::evaluate_function: AddmmBackward0")
    assert (node.device_self, node.device_total) == (0, 120 * US)


def test_operators_are_ordered_by_device_time_or_as_asked(analysed: Analysed) -> None:
    ops = analysed(training())
    assert [o.device_total for o in ops.operators] == sorted(
        (o.device_total for o in ops.operators), reverse=True
    )
    assert ops.sorted_by == "device"
    for sort, by in SORTS.items():
        keys = [by(o) for o in ordered(ops.operators, sort)]
        assert keys == sorted(keys)


def test_without_a_gpu_cpu_time_decides_and_that_is_said(analysed: Analysed) -> None:
    b = TorchBuilder()
    b.op("aten::mm", 0, 10)
    b.op("aten::relu", 20, 30)
    ops = analysed(b)
    assert [o.name for o in ops.operators] == ["aten::relu", "aten::mm"]
    assert ops.sorted_by == "cpu"
    assert any("nothing ran on a GPU" in note for note in ops.notes)
    assert "no kernel ran on a GPU" in ops.deserving.why_not
    assert ops.utilisation == ()


# ---- how work finds its operator ---------------------------------------------------------------------


def test_without_a_launch_call_torch_s_id_names_the_operator(analysed: Analysed) -> None:
    b = TorchBuilder("2.13")
    op = b.op("aten::mm", 0, 10)
    b.launch("gemm()", 2, 20, 7, op=op, traced=False)
    ops = analysed(b)
    assert named(ops, "aten::mm").device_self == 7 * US
    assert (ops.attribution.by_id, ops.attribution.by_call, ops.attribution.without_call) == (7 * US, 0, 1)
    assert any("launch call is not in the trace: 1 of the pieces" in note for note in ops.notes)


def test_the_id_of_old_versions_is_the_correlation_and_names_no_operator(analysed: Analysed) -> None:
    b = TorchBuilder("1.13")
    for _ in range(3):
        b.op("aten::innocent", 0, 1)
    b.launch("gemm()", 500, 520, 7, correlation=2, traced=False, **{"External id": 2})
    ops = analysed(b)
    assert named(ops, "aten::innocent").device_self == 0
    assert ops.attribution.outside == 7 * US


def test_work_outside_of_all_operators_is_counted_as_such(analysed: Analysed) -> None:
    b = TorchBuilder()
    b.op("aten::mm", 0, 10)
    b.launch("gemm()", 50, 60, 7)
    ops = analysed(b)
    assert (ops.attribution.outside, ops.attribution.n_outside) == (7 * US, 1)


def test_a_call_inside_a_call_of_the_same_operator_counts_once_in_totals(analysed: Analysed) -> None:
    b = TorchBuilder()
    outer = b.op("aten::cat", 0, 100)
    b.op("aten::cat", 10, 50)
    b.launch("k()", 20, 200, 7, op=outer)
    cat = named(analysed(b), "aten::cat")
    assert (cat.calls, cat.cpu_total, cat.cpu_self) == (2, 100 * US, 100 * US)
    assert (cat.device_total, cat.device_self) == (7 * US, 7 * US)


def test_the_same_operator_with_other_shapes_is_another_row(analysed: Analysed) -> None:
    b = TorchBuilder()
    b.op("aten::mm", 0, 10, shapes=[[2, 3], [3, 4]])
    b.op("aten::mm", 20, 10, shapes=[[2, 3], [3, 5]])
    b.op("aten::mm", 40, 10, shapes=[[2, 3], [3, 5]], types=["c10::Half", "c10::Half"])
    rows = sorted((o.shapes, o.types, o.calls) for o in analysed(b).operators)
    assert rows == [
        ("2x3, 3x4", "float, float", 1),
        ("2x3, 3x5", "c10::Half, c10::Half", 1),
        ("2x3, 3x5", "float, float", 1),
    ]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_range_holds_what_began_in_it_and_what_that_launched(flavour: str, tmp_path: Path) -> None:
    b = training(flavour)
    b.annotation("ProfilerStep#1", 1000, 900)
    b.launch("late()", 1800, 2700, 11)  # launched inside, runs after it
    read = read_torch(b.write(tmp_path / "t.json"))
    ops = analyse_operators(within(read, "ProfilerStep#1"))
    assert {o.calls for o in ops.operators} == {1}
    assert ops.attribution.work == (105 + 11) * US
    with pytest.raises(UsageError, match="there is no annotation") as error:
        within(read, "ProfilerStep#2")
    assert "ProfilerStep#1" in error.value.hint


def test_a_range_of_a_trace_without_a_gpu_holds_its_operators(tmp_path: Path) -> None:
    b = TorchBuilder()
    b.op("aten::mm", 0, 10)
    b.op("aten::relu", 20, 10)
    b.annotation("forward", 15, 10)
    b.annotation("nothing", 40, 10)
    read = read_torch(b.write(tmp_path / "t.json"))
    assert [o.name for o in analyse_operators(within(read, "forward")).operators] == ["aten::relu"]
    with pytest.raises(UsageError, match="no operator began inside"):
        within(read, "nothing")


# ---- random traces against a slow and plain reference ------------------------------------------------

tree = st.recursive(
    st.just([]), lambda inner: st.lists(st.tuples(st.integers(1, 9), inner), max_size=3), max_leaves=8
)


def placed(children: list[Any], start: int, depth: int = 0) -> tuple[int, list[tuple[int, int, int]]]:
    """Return where a list of nested spans ends, and its (start, end, depth)."""
    at, found = start, []
    for gap, inner in children:
        begin = at + gap
        end, below = placed(inner, begin, depth + 1)
        end += gap
        found += [(begin, end, depth), *below]
        at = end
    return at, found


@settings(deadline=None, max_examples=40)
@given(st.lists(tree, min_size=1, max_size=2), st.lists(st.integers(0, 60), max_size=8), st.data())
def test_nesting_equals_looking_at_every_span(
    forests: list[Any], times: list[int], data: st.DataObject
) -> None:
    spans = [(t, *span) for t, forest in enumerate(forests) for span in placed(forest, 0)[1]]
    spans = data.draw(st.permutations(spans))
    key = [data.draw(st.integers(0, 2)) for _ in spans]
    columns = {"thread": [s[0] for s in spans], "start": [s[1] for s in spans], "end": [s[2] for s in spans]}
    made = nest(Columns({k: np.array(v, np.int64) for k, v in columns.items()}), np.array(key, np.int64))

    def around(i: int) -> list[int]:
        t, s, e, d = spans[i]
        return [j for j, (u, a, b, depth) in enumerate(spans) if u == t and depth < d and a <= s and e <= b]

    row_of = {int(i): row for row, i in enumerate(made.order)}
    amount = np.arange(1, len(spans) + 1)[made.order] if spans else np.empty(0, np.int64)
    inner = made.with_inner(amount)
    for i, (thread, start, end, depth) in enumerate(spans):
        row, outer = row_of[i], around(i)
        parent = max(outer, key=lambda j: spans[j][3], default=None)
        assert made.parent[row] == (-1 if parent is None else row_of[parent])
        children = [s for j, s in enumerate(spans) if s[0] == thread and s[3] == depth + 1 and i in around(j)]
        assert made.own[row] == end - start - sum(e - s for _, s, e, _ in children)
        assert made.outermost[row] == (key[i] not in [key[j] for j in outer])
        assert inner[row] == sum(j + 1 for j in range(len(spans)) if j == i or i in around(j))
    for thread in range(len(forests)):
        asked = np.array(times, np.int64)
        found = made.innermost(np.full(len(times), thread), asked)
        for time, row in zip(times, found.tolist(), strict=True):
            holding = [s for s in spans if s[0] == thread and s[1] <= time <= s[2]]
            latest = max(holding, key=lambda s: (s[1], s[3]), default=None)
            assert (None if row < 0 else spans[int(made.order[row])]) == latest


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=8), st.integers(1, 30))
def test_sampling_equals_counting_nanoseconds(pairs: list[tuple[int, int]], window: int) -> None:
    busy = {t for s, n in pairs for t in range(s, s + n)}
    low, high = sampled(union([s for s, _ in pairs], [s + n for s, n in pairs]), 0, 80, window=window)
    shares = [100 * len(busy & set(range(s, s + window))) / window for s in range(0, 80 - window + 1, window)]
    assert low == pytest.approx(min(shares))
    assert high == pytest.approx(max(shares))


# ---- all real traces, added up a second time ---------------------------------------------------------

REAL = sorted((shared_folder() / "reports" / "torch").glob("*.json.gz"))
real = pytest.mark.parametrize("path", REAL, ids=[p.name.split(".")[0] for p in REAL])
if not REAL:
    real = pytest.mark.parametrize("path", [pytest.param(None, marks=pytest.mark.skip(reason=no_shared()))])
GPU_WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def raw(path: Path) -> list[dict[str, Any]]:
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return [e for e in events if e.get("ph") == "X"]


@real
def test_the_sums_of_operators_are_those_of_the_trace(path: Path) -> None:
    ops = analyse_operators(read_torch(path))
    events = raw(path)
    work = [e for e in events if e.get("cat") in GPU_WORK]
    assert ops.attribution.n == len(work)
    assert ops.attribution.work == sum(round(e["dur"] * 1000) for e in work)
    assert sum(o.device_self for o in ops.operators) + ops.attribution.outside == ops.attribution.work
    kernels = sum(round(e["dur"] * 1000) for e in work if e["cat"] == "kernel")
    launched = sum(k.total for o in ops.operators for k in o.kernels)
    copied = sum(o.copy_time for o in ops.operators)
    assert launched <= kernels
    if not ops.attribution.outside:
        assert launched == kernels
        assert copied == sum(round(e["dur"] * 1000) for e in work if e["cat"] == "gpu_memcpy")
    calls = Counter(e["name"] for e in events if e.get("cat") == "cpu_op")
    found: Counter[str] = Counter()
    for o in ops.operators:
        found[o.name] += o.calls
    assert found == calls


@real
def test_each_operator_has_the_time_that_a_search_of_the_trace_gives_it(path: Path) -> None:
    """The reference looks at every operator of the launching thread for every launch."""
    events = raw(path)
    operators: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for e in events:
        if e.get("cat") == "cpu_op":
            operators[e["tid"]].append(e)
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    own: Counter[str] = Counter()
    for e in events:
        if e.get("cat") not in GPU_WORK:
            continue
        call = calls[e["args"]["correlation"]]
        around = [o for o in operators[call["tid"]] if o["ts"] <= call["ts"] <= o["ts"] + o["dur"]]
        if around:
            innermost = max(around, key=lambda o: (o["ts"], -o["dur"], o["args"]["External id"]))
            own[innermost["name"]] += round(e["dur"] * 1000)
    found: Counter[str] = Counter()
    for o in analyse_operators(read_torch(path)).operators:
        found[o.name] += o.device_self
    assert +found == +own


@real
def test_calls_and_ids_agree_where_both_are_there(path: Path) -> None:
    events = raw(path)
    ids = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") == "cpu_op"}
    work = [e for e in events if e.get("cat") in GPU_WORK]
    if not work or all(e["args"]["External id"] == e["args"]["correlation"] for e in work):
        pytest.skip("this version writes the correlation into the External id")
    by_id: Counter[str] = Counter()
    for e in work:
        by_id[ids[e["args"]["External id"]]] += round(e["dur"] * 1000)
    found: Counter[str] = Counter()
    for o in analyse_operators(read_torch(path)).operators:
        found[o.name] += o.device_self
    assert +found == by_id


# ---- allocators --------------------------------------------------------------------------------------


def test_the_allocator_s_peak_and_rises_are_found_with_their_operator(analysed: Analysed) -> None:
    b = training()
    b.op("aten::empty", 3000, 50)
    for at, bytes, allocated, reserved in (
        (3001, 512, 512, 2 << 20),
        (3010, 1 << 20, (1 << 20) + 512, 2 << 20),
        (3020, 30 << 20, (31 << 20) + 512, 40 << 20),
        (3030, -(30 << 20), (1 << 20) + 512, 40 << 20),
    ):
        b.memory(at, bytes, allocated, reserved)
    ops = analysed(b)
    (memory,) = ops.memory
    assert (memory.device, memory.events, memory.peak_allocated) == (0, 4, (31 << 20) + 512)
    assert (memory.peak_reserved, memory.peak_operator, memory.peak_at) == (40 << 20, "aten::empty", 19 * US)
    assert memory.growths == 1
    first = memory.spikes[0]
    assert (first.bytes, first.grew, first.operator) == (30 << 20, 38 << 20, "aten::empty")
    assert [s.bytes for s in memory.spikes] == [30 << 20, 1 << 20, 512]
    assert (memory.first_allocated, memory.last_allocated) == (0, (1 << 20) + 512), "before the first event"
    empty = named(ops, "aten::empty")
    assert (empty.allocated, empty.freed) == ((31 << 20) + 512, 30 << 20)


def test_the_cpu_has_no_reserved_memory_and_devices_are_kept_apart(analysed: Analysed) -> None:
    b = training()
    b.memory(10, 64, 64, 0, device=-1)
    b.memory(20, 128, 128, 1024, device=1)
    b.memory(30, 256, 256, 2048, device=0)
    assert [(m.device, m.peak_allocated, m.peak_reserved) for m in analysed(b).memory] == [
        (0, 256, 2048),
        (1, 128, 1024),
        (-1, 64, None),
    ]


def test_memory_that_was_not_recorded_is_unknown_and_not_nothing(analysed: Analysed) -> None:
    ops = analysed(training())
    assert ops.memory == ()
    assert not ops.recorded["memory"]


# ---- how busy, and what to profile -------------------------------------------------------------------


def test_busy_is_a_union_and_never_above_100(tmp_path: Path) -> None:
    b = TorchBuilder()
    for stream, start, end in ((7, 0, 100), (8, 50, 150), (7, 160, 200)):
        b.launch("k()", 0, start, end - start, stream=stream)
    (found,) = utilisation(whole(read_torch(b.write(tmp_path / "t.json")).trace))
    assert (found.span, found.busy, found.gaps, found.longest_gap) == (200 * US, 95.0, 1, 10 * US)
    assert (found.low, found.high) == (None, None)  # shorter than any window
    assert found.occupancy == 50


def test_what_samples_could_show_is_not_the_busy_share(tmp_path: Path) -> None:
    b = TorchBuilder()
    b.launch("k()", 0, 0, 200_000)
    b.launch("k()", 0, 999_990, 10)
    (found,) = utilisation(whole(read_torch(b.write(tmp_path / "t.json")).trace))
    assert found.busy == pytest.approx(20.001, abs=0.001)
    assert (found.low, found.high) == (0.0, 100.0)


def test_the_kernel_that_deserves_ncu_comes_with_its_operator_and_command(tmp_path: Path) -> None:
    read = read_torch(training().write(tmp_path / "t.json"))
    found = analyse_operators(read).deserving
    assert (found.short, found.operator) == ("gemm", "aten::mm")
    assert found.share == pytest.approx(100 * 210 / 270)
    assert found.command == "ncukit profile --gpu-kernel 'regex:^gemm$' -- python YOUR_SCRIPT.py"
    own = analyse_operators(read, ["my model.py", "--kernel", "step", "--param", "n=8"]).deserving
    assert own.command == "ncukit profile --gpu-kernel 'regex:^gemm$' 'my model.py' --kernel step --param n=8"


def test_an_amd_gpu_is_not_sent_to_ncu(analysed: Analysed) -> None:
    found = analysed(training("rocm")).deserving
    assert found.command == ""
    assert "AMD" in found.why_not
    assert "rocprof" in found.why_not


def test_torch_s_own_totals_are_compared(analysed: Analysed) -> None:
    ops = analysed(training())
    own = {o.name: [o.calls, 0.0, o.cpu_self / 1e3, 0.0, o.device_self / 1e3] for o in ops.operators}
    agreed = against_torch(ops, {"own": own, "device_time": "device_time_total"})
    assert len(agreed) == 2
    assert all("agrees with" in text for text in agreed)
    assert "self_device_time_total" in agreed[1]
    own["aten::mm"][4] *= 2
    own["aten::mm"][0] += 1
    said = against_torch(ops, {"own": own, "device_time": "cuda_time_total"})
    assert "counts 4 calls of aten::mm, the trace 3" in said[0]
    assert "self_cuda_time_total" in said[2]
    assert "differs from" in said[2]
    assert against_torch(ops, {}) == ()


# ---- the host beside the gaps ------------------------------------------------------------------------


def test_sampled_functions_are_set_beside_the_gaps_they_cover(tmp_path: Path) -> None:
    b = TorchBuilder()
    b.annotation("ncukit", 0, 100_000)
    b.launch("k()", 100, 10_000, 20_000)
    b.launch("k()", 100, 70_000, 20_000)  # the GPU is empty from 30 ms to 70 ms
    scope = whole(read_torch(b.write(tmp_path / "t.json")).trace)
    ms = 1_000_000
    stays = [  # on a clock of its own, 5 ms ahead
        Stay(5 * ms, 35 * ms, ("run", "forward")),
        Stay(35 * ms, 65 * ms, ("run", "load")),
        Stay(65 * ms, 105 * ms, ("run",)),
    ]
    host = from_samples(scope, stays, 2 * ms)
    by_name = {f.name: f for f in host.frames}
    assert host.frames[0].name == "load"
    assert (by_name["load"].self_time, by_name["load"].gap) == (30 * ms, 30 * ms)
    assert (by_name["run"].self_time, by_name["run"].total, by_name["run"].gap) == (
        40 * ms,
        100 * ms,
        10 * ms,
    )
    assert by_name["forward"].gap == 0
    assert (host.gap_time, host.covered) == (40 * ms, 40 * ms)


def test_gaps_shorter_than_two_samples_are_not_set_beside_them(tmp_path: Path) -> None:
    b = TorchBuilder()
    b.annotation("ncukit", 0, 100)
    b.launch("k()", 0, 10, 20)
    b.launch("k()", 0, 50, 20)
    host = from_samples(
        whole(read_torch(b.write(tmp_path / "t.json")).trace), [Stay(0, 10**5, ("f",))], 2 * 10**6
    )
    assert (host.gap_time, host.covered) == (0, 0)
    assert any("only gaps of at least 4 ms" in note for note in host.notes)


def test_stacks_that_torch_recorded_tell_what_the_host_did_in_the_gaps(tmp_path: Path) -> None:
    b = TorchBuilder()
    b.frame("model.py(1): run", 0, 100)
    b.frame("model.py(7): load", 20, 30)
    b.frame("torch/profiler/profiler.py(9): stop", 90, 5)
    b.launch("k()", 1, 0, 25)
    b.launch("k()", 60, 61, 39)  # empty from 25 to 61
    read = read_torch(b.write(tmp_path / "t.json"))
    host = from_stacks(read, whole(read.trace))
    assert host is not None
    assert [(f.name, f.self_time, f.total, f.gap) for f in host.frames] == [
        ("model.py(7): load", 30 * US, 30 * US, 25 * US),
        ("model.py(1): run", 65 * US, 100 * US, 11 * US),
    ]
    assert host.gap_time == host.covered == 36 * US


def test_without_stacks_nothing_is_said_about_the_host(tmp_path: Path) -> None:
    read = read_torch(training().write(tmp_path / "t.json"))
    assert from_stacks(read, whole(read.trace)) is None
