"""Model FLOPs utilisation: dense peaks of the product that was named, and of no other."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ncukit import cli
from ncukit import mfu as utilisation
from ncukit.errors import UsageError
from ncukit.metrics import load
from ncukit.metrics.catalog import find_sku, skus
from ncukit.render.mfu import mfu_text
from ncukit.roofline.mfu import Attention
from ncukit.schemas import text as schema_text

SCHEMA = Draft202012Validator(json.loads(schema_text("ncukit.mfu/1")))
WORDS = ["--params", "8e9", "--tokens-per-second", "64000", "--gpus", "8"]


@pytest.fixture
def ncukit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ncukit", "mfu", *arguments])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_the_documented_example_uses_39_percent(ncukit: Any) -> None:
    code, out, _ = ncukit(*WORDS, "--gpu", "h100-sxm", "--dtype", "bf16", "--json")
    found = json.loads(out)
    SCHEMA.validate(found)
    assert code == 0
    assert found["mfu"] == pytest.approx(100 * 6 * 8e9 * 64000 / (8 * 989.4e12))
    assert round(found["mfu"]) == 39
    assert found["consistent"] is True
    assert "white paper" in found["gpu"]["source"]


# Peaks: dense, and of exactly that product.


@pytest.mark.parametrize(
    ("name", "teraflops"),
    [
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA H100 80GB HBM3", 989.4),
        ("NVIDIA H100 PCIe", 756.5),
        ("NVIDIA H100 NVL", 835.5),
        ("NVIDIA H200", 989.5),
        ("NVIDIA GH200 480GB", 989.5),
        ("NVIDIA B200", 2250),
        ("h100-sxm", 989.4),
    ],
)
def test_bf16_peaks_are_dense(name: str, teraflops: float) -> None:
    sku = find_sku(name).sku
    assert sku is not None
    assert sku.peak["tensor_bf16"] == pytest.approx(teraflops * 1e12)


def test_480_teraflops_on_an_h100_are_half_of_its_peak_not_a_quarter() -> None:
    found = utilisation(480e12 / 6, 1, "NVIDIA H100 80GB HBM3")
    assert found.percent == pytest.approx(48.5, abs=0.05)


@pytest.mark.parametrize(
    ("name", "why", "candidates"),
    [
        ("H100", "may mean 3 products", ["h100-sxm", "h100-pcie", "h100-nvl"]),
        ("NVIDIA H800", "no data sheet", []),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "laptop", ["rtx-4090"]),
        ("NVIDIA GeForce RTX 4090 D", "no data sheet", ["rtx-4090"]),
        ("NVIDIA GeForce RTX 2060 with Max-Q Design", "Max-Q", []),
        (
            "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
            "MIG slice",
            ["a100-sxm-40gb", "a100-sxm-80gb", "a100-pcie-40gb", "a100-pcie-80gb"],
        ),
        ("", "no data sheet", []),
    ],
)
def test_what_is_not_exactly_a_known_product_is_unknown(name: str, why: str, candidates: list[str]) -> None:
    found = find_sku(name)
    assert found.sku is None
    assert why in found.reason
    assert [sku.id for sku in found.candidates] == candidates


@pytest.mark.parametrize(("name", "percent"), [("a100", 30.77), ("A100 SXM", 30.77), ("h100", None)])
def test_a_name_of_several_products_has_a_peak_only_where_they_agree(
    name: str, percent: float | None
) -> None:
    found = utilisation(1e9, 16_000, name)
    assert found.percent == (None if percent is None else pytest.approx(percent, abs=0.01))
    if percent is not None:
        assert "the same for a100-sxm-40gb, a100-sxm-80gb" in found.peak.source


@pytest.mark.parametrize(
    "name", ["NVIDIA A100-SXM4-64GB", "Quadro RTX 6000", "RTX 6000", "RTX 3080", "80GB", "SXM", "Ada"]
)
def test_what_shares_a_part_of_its_name_with_a_product_is_not_taken_for_it(name: str) -> None:
    """A custom A100 with more SMs, a Turing board with an Ada namesake, a 3080 of 10 or of 12 GB."""
    assert utilisation(1e9, 16_000, name).percent is None


def test_a_rate_that_none_of_several_products_has_is_unknown_with_the_reason() -> None:
    found = utilisation(1e9, 16_000, "a100", dtype="fp8")
    assert (found.percent, found.peak.reason) == (None, "a100 may mean 4 products")


@pytest.mark.parametrize(
    ("gpu", "message", "near"),
    [
        ("h100", "h100 may mean 3 products", "one of h100-sxm, h100-pcie, h100-nvl?"),
        ("rtx4091", "no data sheet of a product that is called rtx4091 is known", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "a laptop GPU is not the desktop GPU", "rtx-4090?"),
        ("Voodoo", "no data sheet", "`ncukit mfu --list` names all"),
    ],
)
def test_a_gpu_that_names_no_product_is_an_error_that_names_the_nearest(
    ncukit: Any, gpu: str, message: str, near: str
) -> None:
    code, out, err = ncukit(*WORDS, "--gpu", gpu)
    assert (code, out) == (2, "")
    assert message in err
    assert near in err
    assert "--peak" in err


def test_a_rate_that_a_data_sheet_does_not_state_is_unknown_and_no_error(ncukit: Any) -> None:
    code, out, _ = ncukit(*WORDS, "--gpu", "a100-sxm-40gb", "--dtype", "fp8", "--json")
    found = json.loads(out)
    SCHEMA.validate(found)
    assert (code, found["mfu"], found["consistent"], found["peak"]) == (0, None, None, None)
    assert found["achieved"] == pytest.approx(3.072e15)


@pytest.mark.parametrize("sku", skus(), ids=lambda sku: sku.id)
def test_every_product_has_a_source_and_rates_that_fit_its_architecture(sku: Any) -> None:
    assert sku.source
    assert find_sku(sku.id).sku is sku
    assert all(find_sku(f"NVIDIA {name}").sku is sku for name in sku.reported)
    table = load().peaks[sku.compute_capability]
    assert set(sku.peak) <= set(table)
    # The clock that each rate implies is the same within the rounding of data sheets, except where GeForce
    # halves tensor rates with FP32 accumulation.
    tensor = {
        p: rate / table[p] for p, rate in sku.peak.items() if p.startswith("tensor_") and p != "tensor_fp64"
    }
    halved = {1.0, 2.0} if sku.form == "desktop" else {1.0}
    lowest = min(tensor.values())
    for precision, cycles in tensor.items():
        assert any(cycles / lowest == pytest.approx(ratio, rel=0.03) for ratio in halved), precision


# The formula


def test_attention_adds_twelve_layers_hidden_sequence() -> None:
    attention = Attention(layers=32, hidden=4096, sequence=8192)
    found = utilisation(8e9, 64_000, "h100-sxm", gpus=8, attention=attention)
    assert found.flop_attention == 12 * 32 * 4096 * 8192
    assert found.achieved == pytest.approx(64_000 * (48e9 + 12 * 32 * 4096 * 8192))


def test_causal_attention_averages_the_keys_up_to_each_token() -> None:
    every = [12 * 2 * 64 * keys for keys in range(1, 101)]
    assert Attention(2, 64, 100, causal=True).flop("training") == pytest.approx(sum(every) / 100)


def test_inference_is_a_third_of_training() -> None:
    shape = Attention(32, 4096, 2048)
    train = utilisation(8e9, 1000, "l4", attention=shape)
    infer = utilisation(8e9, 1000, "l4", mode="inference", attention=shape)
    assert infer.achieved * 3 == pytest.approx(train.achieved)
    assert any("memory bandwidth" in note for note in infer.notes)


positive = st.floats(1e-3, 1e15, allow_nan=False)


@given(positive, positive, st.integers(1, 4096))
def test_utilisation_is_proportional_to_work_and_inverse_to_gpus(
    params: float, rate: float, gpus: int
) -> None:
    one = utilisation(params, rate, "a100-sxm-80gb").percent
    several = utilisation(params, rate, "a100-sxm-80gb", gpus=gpus).percent
    double = utilisation(2 * params, rate, "a100-sxm-80gb").percent
    assert one is not None
    assert several == pytest.approx(one / gpus)
    assert double == pytest.approx(2 * one)


def test_more_than_the_peak_is_inconsistent_and_not_clipped() -> None:
    found = utilisation(8e9, 64_000, "h100-sxm")
    assert found.percent == pytest.approx(310.5, abs=0.1)
    assert found.consistent is False
    assert "number of GPUs" in found.suspects[0]
    text = mfu_text(found)
    assert "inconsistent" in text
    assert "310" in text


def test_a_data_type_that_the_gpu_does_not_have_has_no_peak() -> None:
    found = utilisation(8e9, 64_000, "a100-sxm-80gb", dtype="fp8")
    assert found.percent is None
    assert "FP8" in found.peak.reason


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_numbers_must_be_positive(value: float) -> None:
    with pytest.raises(UsageError):
        utilisation(value, 1000, "l4")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--params"),
        (["--params", "8e9"], "--tokens-per-second"),
        ([*WORDS], "--gpu"),
        ([*WORDS, "--gpu", "l4", "--layers", "3"], "--hidden, --sequence"),
        ([*WORDS, "--gpu", "l4", "--heads", "3"], "--head-size"),
        ([*WORDS, "--gpu", "l4", "--dtype", "fp7"], "fp7"),
        ([*WORDS, "--gpu", "l4", "--peak", "-1"], "peak"),
        ([*WORDS, "--gpu", "l4", "--causal"], "attention"),
    ],
)
def test_what_is_missing_or_wrong_is_a_usage_error(arguments: list[str], said: str, ncukit: Any) -> None:
    code, _, err = ncukit(*arguments)
    assert code == 2
    assert said in err


def test_a_peak_of_ones_own_is_said_to_be_that(ncukit: Any) -> None:
    _, out, _ = ncukit(*WORDS, "--gpu", "my chip", "--peak", "1e15", "--json")
    found = json.loads(out)
    assert found["mfu"] == pytest.approx(38.4)
    assert found["gpu"]["source"] == "given by the user"


def test_the_text_fits_80_columns_and_names_the_source(ncukit: Any) -> None:
    for arguments in ([*WORDS, "--gpu", "h100-sxm"], [*WORDS, "--gpu", "t4"], ["--list"]):
        _, out, _ = ncukit(*arguments)
        assert max(map(len, out.splitlines())) <= 80
    assert "h100-pcie" in out
