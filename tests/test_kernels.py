"""The sample workloads: their headers, that they compile, and that they compute what they say."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ncukit import models
from ncukit.judge import RULES
from ncukit.run.workload import script
from ncukit.trace.region import CLASSES
from scripts.kernels import FOLDER, TARGET, header, table, workloads
from tests.conftest import CHECKOUT

LIMITERS = {
    "memory-bound": {"dram", "l2", "l1", "shared", "sysmem"},
    "compute-bound": {"tensor", "fp32", "fp64", "fp16", "int", "xu", "lsu-issue"},
    "latency-bound": {"occupancy", "dependency", "synchronisation", "imbalance", "tail", "small-grid"},
    "balanced": set(),
}
KEYS = {"gpu_kernel", "arguments", "model", "region", "verdict", "findings", "absent", "counted"}
PYTHON = [path for path in workloads() if path.suffix == ".py"]
CUDA = [path for path in workloads() if path.suffix == ".cu"]
SMALL: dict[str, dict[str, Any]] = {
    "attention_naive": {"batch": 2, "heads": 2, "queries": 17, "keys": 33, "head_dim": 16},
    "decode": {
        **{"mode": "eager", "requests": 3, "prompt": 9, "tokens": 6},
        **{"layers": 2, "heads": 2, "head_dim": 16, "vocabulary": 64},
    },
    "gemm": {"m": 96, "n": 80, "k": 64},
    "gemm_triton": {"m": 150, "n": 100, "k": 70},  # no multiple of any tile
    "gemv": {"m": 64, "n": 48},
    "kv_decode": {"batch": 2, "heads": 4, "kv_heads": 2, "context": 50, "head_dim": 16},
    "softmax": {"rows": 20, "columns": 100},
    "tiny_launches": {"n": 10, "launches": 100},
    "vector_add": {"n": 1000},
}
ODD = {  # sizes that are no multiple of a block
    "divergent_branch": 1000,
    "gemm_naive": 37,
    "gemm_tiled": 37,
    "reduction_atomics": 3000,
    "stencil_spill": 70,
    "strided_copy": 1000,
    "transpose_bank_conflicts": 75,
    "transpose_naive": 75,
    "transpose_padded": 75,
}


def each(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=[path.stem for path in paths])


# --- headers


def test_these_workloads_are_there():
    assert {path.stem for path in PYTHON} == set(SMALL)
    assert {path.stem for path in CUDA} == set(ODD)


@each(workloads())
def test_the_header_says_what_it_shows_and_what_must_be_found(path):
    head = header(path)
    assert len(head.title) > 20
    assert head.expect.keys() <= KEYS
    assert head.expect.keys() >= {"verdict", "findings"}
    assert any(f"{name}(" in head.fields["Model"] for name in models.__all__)


@each(workloads())
def test_the_verdict_is_in_the_words_of_the_diagnosis(path):
    expect = header(path).expect
    for verdict in expect["verdict"]:
        cls, _, limiter = verdict.partition(":")
        assert cls in LIMITERS
        assert not limiter if cls == "balanced" else limiter in LIMITERS[cls]
    assert set(expect.get("region", ())) <= set(CLASSES.values())


@each(workloads())
def test_every_rule_exists(path):
    expect = header(path).expect
    wanted = {id for entry in expect["findings"] for id in entry.split("|")}
    assert wanted
    assert wanted <= RULES.keys()
    assert set(expect.get("absent", ())) <= RULES.keys() - wanted


def test_together_they_trip_rules_of_every_family():
    families = {
        RULES[entry.split("|")[0]].family for path in workloads() for entry in header(path).expect["findings"]
    }
    assert families == {"speed_of_light", "memory", "scheduler", "launch", "source", "tensor"}


def test_the_index_is_made_from_the_headers():
    assert TARGET.read_text(encoding="utf-8") == table(), "python scripts/kernels.py"


@each(PYTHON)
def test_the_name_of_a_python_file_is_its_workload_and_found_before_it_runs(path):
    found = script.look_up(path, path.stem)
    assert found.kind == "workload"
    assert SMALL[path.stem].keys() == found.defaults.keys()


@each(CUDA)
def test_the_model_of_a_program_is_that_of_its_default_size(path):
    source, expect = path.read_text(encoding="utf-8"), header(path).expect
    ((_, default),) = expect["arguments"].items()
    written = re.search(r"argument\(argc, argv, 1, ([^,)]+)", source)
    assert written is not None
    assert shifted(written[1]) == default
    name, arguments = expect["model"]
    model = getattr(models, name)(**arguments)
    assert default in arguments.values() or model.bytes % default == 0
    assert model.bytes > 16e6


def shifted(text: str) -> int:
    """Return the value of ``8192`` or ``1 << 24``."""
    left, _, right = text.partition("<<")
    return int(left) << int(right or 0)


@each(CUDA)
def test_a_program_is_named_after_its_kernel(path):
    source = path.read_text(encoding="utf-8")
    assert re.findall(r"__global__ void (?:__launch_bounds__\(\w+\) )?(\w+)\(", source) == [path.stem]
    assert header(path).expect["gpu_kernel"] == path.stem


# --- CUDA programs: compiled for two GPUs, and run on the CPU


@contextmanager
def once(folder: Path) -> Iterator[Path]:
    """Lock ``folder``: what several test processes need is made by one of them."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def shared_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    base = factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name


