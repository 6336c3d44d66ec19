"""Measured ceilings: dashed lines of their own on a roofline of the same GPU, judged by nobody."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ncukit import cli, demo_reports, diagnose, read
from ncukit.errors import ReportError, UsageError
from ncukit.model import Diagnosis
from ncukit.model.experiment import Probed
from ncukit.render.cells import Cells, Tips
from ncukit.render.probe import write_probe
from ncukit.render.text.parts import flat
from ncukit.render.view.roofs import section
from ncukit.roofline.place import read_measured
from ncukit.schemas import text as schema_text

SAMPLE = next(path for path in demo_reports() if path.stem == "copy-dram")


@pytest.fixture(scope="module")
def copy() -> Diagnosis:
    (kernel,) = read(SAMPLE).kernels(details=True)
    return diagnose(kernel)


def ceilings(path: Path, gpu: str | None, *, kind: str = "cuda", bandwidth: float = 3e11) -> Path:
    """Write what ``ncukit probe copy matmul -o FILE`` would."""
    device = {"name": gpu, "uuid": None, "compute_capability": None}
    copied = {
        "measured": kind,
        "device": device,
        "torch": "",
        "bandwidth": bandwidth,
        "level": "dram",
        "sizes": [],
    }
    rates = {
        "measured": kind,
        "device": device,
        "torch": "",
        "rates": {"fp32": 9e12, "fp16": 1e13},
        "products": [],
    }
    return write_probe(path, [Probed("copy", "done", copied), Probed("matmul", "done", rates)], force=True)


def test_they_are_thin_dashed_lines_marked_measured(copy: Diagnosis, tmp_path: Path) -> None:
    measured = read_measured(ceilings(tmp_path / "c.json", copy.kernel.gpu))
    with_them = replace(copy, roofline=measured.on(copy.roofline, copy.kernel.gpu))
    tables, figure = section(Cells(copy.kernel, Tips()), with_them)
    bare_tables, bare = section(Cells(copy.kernel, Tips()), copy)
    assert figure is not None
    assert bare is not None
    text, without = json.dumps(figure), json.dumps(bare)
    assert "measured DRAM" in text
    assert "measured" not in without
    dashes = [trace["line"].get("dash") for trace in figure["data"] if trace["mode"] == "lines"]
    assert dashes.count("longdash") == 1
    assert "longdash" not in without
    assert "Long dashes: measured" in flat(tables["caption"])
    row = tables["roofs"][len(bare_tables["roofs"])]
    assert row["name"] == "measured DRAM"
    assert row["run"]["text"].startswith("300")


def test_only_ceilings_that_the_kernel_used_are_drawn(copy: Diagnosis, tmp_path: Path) -> None:
    measured = read_measured(ceilings(tmp_path / "c.json", copy.kernel.gpu))
    used = {p.precision for p in copy.roofline.points}
    _, figure = section(
        Cells(copy.kernel, Tips()), replace(copy, roofline=measured.on(copy.roofline, copy.kernel.gpu))
    )
    text = json.dumps(figure)
    for roof in measured.roofs:
        if roof.kind == "compute" and roof.name not in used:
            assert f"measured {roof.name.upper()}" not in text


def test_no_point_is_judged_by_them(copy: Diagnosis, tmp_path: Path) -> None:
    measured = read_measured(ceilings(tmp_path / "c.json", copy.kernel.gpu, bandwidth=1.0))
    found = measured.on(copy.roofline, copy.kernel.gpu)
    assert (found.points, found.roofs, found.checks) == (
        copy.roofline.points,
        copy.roofline.roofs,
        copy.roofline.checks,
    )


def test_those_of_another_gpu_are_not_drawn_and_it_is_said(copy: Diagnosis, tmp_path: Path) -> None:
    measured = read_measured(ceilings(tmp_path / "c.json", "NVIDIA H100 PCIe"))
    found = measured.on(copy.roofline, copy.kernel.gpu)
    assert found.measured == ()
    assert "of NVIDIA H100 PCIe" in found.missing[-1]


def test_those_of_a_cpu_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="CPU only"):
        read_measured(ceilings(tmp_path / "c.json", "x86_64", kind="cpu"))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"schema": "ncukit.timing/1"}',
        '{"schema": "ncukit.probe/1", "probes": [{"state": "done"}]}',
    ],
)
def test_another_file_is_an_input_that_cannot_be_used(content: str, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(ReportError):
        read_measured(tmp_path / "c.json")
    with pytest.raises(ReportError):
        read_measured(tmp_path / "missing.json")


@pytest.fixture
def ncukit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ncukit", *map(str, arguments)])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_show_and_report_draw_them(ncukit: Any, copy: Diagnosis, tmp_path: Path) -> None:
    file = ceilings(tmp_path / "c.json", copy.kernel.gpu)
    code, out, _ = ncukit("show", SAMPLE, "--measured-ceilings", file)
    assert code == 0
    assert "measured DRAM" in out
    assert ncukit("report", SAMPLE, "-o", "page.html", "--measured-ceilings", file)[0] == 0
    assert "measured DRAM" in (tmp_path / "page.html").read_text(encoding="utf-8")
    _, out, _ = ncukit("show", SAMPLE, "--json", "--measured-ceilings", file)
    data = json.loads(out)
    Draft202012Validator(json.loads(schema_text("ncukit.kernel/1"))).validate(data)
    assert data["kernels"][0]["roofline"]["measured"][0]["value"] == 3e11


GEMM = ("roofline", "gemm", "--m", "64", "--n", "64", "--k", "64", "--dtype", "fp32", "--peak", "2e13")


def test_an_analytic_roofline_shows_those_of_its_memory_and_precision(ncukit: Any, tmp_path: Path) -> None:
    file = ceilings(tmp_path / "c.json", "NVIDIA L4")
    options = (*GEMM, "--bandwidth", "1e12", "--measured-ceilings", str(file))
    code, out, _ = ncukit(*options)
    assert code == 0
    assert "Measured" in out
    assert "300 GB/s" in out
    assert "9.00 TFLOP/s" in out
    assert "10.0 TFLOP/s" not in out  # FP16, which the model does not use
    assert ncukit(*options, "-o", "page.html")[0] == 0
    assert "measured DRAM" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_launch_of_another_gpu_is_refused(ncukit: Any, tmp_path: Path) -> None:
    file = ceilings(tmp_path / "c.json", "NVIDIA H100 PCIe")
    code, _, err = ncukit(*GEMM, "--report", SAMPLE, "--measured-ceilings", file)
    assert code == 2
    assert "measured on NVIDIA H100 PCIe" in err


def test_a_run_and_measured_ceilings_do_not_go_together(ncukit: Any, tmp_path: Path) -> None:
    assert ncukit("report", "--run", tmp_path, "--measured-ceilings", "c.json")[0] == 2
