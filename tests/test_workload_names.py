"""What a name means is read from the script's syntax tree; nothing of the script runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncukit.errors import ReportError, UsageError
from ncukit.run.workload.script import look_up

TABLE = [
    # (script, name, kind, pattern)
    ("import ncukit\n@ncukit.workload(m=4)\ndef gemm(m): ...", "gemm", "workload", None),
    ("import ncukit as nk\n@nk.workload(m=4)\ndef gemm(m): ...", "gemm", "workload", None),
    ("from ncukit import workload as w\n@w(m=4)\ndef gemm(m): ...", "gemm", "workload", None),
    ("import ncukit\n@ncukit.workload\ndef gemm(m=4): ...", "gemm", "workload", None),
    ("def gemm(): ...", "gemm", "function", None),
    ("def gemm(m=4, *, k=2): ...", "gemm", "function", None),
    ("if True:\n    def gemm(): ...", "gemm", "function", None),
    ("try:\n    import x\nexcept ImportError:\n    def gemm(): ...", "gemm", "function", None),
    ("import triton\n@triton.jit\ndef add(x, n): ...", "add", "gpu-kernel", "add"),
    ("from triton import jit\n@jit\ndef add(x, n): ...", "add", "gpu-kernel", "add"),
    (
        "import triton\n@triton.autotune(configs=[], key=[])\n@triton.jit\ndef add(x): ...",
        "add",
        "gpu-kernel",
        "add",
    ),
    ("from numba import cuda\n@cuda.jit\ndef add(x): ...", "add", "gpu-kernel", "add"),
    ("import numba.cuda\n@numba.cuda.jit('void(f4)')\ndef add(x): ...", "add", "gpu-kernel", "add"),
    ("from numba import cuda\ndef f(x): ...\nadd = cuda.jit(f)", "add", "gpu-kernel", "f"),
    ("import cutlass.cute as cute\n@cute.kernel\ndef add(x): ...", "add", "gpu-kernel", "add"),
    ("import cupy as cp\nadd = cp.RawKernel(src, 'my_add')", "add", "gpu-kernel", "my_add"),
    ("import cupy as cp\nadd = cp.RawKernel(src, 'my_add')", "my_add", "gpu-kernel", "my_add"),
    ("import cupy\nadd = cupy.RawKernel(code=src, name='my_add')", "add", "gpu-kernel", "my_add"),
    ("import cupy\nadd = cupy.RawModule(code=src).get_function('my_add')", "add", "gpu-kernel", "my_add"),
    ("def other(): ...", "gemm", "script", "gemm"),
    ("if __name__ == '__main__':\n    def gemm(): ...", "gemm", "script", "gemm"),
    ("class A:\n    def gemm(self): ...", "gemm", "script", "gemm"),
    ("def outer():\n    def gemm(): ...", "gemm", "script", "gemm"),
    ("import triton\n@triton.jit\ndef add(x): ...\ndef add(): ...", "add", "function", None),
]


@pytest.mark.parametrize(("text", "name", "kind", "pattern"), TABLE, ids=[str(i) for i in range(len(TABLE))])
def test_what_a_name_means(tmp_path: Path, text: str, name: str, kind: str, pattern: str | None) -> None:
    path = tmp_path / "k.py"
    path.write_text(text)
    found = look_up(path, name)
    assert (found.kind, found.pattern) == (kind, pattern)
    assert name in found.text
    if kind != "script":
        assert found.line


@pytest.mark.parametrize(
    ("text", "given", "missing", "line"),
    [
        ("def gemm(m, n, k=2): ...", (), "m, n", "@ncukit.workload(m=..., n=..., k=2)"),
        (
            "import ncukit\n@ncukit.workload(m=1)\ndef gemm(m, n): ...",
            (),
            "n",
            "@ncukit.workload(n=..., m=1)",
        ),
        ("def gemm(*, m): ...", (), "m", "@ncukit.workload(m=...)"),
        ("def gemm(m, n): ...", ("m",), "n", "@ncukit.workload(n=...)"),
    ],
)
def test_a_function_that_needs_parameters_is_refused_with_the_line_to_add(
    tmp_path: Path, text: str, given: tuple[str, ...], missing: str, line: str
) -> None:
    path = tmp_path / "k.py"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        look_up(path, "gemm", given)
    assert f"needs {missing} to be called" in error.value.message
    assert line in error.value.hint


def test_parameters_that_the_user_gives_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text("def gemm(m, n): ...")
    assert look_up(path, "gemm", ("m", "n")).kind == "function"


def test_without_a_name_the_only_workload_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text("import ncukit\n@ncukit.workload(m=1)\ndef gemm(m): ...\ndef helper(): ...")
    assert look_up(path, None).name == "gemm"
    path.write_text(path.read_text() + "\n@ncukit.workload(m=1)\ndef gemv(m): ...")
    with pytest.raises(UsageError, match="2 workloads: gemm, gemv"):
        look_up(path, None)
    path.write_text("print('hello')")
    assert look_up(path, None).kind == "script"


def test_a_coroutine_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text("async def gemm(): ...")
    with pytest.raises(UsageError, match="coroutine"):
        look_up(path, "gemm")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"def gemm(:\n", "line 1 is not valid Python"),
        (b"x = '\0'", "not valid Python"),
        (b"\xff\xfe\xff", "not valid Python"),
        (None, "there is no file"),
    ],
)
def test_a_script_that_cannot_be_read_ends_with_4(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "k.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReportError, match=message) as error:
        look_up(path, "gemm")
    assert error.value.exit_code == 4


def test_nothing_of_the_script_runs(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef gemm(): ...")
    look_up(path, "gemm")
    assert not (tmp_path / "ran").exists()
