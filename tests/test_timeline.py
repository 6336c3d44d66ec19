"""What a trace says: where the time went, what limits the region, which launch deserves ncu."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncukit.errors import UsageError
from ncukit.model.trace import LaunchChoice, Timeline, Trace
from ncukit.trace.activity import steady
from ncukit.trace.causes import CAUSES
from ncukit.trace.intervals import Times, lengths_by, spread, spreads_by, union
from ncukit.trace.launch_choice import Request, choose_launch
from ncukit.trace.nsys import open_trace
from ncukit.trace.region import UNDECIDABLE, analyse, limit
from ncukit.trace.scope import in_range, whole
from tests.nsys_builder import COPY, COPY_ASYNC, LAUNCH, Builder, thread

US, MS = 1_000, 1_000_000
SYNC = "cudaDeviceSynchronize_v3020"

Open = Callable[[Builder], Trace]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Write a builder's trace and read it back."""
    return lambda builder: open_trace(builder.write(tmp_path / "t.sqlite"))


@pytest.fixture
def analysed(opened: Open) -> Callable[[Builder], Timeline]:
    """Write a builder's trace, read it back and analyse it."""
    return lambda builder: analyse(opened(builder))


Analysed = Callable[[Builder], Timeline]

# ---- sets of time, against a reference that marks every nanosecond ----------------------------------

intervals = st.lists(st.tuples(st.integers(-40, 40), st.integers(0, 30)), max_size=12)


def times(pairs: list[tuple[int, int]]) -> Times:
    return union([s for s, _ in pairs], [s + n for s, n in pairs])


def marked(pairs: list[tuple[int, int]]) -> set[int]:
    return {t for s, n in pairs for t in range(s, s + n)}


@settings(deadline=None)
@given(intervals, intervals)
def test_set_operations_equal_those_on_single_nanoseconds(
    a: list[tuple[int, int]], b: list[tuple[int, int]]
) -> None:
    x, y, mx, my = times(a), times(b), marked(a), marked(b)
    for result, expected in ((x | y, mx | my), (x & y, mx & my), (x - y, mx - my)):
        assert result.length == len(expected)
        at = np.arange(-50, 90)
        assert set(at[result.covers(at)].tolist()) == expected
        assert (result.start[1:] > result.end[:-1]).all()


@settings(deadline=None)
@given(intervals, st.integers(-60, 90), st.integers(0, 60))
def test_the_part_of_a_set_within_a_window_equals_counting(
    a: list[tuple[int, int]], start: int, length: int
) -> None:
    within = times(a).within(np.array([start]), np.array([start + length]))
    assert within.tolist() == [len(marked(a) & set(range(start, start + length)))]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-40, 40), st.integers(0, 30)), max_size=20))
def test_lengths_of_groups_equal_those_of_each_group(rows: list[tuple[int, int, int]]) -> None:
    key, start, n = (
        (np.array(c, np.int64) for c in zip(*rows, strict=True)) if rows else (np.empty(0, np.int64),) * 3
    )
    keys, lengths = lengths_by(key, start, start + n)
    expected = {int(k): len(marked([(s, m) for g, s, m in rows if g == k])) for k in key}
    assert dict(zip(keys.tolist(), lengths.tolist(), strict=True)) == expected


def test_lengths_of_groups_stay_exact_where_shifting_them_apart_would_overflow() -> None:
    far = 1 << 61
    keys, lengths = lengths_by(np.array([1, 2, 1]), np.array([0, 5, far]), np.array([10, 25, far + 3]))
    assert (keys.tolist(), lengths.tolist()) == ([1, 2], [13, 20])


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**12)), min_size=1, max_size=40))
def test_statistics_of_groups_equal_those_of_each_group(rows: list[tuple[int, int]]) -> None:
    key, value = (np.array(c, np.int64) for c in zip(*rows, strict=True))
    for k, found in spreads_by(key, value).items():
        alone = spread(value[key == k])
        assert (found.n, found.total, found.min, found.max) == (alone.n, alone.total, alone.min, alone.max)
        assert found.median == pytest.approx(alone.median, rel=1e-12)
        assert found.iqr == pytest.approx(alone.iqr, rel=1e-9, abs=1e-3)


# ---- time on a device ------------------------------------------------------------


def test_overlapping_kernels_are_busy_once_and_summed_twice(analysed: Analysed) -> None:
    builder = Builder()
    for start, end, stream in ((0, 100, 7), (50, 150, 8), (160, 200, 7)):
        builder.kernel("k(int)", start, end, stream=stream)
    (device,) = analysed(builder).devices
    assert (device.span, device.busy, device.sum, device.empty) == (200, 190, 240, 10)


def test_a_gap_is_split_into_the_copy_in_it_and_the_rest(analysed: Analysed) -> None:
    builder = Builder()
    builder.kernel("k(int)", 0, 10 * MS)
    builder.copy("h2d", 1 << 20, 12 * MS, 38 * MS)
    builder.kernel("k(int)", 40 * MS, 50 * MS)
    (device,) = analysed(builder).devices
    assert (device.copy, device.empty, device.busy, device.span) == (26 * MS, 4 * MS, 20 * MS, 50 * MS)


def test_the_span_begins_with_the_first_copy_and_ends_with_the_last(analysed: Analysed) -> None:
    builder = Builder()
    builder.copy("h2d", 1, 0, 100)
    builder.kernel("k(int)", 100, 110)
    builder.copy("d2h", 1, 110, 200)
    (device,) = analysed(builder).devices
    assert (device.span, device.busy, device.copy) == (200, 10, 190)


