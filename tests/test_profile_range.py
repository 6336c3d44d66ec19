"""`ncukit profile --range`: only launches inside a named NVTX range are chosen, measured and shown."""

from __future__ import annotations

import pytest

from ncukit.errors import UsageError
from ncukit.render.run.load import load
from ncukit.run.options import ProfileOptions
from tests.runs import GEMM, Lab, Outcome

LONG = {"name": "void init(float*)", "duration": 9_000_000, "repeat": 4, "profiler": False}
PROGRAM = ("--", "sh", "-c", "exit 0")


def included(lab: Lab) -> list[str]:
    (call,) = lab.calls("ncu")
    return [call[i + 1] for i, word in enumerate(call) if word == "--nvtx-include"]


@pytest.mark.parametrize("style", ["ranges", "push_pop"])
def test_the_longest_kernel_of_the_range_is_measured_not_that_of_the_program(style: str, lab: Lab) -> None:
    outside = {**GEMM, "repeat": 3, "profiler": False, "duration": 130_000}
    lab.launches(LONG, outside, {**GEMM, "repeat": 10, style: ["prefill"]})
    ran: Outcome = lab("profile", "--range", "prefill", *PROGRAM)
    assert ran.code == 0, ran.err
    assert ran.folder is not None
    assert included(lab) == ["prefill", "prefill/"]
    assert ran.record["launch"]["short"] == "sm90_gemm_f16"
    assert ran.record["isolation"]["verdict"] == "proven"
    assert ran.record["options"]["range"] == "prefill"
    timeline = load(ran.folder).timeline
    assert timeline is not None
    assert timeline.range == "prefill"
    assert [(k.short, k.launches.n) for k in timeline.kernels] == [("sm90_gemm_f16", 10)]


def test_without_it_the_whole_program_is_looked_at(lab: Lab) -> None:
    lab.launches(LONG, {**GEMM, "repeat": 10, "ranges": ["prefill"]})
    ran = lab("profile", *PROGRAM)
    assert ran.record["launch"]["short"] == "init"
    assert included(lab) == []


def test_a_range_that_is_not_in_the_trace_names_those_that_are(lab: Lab) -> None:
    lab.launches({**GEMM, "repeat": 10, "ranges": ["prefill"]})
    ran = lab("profile", "--range", "prefil", *PROGRAM)
    assert ran.code == 5
    failure = ran.step("choice")["failure"]
    assert "prefil" in failure["message"]
    assert "prefill" in failure["hint"]
    assert ran.step("counters")["state"] == "skipped"
    assert ran.folder is not None
    assert load(ran.folder).timeline is not None  # what was gained is kept


def test_a_range_needs_a_name() -> None:
    with pytest.raises(UsageError):
        ProfileOptions(range="")
