"""A run directory may come from somebody else: ``--resume`` runs nothing that only its record names."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from ncukit.collect import seal
from ncukit.collect.directory import read_record
from tests.runs import RUN, WORKLOAD, Lab


@pytest.fixture
def begun(lab: Lab) -> Path:
    """The directory of a run of the user's own, which lacks counters."""
    lab.env(NCUKIT_FAKE_NCU="permission")
    outcome = lab(*RUN)
    lab.env(NCUKIT_FAKE_NCU="")
    assert outcome.folder is not None
    return outcome.folder


def of_a_stranger(folder: Path, canary: Path) -> None:
    """Let the record name the stranger's own tool, program and all variables."""
    evil = folder / "evil"
    evil.write_text(f"#!/bin/sh\nenv > {canary}\n")
    evil.chmod(0o755)
    record = json.loads((folder / "run.json").read_text())
    record["options"]["tools"] = {"ncu": str(evil), "nsys": str(evil)}
    record["options"]["env"] = ["*"]
    record["target"] |= {"program": [str(evil)], "source": None, "sha256": None, "call": None, "args": []}
    record["target"] |= {"kind": "command", "python": str(evil)}
    (folder / "run.json").write_text(json.dumps(record))


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_nothing_that_a_stranger_s_record_names_is_run(lab: Lab, begun: Path, more: tuple[str, ...]) -> None:
    canary = lab.folder / "canary"
    of_a_stranger(begun, canary)
    lab.env(HF_TOKEN="hf-canary-of-a-secret")
    outcome = lab("profile", "--resume", str(begun), *more)
    assert outcome.code == 2
    assert "is not a run that you began" in outcome.err
    assert "evil" in outcome.err  # what would have been run is shown
    assert not canary.exists()


def test_what_is_given_beside_resume_must_be_what_the_record_says(lab: Lab, begun: Path) -> None:
    canary = lab.folder / "canary"
    of_a_stranger(begun, canary)
    outcome = lab("profile", "--resume", str(begun), "work.py", "--kernel", "gemm", "--repeat", "3")
    assert outcome.code == 2
    assert "cannot go on" in outcome.err
    assert not canary.exists()


def test_a_run_without_a_seal_goes_on_when_its_program_is_given_again(lab: Lab, begun: Path) -> None:
    record = json.loads((begun / "run.json").read_text())
    record["seal"] = None
    (begun / "run.json").write_text(json.dumps(record))
    assert lab("profile", "--resume", str(begun)).code == 2
    outcome = lab("profile", "--resume", str(begun), *RUN[1:])
    assert outcome.code == 0, outcome.err


def test_a_run_of_the_user_s_own_goes_on_as_it_is_also_when_it_was_moved(lab: Lab, begun: Path) -> None:
    shutil.move(begun, "moved")
    outcome = lab("profile", "--resume", "moved")
    assert outcome.code == 0, outcome.err


@pytest.mark.parametrize("fault", ["readable", "link", "short"])
def test_a_key_that_others_could_have_read_or_put_makes_no_run_the_user_s_own(
    lab: Lab, begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    state = tmp_path / "state-of-its-own"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    run = seal.sealed(read_record(begun))
    assert seal.own(run)
    key = state / "ncukit" / "key"
    if fault == "readable":
        key.chmod(0o644)
    elif fault == "link":
        key.rename(tmp_path / "elsewhere")
        key.symlink_to(tmp_path / "elsewhere")
    else:
        key.write_bytes(b"short")
    assert not seal.own(run)


def test_only_runs_of_the_user_s_own_are_told_to_go_on_without_their_program(lab: Lab, begun: Path) -> None:
    lab.script(WORKLOAD)
    of_a_stranger(begun, lab.folder / "canary")
    for words in (("advise", str(begun)), ("compare", str(begun), str(begun))):
        outcome = lab(*words)
        said = re.sub(r"\\\n\s*", "", outcome.out + outcome.err)  # a long command goes on in the next line
        for line in said.splitlines():
            if "--resume" in line:
                assert "-- PROGRAM" in line, (words, line)
