"""The fixture writer: NVIDIA's ncu_report and the real ncu read back what was written."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import ncu_report
import pytest

from tests.ncurep import Code, Device, Instances, Launch, Rule, Section, Session, report_bytes, write_report

PC = 0x7F0000000000
GPU = Device("NVIDIA Fixture", (9, 0), attributes={"multiprocessor_count": 132})
COPY = Launch(
    "void copy<float>(const float *, float *, int)",
    grid=(128, 2, 1),
    block=(256, 1, 1),
    metrics={
        "gpu__time_duration.sum": 12345.0,
        "smsp__inst_executed.sum": 2**53 + 1,
        "launch__func_cache_config": "CachePreferNone",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": math.nan,
        "nvlink__bandwidth": None,
        "inst_executed": Instances({PC: 10, PC + 16: 20}, total=30),
        "sass__inst_executed_per_opcode": Instances({"LDG": 10.0, "STG": 20.0}, total=30.0),
    },
    mangled="_Z4copyIfEvPKT_PS0_i",
    ranges=("epoch", "step"),
    sections=(
        Section("SpeedOfLight", "GPU Speed Of Light Throughput", {"Duration": "gpu__time_duration.sum"}),
    ),
    rules=(
        Rule(
            "SOLBottleneck",
            "Bottleneck",
            "SpeedOfLight",
            "optimization",
            "Latency Issue",
            "Nothing is busy.",
            focus=(("gpu__time_duration.sum", 12345.0, "Decrease it"),),
            speedup=("global", 25.5),
        ),
        Rule("AchievedOccupancy", "Achieved Occupancy", "Occupancy"),
    ),
)
SUM = Launch("sum(float *)", block=(64, 4, 1), metrics={"gpu__time_duration.sum": 2.5e6}, stream=13)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("ncurep") / "fixture.ncu-rep", [COPY, SUM], GPU)


@pytest.fixture(scope="module")
def actions(report):
    context = ncu_report.load_report(str(report))
    assert context.num_ranges() == 1
    return [context[0].action_by_idx(i) for i in range(context[0].num_actions())]


def instances(action, name):
    metric = action.metric_by_name(name)
    ids = metric.correlation_ids()
    return {ids.value(i): metric.value(i) for i in range(metric.num_instances())}


def test_names_come_back(actions):
    kinds = (ncu_report.IAction.NameBase_FUNCTION, ncu_report.IAction.NameBase_MANGLED)
    assert [a.name(ncu_report.IAction.NameBase_DEMANGLED) for a in actions] == [
        COPY.demangled,
        "sum(float *)",
    ]
    assert [actions[0].name(kind) for kind in kinds] == ["copy", "_Z4copyIfEvPKT_PS0_i"]
    assert actions[1].name() == "sum"


def test_launch_and_device_values_are_always_there(actions):
    value = {n: actions[0].metric_by_name(n).value() for n in actions[0].metric_names()}
    assert value["launch__grid_size"] == 256.0
    assert value["launch__grid_dim_y"] == 2.0
    assert value["launch__thread_count"] == 65536.0
    assert value["device__attribute_display_name"] == "NVIDIA Fixture"
    assert value["device__attribute_compute_capability_major"] == 9
    assert value["device__attribute_multiprocessor_count"] == 132
    assert actions[1].metric_by_name("launch__stream_id").value() == 13.0


def test_every_kind_of_metric_keeps_its_value(actions):
    value = {n: actions[0].metric_by_name(n).value() for n in COPY.metrics}
    assert value["gpu__time_duration.sum"] == 12345.0
    assert value["smsp__inst_executed.sum"] == 2**53 + 1, "an integer does not pass through a double"
    assert value["launch__func_cache_config"] == "CachePreferNone"
    assert math.isnan(value["sm__throughput.avg.pct_of_peak_sustained_elapsed"])
    assert value["nvlink__bandwidth"] is None


def test_readers_know_the_units_from_name_and_chip(actions):
    assert actions[0].metric_by_name("gpu__time_duration.sum").unit() == "ns"
    assert actions[0].metric_by_name("smsp__inst_executed.sum").unit() == "inst"


def test_instances_keep_integer_and_string_ids(actions):
    assert instances(actions[0], "inst_executed") == {PC: 10, PC + 16: 20}
    assert instances(actions[0], "sass__inst_executed_per_opcode") == {"LDG": 10.0, "STG": 20.0}
    assert actions[0].metric_by_name("inst_executed").value() == 30


def test_nvtx_ranges_are_nested(actions):
    nvtx = actions[0].nvtx_state()
    assert list(nvtx.domain_by_id(0).push_pop_ranges()) == ["epoch", "step"]


def test_sections_and_rule_results_come_back(actions):
    assert [section.identifier() for section in actions[0].sections()] == ["SpeedOfLight"]
    results = {rule["rule_identifier"]: rule for rule in actions[0].rule_results_as_dicts()}
    assert list(results) == ["SOLBottleneck"], "a rule without a message is not a result"
    bottleneck = results["SOLBottleneck"]
    assert bottleneck["rule_message"]["title"] == "Latency Issue"
    assert bottleneck["rule_message"]["message"] == "Nothing is busy."
    assert bottleneck["focus_metrics"][0]["name"] == "gpu__time_duration.sum"
    assert bottleneck["speedup_estimation"]["speedup"] == 25.5


def test_same_input_gives_the_same_bytes(report):
    assert report_bytes([COPY, SUM], GPU) == report.read_bytes()


def test_header_version_can_be_any():
    assert report_bytes([SUM], session=Session(version=8))[4:10] == b"\x02\0\0\0\x08\x08"


def test_ncu_reads_the_same(report, ncu, run_tool):
    rows = table(run_tool, ncu, report, "--page", "raw", "--print-units", "base")
    first, second = rows
    assert first["Kernel Name"] == COPY.demangled
    assert (first["Grid Size"], first["Block Size"]) == ("(128, 2, 1)", "(256, 1, 1)")
    assert (first["CC"], second["Stream"]) == ("9.0", "13")
    assert float(first["gpu__time_duration.sum"].replace(",", "")) == 12345
    assert first["launch__func_cache_config"] == "CachePreferNone"
    assert float(second["gpu__time_duration.sum"].replace(",", "")) == 2.5e6


def test_ncu_shows_sections_and_rules(report, ncu, run_tool):
    details = run_tool(ncu, "--import", report, "--page", "details")
    assert "Section: GPU Speed Of Light Throughput" in details
    assert "Duration" in details
    assert "Nothing is busy." in details
    assert "25.5" in details


def test_code_is_disassembled_and_correlated(tmp_path, nvcc, ncu, run_tool):
    source = "__global__ void scale(float *x) {\n    x[threadIdx.x] *= 2;\n}\n"
    (tmp_path / "scale.cu").write_text(f'#line 1 "/src/scale.cu"\n{source}')
    cubin = tmp_path / "scale.cubin"
    run_tool(nvcc, "-cubin", "-arch=sm_90", "-lineinfo", "-o", cubin, tmp_path / "scale.cu")
    code = Code(cubin.read_bytes(), {"/src/scale.cu": source}, PC)
    launch = Launch("scale(float *)", mangled="_Z5scalePf", code=code)
    path = write_report(tmp_path / "scale.ncu-rep", [launch, launch], GPU)
    assert path.read_bytes().count(code.cubin) == 1, "launches of one kernel share its code"

    for action in ncu_report.load_report(str(path))[0]:
        pcs = range(PC, PC + 16 * 12, 16)
        store = next(pc for pc in pcs if "STG" in action.sass_by_pc(pc))
        where = action.source_info(store)
        assert (where.file_name(), where.line()) == ("/src/scale.cu", 2)
        assert action.source_files()["/src/scale.cu"] == source
    assert any(
        "STG" in line for line in run_tool(ncu, "--import", path, "--page", "source", "--csv").splitlines()
    )


def table(run_tool, ncu, path, *options) -> list[dict[str, str]]:
    """Return the rows of ncu's CSV, without the row of units."""
    text = run_tool(ncu, "--import", path, "--csv", *options)
    _, *rows = csv.DictReader(io.StringIO(text))
    return rows