def test_the_same_stream_number_on_several_gpus_is_several_streams(analysed: Analysed) -> None:
    builder = Builder(gpus=(0, 1, 2, 3))
    for device, stream in ((0, 7), (1, 17), (2, 17), (3, 17)):
        for i in range(10):
            builder.kernel("k(int)", i * 100, i * 100 + 86, device=device, stream=stream, context=device + 1)
    timeline = analysed(builder)
    assert [d.id for d in timeline.devices] == [0, 1, 2, 3]
    for device in timeline.devices:
        (stream,) = device.streams
        assert stream.busy == device.busy == 860
        assert device.busy <= device.span == 986


def test_a_gpu_without_a_row_of_its_own_is_still_analysed(analysed: Analysed) -> None:
    builder = Builder(gpus=())
    builder.kernel("k(int)", 0, 10, device=5)
    (device,) = analysed(builder).devices
    assert (device.id, device.name, device.compute_capability) == (5, None, None)


work = st.lists(
    st.tuples(st.sampled_from(["kernel", "nccl", "copy", "memset"]), st.integers(0, 400), st.integers(0, 60)),
    min_size=1,
    max_size=25,
)
host = st.lists(
    st.tuples(
        st.sampled_from([SYNC, COPY, "cudaMalloc_v3020", "cuModuleLoadData", LAUNCH, COPY_ASYNC]),
        st.integers(0, 450),
        st.integers(0, 80),
    ),
    max_size=20,
)


@settings(max_examples=150, deadline=None)
@given(work, host, st.booleans())
def test_every_nanosecond_of_the_region_has_exactly_one_cause(
    tmp_path_factory: pytest.TempPathFactory,
    gpu: list[tuple[str, int, int]],
    cpu: list[tuple[str, int, int]],
    launched: bool,
) -> None:
    builder = Builder()
    for kind, start, length in gpu:
        call = (LAUNCH, start - 15, start - 5) if launched else None
        if kind == "copy":
            builder.copy("h2d", 10, start, start + length, call=call)
        elif kind == "memset":
            builder.memset(10, start, start + length, call=call)
        else:
            name = "ncclDevKernel_AllReduce(args)" if kind == "nccl" else "k(int)"
            builder.kernel(name, start, start + length, call=call, stream=7 + start % 3)
    for name, start, length in cpu:
        builder.api(name, start, start + length)
    builder.kernel("first(int)", -1, 0)
    timeline = analyse(open_trace(builder.write(tmp_path_factory.mktemp("t") / "t.sqlite")))
    (device,) = timeline.devices
    kernels = marked([(s, n) for k, s, n in gpu if k in ("kernel", "nccl")]) | {-1}
    copies = marked([(s, n) for k, s, n in gpu if k in ("copy", "memset")])
    assert device.busy == len(kernels)
    assert device.copy == len(copies - kernels)
    assert device.span == device.busy + device.copy + device.empty
    shares = timeline.region.shares
    assert tuple(shares) == CAUSES
    assert min(shares.values()) >= 0
    assert sum(shares.values()) == pytest.approx(100)
    assert shares["kernel"] + shares["communication"] == pytest.approx(100 * device.busy / device.span)
    assert shares["transfer"] == pytest.approx(100 * device.copy / device.span)


# ---- kernels ------------------------------------------------------------


def test_benchmark_launches_give_the_steady_median_not_the_mean(analysed: Analysed) -> None:
    builder = Builder()
    for i, us in enumerate((11.3, 11.2, 9.1, 8.8, 8.8, 8.79, 8.80, 8.79)):
        builder.kernel("k(int)", i * 50 * US, i * 50 * US + round(us * US))
    (kernel,) = analysed(builder).kernels
    assert kernel.steady.median == 8.8 * US
    assert kernel.warmup == 2
    assert (kernel.launches.n, kernel.launches.min, kernel.launches.max) == (8, 8790, 11300)


def test_fills_of_the_cache_between_launches_are_helpers(analysed: Analysed) -> None:
    builder = Builder()
    fill = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>(int)"
    for i in range(5):
        builder.kernel(fill, i * 100, i * 100 + 40)
        builder.kernel("gemm(int)", i * 100 + 50, i * 100 + 60)
    assert {k.short: k.kind for k in analysed(builder).kernels} == {
        "vectorized_elementwise_kernel": "helper",
        "gemm": "compute",
    }


@pytest.mark.parametrize(
    ("configurations", "durations", "kept"),
    [
        ([0] * 30 + [1] * 30 + [2] * 30 + [1] * 10, None, range(90, 100)),
        ([0, 1, 0, 1, 0, 1, 0, 1], None, range(8)),
        ([0] * 50 + [1], None, range(51)),
        ([0, 0], [900, 100], range(2)),
        ([0] * 12, [100] * 12, range(12)),
        ([0] * 12, [300] + [100] * 11, range(1, 12)),
        ([0] * 12, [100] * 11 + [300], range(12)),
        ([0] * 20, list(range(400, 200, -10)), range(5, 20)),
    ],
    ids=[
        "autotuning",
        "alternating",
        "last batch",
        "too few",
        "flat",
        "first slow",
        "last slow",
        "shrinking work",
    ],
)
def test_steady_launches_leave_out_autotuning_and_warm_up(
    configurations: list[int], durations: list[int] | None, kept: range
) -> None:
    mask, _, _ = steady(np.array(configurations), np.array(durations or [100] * len(configurations)))
    assert np.flatnonzero(mask).tolist() == list(kept)


