"""``ncukit roofline``: every model as a command, in text, JSON and as a page, alone and beside a report."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ncukit import demo_reports
from ncukit.cli.options import SHARED
from ncukit.metrics.catalog import find_sku
from ncukit.roofline.models.estimate import EXAMPLES, MODELS, make, parameters
from ncukit.schemas import text as schema_text
from tests.command import Done, ncukit
from tests.conftest import reports

SAMPLES = {path.stem: path for path in demo_reports()}
GEMM, MANY = SAMPLES["gemm-tensor"], SAMPLES["several-launches"]
SCHEMA = Draft202012Validator(json.loads(schema_text("ncukit.roofline/1")))
SMALL = "gemm --m 64 --n 32 --k 128 --dtype fp16 --peak 200e12 --bandwidth 3e12"
POINT = "point --flops 2e12 --bytes 1e12 --seconds 0.020 --bandwidth 3e12 --peak 200e12"


Cli = Callable[..., Done]


@pytest.fixture
def roofline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Run ``ncukit roofline`` in this process, in an empty folder; words of one string are split."""
    monkeypatch.chdir(tmp_path)
    return lambda words, *more: ncukit("roofline", *words.split(), *more)


def options(name: str) -> list[str]:
    """Return the example of a model as the command line takes it."""
    flags = {n: f"--{n.replace('_', '-')}" for n in EXAMPLES[name]}
    return [w for n, v in EXAMPLES[name].items() for w in ([flags[n]] if v is True else [flags[n], str(v)])]


# --- the two worked examples


def test_the_worked_gemm(roofline: Cli) -> None:
    found = roofline(SMALL, "--json").json
    assert (found["flops"], found["bytes"]) == (524_288, 28_672)
    assert found["intensity"] == pytest.approx(18.29, abs=0.005)
    assert found["bound"] == pytest.approx(54.86e12, rel=1e-4)
    assert found["side"] == "memory-bound"
    assert found["time_floor"] == pytest.approx(28_672 / 3e12)


def test_the_worked_point(roofline: Cli) -> None:
    found = roofline(POINT, "--json").json
    assert (found["intensity"], found["achieved"], found["bound"]) == (2, 1e14, 6e12)
    assert found["consistent"] is False
    assert found["suspects"] == ["bytes", "flops", "timing", "memory-level"]


# --- every model


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_a_command_whose_json_fits_its_schema(name: str, roofline: Cli) -> None:
    found = roofline(
        name.replace("_", "-"), *options(name), "--peak", "1P", "--bandwidth", "2T", "--json"
    ).json
    SCHEMA.validate(found)
    model = make(name, EXAMPLES[name])
    assert (found["flops"], found["bytes"], found["name"]) == (model.total_flop, model.bytes, model.name)
    assert found["time_floor"] == pytest.approx(max(model.total_flop / 1e15, model.bytes / 2e12))
    assert found["missing"] == []


@pytest.mark.parametrize("name", MODELS)
def test_every_model_explains_itself_its_parameters_and_an_example(name: str, roofline: Cli) -> None:
    done = roofline(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    for parameter in parameters(name):
        assert f"--{parameter.name.replace('_', '-')}" in done.stdout
    for shared in (n for n in SHARED if n != "help"):
        assert f"--{shared.replace('_', '-')}" in done.stdout
    (example,) = re.findall(r"^  ncukit roofline (.*(?:\n  --.*)*)", done.stdout, re.M)
    assert roofline(example).returncode == 0


@pytest.mark.parametrize("name", MODELS)
def test_the_text_fits_80_columns_and_says_convention_and_omissions(name: str, roofline: Cli) -> None:
    done = roofline(name, *options(name), "--peak", "1P", "--bandwidth", "2T", "--seconds", "1e-9")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert re.search(r"^Counted  ", done.stdout, re.M)
    assert re.search(r"^Left out  ", done.stdout, re.M)
    assert re.search(r"^Consistent   no ", done.stdout, re.M)


def test_no_parameter_of_a_model_hides_an_option_that_all_have() -> None:
    assert not {p.name for name in MODELS for p in parameters(name)} & set(SHARED)


def test_without_a_model_all_are_listed(roofline: Cli) -> None:
    done = roofline("")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"\n  {name.replace('_', '-')} " in done.stdout for name in MODELS)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_list_of_models_is_json_too(roofline: Cli) -> None:
    rows = {row["model"]: row for row in json.loads(roofline("--json").stdout)}
    assert list(rows) == list(MODELS)
    assert [p["name"] for p in rows["gemm"]["parameters"] if p["required"]] == ["m", "n", "k"]


# --- numbers and names as people write them


def test_rates_and_counts_may_be_written_short(roofline: Cli) -> None:
    short = roofline("vector --n 1e6 --peak 60T --bandwidth 3.35T --json").json
    full = roofline("vector --n 1000000 --peak 60000000000000 --bandwidth 3.35e12 --json").json
    assert short == full