@pytest.fixture(scope="session")
def programs(nvcc: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every program for sm_80 and sm_90: the exit code of nvcc, what it said, and the binary."""
    with once(shared_folder(tmp_path_factory, "programs")) as folder:
        kept = folder / "said.json"
        if not kept.exists():
            with ThreadPoolExecutor(2) as pool:
                said = dict(pool.map(lambda path: compiled(nvcc, path, folder), CUDA))
            kept.write_text(json.dumps(said))
        return json.loads(kept.read_text())


def compiled(nvcc: Path, path: Path, folder: Path) -> tuple[str, dict[str, Any]]:
    binary = folder / path.stem
    gpus = [f"-gencode=arch=compute_{cc},code=sm_{cc}" for cc in (80, 90)]
    words = (
        "-O3",
        "-lineinfo",
        *gpus,
        "-Xptxas=-v",
        "-Xcompiler=-Wall,-Wextra",
        "-o",
        str(binary),
        str(path),
    )
    done = subprocess.run([str(nvcc), *words], capture_output=True, text=True, timeout=300, check=False)
    return path.stem, {"code": done.returncode, "said": done.stdout + done.stderr, "binary": str(binary)}


@each(CUDA)
def test_a_program_compiles_without_warnings(path, programs):
    done = programs[path.stem]
    assert done["code"] == 0, done["said"]
    assert "warning" not in done["said"].lower(), done["said"]


@each(CUDA)
def test_only_the_spilling_stencil_spills(path, programs):
    spilled = [int(count) for count in re.findall(r"(\d+) bytes spill stores", programs[path.stem]["said"])]
    assert len(spilled) == 2
    assert all(count > 64 for count in spilled) if path.stem == "stencil_spill" else spilled == [0, 0]


@each(CUDA)
def test_without_a_gpu_a_program_says_which_call_failed(path, programs):
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    words = [programs[path.stem]["binary"], "100"]
    done = subprocess.run(words, capture_output=True, text=True, env=hidden, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("cudaMalloc(")
    assert done.stdout == ""


@pytest.fixture(scope="session")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One program that holds all others, with CUDA done by the CPU; its first argument says which to run."""
    if (compiler := shutil.which("g++")) is None:
        pytest.skip("no g++: it builds the CUDA programs for the CPU")
    with once(shared_folder(tmp_path_factory, "emulated")) as folder:
        binary = folder / "all"
        if not binary.exists():
            (folder / "all.cpp").write_text(on_the_cpu())
            include = [f"-I{FOLDER}", f"-I{CHECKOUT / 'tests'}"]
            words = ["-std=c++20", "-O1", *include, "-o", str(binary), str(folder / "all.cpp"), "-pthread"]
            done = subprocess.run([compiler, *words], capture_output=True, text=True, check=False)
            if "no such file" in done.stderr.lower() or "unrecognized" in done.stderr:
                pytest.skip(f"g++ is too old for C++20: {done.stderr.splitlines()[0]}")
            assert done.returncode == 0, done.stderr
    return binary


def on_the_cpu() -> str:
    parts = ['#include "cuda_on_cpu.hpp"\n#include "program.cuh"\n#include <string>\n']
    for path in CUDA:
        body = path.read_text(encoding="utf-8").replace('#include "program.cuh"', "")
        body = re.sub(r"(\w+)<<<(.*?)>>>\((.*?)\);", r"emulate(\2, [&] { \1(\3); });", body, flags=re.S)
        parts.append(f"namespace in_{path.stem} {{\n{body}}}\n")
    cases = (f'    if (name == "{p.stem}") return in_{p.stem}::main(argc - 1, argv + 1);\n' for p in CUDA)
    parts.append(
        f"int main(int argc, char **argv) {{\n    const std::string name = argv[1];\n{''.join(cases)}}}\n"
    )
    return "".join(parts)


@each(CUDA)
def test_a_kernel_computes_what_its_reference_says(path, emulated):
    words = [str(emulated), path.stem, str(ODD[path.stem]), "2"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path.stem} {ODD[path.stem]}: right\n"


@pytest.mark.parametrize("argument", ["0", "-3", "many", "99999999999", "50000"])
def test_a_size_that_cannot_be_is_refused(argument, emulated):
    done = subprocess.run(
        [str(emulated), "gemm_naive", argument], capture_output=True, text=True, check=False
    )
    assert done.returncode == 64
    assert "is no number from 1 to 46340" in done.stderr


# --- Python workloads, on the CPU

RUN = """
import json, sys
from pathlib import Path
from ncukit.run.workload import script
from ncukit.run.workload.correctness import compare

found = {}
for path, parameters in json.loads(sys.argv[1]):
    module = script.load(Path(path))
    case, values, _ = script.make_case(module, Path(path).stem, parameters)
    again = compare(case.run(), case.run())
    said = compare(case.run(), case.reference(), case.tolerance)
    found[Path(path).stem] = {"passed": said.passed, "detail": said.detail, "elements": said.elements,
        "again": again.passed, "model": case.model.name, "bytes": case.model.bytes, "device": module.DEVICE}
print(json.dumps(found))
"""


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every Python workload that can run here, with small parameters: result against reference."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch: pip install torch")
    paths = [p for p in PYTHON if p.stem != "gemm_triton" or importlib.util.find_spec("triton")]
    with once(shared_folder(tmp_path_factory, "workloads")) as folder:
        kept = folder / "ran.json"
        if not kept.exists():
            wanted = json.dumps([(str(path), SMALL[path.stem]) for path in paths])
            environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
            done = subprocess.run(
                [sys.executable, "-c", RUN, wanted],
                capture_output=True, text=True, env=environment, cwd=folder, timeout=300, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            kept.write_text(done.stdout.splitlines()[-1])
        return json.loads(kept.read_text())


@each(PYTHON)
def test_a_workload_runs_on_the_cpu_and_agrees_with_its_reference(path, ran):
    if path.stem not in ran:
        pytest.skip("no triton: pip install triton")
    result = ran[path.stem]
    assert result["passed"], result["detail"]
    assert result["elements"] > 1
    assert result["again"], "a second run gives another result"
    assert result["device"] == "cpu"


@each(PYTHON)
def test_a_workload_has_the_model_that_its_header_names(path, ran):
    if path.stem not in ran:
        pytest.skip("no triton: pip install triton")
    named = header(path).fields["Model"].partition("(")[0]
    result = ran[path.stem]
    assert result["model"].startswith(f"{named}(")
    for name, value in SMALL[path.stem].items():
        assert f"{name}={value}" in result["model"] or name == "launches" or named == "point"