def test_without_this_kernel_the_region_gains_at_most_its_share(analysed: Analysed) -> None:
    builder = Builder()
    builder.kernel("long(int)", 0, 750)
    builder.kernel("short(int)", 750, 1000)
    kernels = {k.short: k for k in analysed(builder).kernels}
    assert kernels["long"].share == 75.0
    assert kernels["long"].bound == 4.0
    assert kernels["short"].bound == pytest.approx(4 / 3)


# ---- launches, copies, waits ------------------------------------------------------------


def test_correlation_ids_are_matched_within_their_process(analysed: Analysed) -> None:
    builder = Builder()
    builder.kernel("k(int)", 1000, 1100, pid=10, call=(LAUNCH, 900, 910), correlation=5)
    builder.kernel("k(int)", 2000, 2100, pid=11, call=(LAUNCH, 1400, 1410), correlation=5)
    latency = analysed(builder).launches.latency
    assert latency is not None
    assert (latency.min, latency.max) == (100, 600)


def test_a_wrappers_event_around_the_call_counts_no_second_launch(analysed: Analysed) -> None:
    builder = Builder()
    builder.kernel("k(int)", 1000, 1100, call=(LAUNCH, 900, 910))
    builder.api("cudaLaunchKernel", 850, 950, correlation=1, cls=67)
    timeline = analysed(builder)
    assert (timeline.launches.calls, timeline.launches.cpu) == (1, 10)
    assert timeline.launches.latency is not None
    assert timeline.launches.latency.median == 100
    assert [c.name for c in timeline.calls] == ["cudaLaunchKernel (wrapper)", "cudaLaunchKernel"]


def test_kernels_of_a_graph_share_one_launch(analysed: Analysed) -> None:
    builder = Builder()
    call = builder.api("cudaGraphLaunch_v10000", 100, 150)
    for i in range(4):
        builder.kernel("k(int)", 1000 + i * 50, 1040 + i * 50, correlation=call, node=70 + i)
    launches = analysed(builder).launches
    assert (launches.kernels, launches.traced, launches.calls, launches.graph_kernels) == (4, 4, 1, 4)
    assert launches.latency is not None
    assert (launches.latency.n, launches.latency.median) == (1, 900)


def test_copies_are_told_apart_by_direction_and_memory(analysed: Analysed) -> None:
    builder = Builder(gpus=(0, 1))
    builder.kernel("k(int)", 0, 1000)
    builder.copy("h2d", 4000, 500, 1500)
    builder.copy("h2d", 6000, 2000, 3000, pinned=True)
    for i in range(3):
        builder.copy("d2h", 8, 3000 + i * 20, 3010 + i * 20)
    builder.copy("d2d", 500, 4000, 4100)
    builder.copy("d2d", 500, 5000, 5100, between=(0, 1))
    builder.copy("peer", 700, 6000, 6100)
    copies = {(c.direction, c.source, c.target): c for c in analysed(builder).copies}
    assert set(copies) == {
        ("h2d", "pageable", "device"),
        ("h2d", "pinned", "device"),
        ("d2h", "device", "pageable"),
        ("d2d", "device", "device"),
        ("peer", "device", "device"),
    }
    pageable = copies["h2d", "pageable", "device"]
    assert (pageable.bandwidth, pageable.hidden) == (4e9, 500)
    assert "pinned memory" in pageable.fix
    assert "another stream" in copies["h2d", "pinned", "device"].fix
    assert ".item()" in copies["d2h", "device", "pageable"].fix
    assert "NVLink" in copies["peer", "device", "device"].fix
    assert copies["peer", "device", "device"].n == 2


def test_a_wait_is_split_into_work_and_nothing(analysed: Analysed) -> None:
    builder = Builder()
    builder.kernel("k(int)", 1000, 5000, call=(LAUNCH, 900, 950))
    builder.api(SYNC, 960, 5300)
    (wait,) = analysed(builder).waits
    assert (wait.name, wait.calls.total, wait.idle) == ("cudaDeviceSynchronize", 4340, 340)


def test_without_cuda_calls_the_synchronisation_records_stand_in(analysed: Analysed) -> None:
    builder = Builder()
    builder.kernel("k(int)", 1000, 5000)
    for kind in (2, 3):
        builder.add(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", start=900, end=5100, deviceId=0, streamId=7, syncType=kind
        )
    (wait,) = analysed(builder).waits
    assert (wait.name, wait.calls.total, wait.idle) == ("stream synchronisation", 4200, 200)


# ---- ranges ------------------------------------------------------------


def forward_and_backward(type: int) -> Builder:
    """A range on the main thread; autograd launches from another thread while it is open."""
    builder = Builder()
    builder.nvtx("step", 1000, 2000, type=type)
    builder.kernel("forward(int)", 1200, 1300, call=(LAUNCH, 1100, 1110))
    builder.kernel("backward(int)", 1500, 2600, call=(LAUNCH, 1400, 1410), tid=99)
    builder.kernel("outside(int)", 5000, 5100, call=(LAUNCH, 4000, 4010))
    return builder


