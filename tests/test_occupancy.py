"""Occupancy: limits and curves equal those of ncu on every real report, whatever the GPU; what-ifs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ncukit.api import read
from ncukit.judge.occupancy import configuration, missing_for_occupancy, occupancy
from ncukit.metrics.normalise import normalise, wanted
from ncukit.model import Kernel
from ncukit.model.shares import Limit, Occupancy, OccupancyCurve
from ncukit.report.reader import Source
from tests.builders import kernel

H100: dict[str, Any] = {
    "compute_capability": 90,
    "sm_count": 132,
    "max_warps_per_sm": 64,
    "shared_mem_driver": 1024,
    "shared_mem_config": 233_472,
    "shared_mem_static": 0,
    "occupancy_limit_barriers": 32,
}
H100_LIMITS = {
    "max_registers_per_sm": 65_536,
    "max_registers_per_thread": 255,
    "max_threads_per_block": 1024,
    "max_blocks_per_sm": 32,
    "max_shared_mem_per_sm": 233_472,
    "max_shared_mem_per_block": 232_448,
    "reserved_shared_mem": 1024,
}


def on_h100(**launch: Any) -> Kernel:
    return kernel(signals=H100_LIMITS, **{**H100, "shared_mem_dynamic": 0, **launch})


def found(kernel: Kernel) -> Occupancy:
    result = occupancy(kernel)
    assert result is not None
    return result


def limit(result: Occupancy, resource: str) -> Limit:
    return next(one for one in result.limits if one.resource == resource)


def curve(result: Occupancy, axis: str) -> OccupancyCurve:
    return next(one for one in result.curves if one.axis == axis)


# A tie of limits, and a variant that relieves only one of them


def test_registers_and_shared_memory_both_limit_to_one_block():
    result = found(on_h100(block_size=384, registers_per_thread=168, shared_mem_dynamic=200 * 1024))
    assert [one.resource for one in result.limits if one.binds] == ["registers", "shared_mem"]
    assert (result.blocks, result.warps, result.percent) == (1, 12, 18.75)
    assert curve(result, "registers").better is None, "fewer registers alone change nothing"
    assert curve(result, "shared_mem").better is None, "less shared memory alone changes nothing"


def test_fewer_registers_leave_the_occupancy_where_shared_memory_holds_it():
    result = found(on_h100(block_size=384, registers_per_thread=80, shared_mem_dynamic=200 * 1024))
    assert limit(result, "registers").blocks == 2
    assert [one.resource for one in result.limits if one.binds] == ["shared_mem"]
    assert result.warps == 12


# what would let one more block fit


def test_one_more_block_needs_this_many_registers_or_bytes():
    result = found(on_h100(block_size=256, registers_per_thread=100, shared_mem_dynamic=100_000))
    registers, shared = limit(result, "registers"), limit(result, "shared_mem")
    assert (registers.blocks, registers.next_at) == (2, 80)
    assert (shared.blocks, shared.next_at) == (2, 233_472 // 3 // 128 * 128 - 1024)
    assert limit(result, "blocks").next_at is None
    at = found(on_h100(block_size=256, registers_per_thread=80, shared_mem_dynamic=shared.next_at))
    assert (limit(at, "registers").blocks, limit(at, "shared_mem").blocks) == (3, 3)


def test_a_curve_names_the_limit_of_each_step_and_the_nearest_better_one():
    result = found(on_h100(block_size=256, registers_per_thread=80))
    registers = curve(result, "registers")
    assert (registers.here.x, registers.here.warps, registers.here.binds) == (80, 24, ("registers",))
    assert registers.better is not None
    assert registers.worse is not None
    assert (registers.better.x, registers.better.warps) == (64, 32)
    assert (registers.worse.x, registers.worse.warps) == (81, 16)
    assert {p.binds for p in registers.points if p.warps == 64} == {("warps",), ("registers", "warps")}


def test_shared_memory_beyond_the_carve_out_counts_with_the_largest_one():
    small = on_h100(block_size=256, registers_per_thread=32, shared_mem_config=32_768)
    result = found(small)
    shared = curve(result, "shared_mem")
    warps = {p.x: p.warps for p in shared.points}
    assert result.carve_out == 32_768
    assert result.largest_carve_out == 233_472
    assert warps[15_488] == 8, "two blocks of 16 KiB and the driver's share no longer fit 32 KiB"
    assert warps[31_872] == 7 * 8, "one block no longer fits: the largest carve-out holds seven"
    assert "largest" in shared.note


def test_nothing_is_said_without_the_device_or_the_launch():
    bare = kernel(block_size=256)
    assert occupancy(bare) is None
    assert "the size of the register file" in missing_for_occupancy(bare)
    assert configuration(bare) is None


# every real report


def launches(shared: Path) -> Iterator[tuple[str, Kernel]]:
    """Yield launches of the real reports that have a distinct configuration, with ncu's own curves."""
    for path in sorted((shared / "reports").glob("ncu*/*rep*")):
        names = {f"launch__occupancy_per_{axis}" for axis in AXES}
        want = wanted()
        request = type(want)(want.metrics, want.instances | names)
        seen = set()
        for raw in Source(path).launches(request):
            one = normalise(raw, str(path))
            shape = tuple(one.number(id) for id in SHAPE)
            if one.failed or shape in seen:
                continue
            seen.add(shape)
            yield path.name, one


