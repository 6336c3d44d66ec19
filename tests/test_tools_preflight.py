"""What can be seen before a costly run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ncukit.run.tools.capabilities import Rank, interpreter, profilers, rank


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import torch.profiler", ("torch.profiler",)),
        ("from torch.profiler import profile, ProfilerActivity", ("torch.profiler",)),
        ("from torch import profiler", ("torch.profiler",)),
        ("import torch\nwith torch.autograd.profiler.profile(): pass", ("torch.autograd.profiler",)),
        ("import triton.profiler as proton\nproton.start('x')", ("Proton (triton.profiler)", "Proton")),
        ("import torch\ntorch.cuda.profiler.start()", ()),
        ("import torch\nprofiler = 'torch.profiler'  # torch.profiler", ()),
        ("import nsightful", ()),
        ("this is no python", ()),
    ],
)
def test_a_second_profiler_is_seen_in_the_script(source: str, names: tuple[str, ...]) -> None:
    assert profilers(source) == names


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({"RANK": "0", "WORLD_SIZE": "4"}, Rank(0, 4)),
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "8"}, Rank(2, 8)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, Rank(1, 2)),
        ({"RANK": "x"}, None),
        ({}, None),
    ],
)
def test_ranks_are_known_by_their_launcher(environ: dict[str, str], found: Rank | None) -> None:
    assert rank(environ) == found


def test_each_rank_has_an_output_of_its_own() -> None:
    ranks = [rank({"RANK": str(n), "WORLD_SIZE": "4"}) for n in range(4)]
    assert len({r.suffix for r in ranks if r}) == 4


def test_the_right_interpreter_passes() -> None:
    assert interpreter(sys.executable, ["json", "typer"], env=os.environ) is None


def test_a_missing_module_is_the_interpreter_s_fault(tmp_path: Path) -> None:
    found = interpreter(sys.executable, ["json", "nosuchmodule"], env=os.environ)
    assert found is not None
    assert found.code == "interpreter"
    assert found.message == "the interpreter that ran the program lacks 'nosuchmodule'"
    assert f"it ran with {sys.executable}" in found.hint
    assert "--python" in found.hint
    assert "not the profiler" in found.hint
