"""`--resume` takes nothing that it runs from a record that somebody else may have made."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncukit.model.run import Run
from ncukit.run import directory
from ncukit.run.directory import read_record
from ncukit.run.options import ProfileOptions
from tests.runs import RUN, Lab, Outcome

GIVEN = RUN[1:]
"""The target of the run and its options, as the user gives them."""


@pytest.fixture
def evil(lab: Lab) -> Path:
    """A program that says that it ran, and with which secret."""
    path = lab.folder / "evil"
    path.write_text(f"#!/bin/sh\necho \"ran $MY_API_KEY\" >> '{lab.folder}/canary'\n")
    path.chmod(0o755)
    lab.env(MY_API_KEY="hunter2hunter2")
    return path


@pytest.fixture
def begun(lab: Lab) -> Path:
    """A run of the user's own that lacks its counters."""
    lab.env(NCUKIT_FAKE_NCU="permission")
    assert lab(*RUN, "-o", "run").code == 5
    lab.env(NCUKIT_FAKE_NCU="")
    return lab.folder / "run"


def changed(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the record in ``folder`` as somebody could who has not the key."""
    record = json.loads((folder / "run.json").read_text())
    change(record)
    (folder / "run.json").write_text(json.dumps(record))


def unseal(record: dict[str, Any]) -> None:
    record["seal"] = None


def asks(ran: Outcome, lab: Lab) -> None:
    """Check that the run was refused with the target to be given, and that nothing ran."""
    assert ran.code == 2
    assert "is not a run that you began in this folder; its record says: ncukit profile " in ran.err
    assert "ncukit profile --resume run OPTIONS -- PROGRAM ARGS" in ran.err
    assert not (lab.folder / "canary").exists()


@pytest.mark.parametrize("more", [(), ("--dry-run",)], ids=["in earnest", "dry"])
@pytest.mark.parametrize("kept", [False, True], ids=["without a seal", "with the seal of another record"])
def test_no_tool_of_a_record_is_started(
    lab: Lab, begun: Path, evil: Path, more: tuple[str, ...], kept: bool
) -> None:
    def change(record: dict[str, Any]) -> None:
        record["options"] |= {"tools": {"ncu": str(evil), "nsys": str(evil)}, "env": ["*"]}
        record["seal"] = record.get("seal") if kept else None

    changed(begun, change)
    ran = lab("profile", "--resume", "run", *more)
    asks(ran, lab)
    assert f"--ncu {evil}" in ran.err
    ran = lab("profile", "--resume", "run", *more, *GIVEN)
    assert (ran.code, "the options (env: ['*'] -> none, tools:" in ran.err) == (2, True), ran.err
    assert not (lab.folder / "canary").exists()


@pytest.mark.parametrize("more", [(), ("--dry-run",)], ids=["in earnest", "dry"])
def test_no_program_of_a_record_is_run(lab: Lab, begun: Path, evil: Path, more: tuple[str, ...]) -> None:
    def change(record: dict[str, Any]) -> None:
        record["target"] |= {
            "kind": "command", "call": None, "source": None, "sha256": None,
            "program": [str(evil)], "args": ["a b", "\x1b[2J"],
        }  # fmt: skip
        record["options"] |= {
            "kernel": None,
            "repeat": None,
            "skip_nsys": True,
            "skip_ncu": True,
            "env": ["*"],
        }
        record["steps"], record["tools"] = [], {}

    changed(begun, change)
    ran = lab("profile", "--resume", "run", *more)
    asks(ran, lab)
    assert f"-- {evil} 'a b' $'\\x1b[2J'" in ran.err
    assert "\x1b" not in ran.err


def test_what_is_given_is_compared_before_any_tool_starts(lab: Lab, begun: Path) -> None:
    changed(begun, unseal)
    before = (lab.state / "calls.jsonl").read_text()
    for words in (GIVEN, (*GIVEN, "--dry-run")):
        lab.script("import ncukit\n\n@ncukit.workload()\ndef gemm():\n    return lambda: 1\n")
        ran = lab("profile", "--resume", "run", *words)
        assert (ran.code, "the script (sha256" in ran.err) == (2, True), ran.err
    assert (lab.state / "calls.jsonl").read_text() == before


def test_a_strangers_run_goes_on_with_the_target_that_the_user_gives(lab: Lab, begun: Path) -> None:
    changed(begun, unseal)
    asks(lab("profile", "--resume", "run"), lab)
    ran = lab("profile", "--resume", "run", *GIVEN)
    assert ran.code == 0, ran.err
    assert read_record(begun).status == "complete"
    assert lab("profile", "--resume", "run").code == 0  # now it is the user's own
    assert len(lab.bodies()) == 3 + 1  # only what was not done ran again


def test_a_compiled_program_that_lies_in_a_strangers_run_is_compiled_again(lab: Lab, evil: Path) -> None:
    nvcc = lab.folder / "nvcc"
    nvcc.write_text(
        "#!/bin/sh\n"
        'case "$*" in *--version*) echo "Cuda compilation tools, release 12.4, V12.4.131"; exit;; esac\n'
        'while [ "$1" != -o ]; do shift; done\n'
        'printf \'#!/bin/sh\\nexit 0\\n\' > "$2"; chmod +x "$2"\n'
    )
    nvcc.chmod(0o755)
    lab.script("int main() { return 0; }", "k.cu")
    given = ("k.cu", "--nvcc", str(nvcc), "--skip-nsys", "--skip-ncu")
    assert lab("profile", *given, "-o", "run").code == 0

    def change(record: dict[str, Any]) -> None:
        unseal(record)
        (compiled,) = next(step["files"] for step in record["steps"] if step["name"] == "compile")
        data = evil.read_bytes()
        compiled |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        record["steps"] = [step for step in record["steps"] if step["name"] == "compile"]

    changed(lab.folder / "run", change)
    shutil.copyfile(evil, lab.folder / "run" / "program")
    asks(lab("profile", "--resume", "run"), lab)
    lab("profile", "--resume", "run", *given)
    assert not (lab.folder / "canary").exists()


def test_a_copy_of_an_own_run_goes_on_and_only_where_it_was_begun(
    lab: Lab, begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(begun, lab.folder / "copy")
    (lab.folder / "elsewhere").mkdir()
    monkeypatch.chdir(lab.folder / "elsewhere")  # where the words of the record may mean other files
    shutil.copytree(begun, "run")
    asks(lab("profile", "--resume", "run"), lab)
    monkeypatch.chdir(lab.folder)
    ran = lab("profile", "--resume", "copy")
    assert ran.code == 0, ran.err


def test_a_secret_that_the_record_leaves_out_is_to_be_given_again(lab: Lab) -> None:
    command = ("--skip-nsys", "--skip-ncu", "--", "sh", "-c", "exit 1", "--token=abcdefgh")
    assert lab("profile", "-o", "run", *command).code == 3
    ran = lab("profile", "--resume", "run")
    assert (ran.code, "run does not hold the secrets of its command" in ran.err) == (2, True), ran.err
    assert "abcdefgh" not in ran.err
    assert lab("profile", "--resume", "run", *command).code == 3


# ---- what is offered -----------------------------------------------------------------------------


@pytest.mark.parametrize("foreign", [False, True], ids=["own", "a stranger's"])
def test_the_command_without_a_target_is_printed_of_own_runs_only(
    lab: Lab, begun: Path, foreign: bool
) -> None:
    if foreign:
        changed(begun, unseal)
    said = [lab("advise", "run"), lab("compare", "run", "run"), lab("report", "--run", "run", "-o", "x.html")]
    page = (lab.folder / "x.html").read_text()
    texts = [one.out + one.err for one in said[:2]] + [page]
    for text in texts:
        found = text.split("ncukit profile --resume run", 1)
        assert len(found) == 2, text
        assert found[1].startswith(" -- PROGRAM") == foreign


def test_the_options_of_a_record_are_shown_as_they_are_given(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ProfileOptions(
        kernel="a b", gpu_kernel="g*", params={"n": ("1", "2")}, preset="quick", skip_time=True,
        l2_flush=False, repeat=3, timeout=5.0, clock_control="none", cache_control="none",
        replay_mode="application", graph_profiling="graph", allow_collective=True, range="r",
        arch="sm_90", env=("A", "B*"), clean_env=True, tools={"ncu": "/x y/ncu", "python": "p"},
    )  # fmt: skip
    heard: list[ProfileOptions] = []
    monkeypatch.setattr(
        "ncukit.cli.profile._print_plan", lambda words, options, *rest, **more: heard.append(options)
    )
    ran = lab("profile", *options.words(), "--dry-run", "--", "x")
    assert ran.code == 0, ran.err
    assert heard == [options]


# ---- the key -------------------------------------------------------------------------------------


def a_run(**changes: Any) -> Run:
    return replace(Run("2026-01-01T00:00:00Z", "0.1.0", {"kind": "command"}, {"env": []}), **changes)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of a user who has no key yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "ncukit"


def test_a_seal_holds_what_a_run_takes_from_its_record_and_nothing_else(state: Path) -> None:
    run = directory.sealed(a_run())
    assert directory.own(run)
    assert directory.own(replace(run, status="failed", notes=("x",)))
    for change in ({"target": {}}, {"options": {"env": ["*"]}}, {"tools": {"ncu": {}}}, {"created": "now"}):
        assert not directory.own(replace(run, **change)), change


def test_the_key_is_the_user_s_alone_and_stays(state: Path) -> None:
    assert directory.sealed(a_run()).seal == directory.sealed(a_run()).seal
    assert os.listdir(state) == ["key"]
    assert (state.stat().st_mode & 0o777, (state / "key").stat().st_mode & 0o777) == (0o700, 0o600)
    assert len((state / "key").read_bytes()) == 32


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: (state / "key").chmod(0o640),
        lambda state: (state / "key").chmod(0o602),
        lambda state: state.chmod(0o770),
        lambda state: (state / "key").rename(state / "moved") and (state / "key").symlink_to("moved"),
        lambda state: state.rename(state.with_name("other")) and state.symlink_to("other"),
        lambda state: (state / "key").write_bytes(b"short"),
        lambda state: (state / "key").write_bytes(b"x" * 33),
        lambda state: (state / "key").unlink(),
        lambda state: (state / "key").unlink() or os.mkfifo(state / "key", 0o600),
    ],
    ids=["read", "written", "folder", "link", "folder link", "short", "long", "gone", "pipe"],
)
def test_a_key_that_others_could_know_or_have_put_there_seals_nothing(
    state: Path, spoil: Callable[[Path], object]
) -> None:
    run = directory.sealed(a_run())
    spoil(state)
    assert not directory.own(run)


def test_a_key_behind_a_folder_that_others_can_write_seals_nothing(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = directory.sealed(a_run())
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "state").symlink_to(state.parent)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "open" / "state"))
    assert not directory.own(run)
    assert directory.sealed(a_run()).seal is None
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    assert directory.own(run)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
@pytest.mark.parametrize("name", ["", "key"], ids=["folder", "key"])
def test_a_key_of_another_user_seals_nothing(state: Path, name: str) -> None:
    run = directory.sealed(a_run())
    os.chown(state / name, 12345, -1)
    assert not directory.own(run)
    assert directory.sealed(a_run()).seal is None


def test_where_no_key_can_be_kept_runs_work_and_ask_for_their_target(lab: Lab) -> None:
    lab.env(XDG_STATE_HOME="/dev/null/nowhere")
    ran = lab(*RUN, "-o", "run")
    assert ran.code == 0, ran.err
    assert read_record(lab.folder / "run").seal is None
    asks(lab("profile", "--resume", "run"), lab)
    assert lab("profile", "--resume", "run", *GIVEN).code == 0


def test_a_dry_run_makes_no_key(lab: Lab, tmp_path: Path) -> None:
    lab.env(XDG_STATE_HOME=str(tmp_path / "none"))
    assert lab(*RUN, "--dry-run").code == 0
    assert not (tmp_path / "none").exists()
