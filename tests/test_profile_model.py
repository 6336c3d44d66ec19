"""A workload that says what it computes: the run's page and JSON hold the counters against it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ncukit import models
from ncukit.schemas import text as schema_text
from tests.runs import RUN, WORKLOAD, Lab, Outcome, furnished, gemm

MODEL = models.gemm(64, 32, 128, "fp32")
SCRIPT = WORKLOAD.replace(
    "return ncukit.Case(run=run,",
    'return ncukit.Case(run=run, model=ncukit.models.gemm(64, 32, 128, "fp32"),',
)
COUNTERS = {
    "gpu__time_duration.sum": 120_000.0,
    "sm__cycles_elapsed.avg.per_second": 1e9,
    "smsp__cycles_elapsed.avg": 120_000.0,
    "smsp__cycles_elapsed.avg.per_second": 1e9,
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 0.0,
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": 0.0,
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": float(MODEL.total_flop),  # twice the work
    "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 16_896.0,
    "dram__bytes.sum": 3.0 * MODEL.bytes,
    "dram__bytes_read.sum": 2.5 * MODEL.bytes,
    "dram__bytes_write.sum": 0.5 * MODEL.bytes,
    "dram__bytes.sum.peak_sustained": 3_000.0,
    "dram__cycles_elapsed.avg.per_second": 1e9,
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, stands: Path) -> tuple[Lab, Outcome]:
    """One run of a workload with a model."""
    with pytest.MonkeyPatch.context() as patch:
        lab = furnished(tmp_path_factory.mktemp("run"), patch, stands)
        lab.script(SCRIPT)
        lab.launches(gemm(metrics=COUNTERS))
        return lab, lab(*RUN)


def against(page: str) -> str:
    """Return the part of a page that holds the launch against its model, without markup."""
    section = page.split("Against the model")[1].split("Proof of isolation")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", section)).replace("\u202f", " ")


def check(folder: Path) -> dict[str, Any]:
    """Check page and JSON of a run; return the model in the JSON."""
    text = against((folder / "report.html").read_text(encoding="utf-8"))
    assert "gemm(m=64, n=32, k=128) in fp32." in text
    assert "memory-bound" in text
    assert re.search(r"FLOPs 1\.05 MFLOP 524 kFLOP 2 tiles padded", text)
    assert re.search(r"DRAM bytes 172 kB 57\.3 kB 3 the same data fetched again", text)
    document = json.loads((folder / "metrics.json").read_text())
    Draft202012Validator(json.loads(schema_text("ncukit.kernel/1"))).validate(document)
    (launch,) = document["kernels"]
    found: dict[str, Any] = launch["model"]
    failed = {c["id"] for c in launch["roofline"]["checks"] if c["ok"] is False}
    assert failed >= {"model-flops", "model-bytes"}
    return found


def test_the_run_holds_its_counters_against_the_model(ran: tuple[Lab, Outcome]) -> None:
    _, done = ran
    assert done.code == 0, done.err
    assert done.folder is not None
    found = check(done.folder)
    assert {r["metric"]: r["ratio"] for r in found["ratios"]} == pytest.approx(
        {
            "flops": 2,
            "dram_bytes": 3,
            "dram_read_bytes": 2.5 * MODEL.bytes / MODEL.read,
            "dram_write_bytes": 0.5 * MODEL.bytes / MODEL.written,
        }
    )
    assert found["bound"] == pytest.approx(MODEL.intensity * 3e12)
    assert found["time_floor"] == pytest.approx(MODEL.bytes / 3e12)
    timing = json.loads((done.folder / "timing.json").read_text())
    assert found["seconds"] == (timing["median"] if timing["timer"] == "cuda-events" else 120e-6)


def test_a_report_made_again_says_the_same(ran: tuple[Lab, Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    lab, done = ran
    assert done.folder is not None
    before = (done.folder / "metrics.json").read_text()
    for name in ("report.html", "metrics.json"):
        (done.folder / name).unlink()
    again = lab("report", "--run", str(done.folder))
    assert again.code == 0, again.err
    check(done.folder)
    assert (done.folder / "metrics.json").read_text() == before
