"""A launch is judged once, whatever is shown of it: the diagnosis keeps what it found."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ncukit import api
from ncukit.judge import diagnose, ledger, memory_flow, occupancy
from ncukit.judge.shares import _Ruler
from ncukit.judge.source_view import _Builder
from ncukit.model import Diagnosis, Kernel
from tests.command import ncukit

SAMPLES = {path.stem: path for path in api.demo_reports()}
GEMM = SAMPLES["gemm-tensor"]
"""One launch with samples by instruction."""

SHOWN = {
    "report": ["report", "-o", "page.html"],
    "text": ["show"],
    "verbose": ["show", "--verbose"],
    "json": ["show", "--json"],
    "json with source": ["show", "--json", "--source"],
    "markdown": ["show", "--format", "markdown"],
}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often something is judged, whoever asks for it."""
    count: Counter[str] = Counter()

    def watch(owner: Any, name: str, what: str) -> None:
        judge = getattr(owner, name)

        def judged(*words: Any, **named: Any) -> Any:
            count[what] += 1
            return judge(*words, **named)

        monkeypatch.setattr(owner, name, judged)

    watch(_Ruler, "shares", "shares")
    watch(_Builder, "view", "source view")
    watch(memory_flow, "memory_links", "links")
    watch(memory_flow, "split", "split")
    return count


@pytest.mark.parametrize("words", SHOWN.values(), ids=SHOWN)
def test_units_are_measured_and_source_is_viewed_once_a_launch(
    words: list[str], counted: Counter[str], tmp_path: Path
) -> None:
    assert ncukit(words[0], GEMM, *words[1:], cwd=tmp_path).returncode == 0
    assert (counted["shares"], counted["source view"]) == (1, 1)
    assert max(counted["links"], counted["split"]) <= 1


def test_of_several_launches_each_is_measured_once(counted: Counter[str], tmp_path: Path) -> None:
    several = SAMPLES["several-launches"]
    launches = sum(1 for _ in api.read(several).kernels())
    assert launches > 2
    assert ncukit("report", several, "-o", "page.html", cwd=tmp_path).returncode == 0
    assert counted["shares"] == launches


def gemm() -> Kernel:
    (kernel,) = api.read(GEMM).kernels(details=True)
    return kernel


def test_what_was_judged_is_kept() -> None:
    facts = diagnose(gemm()).facts
    assert facts.links is facts.links
    assert facts.split is facts.split
    assert facts.occupancy is facts.occupancy
    assert facts.source is not None
    assert facts.source is facts.source


def test_the_last_launches_alone_keep_their_source_view(counted: Counter[str]) -> None:
    """A view of a large kernel takes megabytes, and a report may hold thousands of launches."""
    kernel = gemm()
    found = [diagnose(kernel) for _ in range(ledger.KEPT + 1)]
    assert counted["source view"] == len(found)
    assert found[-1].facts.source is not None
    assert counted["source view"] == len(found)
    assert found[0].facts.source == found[-1].facts.source
    assert counted["source view"] == len(found) + 1


def test_a_diagnosis_goes_to_another_process_and_knows_the_same() -> None:
    found = diagnose(gemm())
    assert found.facts.source is not None
    arrived: Diagnosis = pickle.loads(pickle.dumps(found))
    assert arrived == found
    assert arrived.facts.shares == found.facts.shares
    assert arrived.facts.links == found.facts.links
    assert b"SourceView" not in pickle.dumps(found)


def test_the_curves_of_occupancy_are_judged_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    judge = occupancy.occupancy

    def watched(kernel: Kernel, *, curves: bool = True) -> Any:
        asked.append(curves)
        return judge(kernel, curves=curves)

    facts = diagnose(gemm()).facts
    monkeypatch.setattr(occupancy, "occupancy", watched)
    assert facts.occupancy is not None
    assert facts.occupancy.curves == ()
    assert len(facts.occupancy_curves) == 3
    assert asked == [False, True]