@pytest.mark.parametrize("type", [59, 60], ids=["push/pop", "start/end"])
def test_launches_of_other_threads_count_inside_a_range_and_are_marked(analysed: Analysed, type: int) -> None:
    (found,) = analysed(forward_and_backward(type)).ranges
    assert (found.name, found.style) == ("step", "push/pop" if type == 59 else "start/end")
    assert (found.kernels, found.kernel_time, found.other_threads) == (2, 1200, 1)


@pytest.mark.parametrize("type", [59, 60], ids=["push/pop", "start/end"])
def test_a_chosen_range_reaches_to_the_end_of_its_last_kernel(opened: Open, type: int) -> None:
    timeline = analyse(opened(forward_and_backward(type)), "step")
    assert {k.short: k.other_threads for k in timeline.kernels} == {"backward": 1, "forward": 0}
    (device,) = timeline.devices
    assert timeline.windows == ((1000, 2600),)
    assert (device.span, device.busy, device.empty) == (1600, 1200, 400)


def test_all_instances_of_a_range_are_one_region(opened: Open) -> None:
    builder = Builder()
    for i in range(4):
        at = i * 10_000
        builder.nvtx("step", at, at + 1000)
        builder.kernel("k(int)", at + 500, at + 900, call=(LAUNCH, at + 100, at + 200))
        builder.kernel("between(int)", at + 5000, at + 9000, call=(LAUNCH, at + 2000, at + 2100))
    timeline = analyse(opened(builder), "step")
    (device,) = timeline.devices
    assert (device.span, device.busy, device.launches) == (4000, 1600, 4)
    assert [k.short for k in timeline.kernels] == ["k"]


def test_kernels_from_outside_that_run_in_the_range_are_neither_busy_nor_gap(opened: Open) -> None:
    builder = Builder()
    builder.kernel("before(int)", 900, 1300, call=(LAUNCH, 100, 110))
    builder.nvtx("step", 1000, 2000)
    builder.kernel("k(int)", 1500, 1700, call=(LAUNCH, 1100, 1110))
    (device,) = analyse(opened(builder), "step").devices
    assert (device.span, device.busy, device.foreign, device.empty) == (1000, 200, 300, 500)


def test_a_range_of_a_domain_is_found_by_both_names(opened: Open) -> None:
    builder = Builder()
    builder.nvtx("lib", 0, None, type=75, domain=3)
    builder.nvtx("step", 0, 1000, domain=3)
    builder.kernel("k(int)", 500, 600, call=(LAUNCH, 100, 110))
    assert analyse(opened(builder), "lib@step").devices[0].launches == 1


def test_an_unknown_range_names_the_nearest(opened: Open) -> None:
    builder = forward_and_backward(59)
    with pytest.raises(UsageError, match="no NVTX range 'stepp'") as caught:
        analyse(opened(builder), "stepp")
    assert "nearest: step" in caught.value.hint


def test_a_range_around_nothing_is_said_to_be_empty(opened: Open) -> None:
    builder = forward_and_backward(59)
    builder.nvtx("quiet", 3000, 3500)
    with pytest.raises(UsageError, match="nothing was launched on a GPU inside the range 'quiet'"):
        analyse(opened(builder), "quiet")


nested = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from([59, 60]),
        st.integers(1, 2),
        st.integers(0, 90),
        st.integers(0, 60),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=80, deadline=None)
@given(nested, st.lists(st.tuples(st.integers(1, 2), st.integers(0, 150)), max_size=10))
def test_kernels_in_ranges_equal_those_counted_one_by_one(
    tmp_path_factory: pytest.TempPathFactory,
    marks: list[tuple[str, int, int, int, int]],
    launched: list[tuple[int, int]],
) -> None:
    builder = Builder()
    for name, type, tid, start, length in marks:
        builder.nvtx(name, start, start + length, type=type, tid=tid)
    builder.kernel("first(int)", 1000, 1001, call=(LAUNCH, 500, 501), tid=9)
    for i, (tid, start) in enumerate(launched):
        builder.kernel("k(int)", 2000 + i * 50, 2010 + i * 51, call=(LAUNCH, start, start + 1), tid=tid)
    found = analyse(open_trace(builder.write(tmp_path_factory.mktemp("t") / "t.sqlite"))).ranges
    assert len(found) == len({(name, type) for name, type, *_ in marks})
    for r in found:
        mine = [m for m in marks if m[0] == r.name and (m[1] == 59) == (r.style == "push/pop")]
        inside = {i for i, (_, at) in enumerate(launched) for *_, s, n in mine if s <= at < s + n}
        own = {
            i for i, (tid, at) in enumerate(launched) for *_, t, s, n in mine if t == tid and s <= at < s + n
        }
        assert (r.instances.n, r.kernels, r.other_threads) == (len(mine), len(inside), len(inside - own))
        assert r.kernel_time == sum(10 + i for i in inside)


def test_a_range_inside_itself_counts_its_kernels_once(analysed: Analysed) -> None:
    builder = Builder()
    builder.nvtx("f", 0, 1000)
    builder.nvtx("f", 100, 900)
    builder.kernel("k(int)", 2000, 2010, call=(LAUNCH, 500, 510))
    (found,) = analysed(builder).ranges
    assert (found.instances.n, found.kernels, found.kernel_time) == (2, 1, 10)


