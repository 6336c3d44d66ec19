"""Probes: a result or a reason, whatever is broken; conclusions from plain numbers."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ncukit import cli, probe
from ncukit.errors import NcukitError, UsageError
from ncukit.metrics import load
from ncukit.metrics.catalog import tensor_cores
from ncukit.model.experiment import Probed
from ncukit.render.probe import probe_json, probe_text
from ncukit.run.probes import ProbeOptions, device, dtype
from ncukit.run.tools.cuda import Driver, Gpu
from ncukit.run.tools.gpus import Slice, Smi, SmiGpu, parse, smi
from ncukit.run.workload.probes import allocator, ceilings, graph_breaks
from ncukit.run.workload.probes.allocator import Boundary, boundary, judge
from ncukit.schemas import text as schema_text

SCHEMA = Draft202012Validator(json.loads(schema_text("ncukit.probe/1")))
torch_only = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

H100 = Gpu(0, "NVIDIA H100 80GB HBM3", (9, 0), 132, 80 << 30, "GPU-aa")
L4 = Gpu(1, "NVIDIA L4", (8, 9), 58, 24 << 30, "GPU-bb")
BOTH = Driver(0, "libcuda.so.1", "12.4", (H100, L4))
SWAPPED = Smi(
    (
        SmiGpu(0, "GPU-bb", "NVIDIA L4", "00:03.0", 24 << 30, 0.3e9, 2.04e9, 0.4e9, 6.25e9, True, None),
        SmiGpu(
            1, "GPU-aa", "NVIDIA H100 80GB HBM3", "00:04.0", 80 << 30, 1e9, 1.98e9, 1e9, 2.6e9, True, False
        ),
        SmiGpu(2, "GPU-cc", "NVIDIA L4", "00:05.0"),
    ),
    "550.1",
)


def sound(found: Probed) -> Probed:
    """Return ``found``, whose JSON fits the schema and whose text fits 80 columns."""
    SCHEMA.validate(json.loads(probe_json([found])))
    assert max(map(len, probe_text([found]).splitlines())) <= 80
    return found


# Devices


def test_each_gpu_has_its_cuda_index_nvml_index_and_uuid() -> None:
    found = sound(device(BOTH, SWAPPED, {}))
    names = [(g["cuda_index"], g["nvml_index"], g["uuid"]) for g in found.result["gpus"]]
    assert names == [(0, 1, "GPU-aa"), (1, 0, "GPU-bb")]
    assert [g["uuid"] for g in found.result["hidden"]] == ["GPU-cc"]
    assert any("count differently" in note for note in found.notes)
    assert any("CUDA_DEVICE_ORDER=PCI_BUS_ID" in note for note in found.notes)


def test_counting_alike_is_not_warned_about() -> None:
    one = Driver(0, "libcuda.so.1", "12.4", (Gpu(0, *list(vars(L4).values())[1:]),))
    assert device(one, SWAPPED, {}).notes == ()


def test_peaks_are_the_tables_at_the_highest_clock_and_say_so() -> None:
    gpu = device(BOTH, SWAPPED, {}).result["gpus"][0]
    assert gpu["peaks"]["rates"]["tensor_bf16"] == 4096 * 132 * 1.98e9
    assert gpu["peaks"]["quality"] == "estimate"
    assert gpu["peaks"]["ground"] == load().peak_grounds[90]
    assert gpu["data_sheet"]["sku"] == "h100-sxm"


def test_without_nvidia_smi_what_it_would_say_is_unknown() -> None:
    found = sound(device(BOTH, Smi(problem="nvidia-smi is not on PATH"), {}))
    gpu = found.result["gpus"][0]
    assert (gpu["nvml_index"], gpu["ecc"], gpu["peaks"]["rates"]) == (None, None, {})
    assert "clock is not known" in gpu["peaks"]["reason"]
    assert "nvidia-smi is not on PATH" in found.notes[0]


def test_a_gpu_of_unknown_capability_has_no_peak() -> None:
    new = Driver(0, "libcuda.so.1", "15.0", (Gpu(0, "NVIDIA X1", (19, 0), 10, 1 << 30, "GPU-aa"),))
    gpu = sound(device(new, SWAPPED, {})).result["gpus"][0]
    assert gpu["peaks"]["rates"] == {}
    assert gpu["data_sheet"]["sku"] is None


def test_a_mig_slice_is_not_the_whole_gpu() -> None:
    slice_ = Gpu(0, "NVIDIA A100-SXM4-40GB MIG 1g.5gb", (8, 0), 14, 5 << 30, "GPU-aa")
    found = sound(device(Driver(0, "libcuda.so.1", "12.4", (slice_,)), SWAPPED, {}))
    assert found.result["gpus"][0]["mig"] is True
    assert "MIG slice" in found.result["gpus"][0]["data_sheet"]["reason"]
    assert any("those of the slice" in note for note in found.notes)


@pytest.mark.parametrize(
    ("driver", "environ", "said"),
    [
        (Driver(None, problem="libcuda.so.1: no such file"), {}, "libcuda.so.1"),
        (Driver(803, "libcuda.so.1"), {}, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        (Driver(100, "libcuda.so.1", "12.4"), {}, "the driver shows none"),
        (Driver(100, "libcuda.so.1", "12.4"), {"CUDA_VISIBLE_DEVICES": ""}, "CUDA_VISIBLE_DEVICES is ''"),
    ],
)
def test_without_a_gpu_there_is_a_reason(driver: Driver, environ: dict[str, str], said: str) -> None:
    found = sound(device(driver, Smi(), environ))
    assert found.state == "unavailable"
    assert said in found.reason
    assert found.hint


XML = """<?xml version="1.0" ?>
<nvidia_smi_log><driver_version>550.163</driver_version>
<gpu id="00000000:17:00.0"><product_name>NVIDIA A100-SXM4-40GB</product_name><uuid>GPU-1</uuid>
<mig_mode><current_mig>Enabled</current_mig></mig_mode><ecc_mode><current_ecc>N/A</current_ecc></ecc_mode>
<fb_memory_usage><total>40960 MiB</total></fb_memory_usage>
<clocks><sm_clock>210 MHz</sm_clock><mem_clock>1215 MHz</mem_clock></clocks>
<max_clocks><sm_clock>1410 MHz</sm_clock><mem_clock>[N/A]</mem_clock></max_clocks>
<mig_devices><mig_device><index>2</index><device_attributes><shared>
<multiprocessor_count>14</multiprocessor_count></shared></device_attributes>
<fb_memory_usage><total>4864 MiB</total></fb_memory_usage></mig_device></mig_devices>
</gpu></nvidia_smi_log>
"""


def test_nvidia_smi_is_read_and_what_it_does_not_say_is_none() -> None:
    found = parse(XML)
    assert found.driver == "550.163"
    (gpu,) = found.gpus
    assert (gpu.index, gpu.uuid, gpu.bus) == (0, "GPU-1", "00000000:17:00.0")
    assert (gpu.memory, gpu.sm_clock_max, gpu.memory_clock_max) == (40 << 30, 1.41e9, None)
    assert (gpu.ecc, gpu.mig, gpu.slices) == (None, True, (Slice(2, 14, 4864 << 20),))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'NVIDIA-SMI has failed' ; exit 9", "NVIDIA-SMI has failed"),
        ("echo hello", "no XML"),
        ("sleep 20", "did not answer"),
    ],
)
def test_a_broken_nvidia_smi_is_a_problem_not_an_error(script: str, said: str, tmp_path: Path) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    found = smi({"PATH": f"{tmp_path}:/usr/bin:/bin"}, timeout=0.5 if "sleep" in script else 10)
    assert found.gpus == ()
    assert said in (found.problem or "")


def test_no_nvidia_smi_is_said(tmp_path: Path) -> None:
    assert smi({"PATH": str(tmp_path)}).problem == "nvidia-smi is not on PATH"


# Data types


def test_the_footprint_of_a_shape() -> None:
    options = ProbeOptions(
        shape=(4096, 4096), dtypes=("bf16", "torch.float32", "fp4"), compute_capability="9.0"
    )
    found = sound(dtype(options, Driver(None)))
    sizes = {t["dtype"]: t["footprint"] for t in found.result["types"]}
    assert sizes == {"bf16": 32 << 20, "fp32": 64 << 20, "fp4": 8 << 20}
    assert any("packed" in note for note in found.notes)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=4))
def test_the_footprint_is_elements_times_bits(shape: list[int]) -> None:
    for one in dtype(ProbeOptions(shape=tuple(shape)), Driver(None)).result["types"]:
        elements = 1
        for edge in shape:
            elements *= edge
        assert one["footprint"] * 8 - 7 <= elements * one["bits"] <= one["footprint"] * 8


@pytest.mark.parametrize(
    ("cc", "name", "supported"),
    [
        ("8.0", "fp8", False),
        ("8.9", "fp8", True),
        ("9.0", "int4", False),
        ("10.0", "fp4", True),
        ("7.0", "bf16", False),
        ("6.1", "fp16", False),
        ("33.0", "fp16", None),
    ],
)
def test_tensor_cores_by_capability(cc: str, name: str, supported: bool | None) -> None:
    found = dtype(ProbeOptions(dtypes=(name,), compute_capability=cc), Driver(None))
    assert found.result["types"][0]["tensor_cores"] == {cc: supported}


@pytest.mark.parametrize(
    ("cc", "names", "notes"),
    [
        ("9.0", ("bf16", "fp64"), []),
        ("9.0", ("bf16", "int4"), ["9.0: INT4 was dropped: it compiles, and runs elsewhere"]),
        ("12.0", ("int4",), []),
        ("12.1", ("bf16",), ["12.1: taken to be as 12.0"]),
        ("6.1", ("bf16",), ["6.1: tensor cores came with 7.0"]),
    ],
)
def test_a_note_about_a_type_stands_beside_that_type(
    cc: str, names: tuple[str, ...], notes: list[str]
) -> None:
    found = dtype(ProbeOptions(dtypes=names, compute_capability=cc), Driver(None))
    assert list(found.notes) == notes


def test_the_gpus_that_are_here_are_asked_about() -> None:
    found = sound(dtype(ProbeOptions(dtypes=("fp8",)), BOTH))
    assert found.result["types"][0]["tensor_cores"] == {"9.0": True, "8.9": True}


@pytest.mark.parametrize("cc", sorted(load().peaks))
def test_every_type_with_a_tensor_rate_is_one_that_tensor_cores_multiply(cc: int) -> None:
    found = tensor_cores(cc)
    assert found is not None
    rated = {name.removeprefix("tensor_") for name in load().peaks[cc] if name.startswith("tensor_")}
    assert rated <= set(found.types)


@pytest.mark.parametrize("options", [{"dtypes": ("fp7",)}, {"compute_capability": "90"}])
def test_what_is_no_type_or_capability_is_a_usage_error(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        dtype(ProbeOptions(**options), Driver(None))


# The allocator


def test_equal_boundaries_accumulate_nothing_however_much_is_reserved() -> None:
    found = judge([Boundary(100, 10_000)] * 10)
    assert (found.allocated, found.reserved) == ("flat", "flat")
    assert "nothing accumulates" in found.says[0]
    assert "That is no leak" in found.says[1]
    assert "99 %" in found.says[1]


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=30), st.integers(1, 10**9))
def test_high_reserved_memory_alone_is_never_called_growth(reserved: list[int], allocated: int) -> None:
    boundaries = [Boundary(allocated, allocated + extra) for extra in sorted(reserved)]
    found = judge(boundaries)
    assert found.allocated == "flat"
    assert not any("keeps tensors" in said for said in found.says)


def test_memory_that_every_step_adds_is_a_suspect_with_its_rate() -> None:
    found = judge([Boundary(1000 + 64 * step, 4000) for step in range(21)])
    assert (found.allocated, found.allocated_per_step) == ("grows", 64.0)
    assert "by 64 bytes" in found.says[0]
    assert "only the program" in found.says[0]


def test_one_step_up_is_an_event_not_a_pattern() -> None:
    found = judge([Boundary(1000, 4000)] * 10 + [Boundary(1500, 4000)] * 10)
    assert found.allocated == "steps"
    assert "an event" in found.says[0]


def test_a_cache_that_never_fits_is_about_shapes() -> None:
    found = judge([Boundary(1000, 4000 + 100 * step) for step in range(10)])
    assert (found.allocated, found.reserved) == ("flat", "grows")
    assert any("changing shapes" in said for said in found.says)


def test_fragments_retries_and_failures_are_said() -> None:
    last = Boundary(1000, 4000, split=2000, retries=3, out_of_memory=1)
    says = " ".join(judge([Boundary(1000, 4000, split=2000), last]).says)
    for words in ("expandable_segments", "cache was emptied", "1 allocations failed"):
        assert words in says


def test_one_boundary_says_nothing() -> None:
    with pytest.raises(NcukitError, match="one boundary"):
        judge([Boundary(1, 1)])


def test_the_statistics_of_torch_are_read_by_their_names() -> None:
    stats = {
        "allocated_bytes.all.current": 1,
        "reserved_bytes.all.current": 2,
        "inactive_split_bytes.all.current": 3,
        "segment.all.current": 4,
        "allocated_bytes.all.peak": 5,
        "num_alloc_retries": 6,
        "num_ooms": 7,
    }
    assert boundary(stats) == Boundary(1, 2, 3, 4, 5, 6, 7)


class FakeCuda:
    """A torch.cuda whose memory grows by a tensor a step; it counts what was waited for."""

    def __init__(self) -> None:
        self.calls, self.synchronised = 0, 0

    def run(self) -> None:
        self.calls += 1

    def memory_stats(self) -> dict[str, int]:
        assert self.synchronised
        return {"allocated_bytes.all.current": 1000 * self.calls, "reserved_bytes.all.current": 1 << 20}

    def synchronize(self) -> None:
        self.synchronised += 1

    def memory_snapshot(self) -> list[dict[str, Any]]:
        return [{"address": 1, "blocks": [{"size": 512}]}]


def test_the_allocator_is_asked_between_equal_steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = FakeCuda()
    cuda = SimpleNamespace(
        is_available=lambda: True,
        reset_peak_memory_stats=lambda: None,
        get_allocator_backend=lambda: "native",
        **{name: getattr(fake, name) for name in ("memory_stats", "synchronize", "memory_snapshot")},
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))  # type: ignore[arg-type]
    gc.freeze()  # the probe collects garbage between steps: not that of all tests before this one
    answer = allocator.probe(fake.run, 10, tmp_path / "snapshot.json")
    found = sound(Probed("allocator", "done", answer["result"]))
    assert fake.calls == allocator.WARM_UP + 10
    assert len(found.result["boundaries"]) == fake.synchronised == 11
    assert found.result["judgement"]["allocated_per_step"] == 1000
    assert json.loads((tmp_path / "snapshot.json").read_text())[0]["blocks"][0]["size"] == 512


# Graph breaks

MODEL = """
import torch