SHAPE = ("block_size", "registers_per_thread", "shared_mem_dynamic", "shared_mem_static", "shared_mem_config")
AXES = {"register_count": "registers", "block_size": "block_size", "shared_mem_size": "shared_mem"}


@pytest.fixture(scope="module")
def real(shared: Path) -> list[tuple[str, Kernel]]:
    return list(launches(shared))


def test_theoretical_occupancy_and_every_limit_are_those_of_the_report(real: list[tuple[str, Kernel]]):
    compared = 0
    for file, one in real:
        expected = one.number("theoretical_occupancy_pct")
        if expected is None:
            continue
        result = found(one)
        assert result.percent == pytest.approx(expected, abs=0.01), file
        for part in result.limits:
            reported = one.number(f"occupancy_limit_{part.resource}")
            at_most = result.limits[0].blocks
            assert reported is None or min(part.blocks, at_most) == min(reported, at_most), (file, part)
        compared += 1
    assert compared >= 100


@pytest.mark.parametrize("axis", AXES)
def test_every_point_of_ncus_curves_comes_out(real: list[tuple[str, Kernel]], axis: str):
    compared = 0
    for file, one in real:
        here = configuration(one)
        if here is None or (axis == "shared_mem_size" and not here.allocated):
            continue  # a limit without shared memory does not say which carve-out the report counts with
        for x, warps in one.raw.instances.get(f"launch__occupancy_per_{axis}", ()):
            if not isinstance(x, int) or x < (32 if axis == "block_size" else 1):
                continue
            changed = _changed(here, axis, x)
            if axis == "shared_mem_size" and (changed.allocated > here.carve_out or warps == 0):
                continue  # ncu draws one block beyond, then none; we draw the largest carve-out
            assert changed.point(x).warps == warps, (file, axis, x)
            compared += 1
    assert compared > 1000


def _changed(here: Any, axis: str, x: int) -> Any:
    from dataclasses import replace

    if axis == "shared_mem_size":  # ncu's axis includes what the driver reserves
        return replace(here, shared=max(0, x - here.reserved))
    return replace(here, **{"registers" if axis == "register_count" else "threads": x})


def test_the_samples_have_curves():
    from ncukit.api import demo_reports

    for path in demo_reports():
        for one in read(path).kernels(details=True):
            assert {c.axis for c in found(one).curves} == {"registers", "block_size", "shared_mem"}


def test_a_grid_that_fills_the_sms_is_not_called_too_small():
    launch = {**H100, "block_size": 256, "registers_per_thread": 64, "shared_mem_dynamic": 0}
    per_scheduler = 31.999999999999993 / 4  # as the mean over the schedulers comes out
    full = kernel(signals={**H100_LIMITS, "launched_warps_per_scheduler": per_scheduler}, **launch)
    assert (found(full).cap, found(full).warps) == (32, 32)