def test_names_of_models_may_be_written_with_either_dash(roofline: Cli) -> None:
    words = "--batch 1 --heads 2 --kv-heads 1 --context 8 --head-dim 4 --json"
    assert roofline(f"kv-cache-decode {words}").json == roofline(f"kv_cache_decode {words}").json


def test_options_change_what_is_counted(roofline: Cli) -> None:
    plain = roofline("gemm --m 8 --n 8 --k 8 --json").json
    exact = roofline("gemm --m 8 --n 8 --k 8 --exact-sums --bias --json").json
    assert (plain["flops"], exact["flops"]) == (1024, 1024 - 64 + 64)
    assert exact["parameters"]["bias"] is True
    assert exact["flops_by_precision"] == {"tensor_fp16": 960, "fp32": 64}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("gemm --m 2", "gemm needs --n, --k"),
        ("gemm --m 2 --n 2 --k 2 --dtype pf16", "did you mean fp16?"),
        ("gem --m 2", "did you mean gemv or gemm?"),
        ("softmax --rows 4 --cols 3", "--columns"),
        ("gemm --m 2.5 --n 2 --k 2", "'2.5' is no whole number"),
        ("gemm --m many --n 2 --k 2", "'many' is no whole number"),
        ("gemm --m 0 --n 2 --k 2", "m is 0"),
        ("gemm --m 2 --n 2 --k 2 --peak fast", "'fast' is no number"),
        ("gemm --m 2 --n 2 --k 2 --bandwidth 0", "bandwidth is 0"),
        ("gemm --m 2 --n 2 --k 2 --peak nan", "'nan' is no number"),
        ("gemm --m 2 --n 2 --k 2 --seconds inf", "'inf' is no number"),
        ("matmul --m 2", "did you mean gemm?"),
        ("point --flops 1e400 --bytes 1", "is no number"),
        ("gemm --m 2 --n 2 --k 2 --launch 1", "add --report FILE"),
        ("layer-norm --rows 2 --columns 2 --dtype int8", "integers"),
    ],
)
def test_a_wrong_use_ends_with_2_and_names_what_is_right(words: str, says: str, roofline: Cli) -> None:
    done = roofline(words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_wrong_use_is_json_too(roofline: Cli) -> None:
    done = roofline("gemm --m 2 --json")
    assert done.returncode == 2
    assert done.json["error"]["code"] == "usage"


# --- peaks by the name of a product


def test_a_data_sheet_gives_a_marked_estimate(roofline: Cli) -> None:
    found = roofline("gemm --m 8192 --n 8192 --k 8192 --dtype bf16 --gpu h100-sxm --json").json
    assert found["peaks"]["tensor_bf16"]["quality"] == "estimate"
    sku = find_sku("h100-sxm").sku
    assert sku is not None
    assert found["peaks"]["tensor_bf16"]["sources"] == [sku.source]
    assert found["bound"] == pytest.approx(989.4e12)
    assert "estimate: " in roofline("gemm --m 8 --n 8 --k 8 --gpu h100-sxm").stdout


@pytest.mark.parametrize(
    ("gpu", "near"), [("H100", "one of h100-sxm, h100-pcie, h100-nvl?"), ("RTX 4091", "rtx-4090")]
)
def test_a_gpu_that_names_no_product_is_an_error_that_names_the_nearest(
    gpu: str, near: str, roofline: Cli
) -> None:
    done = roofline("gemm --m 8 --n 8 --k 8 --gpu", gpu)
    assert (done.returncode, done.stdout) == (2, "")
    for words in (gpu, near, "ncukit mfu --list", "--peak with --bandwidth"):
        assert words in done.stderr
    given = ("--peak", "200T", "--bandwidth", "3T")
    assert roofline("gemm --m 8 --n 8 --k 8 --gpu", gpu, *given).returncode == 0


def test_a_rate_that_a_data_sheet_does_not_state_gives_no_bound_and_says_why(roofline: Cli) -> None:
    done = roofline("gemm --m 8 --n 8 --k 8 --dtype fp8 --gpu a100-sxm-40gb --json")
    SCHEMA.validate(done.json)
    assert done.returncode == 0
    assert (done.json["bound"], done.json["flops"]) == (None, 1024)
    assert "states no peak rate" in done.json["missing"][0]
    shown = roofline("gemm --m 8 --n 8 --k 8 --dtype fp8 --gpu a100-sxm-40gb")
    assert "Bound" not in shown.stdout
    assert "unknown" in shown.stdout


def test_models_are_written_in_hints_as_in_the_help(roofline: Cli) -> None:
    listed = re.findall(r"^  ([a-z-]+)  ", roofline("").stdout, re.MULTILINE)
    assert "kv-cache-decode" in listed
    done = roofline("layer-nrom")
    assert done.returncode == 2
    assert done.stderr.endswith(f"hint: did you mean layer-norm? models: {', '.join(listed)}\n")


# --- beside a report


def test_a_report_gives_peaks_time_and_ratios(roofline: Cli) -> None:
    found = roofline("gemm --m 4096 --n 4096 --k 4096 --json --report", GEMM).json
    SCHEMA.validate(found)
    ratios = {r["metric"]: r for r in found["launch"]["ratios"]}
    model = make("gemm", {"m": 4096, "n": 4096, "k": 4096})
    assert ratios["flops"]["ratio"] == ratios["flops"]["measured"] / model.total_flop == 8
    assert ratios["dram_bytes"]["measured"] == pytest.approx(
        ratios["dram_read_bytes"]["measured"] + ratios["dram_write_bytes"]["measured"]
    )
    assert found["peaks"]["tensor_fp16"]["sources"] != ["given"]
    assert found["seconds"] == pytest.approx(5.19e-3, rel=0.01)
    assert {c["id"] for c in found["launch"]["checks"]} >= {"model-flops", "model-bytes", "model-time"}


def test_the_right_shape_fits_the_launch(roofline: Cli) -> None:
    found = roofline("gemm --m 8192 --n 8192 --k 8192 --json --report", GEMM).json
    assert found["launch"]["ratios"][0]["ratio"] == 1
    assert {c["id"]: c["ok"] for c in found["launch"]["checks"]}["model-flops"] is True


def test_text_says_what_a_ratio_above_1_means(roofline: Cli) -> None:
    done = roofline("gemm --m 4096 --n 4096 --k 4096 --report", GEMM)
    assert re.search(r"FLOPs +1\.10 TFLOP +137 GFLOP +8$", done.stdout, re.M)
    assert "FLOPs above 1: tiles padded" in done.stdout
    assert "DRAM bytes above 1: the same data fetched again" in done.stdout
    assert "no benchmark" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_of_several_launches_one_must_be_chosen(roofline: Cli) -> None:
    words = "vector --n 1e6 --json --report"
    refused = roofline(words, MANY)
    assert refused.returncode == 2
    assert "several launches could be meant" in refused.json["error"]["message"]
    second = roofline(words, MANY, "--launch", 2)
    assert second.json["launch"]["index"] == 1


def test_a_given_time_replaces_that_of_the_launch(roofline: Cli) -> None:
    found = roofline("gemm --m 8192 --n 8192 --k 8192 --seconds 1e-6 --json --report", GEMM).json
    assert (found["seconds"], found["timed"], found["consistent"]) == (1e-6, "given", False)


def test_a_missing_report_is_an_input_that_cannot_be_used(roofline: Cli) -> None:
    assert roofline("vector --n 1 --report missing.ncu-rep").returncode == 4


@pytest.mark.parametrize("report", reports("ncu")[::9], ids=lambda path: path.stem)
def test_a_real_report_stands_beside_a_model(report: Path, roofline: Cli) -> None:
    done = roofline("vector --n 1000000 --dtype fp32 --launch 1 --json --report", report)
    SCHEMA.validate(done.json)
    for ratio in done.json["launch"]["ratios"]:
        assert (ratio["ratio"] is None) == (ratio["measured"] is None)
        assert ratio["measured"] is not None or ratio["reason"]


# --- the page


def test_the_page_holds_roofline_table_and_ratios(roofline: Cli) -> None:
    done = roofline("gemm --m 4096 --n 4096 --k 4096 -o page.html --report", GEMM)
    assert (done.returncode, done.stdout) == (0, "")
    page = Path("page.html").read_text(encoding="utf-8")
    figure = json.loads(re.findall(r'id="figures">(.*?)</script>', page, re.S)[0])["model-roof"]
    intensity = 2 * 4096**3 / (3 * 2 * 4096**2)
    assert pytest.approx(intensity, rel=1e-3) in [x for trace in figure["data"] for x in trace["x"] if x]
    for word in ("Time of the traffic", "Measured against the model", "DRAM bytes", "2k - 1"):
        assert word in page
    assert "http://" not in page.split("<script>")[0]


def test_a_point_above_its_roof_is_drawn_with_the_roof(roofline: Cli) -> None:
    assert roofline(POINT, "-o", "page.html").returncode == 0
    page = Path("page.html").read_text(encoding="utf-8")
    figure = json.loads(re.findall(r'id="figures">(.*?)</script>', page, re.S)[0])["model-roof"]
    bottom, top = figure["layout"]["yaxis"]["range"]
    assert 10**bottom < 6e12 < 1e14 < 10**top
    for word in ("memory-level", "one of these is wrong"):
        assert word in page


def test_a_page_without_a_bound_says_why(roofline: Cli) -> None:
    assert roofline("gemm --m 8 --n 8 --k 8 --dtype fp8 --gpu a100-sxm-40gb -o page.html").returncode == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "No roofline." in page
    assert "states no peak rate" in page


def test_a_page_is_not_overwritten_without_force(roofline: Cli) -> None:
    words = "vector --n 8 -o page.html"
    assert [
        roofline(words).returncode,
        roofline(words).returncode,
        roofline(f"{words} --force").returncode,
    ] == [0, 2, 0]