def test_a_name_for_every_instance_does_not_make_a_table_of_them_all(
    analysed: Analysed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("ncukit.trace.scope"), "MOST", 3)
    builder = Builder()
    for i in range(10):
        builder.nvtx(f"aten::mm, seq = {i}", i * 100, i * 100 + i)
    builder.kernel("k(int)", 2000, 2010, call=(LAUNCH, 905, 910))
    timeline = analysed(builder)
    assert [r.name for r in timeline.ranges] == [f"aten::mm, seq = {i}" for i in (9, 8, 7)]
    assert timeline.ranges[0].kernels == 1
    assert "7 names of NVTX ranges with less time are left out" in timeline.notes


def test_without_launch_calls_ranges_say_that_nothing_is_attributed(analysed: Analysed) -> None:
    builder = Builder()
    builder.nvtx("step", 0, 1000, type=60)
    builder.kernel("k(int)", 500, 600)
    (found,) = analysed(builder).ranges
    assert not found.attributed


# ---- what limits the region ------------------------------------------------------------


def every(period: int, kernel: int, n: int = 1000, *, calls: bool = True) -> Builder:
    builder = Builder()
    for i in range(n):
        at = i * period
        call = (LAUNCH, at - 8 * US, at - 3 * US) if calls else None
        builder.kernel("k(int)", at, at + kernel, call=call)
    return builder


@pytest.mark.parametrize("calls", [True, False], ids=["calls traced", "calls not traced"])
def test_a_short_kernel_launched_now_and_then_is_launch_bound(analysed: Analysed, calls: bool) -> None:
    region = analysed(every(600 * US, 100 * US, calls=calls)).region
    assert region.cls == "launch-bound"
    assert round(region.shares["kernel"], 1) == 16.7
    assert region.share == pytest.approx(83.3, abs=0.05)
    assert region.confidence == ("high" if calls else "low")
    assert bool(region.missing) != calls
    assert region.experiment is not None
    assert "graph" in region.experiment.title
    assert region.experiment.disproved_if


def test_back_to_back_kernels_are_kernel_bound(analysed: Analysed) -> None:
    builder = Builder()
    for i in range(200):
        builder.kernel(
            "k(int)", i * 100 * US, i * 100 * US + 98 * US, call=(LAUNCH, i * 10 * US, i * 10 * US + 5)
        )
    region = analysed(builder).region
    assert (region.cls, region.confidence, region.bound) == ("kernel-bound", "high", None)
    assert region.shares["kernel"] == pytest.approx(98, abs=0.1)
    assert region.shares["launch"] == pytest.approx(2, abs=0.1)


def test_waiting_after_every_kernel_is_synchronisation_bound(analysed: Analysed) -> None:
    """Without the wait the CPU would prepare the next launch while the kernel runs."""
    builder = Builder()
    for i in range(200):
        at = i * 190 * US
        builder.kernel("k(int)", at, at + 100 * US, call=(LAUNCH, at - 10 * US, at - 5 * US))
        builder.api(SYNC, at, at + 105 * US)
    region = analysed(builder).region
    assert region.cls == "synchronisation-bound"
    assert region.share == pytest.approx(100 * 90 / 190, abs=0.5)
    assert any("cudaDeviceSynchronize" in e.text for e in region.evidence)


def test_a_wait_is_not_blamed_for_more_than_its_removal_could_hide(analysed: Analysed) -> None:
    """100 us of kernel, 500 us of CPU work: without the wait still 500 us an iteration."""
    builder = Builder()
    for i in range(200):
        at = i * 600 * US
        builder.kernel("k(int)", at, at + 100 * US, call=(LAUNCH, at - 10 * US, at))
        builder.api(SYNC, at, at + 101 * US)
    region = analysed(builder).region
    assert region.cls == "launch-bound"
    assert region.shares["synchronisation"] == pytest.approx(100 * 101 / 600, abs=0.5)
    assert region.shares["launch"] == pytest.approx(100 * 399 / 600, abs=0.5)


def test_copies_without_kernels_beside_are_transfer_bound_with_the_fix(analysed: Analysed) -> None:
    builder = Builder()
    for i in range(50):
        at = i * 10 * MS
        builder.copy("h2d", 1 << 20, at, at + 8 * MS, call=(COPY, at, at + 8 * MS))
        builder.kernel("k(int)", at + 8 * MS, at + 10 * MS, call=(LAUNCH, at + 7 * MS, at + 7 * MS + 10))
    region = analysed(builder).region
    assert region.cls == "transfer-bound"
    assert region.share == pytest.approx(80, abs=0.5)
    assert region.experiment is not None
    assert "pinned memory" in region.experiment.change


def test_long_pauses_of_the_launching_thread_are_input_bound(analysed: Analysed) -> None:
    builder = Builder()
    for i in range(50):
        at = i * 30 * MS
        builder.kernel("k(int)", at, at + 5 * MS, call=(LAUNCH, at - 20 * US, at - 10 * US))
    region = analysed(builder).region
    assert region.cls == "input-bound"
    assert region.share == pytest.approx(100 * 25 / 30, abs=1)
    assert region.experiment is not None
    assert "cached" in region.experiment.title


def test_collectives_alone_on_the_gpu_are_communication_bound(analysed: Analysed) -> None:
    builder = Builder()
    for i in range(50):
        at = i * 10 * MS
        builder.kernel("gemm(int)", at, at + 4 * MS, call=(LAUNCH, at - 100, at - 50))
        builder.kernel(
            "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096>)",
            at + 2 * MS, at + 10 * MS, stream=20, call=(LAUNCH, at - 40, at - 10),
        )  # fmt: skip
    timeline = analysed(builder)
    assert timeline.region.cls == "communication-bound"
    assert timeline.region.share == pytest.approx(60, abs=0.5)
    assert [c.short for c in timeline.collectives] == ["ncclDevKernel_AllReduce_Sum_f16_RING_LL"]
    assert timeline.region.experiment is not None
    assert "slower ranks" in timeline.region.experiment.why


