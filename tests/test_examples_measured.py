"""The examples of the documents that need a GPU run on stand-ins for the driver and the tools, shortened.

Of examples whose options are part of another's only the longer one runs.
"""

from __future__ import annotations

import pytest

from tests.documented import PAGES, Example, command_examples
from tests.runs import Lab, gemm

GENERATED = {"commands.md"}
WORKLOADS = """\
import ncukit


def case():
    return ncukit.Case(run=lambda: [2, 4], reference=lambda: [2, 4])


@ncukit.workload(n=64, tile=64)
def gemm(n, tile):
    return case()


@ncukit.workload()
def gemm_v1():
    return case()


@ncukit.workload()
def gemm_v2():
    return case()
"""
PROGRAM = """\
import json

print(json.dumps({"p95_latency": 0.01}))
"""
SHORTENED = {
    "profile": ("--repeat", "3"),
    "experiment": ("--repeats", "1", "--samples", "3", "--no-profile"),
}


def options(example: Example) -> frozenset[str]:
    """Return the command of an example with the names of its options."""
    return frozenset({example.words[0], *(word for word in example.words if word.startswith("-"))})


def measured() -> list[Example]:
    """Return the examples that need a GPU and no torch, without those that are part of another."""
    found = {
        options(example): example
        for page in PAGES
        if page.name not in GENERATED
        for example in command_examples(page)
        if example.needs == "a GPU" and example.words[0] in SHORTENED and "decode" not in example.text
    }
    return [example for own, example in found.items() if not any(own < other for other in found)]


@pytest.mark.parametrize("example", measured(), ids=lambda example: example.text)
def test_what_needs_a_gpu_runs_on_a_stand_in(example: Example, lab: Lab) -> None:
    for name, text in {"my_kernel.py": WORKLOADS, "train.py": PROGRAM, "serve.py": PROGRAM}.items():
        lab.script(text, name)
    lab.launches(gemm())
    command, *rest = example.words
    done = lab(command, *SHORTENED[command], *rest)
    assert done.code == 0, done.err
    assert done.out


def test_there_are_such_examples() -> None:
    assert {example.words[0] for example in measured()} == set(SHORTENED)