def step():
    x = torch.ones(4)
    if x.sum().item() > 3:          # line 6
        x = x + 1
    return x
"""


@torch_only
def test_an_item_in_control_flow_is_found_on_its_line_with_its_rewrite(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(MODEL)
    (found,) = probe("graph-breaks", options=ProbeOptions(script=script, call="step"))
    sound(found)
    assert found.state == "done", found.reason
    (one,) = found.result["breaks"]
    assert (Path(one["file"]).name, one["line"], one["function"]) == ("model.py", 6, "step")
    assert one["text"].startswith("if x.sum().item() > 3:")
    assert "Tensor.item()" in one["reason"]
    assert "torch.where" in one["rewrite"]
    assert found.result["graphs"] == 2


def reason(text: str, **more: Any) -> SimpleNamespace:
    frame = SimpleNamespace(filename="m.py", lineno=more.pop("line", 7), name="f", line="x")
    return SimpleNamespace(reason=text, user_stack=more.pop("stack", [frame]), **more)


def test_breaks_are_told_once_in_the_order_of_the_code() -> None:
    explained = SimpleNamespace(
        break_reasons=[
            reason("b", line=9),
            reason("a", line=3),
            reason("b", line=9),
            reason("end", graph_break=False),
        ]
    )
    assert [(b.line, b.reason) for b in graph_breaks.breaks_of(explained)] == [(3, "a"), (9, "b")]


def test_what_torch_does_not_say_is_none() -> None:
    (one,) = graph_breaks.breaks_of(SimpleNamespace(break_reasons=[reason("why", stack=[])]))
    assert (one.file, one.line) == (None, None)
    assert graph_breaks.breaks_of(SimpleNamespace()) == []


@pytest.mark.parametrize(
    ("text", "rewrite"),
    [
        ("Data-dependent branching\n  Explanation: x", "torch.cond"),
        ("dynamic shape operator\n  Explanation: aten.nonzero.default", "fixed shape"),
        ("Failed to trace builtin operator `print`", "print"),
        ("Something new\n  Hint: Do this instead.", "Do this instead."),
        ("Something new", "documentation"),
    ],
)
def test_each_reason_has_its_usual_rewrite(text: str, rewrite: str) -> None:
    assert rewrite in graph_breaks.rewrite(text)


# Measured ceilings


@torch_only
def test_on_a_cpu_the_ceilings_are_said_to_be_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    monkeypatch.setattr(ceilings, "COPY", {"cpu": (1 << 20,)})
    monkeypatch.setattr(ceilings, "SIZES", {"cpu": (64,)})
    for name, ask in (("copy", ceilings.copy), ("matmul", ceilings.matmul)):
        answer = ask()
        found = sound(Probed(name, "done", answer["result"], notes=tuple(answer["notes"])))
        assert found.result["measured"] == "cpu"
        assert "measures the CPU" in found.notes[0]
    assert set(found.result["rates"]) == {"fp32"}
    row = found.result["products"][0]
    assert row["rate"] == pytest.approx(2 * 64**3 / row["median"])


# What is broken


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "work.py"
        path.write_text(text)
        return path

    return write


@torch_only
def test_a_crash_takes_only_its_own_answer_along(script: Callable[[str], Path]) -> None:
    options = ProbeOptions(
        script=script("import os\ndef step():\n    os.abort()\n"), call="step", dtypes=("bf16",)
    )
    crashed, fine = probe("allocator", "dtype", options=options)
    assert sound(crashed).state == "failed"
    assert "SIGABRT" in crashed.reason
    assert fine.state == "done"


def test_an_interpreter_without_torch_is_said(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    (found,) = probe("copy", options=ProbeOptions(python=str(bare)))
    assert sound(found).state == "unavailable"
    assert "torch is not installed" in found.reason


@torch_only
def test_a_script_that_fails_is_a_failed_probe(script: Callable[[str], Path]) -> None:
    options = ProbeOptions(script=script("def step():\n    raise ValueError('no')\n"), call="step")
    (found,) = probe("graph-breaks", options=options)
    assert sound(found).state == "failed"
    assert "ValueError: no" in found.reason


# The command


@pytest.fixture
def ncukit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ncukit", "probe", *arguments])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_the_command_prints_and_writes_the_same_json(ncukit: Any, tmp_path: Path) -> None:
    code, out, err = ncukit("dtype", "--shape", "32x32", "--cc", "9.0", "--json", "-o", "probe.json")
    assert code == 0
    assert err == "probe.json\n"
    assert json.loads(out) == json.loads((tmp_path / "probe.json").read_text())
    SCHEMA.validate(json.loads(out))
    assert ncukit("dtype", "-o", "probe.json")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["devise"], "there is no probe 'devise'"),
        (["dtype", "--shape", "4x"], "no shape"),
        (["allocator", "--script", "x.py"], "--kernel"),
        (["allocator", "--param", "m"], "NAME=VALUE"),
    ],
)
def test_what_does_not_fit_is_a_usage_error(arguments: list[str], said: str, ncukit: Any) -> None:
    code, _, err = ncukit(*arguments)
    assert code == 2
    assert said in err
