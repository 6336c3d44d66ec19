"""The decode case: fixed work, checked tokens, times for each token; as a workload and as a command."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.runs import Lab

if importlib.util.find_spec("torch") is None:
    pytest.skip("no torch: pip install torch", allow_module_level=True)

DECODE = CHECKOUT / "kernels" / "decode.py"
SMALL = {"requests": 3, "prompt": 9, "tokens": 6, "layers": 1, "heads": 2, "head_dim": 8, "vocabulary": 64}
WORDS = [word for name, value in SMALL.items() for word in (f"--{name.replace('_', '-')}", str(value))]


@pytest.fixture
def lab(bare: Lab) -> Lab:
    """A place without a GPU."""
    bare.env(CUDA_VISIBLE_DEVICES="")
    return bare


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory, stands: Path) -> dict[str, Any]:
    """The record of eager decoding against itself, one pair: what is recorded, not what it shows."""
    with pytest.MonkeyPatch.context() as patch:
        lab = Lab(tmp_path_factory.mktemp("decode"), patch, stands)
        lab.env(CUDA_VISIBLE_DEVICES="")
        command = shlex.join([sys.executable, str(DECODE), *WORDS, "--mode", "{mode}"])
        metrics = ("--metric", "time_per_output_token", "--metric", "p95_latency")
        same = ("--same", "output_tokens", "--same", "tokens_sha256", "--same", "logits")
        words = ("--control", "mode=eager,eager", "-n", "1", "--watch", "gap_time:lower", "-q", "--json")
        outcome = lab("experiment", "--end-to-end", command, *metrics, *same, *words)
        assert outcome.code == 0, outcome.err
        found: dict[str, Any] = json.loads(outcome.out)
        return found


def test_each_repetition_holds_the_time_for_each_token_and_its_tail(experiment: dict[str, Any]) -> None:
    assert len(experiment["repetitions"]) == 2
    for one in experiment["repetitions"]:
        values = one["values"]
        assert set(values) == {"time_per_output_token", "p95_latency", "wall_time"}
        assert 0 < values["time_per_output_token"] < values["wall_time"]
        assert values["p95_latency"] > 0
    assert [effect["baseline"]["n"] for effect in experiment["effects"]] == [1, 1]


@pytest.mark.parametrize(
    ("words", "said"), [(["--tokens", "1"], "no time between tokens"), (["--layers", "0"], "layers is 0")]
)
def test_sizes_that_make_no_sense_are_refused(words: list[str], said: str) -> None:
    done = subprocess.run([sys.executable, str(DECODE), *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr.splitlines()[0]
    assert done.stderr.splitlines()[1].startswith("hint: ")


def test_set_up_and_capture_are_apart(experiment: dict[str, Any]) -> None:
    for one in experiment["repetitions"]:
        assert one["apart"]["capture"] == 0
        assert one["apart"]["setup"] > 0


def test_the_work_is_fixed_and_recorded(experiment: dict[str, Any]) -> None:
    held = experiment["conditions"]["observed"]
    assert (held["requests"], held["prompt"], held["tokens"]) == (3, 9, 6)
    assert (held["output_tokens"], held["early_stopping"]) == (18, False)


def test_counts_tokens_and_logits_agree(experiment: dict[str, Any]) -> None:
    checked = {one["against"]: one for one in experiment["correctness"]}
    assert {one["state"] for one in checked.values()} == {"passed"}
    assert checked["the baseline's output_tokens"]["tolerance"] == 0
    assert checked["the baseline's logits"]["tolerance"] == 1e-4
    assert checked["the baseline's logits"]["elements"] == 48


def test_gaps_come_from_traces_alone(experiment: dict[str, Any]) -> None:
    (gaps,) = experiment["observed"]
    assert (gaps["metric"], gaps["moved"]) == ("gap_time", "unknown")


def test_without_a_gpu_the_graph_says_that_it_cannot() -> None:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, str(DECODE), "--mode", "graph", *WORDS],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error: mode=graph cannot run here: a CUDA graph needs a GPU")
    assert done.stdout == ""


def test_so_does_an_experiment_with_it(lab: Lab) -> None:
    sizes = [word for name, value in SMALL.items() for word in ("-p", f"{name}={value}")]
    outcome = lab("experiment", str(DECODE), "--baseline", "decode", "--control", "mode=eager,graph", *sizes)
    assert outcome.code == 3
    assert "mode=graph cannot run here" in outcome.err
    assert "hint: use mode=eager" in outcome.err


def test_the_default_is_the_case_that_is_compared_everywhere() -> None:
    from ncukit.run.workload.script import look_up

    defaults = look_up(DECODE, "decode").defaults
    assert defaults.items() >= {"mode": "'eager'", "requests": "32", "prompt": "512", "tokens": "64"}.items()
