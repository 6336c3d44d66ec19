"""The JSON that scripts rely on: its shape, its words, and the schemas that describe it."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from ncukit import demo_reports
from ncukit.metrics import load
from tests import command
from tests.conftest import reports

# What other programs compare with: a new word is a new version of the schema.
PRECISIONS = [
    *("fp64", "fp32", "fp16"),
    *("tensor_fp64", "tensor_tf32", "tensor_bf16", "tensor_fp16", "tensor_fp8", "tensor_fp4"),
    *("tensor_int8", "tensor_int4", "inst"),
]
LEVELS = ["dram", "l2", "l1"]
LIMITERS = {
    "memory-bound": ["dram", "l2", "l1", "shared", "sysmem"],
    "compute-bound": ["tensor", "fp32", "fp64", "fp16", "int", "xu", "lsu-issue"],
    "latency-bound": ["occupancy", "dependency", "synchronisation", "imbalance", "tail", "small-grid"],
    "balanced": [],
    "undetermined": [],
    "failed": [],
}
CONFIDENCES = ["high", "medium", "low"]
QUALITIES = ["exact", "derived", "estimate"]
KERNEL = ["index", "name", "demangled", "gpu", "compute_capability", "failed", "metrics"]
DIAGNOSED = [*KERNEL, "role", "verdict", "roofline", "findings"]
VALUE = ["value", "unit", "quality", "sources", "reason", "status"]
VERDICT = ["class", "limiter", "confidence", "evidence", "against", "experiment"]
POINT = [
    *("precision", "level", "flop", "bytes", "intensity"),
    *("achieved", "attainable", "peak", "bandwidth", "quality"),
]
FINDING = ["id", "family", "title", "severity", "metrics", "source"]

# Launches (from 1) whose counters were not read although the rest of the report was.
FAILED = {
    "sm120-rtx-5060-ti-ncu2025.2-02": [45],
    "sm75-gtx-1660-super-ncu2021.1-01": [3],
    "sm80-a100-pcie-40gb-ncu2022.4-01": [1],
    "sm86-a10g-ncu2023.1-03": [4],
    "sm86-a10g-ncu2023.1-04": [6],
    "sm90-h800-ncu2023.3-01": [5],
}


def ncukit(*arguments: object) -> str:
    """Return what ``ncukit ARGUMENTS`` prints; the test fails when it does."""
    done = command.ncukit(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@functools.cache
def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(ncukit("schema", name)))


@functools.cache
def document(words: str, report: Path) -> Any:
    """Return the JSON that ``ncukit WORDS REPORT --json`` prints, which its schema describes."""
    data = json.loads(ncukit(*words.split(), report, "--json"), parse_constant=not_json)
    fault = best_match(schema(data["schema"]).iter_errors(data))
    assert fault is None, f"{fault.json_path}: {fault.message}"
    return data


def not_json(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


SOME = [*demo_reports(), *reports()[::6]]


@pytest.fixture(scope="module", params=SOME, ids=[path.stem for path in SOME])
def report(request: pytest.FixtureRequest) -> Path:
    """Every sample and some of the real reports, all tests of one after another."""
    path: Path = request.param
    return path


@pytest.mark.parametrize("name", ncukit("schema").split())
def test_every_schema_is_a_sound_schema(name: str) -> None:
    Draft202012Validator.check_schema(schema(name).schema)
    assert schema(name).schema["$id"] == name


def test_metrics_have_the_promised_shape(report: Path) -> None:
    data = document("metrics", report)
    assert list(data) == ["schema", "file", "kernels"]
    assert data["schema"] == "ncukit.kernel/1"
    assert data["file"] == str(report)
    catalog = load().metrics
    for position, kernel in enumerate(data["kernels"]):
        assert list(kernel) == KERNEL
        assert kernel["index"] == position
        assert list(kernel["metrics"]) == list(catalog)
        for id, value in kernel["metrics"].items():
            assert list(value) == VALUE
            assert value["unit"] == catalog[id].unit


def test_the_index_of_a_launch_counts_from_0_and_says_so() -> None:
    report = next(path for path in demo_reports() if path.stem == "several-launches")
    (second,) = document("metrics --launch 2", report)["kernels"]
    assert second["index"] == 1
    for name in ("ncukit.kernel/1", "ncukit.raw/1", "ncukit.roofline/1", "ncukit.baseline/1"):
        found = [
            described.get("description", "")
            for described in _properties(schema(name).schema, "index")
            if described.get("type") == "integer"
        ]
        assert found, name
        assert set(found) == {"Launch in the report, from 0; --launch is index + 1."}, name
    assert "--launch is index + 1" in " ".join(ncukit("metrics", "--help").split())


def _properties(node: Any, name: str) -> Iterator[dict[str, Any]]:
    """Yield what a schema says of every property ``name``, at any depth."""
    if isinstance(node, dict):
        if isinstance(described := node.get("properties", {}).get(name), dict):
            yield described
        node = list(node.values())
    if isinstance(node, list):
        for inner in node:
            yield from _properties(inner, name)


def test_a_value_is_known_with_its_sources_or_unknown_with_a_reason(report: Path) -> None:
    for kernel in document("metrics", report)["kernels"]:
        for id, value in kernel["metrics"].items():
            if value["value"] is None:
                assert value["reason"], id
                assert value["quality"] is None, id
            else:
                assert value["quality"] in QUALITIES, id
                assert value["sources"], id


def test_a_diagnosis_has_the_promised_shape(report: Path) -> None:
    for kernel in document("show", report)["kernels"]:
        assert list(kernel)[: len(DIAGNOSED)] == DIAGNOSED
        assert set(VERDICT) <= kernel["verdict"].keys()
        assert {"points", "checks"} <= kernel["roofline"].keys()
        assert all(set(POINT) <= point.keys() for point in kernel["roofline"]["points"])
        assert all(set(FINDING) <= finding.keys() for finding in kernel["findings"])


def test_a_diagnosis_uses_the_promised_words(report: Path) -> None:
    for kernel in document("show", report)["kernels"]:
        verdict = kernel["verdict"]
        assert verdict["class"] in LIMITERS
        assert verdict["confidence"] in CONFIDENCES
        allowed = LIMITERS[verdict["class"]]
        assert verdict["limiter"] in (allowed or [None]), verdict
        for point in kernel["roofline"]["points"]:
            assert point["precision"] in PRECISIONS
            assert point["level"] in LEVELS
            assert point["quality"] in QUALITIES


def test_show_prints_the_metrics_that_metrics_prints(report: Path) -> None:
    pairs = zip(document("metrics", report)["kernels"], document("show", report)["kernels"], strict=True)
    assert all(metrics == {key: shown[key] for key in KERNEL} for metrics, shown in pairs)


def test_units_are_base_units(report: Path) -> None:
    for kernel in document("metrics", report)["kernels"]:
        values = kernel["metrics"]
        assert values["kernel_duration"]["unit"] == "s"
        if not kernel["failed"] and values["kernel_duration"]["value"] is not None:
            assert 1e-7 < values["kernel_duration"]["value"] < 100
        if (capability := values["compute_capability"]["value"]) is not None:
            assert kernel["compute_capability"] == f"{capability // 10}.{capability % 10}"


def test_the_words_are_those_of_the_schema() -> None:
    kernel = schema("ncukit.kernel/1").schema["properties"]["kernels"]["items"]["properties"]
    verdict, point = (
        kernel["verdict"]["properties"],
        kernel["roofline"]["properties"]["points"]["items"]["properties"],
    )
    limiters = [limiter for several in LIMITERS.values() for limiter in several]
    assert verdict["class"]["enum"] == list(LIMITERS)
    assert verdict["limiter"]["enum"] == [*limiters, None]
    assert verdict["confidence"]["enum"] == CONFIDENCES
    assert point["precision"]["enum"] == PRECISIONS
    assert point["level"]["enum"] == LEVELS
    assert point["quality"]["enum"] == QUALITIES


def test_the_raw_metrics_of_a_report_follow_their_schema() -> None:
    data = document("metrics --raw", demo_reports()[0])
    assert data["schema"] == "ncukit.raw/1"
    assert data["kernels"][0]["metrics"]["gpu__time_duration.sum"]["unit"] in ("ns", "nsecond")


def test_a_file_that_cannot_be_used_follows_the_schema() -> None:
    data = json.loads(command.ncukit("metrics", "missing.ncu-rep", "--json").stdout)
    assert schema("ncukit.kernel/1").is_valid(data)
    assert set(data) == {"schema", "file", "error"}


def test_exactly_the_failed_launches_of_all_reports_are_marked_failed(shared: Path) -> None:
    lines = ncukit("metrics", *reports(), "--json", "-m", "kernel_duration").splitlines()
    documents = {Path(data["file"]).stem: data["kernels"] for data in map(json.loads, lines)}
    assert len(documents) == len(reports()) >= 66
    failed = {name: [k["index"] + 1 for k in kernels if k["failed"]] for name, kernels in documents.items()}
    assert {name: launches for name, launches in failed.items() if launches} == FAILED


@pytest.mark.parametrize("name", FAILED)
def test_a_failed_launch_is_not_judged_but_keeps_its_device(name: str, shared: Path) -> None:
    report = shared / "reports" / "ncu" / f"{name}.ncu-rep"
    for number in FAILED[name]:
        (kernel,) = json.loads(ncukit("show", report, "--json", "--launch", number))["kernels"]
        assert kernel["failed"]
        assert kernel["verdict"]["class"] == "failed"
        assert kernel["verdict"]["limiter"] is None
        assert kernel["roofline"]["points"] == []
        assert kernel["findings"] == []
        assert kernel["metrics"]["sm_count"]["value"] > 0
        assert kernel["metrics"]["kernel_duration"]["value"] is None
        assert kernel["metrics"]["flops_fp32"]["reason"].startswith("failed pass: ")