def test_allocating_while_the_gpu_waits_is_allocator_trouble(analysed: Analysed) -> None:
    builder = Builder()
    for i in range(50):
        at = i * 10 * MS
        builder.kernel("k(int)", at, at + 4 * MS, call=(LAUNCH, at - 20, at - 10))
        builder.api("cudaMalloc_v3020", at + 4 * MS, at + 9 * MS)
    region = analysed(builder).region
    assert region.cls == "allocator-bound"
    assert region.share == pytest.approx(50, abs=1)
    assert "in 50 calls of cudaMalloc" in [evidence.text for evidence in region.evidence]


@pytest.mark.parametrize(("kernel", "torch"), [("k(int)", False), ("void at::native::fill(int)", True)])
def test_allocating_less_is_advised_in_the_words_of_the_program(
    kernel: str, torch: bool, analysed: Analysed
) -> None:
    builder = Builder()
    for i in range(50):
        at = i * 10 * MS
        builder.kernel(kernel, at, at + 4 * MS, call=(LAUNCH, at - 20, at - 10))
        builder.api("cudaHostAlloc_v3020", at + 4 * MS, at + 9 * MS)
    found = analysed(builder).region.experiment
    assert found is not None
    assert ("PYTORCH_CUDA_ALLOC_CONF" in found.change) is torch
    assert found.watch == "calls of cudaHostAlloc inside the region, then the clean time"


def test_one_call_is_one_call(analysed: Analysed) -> None:
    builder = Builder()
    builder.kernel("k(int)", 0, MS, call=(LAUNCH, -20, -10))
    builder.api("cudaMalloc_v3020", MS, 9 * MS)
    builder.kernel("k(int)", 9 * MS, 10 * MS, call=(LAUNCH, 9 * MS - 20, 9 * MS - 10))
    assert "in 1 call of cudaMalloc" in [evidence.text for evidence in analysed(builder).region.evidence]


def test_loading_modules_is_set_up_and_leaves_the_region_undetermined(analysed: Analysed) -> None:
    builder = Builder()
    builder.kernel("k(int)", 0, 10 * US, call=(LAUNCH, -20, -10))
    builder.kernel("j(int)", 5 * MS, 5 * MS + 10 * US, call=(LAUNCH, 100 * US, 5 * MS - 10))
    region = analysed(builder).region
    assert (region.cls, region.confidence) == ("undetermined", "low")
    assert region.shares["setup"] > 90
    assert any("--range" in text for text in region.missing)
    assert region.experiment is None


def test_time_that_nsys_itself_took_is_not_blamed_on_the_program(analysed: Analysed) -> None:
    builder = Builder()
    for i in range(50):
        at = i * 10 * MS
        builder.kernel("k(int)", at, at + 4 * MS, call=(LAUNCH, at - 20, at - 10))
        builder.add(
            "PROFILER_OVERHEAD",
            start=at + 4 * MS,
            end=at + 9 * MS,
            globalTid=thread(4242),
            nameId=builder.string("CUPTI: Buffer flush"),
        )
    region = analysed(builder).region
    assert region.shares["profiler"] == pytest.approx(50, abs=1)
    assert region.cls == "undetermined"


@pytest.mark.parametrize(("wait", "cause"), [(10 * US, "launch"), (500 * US, "dependency")])
def test_work_that_was_launched_in_time_and_starts_late_waits_for_something(
    analysed: Analysed, wait: int, cause: str
) -> None:
    builder = Builder()
    for i in range(50):
        at = i * (1000 * US + wait)
        builder.kernel(
            "k(int)", at, at + 1000 * US, call=(LAUNCH, -10 * US + i * 100, -10 * US + i * 100 + 50)
        )
    shares = analysed(builder).region.shares
    assert shares[cause] == pytest.approx(100 * wait / (1000 * US + wait), abs=1)


def test_a_launch_call_of_milliseconds_loads_code_also_for_another_gpu(analysed: Analysed) -> None:
    builder = Builder(gpus=(0, 1))
    for i in range(50):
        at = i * 10 * MS
        builder.kernel("k(int)", at, at + 4 * MS, call=(LAUNCH, at - 20, at - 10))
        builder.kernel(
            "j(int)", at + 9 * MS, at + 9 * MS + 10, device=1, call=(LAUNCH, at + 4 * MS, at + 9 * MS)
        )
    timeline = analysed(builder)
    assert timeline.main_device == 0
    assert timeline.region.shares["setup"] == pytest.approx(50, abs=1)


def test_one_gap_that_holds_most_of_the_empty_time_weakens_the_verdict(analysed: Analysed) -> None:
    builder = Builder()
    for i in range(200):
        at = i * 100 * US + (50 * MS if i > 100 else 0)
        builder.kernel("k(int)", at, at + 80 * US, call=(LAUNCH, at - 10 * US, at - 5 * US))
    region = analysed(builder).region
    assert region.cls == "input-bound"
    assert region.confidence == "low"
    assert region.against[0].metric == "longest_gap"


