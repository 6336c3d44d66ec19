"""Several ranks: clocks set by collective ends, who came late and why, what NCCL says about itself."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncukit.errors import ReportFormatError, ReportNotFound, UsageError
from ncukit.model.ops import Ranks
from ncukit.trace.files import rank_traces, read_nccl_log
from ncukit.trace.intervals import union
from ncukit.trace.rank_comparison import _Rank, analyse_ranks, collective_kind
from tests.torch_builder import TorchBuilder

US = 1000
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
STEP = 1000

Judged = Callable[[list[TorchBuilder]], Ranks]


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    """Write one trace a rank, read the folder back and analyse it."""

    def judge(builders: list[TorchBuilder]) -> Ranks:
        for i, b in enumerate(builders):
            b.write(tmp_path / f"trace_rank{i}.json.gz")
        return analyse_ranks(rank_traces(tmp_path))

    return judge


def rank(
    number: int,
    *,
    compute: float = 300,
    copy: float = 0,
    idle: float = 100,
    offset: float = 0,
    transfer: float = 50,
    latest: float = 400,
    steps: int = 5,
    jitter: float = 0,
    world: int = 2,
) -> TorchBuilder:
    """Return a rank that each step copies, computes, does nothing, then joins an all-reduce.

    The collective ends ``transfer`` after the ``latest`` rank came; ``offset`` is the error of its clock.
    """
    b = TorchBuilder("2.13", rank=number, world=world)
    for step in range(steps):
        t = 5000 + step * STEP + offset
        b.op("train", t, 900)
        if copy:
            b.copy(t + 1, t, copy, 1 << 20)
        b.launch("gemm()", t + 1, t + copy, compute)
        arrive = t + copy + compute + idle
        end = t + latest + transfer + (jitter if step % 2 else 0)
        b.launch(ALL_REDUCE, t + 2, arrive, end - arrive, stream=20)
    return b


def test_a_rank_that_computes_longer_is_late_because_of_that(judged: Judged) -> None:
    found = judged([rank(0, latest=500), rank(1, compute=400, latest=500)])
    (late,) = found.late
    assert (late.rank, late.times, late.n, late.why) == (1, 5, 5, "compute")
    assert (late.late, late.caused) == (5 * 100 * US, 5 * 100 * US)
    assert late.excess == {"compute": 5 * 100 * US, "copy": 0, "host": 0}
    assert [c.transfer for c in found.collectives] == [50 * US] * 5
    assert [(a.rank, a.wait) for a in found.collectives[0].arrivals] == [(0, 100 * US), (1, 0)]


def test_a_rank_that_copies_longer_is_late_because_of_that(judged: Judged) -> None:
    (late,) = judged([rank(0, latest=480), rank(1, copy=80, latest=480)]).late
    assert (late.rank, late.why, late.excess["copy"]) == (1, "copy", 5 * 80 * US)


def test_a_rank_whose_gpu_has_nothing_to_do_is_late_because_of_its_host(judged: Judged) -> None:
    (late,) = judged([rank(0, idle=170, latest=470), rank(1, latest=470), rank(2, latest=470)]).late
    assert (late.rank, late.why, late.caused) == (0, "host", 5 * 2 * 70 * US)


@pytest.mark.parametrize("offset", [0, 3_000_000, -4000.5])
def test_clocks_are_set_by_the_ends_of_collectives(judged: Judged, offset: float) -> None:
    found = judged([rank(0, latest=500), rank(1, compute=400, latest=500, offset=offset)])
    first, second = found.clocks
    assert (first.offset, second.offset, second.n) == (0, round(-offset * US), 5)
    assert second.spread == 0
    assert (found.late[0].rank, found.late[0].late) == (1, 5 * 100 * US)
    assert any("clocks of different machines differ" in note for note in found.notes)


def test_nobody_is_called_late_within_what_the_clocks_allow(judged: Judged) -> None:
    found = judged([rank(0, latest=420), rank(1, compute=320, latest=420, jitter=30)])
    assert found.clocks[1].spread == 30 * US
    assert found.late == ()
    assert {c.why for c in found.collectives} == {None}
    assert found.collectives[0].late > 0  # said, but not judged


def test_ranks_are_linked_through_others_and_groups_are_kept_apart(judged: Judged) -> None:
    builders = [rank(i, latest=400, steps=2, offset=i * 100) for i in range(3)]
    groups = (("a",), ("a", "b"), ("b",))
    for b, own in zip(builders, groups, strict=True):
        kernels = [e for e in b.events if e.get("name") == ALL_REDUCE]
        b.events = [e for e in b.events if e not in kernels]
        for group in own:
            for e in kernels:
                args = {**e["args"], "Collective name": "allreduce", "Process Group Name": group}
                args |= {"In msg nelems": 1024, "dtype": "Float"}
                b.events.append({**e, "ts": e["ts"] + (100 if group == "b" else 0), "args": args})
    found = judged(builders)
    assert [c.offset for c in found.clocks] == [0, -100 * US, -200 * US]
    assert sorted({(c.group, tuple(a.rank for a in c.arrivals)) for c in found.collectives}) == [
        ("a", (0, 1)),
        ("b", (1, 2)),
    ]
    assert {c.bytes for c in found.collectives} == {4096}


def test_a_rank_without_a_common_collective_has_no_clock_and_is_left_out(judged: Judged) -> None:
    alone = TorchBuilder("2.13", rank=2, world=4)
    alone.op("train", 0, 900)
    alone.launch("gemm()", 1, 10, 50)
    found = judged([rank(0, latest=500), rank(1, compute=400, latest=500), alone])
    assert found.clocks[2].offset is None
    assert not found.aligned
    assert any("rank 2 shares no collective" in text for text in found.missing)
    assert found.late[0].rank == 1
    assert found.world_size == 4
    assert any("3 of 4 ranks are here" in note for note in found.notes)


def test_traces_without_collectives_say_that_nothing_can_be_said(judged: Judged) -> None:
    builders = [TorchBuilder(rank=i) for i in range(2)]
    for b in builders:
        b.op("train", 0, 900)
        b.launch("gemm()", 1, 10, 50)
    found = judged(builders)
    assert found.late == ()
    assert any("no kernel of a collective" in text for text in found.missing)


def test_for_whom_a_rank_waited_is_unknown_without_the_others_and_not_nothing(judged: Judged) -> None:
    alone = judged([rank(0, latest=400)])
    assert [one.waiting for one in alone.ranks] == [None]
    assert [(kind.matched, kind.waited) for kind in alone.kinds] == [(0, None)]
    both = judged([rank(0, latest=400), rank(1, latest=400)])
    assert [one.waiting is None for one in both.ranks] == [False, False]


def test_time_of_a_rank_is_split_and_overlap_is_shown(judged: Judged) -> None:
    b = TorchBuilder(rank=0)
    b.launch("gemm()", 0, 0, 100)
    b.launch(ALL_REDUCE, 0, 60, 80, stream=20)  # 40 beside gemm, 40 exposed
    b.copy(0, 150, 20, 4096)
    b.launch("gemm()", 0, 200, 10)
    (found,) = judged([b]).ranks
    assert (found.span, found.compute, found.communication) == (210 * US, 110 * US, 80 * US)
    assert (found.hidden, found.exposed, found.copy, found.empty) == (40 * US, 40 * US, 20 * US, 40 * US)
    assert found.compute + found.exposed + found.copy + found.empty == found.span


def test_a_count_that_differs_between_ranks_leaves_the_rest_unmatched(judged: Judged) -> None:
    found = judged([rank(0, latest=400, steps=4), rank(1, latest=400, steps=3)])
    (kind,) = found.kinds
    assert (kind.n, kind.matched, kind.ranks) == (7, 3, 2)
    assert any("do not agree on the number of all-reduce (3 to 4)" in note for note in found.notes)


def test_a_real_rank_beside_a_copy_of_it_differs_by_the_shift_alone(shared: Path, tmp_path: Path) -> None:
    source = shared / "reports" / "torch" / "trace-01.json.gz"
    data = json.loads(gzip.decompress(source.read_bytes()))
    (tmp_path / "a.json.gz").write_bytes(source.read_bytes())
    data["distributedInfo"]["rank"] = 7
    for event in data["traceEvents"]:
        event["ts"] += 12_345
    (tmp_path / "b.json").write_text(json.dumps(data))
    found = analyse_ranks(rank_traces(tmp_path))
    assert [(c.rank, c.offset, c.spread) for c in found.clocks] == [(0, 0, 0), (7, -12_345 * US, 0)]
    assert found.late == ()
    assert found.world_size == 128
    named = {"all-to-all": 4, "all-reduce": 4, "all-gather": 2}  # by c10d:: around the launch, of each rank
    assert {k.name: k.n for k in found.kinds} == {name: 2 * n for name, n in named.items()}
    assert found.ranks[0].communication == found.ranks[1].communication > 0


# ---- which file is of which rank ---------------------------------------------------------------------


def test_the_rank_is_what_the_trace_says_then_what_the_file_is_called(tmp_path: Path) -> None:
    for i, b in enumerate([TorchBuilder(rank=5), TorchBuilder()]):
        b.op("x", 0, 1)
        b.write(tmp_path / f"worker_rank-{i}.json")
    assert [one.rank for one in rank_traces(tmp_path)] == [1, 5]


def test_two_traces_of_one_rank_and_a_nameless_one_are_refused(tmp_path: Path) -> None:
    (b := TorchBuilder(rank=0)).op("x", 0, 1)
    b.write(tmp_path / "a.json")
    b.write(tmp_path / "b.json")
    with pytest.raises(UsageError, match=r"a\.json and b\.json are both of rank 0"):
        rank_traces(tmp_path)
    (nameless := TorchBuilder()).op("x", 0, 1)
    path = nameless.write(tmp_path / "c.json")
    with pytest.raises(UsageError, match="nothing says which rank"):
        rank_traces([path])


def test_a_folder_without_traces_and_one_that_is_not_there_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ReportNotFound, match="holds no trace"):
        rank_traces(tmp_path)
    with pytest.raises(ReportNotFound, match="there is no folder"):
        rank_traces(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "all-reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(...)", "reduce-scatter"),
        ("_reduce_scatter_base", "reduce-scatter"),
        ("all_to_allv", "all-to-all"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", "send-receive"),
        ("ncclDevKernel_Broadcast_RING_LL(...)", "broadcast"),
        ("something", "other"),
    ],
)
def test_collectives_have_one_name_whoever_names_them(name: str, kind: str) -> None:
    assert collective_kind(name) == kind


# ---- how the time before a collective was spent, against counting ------------------------------------

spans = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=6)


@settings(deadline=None)
@given(spans, spans, st.integers(0, 60), st.integers(0, 30))
def test_time_before_a_collective_equals_counting(
    compute: list[tuple[int, int]], copies: list[tuple[int, int]], start: int, length: int
) -> None:
    def made(pairs: list[tuple[int, int]]) -> tuple[set[int], object]:
        return {t for s, n in pairs for t in range(s, s + n)}, union(
            [s for s, _ in pairs], [s + n for s, n in pairs]
        )

    (c, compute_set), (k, copy_set) = made(compute), made(copies)
    inside = set(range(start, start + length))
    empty = union(np.empty(0, np.int64), np.empty(0, np.int64))
    found = _Rank(compute_set, empty, copy_set, empty).between(start, start + length)  # type: ignore[arg-type]
    assert found == {
        "compute": len(inside & c),
        "copy": len(inside & (k - c)),
        "host": len(inside - c - k),
    }


# ---- NCCL's own words --------------------------------------------------------------------------------

LOG = """\
starting training
node1:101:101 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0
node1:101:101 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.
NCCL version 2.21.5+cuda12.4
node1:101:222 [0] NCCL INFO NET/IB : No device found.
node1:101:222 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>
node1:101:222 [0] NCCL INFO Using network Socket
node1:101:222 [0] NCCL INFO comm 0x55 rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0 MNNVL 0
node1:101:222 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct
node1:101:222 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via SHM/direct/direct
node1:101:222 [0] NCCL INFO Channel 00/0 : 3[3] -> 4[0] [send] via NET/Socket/0
node1:101:222 [0] NCCL INFO 2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels
node1:101:222 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer
NCCL is mentioned here without being it
"""


def test_the_log_of_nccl_tells_settings_transports_and_warnings(tmp_path: Path) -> None:
    (path := tmp_path / "nccl.txt").write_text(LOG)
    log = read_nccl_log(path)
    said = {s.name: s.value for s in log.settings}
    assert (log.version, log.ranks) == ("2.21.5+cuda12.4", 8)
    assert said["NCCL_SOCKET_IFNAME"] == "eth0"
    assert said["NCCL_P2P_DISABLE"] == "1"
    assert said["network"] == "Socket"
    assert said["InfiniBand"] == "No device found"
    assert said["channels"].startswith("2 coll channels")
    assert log.transports == {"SHM/direct/direct": 2, "NET/Socket/0": 1}
    assert log.warnings == ("socketProgress: Connection closed by remote peer",)
    notes = {s.name: s.note for s in log.settings if s.note}
    assert notes == {"NCCL_P2P_DISABLE": "GPUs of one machine do not reach each other directly"}


def test_a_file_that_is_no_log_of_nccl_is_refused(tmp_path: Path) -> None:
    (path := tmp_path / "x.txt").write_text("nothing\n")
    with pytest.raises(ReportFormatError, match="holds no line of NCCL"):
        read_nccl_log(path)
    with pytest.raises(ReportNotFound):
        read_nccl_log(tmp_path / "none.txt")


def test_settings_that_a_run_kept_in_its_trace_are_those_of_its_environment(judged: Judged) -> None:
    builders = [rank(0, latest=400), rank(1, latest=400)]
    for b in builders:
        b.head["nccl_environment"] = {"NCCL_IB_DISABLE": "1"}
    found = judged(builders)
    (said,) = (s for s in found.settings if s.name == "NCCL_IB_DISABLE")
    assert (said.value, said.source) == ("1", "environment")
    assert "InfiniBand" in said.note


def test_the_log_is_part_of_what_the_ranks_say(tmp_path: Path) -> None:
    (path := tmp_path / "nccl.txt").write_text(LOG)
    rank(0).write(tmp_path / "rank0.json")
    found = analyse_ranks(rank_traces(tmp_path), read_nccl_log(path))
    assert found.transports["SHM/direct/direct"] == 2
    assert {s.source for s in found.settings} == {"trace", "log"}
    assert any("NCCL warned: socketProgress" in note for note in found.notes)
