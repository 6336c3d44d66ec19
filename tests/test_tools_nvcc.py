"""The CUDA compiler: line information always, its messages as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncukit.run.tools.capabilities import Probe, probe
from ncukit.run.tools.nvcc import NvccOptions, argv, compile_program, errors

KERNEL = "__global__ void f(float *x) { x[threadIdx.x] = 1; }\nint main() { f<<<1, 32>>>(nullptr); }\n"


def test_the_whole_line(tmp_path: Path) -> None:
    nvcc = Probe("nvcc", Path("/cuda/bin/nvcc"), "12.4.131", {})
    options = NvccOptions((Path("a.cu"), Path("b.cu")), Path("/r/a.out"), arch="sm_90", extra=("-Iinclude",))
    assert argv(options, nvcc) == (
        *("/cuda/bin/nvcc", "-lineinfo", "-O3", "-arch=sm_90", "-Iinclude", "-o", "/r/a.out", "a.cu", "b.cu"),
    )


@pytest.fixture(scope="module")
def real(nvcc: Path) -> Probe:
    return probe("nvcc", nvcc)


def test_a_program_is_compiled_with_its_lines(real: Probe, tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(KERNEL)
    done, outcome = compile_program(NvccOptions((source,), tmp_path / "k", arch="sm_90"), real)
    assert outcome.path == tmp_path / "k", done.output
    assert outcome.failure is None
    assert b".nv_debug_ptx_txt" in outcome.path.read_bytes() or b"k.cu" in outcome.path.read_bytes()


def test_an_error_is_shown_as_the_compiler_wrote_it(real: Probe, tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(KERNEL.replace("= 1", "= foo"))
    done, outcome = compile_program(NvccOptions((source,), tmp_path / "k", arch="sm_90"), real)
    assert outcome.path is None
    assert outcome.failure is not None
    assert outcome.failure.code == "compile-failed"
    assert 'identifier "foo" is undefined' in outcome.failure.message
    assert f"{source}(1): error" in errors(done)[0]


def test_an_architecture_that_the_compiler_does_not_know(real: Probe, tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(KERNEL)
    _, outcome = compile_program(NvccOptions((source,), tmp_path / "k", arch="sm_20"), real)
    assert outcome.failure is not None
    assert outcome.failure.code == "compile-failed"
    assert "sm_20" in outcome.failure.message