@pytest.mark.parametrize(
    ("shares", "cause"),
    [
        ({"kernel": 80, "launch": 20}, "kernel"),
        ({"kernel": 79, "launch": 21}, "launch"),
        ({"kernel": 70, "launch": 19, "input": 11}, "kernel"),
        ({"kernel": 55, "launch": 15, "setup": 30}, "kernel"),
        ({"kernel": 45, "launch": 15, "input": 14, "transfer": 13, "allocator": 13}, "launch"),
        ({"kernel": 40, "launch": 25, "setup": 35}, "setup"),
        ({"kernel": 10, "launch": 30, "setup": 60}, "setup"),
        ({"kernel": 45, "transfer": 30, "setup": 25}, "transfer"),
        ({"kernel": 30, "communication": 70}, "communication"),
        ({"kernel": 0, "foreign": 90, "launch": 10}, "foreign"),
    ],
)
def test_kernels_limit_from_80_percent_up_other_causes_from_20(shares: dict[str, float], cause: str) -> None:
    assert limit(dict.fromkeys(CAUSES, 0.0) | shares) == cause


def test_what_one_trace_cannot_decide_is_said_not_guessed(analysed: Analysed) -> None:
    region = analysed(every(600 * US, 100 * US, 20)).region
    assert region.undecidable == UNDECIDABLE
    assert [cls for cls, _ in region.undecidable] == ["capacity-bound", "scheduler-bound"]


def test_causes_that_came_out_clean_are_listed_as_looked_for(analysed: Analysed) -> None:
    region = analysed(every(600 * US, 100 * US)).region
    looked = {e.metric: e.value for e in region.against}
    assert looked["cause_transfer"] == 0
    assert looked["cause_synchronisation"] == 0


# ---- graphs ------------------------------------------------------------


def test_a_graph_that_was_traced_as_a_whole_is_busy_time_with_unknown_contents(analysed: Analysed) -> None:
    builder = Builder()
    for i in range(20):
        builder.graph(3, i * 1000, i * 1000 + 900, call=("cudaGraphLaunch_v10000", i * 100, i * 100 + 9))
    timeline = analysed(builder)
    assert timeline.devices[0].busy == 18_000
    assert [(g.graph, g.runs.n) for g in timeline.graphs] == [(3, 20)]
    assert any("--cuda-graph-trace=node" in note for note in timeline.notes)
    assert any("graph" in text for text in timeline.region.missing)


@pytest.mark.parametrize("kernels", [True, False])
def test_a_kernel_that_hides_in_a_graph_is_said_to(opened: Open, kernels: bool) -> None:
    builder = Builder()
    builder.graph(3, 0, 900)
    if kernels:
        builder.kernel("other(int)", 1000, 1100)
    with pytest.raises(UsageError) as caught:
        choose_launch(whole(opened(builder)), Request("triton_mm"))
    assert caught.value.code == "inside-graph"
    assert "--cuda-graph-trace=node" in caught.value.hint


# ---- the launch for ncu ------------------------------------------------------------


def chosen(trace: Trace, **request: object) -> LaunchChoice:
    return choose_launch(whole(trace), Request(**request))  # type: ignore[arg-type]


def option(choice: LaunchChoice, name: str) -> str:
    return choice.selection[choice.selection.index(name) + 1]


def test_the_winner_of_autotuning_is_measured_not_a_candidate(opened: Open) -> None:
    builder = Builder()
    configurations = [(64, 128)] * 30 + [(32, 256)] * 30 + [(128, 64)] * 30 + [(32, 256)] * 10
    for i, (grid, block) in enumerate(configurations):
        builder.kernel(
            "matmul_kernel", i * 1000, i * 1000 + 500, grid=(grid, 1, 1), block=(block, 1, 1),
            call=(LAUNCH, i * 1000 - 50, i * 1000 - 10),
        )  # fmt: skip
    choice = chosen(opened(builder))
    assert int(option(choice, "--launch-skip")) >= 90
    assert option(choice, "--launch-count") == "1"
    assert (choice.launch.grid[0], choice.launch.block[0]) == (32, 256)
    assert (choice.launch.nth, choice.launch.matches) == (90, 100)
    assert "90 of autotuning left out" in choice.reasons[1]


def test_random_numbers_and_cache_flushes_never_win(opened: Open) -> None:
    builder = Builder()
    fill = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>(int)"
    builder.kernel("void at::native::distribution_elementwise_grid_stride_kernel<float>(int)", 0, 120 * US)
    for i in range(400):
        builder.kernel(fill, (200 + i * 400) * US, (208 + i * 400) * US)
    for i in range(20):
        builder.kernel("my_gemm(float*)", (300 + i * 8000) * US, (610 + i * 8000) * US)
    trace = opened(builder)
    assert chosen(trace).launch.short == "my_gemm"
    assert {c.kind for c in chosen(trace).runners_up} == {"helper"}
    assert chosen(trace, pattern="FillFunctor").launch.short == "vectorized_elementwise_kernel"


def test_helpers_do_not_win_even_with_the_most_time(opened: Open) -> None:
    builder = Builder()
    builder.kernel(
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>(int)", 0, 900
    )
    builder.kernel("k(int)", 1000, 1001)
    assert chosen(opened(builder)).launch.short == "k"


CUTLASS = (
    "void cutlass::Kernel<cutlass::gemm::kernel::Gemm<cutlass::gemm::GemmShape<(int)128,(int)128,(int)8>>>"
    "(T1::Params)"
)


