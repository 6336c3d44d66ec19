"""A short slice of the mutation runs: sound inputs of every kind are read, damaged ones refused or read.

The whole runs, and what they came to: docs/robustness.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mutations import originals
from tests.mutations.kinds import KINDS
from tests.mutations.run import Ended, run
from tests.mutations.warm import warm

SEED = 5_001
"""Beyond those of the whole runs."""


@pytest.fixture(scope="module", autouse=True)
def _prepared(without_code: Path) -> Iterator[None]:
    """Disassembly takes half of the time of each; the whole runs have it."""
    warm()
    cached = (originals.reports, originals.synthetic, originals.compressed, originals.baselines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(originals, "SAMPLES", without_code)
        patch.setattr(originals, "COPY", without_code / "copy-dram.ncu-rep")
        for samples in cached:
            samples.cache_clear()
        yield
    for samples in cached:
        samples.cache_clear()


def commands() -> Iterator[tuple[str, int]]:
    for name, kind in KINDS.items():
        yield from ((name, n) for n in range(len(kind.commands)))


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_a_sound_input_of_every_kind_succeeds(name: str, command: int, tmp_path: Path) -> None:
    kind = KINDS[name]
    kind.place(tmp_path, kind.originals()[0])
    found = run(kind.commands[command], tmp_path)
    assert found.fault() is None, found.err
    assert found.code == 0, found.err
    assert found.out.strip()


@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_input_is_refused_or_read(name: str, tmp_path: Path) -> None:
    data, words = KINDS[name].case(SEED)
    KINDS[name].place(tmp_path, data)
    found = run(words, tmp_path)
    assert found.fault() is None, found.err


def test_the_same_seed_does_the_same_damage() -> None:
    for kind in KINDS.values():
        assert kind.case(7) == kind.case(7)


@pytest.mark.parametrize(
    ("ended", "fault"),
    [
        (Ended(0, None, 0.1, 1, "a table", ""), None),
        (Ended(4, None, 0.1, 1, "", "error: damaged\nhint: copy it again\n"), None),
        (Ended(0, None, 0.1, 1, "", ""), "success without a result"),
        (Ended(1, None, 0.1, 1, "", "Traceback (most recent call last)"), "Traceback"),
        (Ended(1, None, 0.1, 1, "", "error: internal error: KeyError\nhint: x"), "internal error"),
        (Ended(1, None, 0.1, 1, "", "error: there is not enough memory\nhint: x"), "not enough memory"),
        (Ended(4, None, 0.1, 1, "", "error: damaged\n"), "an error without a hint"),
        (Ended(4, None, 0.1, 1, "", ""), "failure without a word"),
        (Ended(None, 9, 30.1, 1, "", ""), "hangs: 30 s"),
        (Ended(None, 6, 0.1, 1, "", ""), "killed by signal 6"),
        (Ended(70, None, 0.1, 1, "", ""), "exit code 70"),
        (Ended(0, None, 0.1, 3_000_000_000, "x", ""), "memory 3.0 GB"),
    ],
)
def test_what_counts_as_a_fault(ended: Ended, fault: str | None) -> None:
    assert ended.fault() == fault
