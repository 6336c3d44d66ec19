"""Gates: what they say, what they compare, what trips; from the command line and from ncukit.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ncukit.comparison.gates import Gate, apply, parse
from ncukit.comparison.options import Settings, load_settings
from ncukit.errors import UsageError
from ncukit.model import Value
from ncukit.model.comparison import Outcome
from tests.compared import A100, H100, T4, compared, launch

# What a gate says


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("dram_bytes > +5%", ("dram_bytes", ">", 5.0, "percent")),
        ("dram_bytes>=+5%", ("dram_bytes", ">=", 5.0, "percent")),
        ("kernel_duration < -10%", ("kernel_duration", "<", -10.0, "percent")),
        ("kernel_duration > 1.02x", ("kernel_duration", ">", 1.02, "factor")),
        ("achieved_occupancy_pct < -3pt", ("achieved_occupancy_pct", "<", -3.0, "points")),
        ("achieved_occupancy_pct < 50%", ("achieved_occupancy_pct", "<", 50.0, "value")),
        ("spill_inst > 0", ("spill_inst", ">", 0.0, "value")),
        ("dram_bytes > 1.5GB", ("dram_bytes", ">", 1.5e9, "value")),
        ("dram_bytes > 2 MiB", ("dram_bytes", ">", 2 * 2**20, "value")),
        ("kernel_duration > 2ms", ("kernel_duration", ">", 2e-3, "value")),
        ("kernel_duration > 300us", ("kernel_duration", ">", 3e-4, "value")),
        ("inst_executed <= 1e6", ("inst_executed", "<=", 1e6, "value")),
        ("inst_executed > 5k", ("inst_executed", ">", 5000.0, "value")),
        ("clean_time > +2%", ("clean_time", ">", 2.0, "percent")),
    ],
)
def test_a_gate_is_a_change_in_percent_or_points_a_factor_or_a_value(
    text: str, gate: tuple[str, str, float, str]
) -> None:
    found = parse(text)
    assert (found.id, found.operator, found.kind) == (gate[0], gate[1], gate[3])
    assert found.limit == pytest.approx(gate[2])


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("dram_bytes", "write ID OP LIMIT"),
        ("dram_bytes = 5", "write ID OP LIMIT"),
        ("dram_bytes > much", "write +5%, +3pt, 1.02x or a number"),
        ("dram_bytes > 5%", "write +5% for a change by 5%"),
        ("dram_bytes > +5pt", "write +5% instead"),
        ("dram_bytes > 5 ms", "its unit is byte"),
        ("achieved_occupancy_pct < 3pt", "write +3pt"),
        ("gpu_name > 0", "gate on a number"),
        ("dram_byte > +5%", "nearest: dram_bytes, "),
    ],
)
def test_what_is_no_gate_is_an_error_that_says_how_to_write_one(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as found:
        parse(text)
    assert found.value.hint.startswith(hint)
    assert found.value.exit_code == 2


# What trips


def outcomes(base: Any, other: Any, *gates: str, **options: Any) -> list[Outcome]:
    comparison = compared(base, other)
    return list(apply(comparison, [parse(text) for text in gates], **options).gates)


def state(text: str, base: dict[str, Any], other: dict[str, Any], **options: Any) -> str:
    (outcome,) = outcomes(launch(**base), launch(**other), text, **options)
    return outcome.state


@pytest.mark.parametrize(
    ("text", "base", "other", "state_"),
    [
        ("dram_bytes > +5%", 100, 105, "passed"),
        ("dram_bytes > +5%", 100, 106, "tripped"),
        ("dram_bytes >= +5%", 100, 105, "tripped"),
        ("dram_bytes > +5%", 100, 50, "passed"),
        ("dram_bytes < -5%", 100, 94, "tripped"),
        ("dram_bytes > +5%", 0, 0, "passed"),
        ("dram_bytes > +5%", 0, 1, "tripped"),
        ("dram_bytes > 1.5x", 0, 1, "tripped"),
        ("dram_bytes > 1.5x", 0, 0, "passed"),
        ("kernel_duration > 1.02x", 1e-3, 1.019e-3, "passed"),
        ("kernel_duration > 1.02x", 1e-3, 1.021e-3, "tripped"),
        ("achieved_occupancy_pct < -3pt", 50.0, 46.0, "tripped"),
        ("achieved_occupancy_pct < -3pt", 50.0, 48.0, "passed"),
        ("achieved_occupancy_pct < -3%", 50.0, 48.0, "tripped"),
        ("achieved_occupancy_pct < 50%", 50.0, 48.0, "tripped"),
        ("spill_inst > 0", 5, 0, "passed"),
        ("spill_inst > 0", 0, 1, "tripped"),
    ],
)
def test_a_gate_trips_when_its_condition_holds(text: str, base: float, other: float, state_: str) -> None:
    id = parse(text).id
    assert state(text, {id: base}, {id: other}) == state_


def test_gates_compare_values_as_written_also_within_the_noise() -> None:
    base, other = {"kernel_duration": 1e-3}, {"kernel_duration": 1.015e-3}
    assert state("kernel_duration > 1.01x", base, other) == "tripped"
    (outcome,) = outcomes(launch(**base), launch(**other), "kernel_duration > 1.01x", beyond_noise=True)
    assert (outcome.state, outcome.failed) == ("noise", False)
    assert outcome.message.endswith("within the noise (a floor of 2 %)")
    far = {"kernel_duration": 1.5e-3}
    assert state("kernel_duration > 1.01x", base, far, beyond_noise=True) == "tripped"


@pytest.mark.parametrize("missing", ["base", "other"])
def test_what_is_unknown_on_a_side_trips_and_says_why(missing: str) -> None:
    known, lost = {"dram_bytes": 100}, {"dram_bytes": Value("dram_bytes", None, "byte", reason="no section")}
    base, other = (lost, known) if missing == "base" else (known, lost)
    (outcome,) = outcomes(launch(**base), launch(**other), "dram_bytes > +5%")
    assert (outcome.state, outcome.failed) == ("undecided", True)
    assert outcome.message == f"cannot be decided: {missing}: no section"
    (allowed,) = outcomes(launch(**base), launch(**other), "dram_bytes > +5%", allow_unknown=True)
    assert (allowed.state, allowed.allowed, allowed.failed) == ("undecided", True, False)


def test_a_value_needs_the_other_side_only() -> None:
    assert state("spill_inst > 0", {}, {"spill_inst": 0}) == "passed"
    assert state("spill_inst > 0", {"spill_inst": 0}, {}) == "undecided"


def test_what_is_not_comparable_cannot_be_decided() -> None:
    base, other = {**T4, "l2_hit_rate_pct": 50}, {**A100, "l2_hit_rate_pct": 60}
    (outcome,) = outcomes(launch(**base), launch(**other), "l2_hit_rate_pct < -1pt")
    assert outcome.state == "undecided"
    assert "L2 fabric" in outcome.message


def test_a_value_that_no_rule_may_use_cannot_be_decided() -> None:
    doubt = Value("l2_hit_rate_pct", 152.0, "%", "exact", (), "unreliable: above 100 %", reliable=False)
    (outcome,) = outcomes(launch(l2_hit_rate_pct=90), launch(l2_hit_rate_pct=doubt), "l2_hit_rate_pct < 50%")
    assert outcome.message == "cannot be decided: other: unreliable: above 100 %"


def test_a_failed_launch_cannot_be_decided() -> None:
    failed = launch(failed="the profiling pass failed")
    assert [o.state for o in outcomes(launch(dram_bytes=1), failed, "dram_bytes > +5%")] == ["undecided"]


def test_launches_that_vanished_or_are_new_cannot_be_decided() -> None:
    base = [launch("f", 0, dram_bytes=100), launch("gone", 1, dram_bytes=1)]
    other = [launch("f", 0, dram_bytes=100), launch("new", 1, dram_bytes=1)]
    found = {o.kernel: o for o in outcomes(base, other, "dram_bytes > +5%")}
    assert {name: o.state for name, o in found.items()} == {
        "f": "passed", "gone": "undecided", "new": "undecided",
    }  # fmt: skip
    assert found["gone"].message == "cannot be decided: no launch of this name on the other side"
    value = {o.kernel: o.state for o in outcomes(base, other, "dram_bytes > 5")}
    assert value == {"f": "tripped", "gone": "undecided", "new": "passed"}


def test_no_launch_in_common_never_passes() -> None:
    base = [launch("a"), launch("b", 1)]
    other = [launch("c"), launch("d", 1)]
    assert {o.state for o in outcomes(base, other, "dram_bytes > +5%")} == {"undecided"}


def test_a_gate_for_a_kernel_looks_at_no_other() -> None:
    base = [launch("gemm", 0, dram_bytes=1), launch("copy", 1, dram_bytes=1)]
    comparison = compared(base, [launch("gemm", 0, dram_bytes=1), launch("copy", 1, dram_bytes=9)])
    found = apply(comparison, [parse("dram_bytes > +5%", "gem*")]).gates
    assert [(o.kernel, o.state) for o in found] == [("gemm", "passed")]
    (nothing,) = apply(comparison, [parse("dram_bytes > +5%", "softmax")]).gates
    assert (nothing.state, nothing.message) == (
        "undecided", "cannot be decided: there is no launch named like 'softmax'",
    )  # fmt: skip
    assert apply(comparison, [parse("dram_bytes > +5%", "softmax")], chosen=True).gates == ()


def test_every_other_side_is_gated() -> None:
    from ncukit.comparison import compare
    from ncukit.comparison.baseline import side_of

    sides = [side_of([launch(dram_bytes=n)], f"{n}") for n in (100, 101, 200)]
    comparison = apply(compare(sides[0], sides[1:]), [parse("dram_bytes > +5%")])
    assert [(o.other, o.state) for o in comparison.gates] == [("101", "passed"), ("200", "tripped")]
    assert comparison.failed


def test_across_gpus_counts_are_gated_and_names_the_sides() -> None:
    base, other = {**A100, "dram_bytes": 100}, {**H100, "dram_bytes": 200}
    (outcome,) = outcomes(launch("gemm", **base), launch("gemm", **other), "dram_bytes > +5%")
    assert (outcome.state, outcome.kernel, outcome.other) == ("tripped", "gemm", "after.ncu-rep")
    assert outcome.message == "100\u202fB → 200\u202fB (+100.00\u202f%)"


# ncukit.toml


def settings(folder: Path, text: str) -> Settings:
    (folder / "ncukit.toml").write_text(text, encoding="utf-8")
    return load_settings(folder)


def test_a_project_settles_its_gates_once(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        """
        [compare]
        fail_on = ["dram_bytes > +5%", "kernel_duration > 1.02x"]
        beyond_noise = true
        baselines = "perf"
        [compare.kernels."gemm*"]
        fail_on = ["spill_inst > 0"]
        """,
    )
    assert found.gates == (
        Gate("dram_bytes > +5%", "dram_bytes", ">", 5.0, "percent"),
        Gate("kernel_duration > 1.02x", "kernel_duration", ">", 1.02, "factor"),
        Gate("spill_inst > 0", "spill_inst", ">", 0.0, "value", "gemm*"),
    )
    assert (found.beyond_noise, found.allow_unknown) == (True, False)
    assert found.baselines == tmp_path / "perf"


def test_the_nearest_file_upwards_counts_up_to_the_repository(tmp_path: Path) -> None:
    (tmp_path / "ncukit.toml").write_text("[compare]\nallow_unknown = true\n", encoding="utf-8")
    inner = tmp_path / "repo" / "src"
    inner.mkdir(parents=True)
    assert load_settings(inner).allow_unknown
    (tmp_path / "repo" / ".git").mkdir()
    found = load_settings(inner)
    assert not found.allow_unknown
    assert found.baselines == tmp_path / "repo" / ".ncukit" / "baselines"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[compare]\nfailon = []", "[compare] has no key 'failon'"),
        ("[compare]\nfail_on = 'x'", "fail_on must be a list"),
        ("[compare]\nfail_on = [3]", "3 is no gate"),
        ("[compare]\nallow_unknown = 'yes'", "allow_unknown must be true or false"),
        ("[compare.kernels.a]\nfail = []", "[compare.kernels.a] has no key 'fail'"),
        ("[compares]", "there is no table [compares]"),
        ("compare = 3", "compare is no table"),
        ("[compare", "is not valid TOML"),
    ],
)
def test_what_nobody_knows_is_an_error(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as found:
        settings(tmp_path, text)
    assert message in found.value.message


def test_a_file_that_is_not_there_is_said_without_an_error_number(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml cannot be read: No such file or directory$"):
        load_settings(tmp_path, tmp_path / "none.toml")


def test_a_wrong_metric_in_the_file_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no metric 'dram_byte'"):
        settings(tmp_path, "[compare]\nfail_on = ['dram_byte > 0']")


def test_each_outcome_names_its_launch_so_that_no_two_test_cases_are_the_same() -> None:
    some = [launch("f", n, grid_size=n + 1, block_size=32, dram_bytes=1) for n in range(2)]
    found = apply(compared(some, some), [parse("dram_bytes > +5%")])
    assert [outcome.kernel for outcome in found.gates] == ["f, 1 x 32", "f, 2 x 32"]
