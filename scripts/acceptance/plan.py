"""The steps of the run, most telling first."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ncukit import models
from scripts.acceptance import judge
from scripts.acceptance.outcome import Check, Outcome
from scripts.kernels import Header, header

FIRST = ("gemm", "gemm_tiled", "transpose_bank_conflicts", "vector_add", "tiny_launches", "reduction_atomics")
"""Workloads whose counters say most: tensor, FP32 and shared memory, DRAM, launches, atomics."""
FULL = ("gemm", "gemm_tiled", "transpose_bank_conflicts")
"""Workloads measured with every counter."""
SMALLER = {"decode": ("prompt=128", "tokens=16")}
"""Parameters that differ from the defaults: torch's profiler takes a minute for a whole generation."""
PROGRAMS = Path(__file__).with_name("programs")
SWEPT = (512, 1024, 1536, 2048, 3072, 4096)


@dataclass(frozen=True)
class Step:
    """One command: ``words`` for ncukit, or a ``program`` of its own; ``limit`` [s]; who judges the end.

    A ``{run}`` in the words becomes the step's run directory.  With less than ``least`` [s] left it is not
    begun.
    """

    name: str
    words: tuple[str, ...]
    limit: float
    judge: Callable[[Outcome], tuple[Check, ...]]
    program: bool = False
    least: float = 5.0


def plan(kernels: Path, *, arch: str = "native") -> list[Step]:
    """Return the steps for the workloads in ``kernels``."""
    heads = {path.stem: header(path) for path in sorted(kernels.iterdir()) if path.suffix in (".py", ".cu")}
    first = [heads.pop(name) for name in FIRST if name in heads]
    torch, failing, wrong, skipping = (
        str(PROGRAMS / f"{name}.py") for name in ("versions", "failing", "wrong", "skipping")
    )
    return [
        # the first import of torch reads gigabytes: it must not count for what follows
        Step("torch", (torch,), 120, judge.environment, program=True),
        Step("doctor", ("doctor", "--json"), 60, judge.doctor),
        Step("probe", ("probe", "device", "copy", "matmul", "--json"), 60, judge.probes),
        *(_profile(head, arch) for head in first),
        *_errors(first or list(heads.values()), failing, wrong),
        Step("where ncu counts --launch-skip", (skipping,), 60, judge.skipped, program=True, least=15),
        *_experiment(kernels, arch),
        *(_profile(head, arch) for head in heads.values()),
        *_sweep(kernels),
    ]


def _profile(head: Header, arch: str) -> Step:
    name, expect = head.path.stem, head.expect
    options = ("--clock-control", "none", "--json", "-q", "-o", "{run}")
    preset = ("--preset", "full" if name in FULL else "standard")
    words = ["profile", str(head.path), *preset, *options]
    if head.path.suffix == ".py":
        words += ["--kernel", name]
        words += [word for value in SMALLER.get(name, ()) for word in ("--param", value)]
        model = None  # the child records the workload's own
    else:
        which, shapes = expect["model"]
        work = getattr(models, which)(**shapes)
        model = {"flop": work.flop, "bytes": work.bytes}
        words += ["--arch", arch]
    if "gpu_kernel" in expect:
        words += ["--gpu-kernel", expect["gpu_kernel"]]
    if head.path.suffix == ".cu":
        words += ["--", *map(str, expect.get("arguments", {}).values())]
    limit = 110 if name in FULL else 80
    return Step(f"profile {name}", tuple(words), limit, judge.profiled(expect, model), least=15)


def _errors(heads: Iterable[Header], failing: str, wrong: str) -> list[Step]:
    known = next((head.path for head in heads if head.path.suffix == ".py"), Path(failing))
    common = ("--json", "-q", "-o", "{run}", "--clock-control", "none")
    return [
        Step(
            "a kernel that fails",
            ("profile", failing, "--kernel", "failing", *common),
            40,
            judge.refuses("app-failed", 3),
        ),
        Step(
            "a kernel that is wrong",
            ("profile", wrong, "--kernel", "wrong", *common),
            40,
            judge.refuses("wrong-result", 3),
        ),
        Step(
            "a name that no kernel has",
            ("profile", str(known), "--gpu-kernel", "no_such_kernel", "--kernel", known.stem, *common),
            75,
            judge.refuses("nothing-profiled", 3, 5),
            least=15,
        ),
    ]


def _experiment(kernels: Path, arch: str) -> list[Step]:
    naive, tiled = kernels / "gemm_naive.cu", kernels / "gemm_tiled.cu"
    if not (naive.exists() and tiled.exists()):
        return []
    timed = shlex.join([sys.executable, str(PROGRAMS / "products.py"), str(kernels), arch])
    words: tuple[str, ...] = (
        "experiment",
        "--end-to-end",
        f"{timed} {{}}",
        "--baseline",
        "naive",
        "--variant",
        "tiled",
    )
    words += ("--metric", "seconds_per_launch", "-n", "5", "--no-profile", "--json", "-q", "-o", "{run}")
    return [Step("experiment: naive against tiled GEMM", words, 90, judge.compared, least=30)]


def _sweep(kernels: Path) -> list[Step]:
    script = kernels / "gemm.py"
    if not script.exists():
        return []
    sizes = ",".join(map(str, SWEPT))
    words: tuple[str, ...] = ("profile", str(script), "--kernel", "gemm", "--preset", "quick", "--skip-nsys")
    words += ("--repeat", "20")
    words += ("--param", f"m={sizes}", "--clock-control", "none", "--json", "-q", "-o", "{run}")
    return [Step("sweep of GEMM sizes", words, 180, judge.swept(len(SWEPT)), least=60)]
