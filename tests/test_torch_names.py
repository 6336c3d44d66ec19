"""Where torch's profiler stands in for nsys: its spelling of a kernel's name is not that of ncu."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ncukit.model import RawKernel
from ncukit.run.capture import prove, select
from ncukit.run.tools.names import any_spelling, function_of
from ncukit.trace.launch_choice import launch_for_ncu
from ncukit.trace.torch_events import read_torch_trace
from tests.builders import raw_kernel

ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>, "
    "std::array<char *, (unsigned long)3>>(int, T2, T3)",
    "vectorized_elementwise_kernel",
)
SOFTMAX = (
    "void (anonymous namespace)::softmax_warp_forward<c10::Half, c10::Half, float, 10, false, false>"
    "(c10::Half*, c10::Half const*, int, int, int, bool const*, int, bool)",
    "void <unnamed>::softmax_warp_forward<c10::Half, c10::Half, float, (int)10, (bool)0, (bool)0>"
    "(T2 *, const T1 *, int, int, int, const bool *, int, bool)",
    "softmax_warp_forward",
)
GEMV = (
    "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float, true, "
    "cublasGemvTensorStridedBatched<float const> >(cublasGemvParams<float>)",
    "std::enable_if<!T3, void>::type internal::gemvx::kernel<int, float, (bool)1, "
    "cublasGemvTensorStridedBatched<const float>>(T5)",
    "kernel",
)
VENDOR = ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT",) * 3
PAIRS = (ADD, SOFTMAX, GEMV, VENDOR)
MULTIPLY = ADD[0].replace("CUDAFunctor_add", "CUDAFunctor_mul")
LAMBDA = (
    "void at::native::elementwise_kernel<128, at::native::(anonymous namespace)::copy(at::Tensor&)"
    "::{lambda()#1} >(int)",
    "void at::native::elementwise_kernel<(int)128, at::native::<unnamed>::copy(at::Tensor &)::"
    "[lambda() (instance 1)]>(int)",
    "elementwise_kernel",
)


def traced(folder: Path, *names: str) -> Any:
    events: list[dict[str, Any]] = []
    for i, name in enumerate(names):
        work = {"device": 0, "context": 1, "stream": 7, "correlation": i, "registers per thread": 32}
        work |= {"grid": [64, 1, 1], "block": [128, 1, 1]}
        call = {
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "pid": 9,
            "tid": 9,
            "args": {"correlation": i},
        }
        events.append({"ph": "X", "ts": 100.0 * i, "dur": 2, **call})
        events.append(
            {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 100.0 * i + 5, "dur": 50}
            | {"args": work}
        )
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return launch_for_ncu(read_torch_trace(path))


def captured(names: tuple[str, str, str], grid: int = 64) -> RawKernel:
    sizes = {"launch__grid_dim_x": grid, "launch__block_dim_x": 128, "launch__registers_per_thread": 32}
    sizes |= {f"launch__{what}_dim_{axis}": 1 for what in ("grid", "block") for axis in "yz"}
    return raw_kernel(names[2], sizes, demangled=names[1])


@pytest.mark.parametrize("names", PAIRS, ids=[names[2] for names in PAIRS])
def test_ncu_finds_what_torch_traced_and_it_is_proven_to_be_that(tmp_path: Path, names: Any) -> None:
    chosen = traced(tmp_path, names[0])
    assert chosen.choice.launch.short == function_of(names[0]) == names[2]
    assert prove(chosen, [captured(names)], 0).verdict == "proven"
    assert prove(chosen, [captured(names, grid=63)], 0).verdict == "denied"
    assert re.search(any_spelling(names[0]), names[1])


def test_of_two_kernels_of_one_function_the_filter_takes_the_chosen_one(tmp_path: Path) -> None:
    found = select(traced(tmp_path, MULTIPLY, *[ADD[0]] * 3), None, marked=True)
    assert (found.base, found.index) == ("demangled", 0)
    assert found.kernel is not None
    pattern = found.kernel.removeprefix("regex:")
    assert re.search(pattern, ADD[1])
    assert not re.search(pattern, ADD[1].replace("CUDAFunctor_add", "CUDAFunctor_mul"))


def test_another_instance_of_the_template_is_denied(tmp_path: Path) -> None:
    assert prove(traced(tmp_path, MULTIPLY), [captured(ADD)], 0).verdict == "denied"


def test_names_of_lambdas_are_found_but_prove_nothing(tmp_path: Path) -> None:
    proof = prove(traced(tmp_path, LAMBDA[0]), [captured(LAMBDA)], 0)
    assert (proof.verdict, proof.compared[0].same) == ("unknown", None)
    assert re.search(any_spelling(LAMBDA[0]), LAMBDA[1])


def test_the_first_launch_near_the_median_is_taken_so_that_ncu_replays_few(tmp_path: Path) -> None:
    assert traced(tmp_path, *[VENDOR[0]] * 50).choice.launch.nth == 0


@pytest.mark.parametrize(
    ("report", "traced_name"),
    [
        (
            "sm90-gh200-480gb-ncu2025.1-01",
            "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, "
            "void at::native::templates::cuda::uniform_and_transform<float, float>(int)::{lambda()#1}>(long)",
        ),
        (
            "sm86-a10g-ncu2023.1-04",
            "void two_blocktiling<128, 128, 8, 8, 8>(int, int, int, float const*, float const*, float*)",
        ),
    ],
)
def test_the_real_ncu_understands_the_pattern(ncu: Path, shared: Path, report: str, traced_name: str) -> None:
    """Its filter works on a report as it does on launches."""
    command = [str(ncu), "--import", str(shared / "reports" / "ncu" / f"{report}.ncu-rep"), "--page", "raw"]
    command += ["--metrics", "launch__grid_size", "--kernel-name-base", "demangled", "--kernel-name"]
    for name, found in ((traced_name, True), (traced_name.replace("<", "<long, ", 1), False)):
        done = subprocess.run(
            [*command, f"regex:{any_spelling(name)}"], capture_output=True, text=True, timeout=60, check=False
        )
        assert ("launch__grid_size" in done.stdout) is found