def test_a_cutlass_kernel_is_found_and_selected_by_its_demangled_name(opened: Open) -> None:
    builder = Builder()
    builder.kernel("void cutlass::Kernel<cutlass::reduce::Split>(T1::Params)", 0, 100, short="Kernel")
    builder.kernel(CUTLASS, 200, 900, short="Kernel", call=(LAUNCH, 150, 160))
    builder.kernel("ReferenceGemm_kernel(float*)", 1000, 3000)
    builder.kernel("InitializeMatrix_kernel(float*)", 4000, 4100)
    choice = chosen(opened(builder), pattern="GEMM")
    assert choice.launch.name == CUTLASS
    assert option(choice, "--kernel-name-base") == "demangled"
    pattern = option(choice, "--kernel-name").removeprefix("regex:")
    assert pattern.startswith("^void cutlass::Kernel<")
    assert "\\(int\\)128" in pattern
    assert [c.name for c in choice.runners_up if c.name.startswith("Reference")]


def test_skipping_counts_only_launches_that_match_the_filter(opened: Open) -> None:
    builder = Builder()
    for i in range(6):
        builder.kernel("other(int)", i * 1000, i * 1000 + 100, call=(LAUNCH, i * 1000 - 50, i * 1000 - 45))
        end = i * 1000 + (500 if i == 4 else 550 + 10 * i)
        builder.kernel("mine(int)", i * 1000 + 200, end, call=(LAUNCH, i * 1000 - 40, i * 1000 - 35))
    choice = chosen(opened(builder), pattern="mine")
    assert choice.launch.matches == 6
    assert option(choice, "--launch-skip") == str(choice.launch.nth)
    assert choice.launch.nth < 6


def test_launches_of_other_processes_are_not_counted(opened: Open) -> None:
    builder = Builder()
    for i in range(5):
        builder.kernel("k(int)", i * 1000, i * 1000 + 90, pid=10, call=(LAUNCH, i * 1000 - 50, i * 1000 - 45))
    for i in range(2):
        at = 4500 + i * 1000
        builder.kernel("k(int)", at, at + 400, grid=(7, 1, 1), pid=11, call=(LAUNCH, at - 50, at - 45))
    choice = chosen(opened(builder))
    assert (choice.launch.grid[0], choice.launch.nth, choice.launch.matches) == (7, 0, 2)


def test_the_launch_with_the_median_duration_stands_for_the_others(opened: Open) -> None:
    builder = Builder()
    for i, length in enumerate((40, 60, 50, 44, 56)):
        builder.kernel("k(int)", i * 1000, i * 1000 + length, call=(LAUNCH, i * 1000 - 50, i * 1000 - 45))
    launch = chosen(opened(builder)).launch
    assert (launch.duration, launch.nth) == (50, 2)


def test_launches_are_counted_in_the_order_of_their_calls(opened: Open) -> None:
    """On two streams the kernels start in the other order than they were launched."""
    builder = Builder()
    builder.kernel("k(int)", 900, 1000, stream=8, grid=(5, 1, 1), call=(LAUNCH, 10, 20))
    builder.kernel("k(int)", 100, 150, stream=7, grid=(9, 1, 1), call=(LAUNCH, 30, 40))
    choice = chosen(opened(builder))
    assert (choice.launch.grid[0], choice.launch.nth) == (5, 0)


def test_a_collective_is_refused_unless_allowed(opened: Open) -> None:
    builder = Builder()
    builder.kernel("ncclDevKernel_AllReduce_Sum_f16_RING_LL(int)", 0, 900)
    trace = opened(builder)
    with pytest.raises(UsageError, match="other ranks wait") as caught:
        chosen(trace, pattern="nccl")
    assert "--allow-collective" in caught.value.hint
    assert chosen(trace, pattern="nccl", allow_collective=True).launch.duration == 900


def test_a_name_without_match_lists_the_nearest_with_their_share(opened: Open) -> None:
    builder = Builder()
    builder.kernel("matmul_kernel(int)", 0, 750)
    builder.kernel("softmax(int)", 800, 1050)
    with pytest.raises(UsageError) as caught:
        chosen(opened(builder), pattern="matmull")
    assert caught.value.code == "no-such-kernel"
    assert "matmul_kernel (75.0 %), softmax (25.0 %)" in caught.value.hint


def test_in_a_range_launches_can_be_counted_from_its_beginning(opened: Open) -> None:
    builder = Builder()
    for i in range(10):
        builder.kernel("k(int)", i * 1000, i * 1000 + 100, call=(LAUNCH, i * 1000 - 50, i * 1000 - 45))
    builder.nvtx("step", 6900, 10_000)
    scope = in_range(opened(builder), "step")
    assert choose_launch(scope).launch.nth == 7
    assert choose_launch(scope, Request(count_in_range=True)).launch.nth == 0


def test_a_kernel_in_a_graph_is_profiled_by_node(opened: Open) -> None:
    builder = Builder()
    call = builder.api("cudaGraphLaunch_v10000", 100, 150)
    builder.kernel("k(int)", 1000, 1100, correlation=call, node=70)
    choice = chosen(opened(builder))
    assert option(choice, "--graph-profiling") == "node"


def test_what_may_count_differently_under_ncu_is_said(opened: Open) -> None:
    builder = Builder()
    for pid in (10, 11):
        builder.kernel("k(int)", pid * 100, pid * 100 + 50, pid=pid, call=(LAUNCH, pid, pid + 1))
    (caution,) = chosen(opened(builder)).cautions
    assert "2 processes launch it" in caution
