"""What the tools print becomes a stable code, from the first cause and never from the exit code alone."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from string import Formatter

import pytest

from ncukit.errors import ToolError
from ncukit.run.tools import failures
from ncukit.run.tools.failures import CODES, Context, classify, failure, notes
from ncukit.run.tools.process import Completed
from tests.fakes.scenarios import HANG, LOCK, NCU, NSYS, PERMISSION, RESOURCE, SLOW
from tests.tools_printed import CONNECTED, EXIT, NO_DRIVER, NOTHING, PRINTED

TABLE = tomllib.loads(Path(failures.__file__).with_name("failures.toml").read_text())["failure"]


def ended(*lines: str, code: int = 0, timed_out: bool = False) -> Completed:
    return Completed(("ncu",), code, timed_out=timed_out, lines=tuple(("stdout", line) for line in lines))


@pytest.mark.parametrize(
    ("code", "why", "tool", "exit_code", "lines"), PRINTED, ids=[f"{p[0]}-{n}" for n, p in enumerate(PRINTED)]
)
def test_what_is_printed_has_its_code(
    code: str, why: str | None, tool: str, exit_code: int, lines: list[str]
) -> None:
    found = classify(ended(*lines, code=exit_code), Context(tool=tool, gpu=True))
    assert found is not None
    assert (found.code, found.why) == (code, why)
    assert found.message
    assert "{" not in found.message + found.hint
    assert "?" not in found.message


def test_every_code_is_tested_with_the_words_of_a_tool() -> None:
    elsewhere = {
        "tool-too-old",
        "timeout",
        "wrong-result",
    }  # not printed: found by ncukit itself, tested below
    assert {p[0] for p in PRINTED} | elsewhere == {*CODES, "tool-failed"}


def test_every_code_is_in_the_table_and_none_else() -> None:
    assert {row["code"] for row in TABLE if row.get("level") != "warning"} == {*CODES, "tool-failed"}
    assert len({row["id"] for row in TABLE}) == len(TABLE)


@pytest.mark.parametrize("row", TABLE, ids=[row["id"] for row in TABLE])
def test_rows_can_always_be_shown(row: dict[str, object]) -> None:
    messages = row["message"] if isinstance(row["message"], list) else [row["message"]]
    groups = {name for p in row.get("patterns", ()) for name in re.compile(p).groupindex}  # type: ignore[attr-defined]
    asked = {name for _, name, _, _ in Formatter().parse(messages[-1]) if name}
    given = {"tool", "exit", "timeout", "kernel"} | {"version", "path", "oldest"}
    assert asked <= groups | given
    if row.get("level") != "warning":
        assert any(row.get(key) for key in ("hint", "bare"))


def test_no_driver_is_never_blamed_on_the_program() -> None:
    for order in ([NO_DRIVER, EXIT.format(1), NOTHING], [EXIT.format(1), NOTHING, NO_DRIVER]):
        found = classify(ended(*order, code=1))
        assert found is not None
        assert found.code == "no-driver"


@pytest.mark.parametrize(("gpu", "code"), [(True, "driver-mismatch"), (False, "no-driver")])
def test_a_driver_that_is_not_there_is_not_too_old(gpu: bool, code: str) -> None:
    lines = (
        "cudaMalloc(&a, n): CUDA driver version is insufficient for CUDA runtime version",
        EXIT.format(1),
    )
    found = classify(ended(*lines, code=1), Context(tool="python", gpu=gpu))
    assert found is not None
    assert found.code == code
    assert found.evidence == lines[0]


def test_a_row_for_machines_without_a_gpu_names_another() -> None:
    assert {row["without_gpu"] for row in TABLE if "without_gpu" in row} <= {row["id"] for row in TABLE}


def test_the_first_cause_wins() -> None:
    found = classify(
        ended(RESOURCE, '==ERROR== Failed to profile "k" in process 1', PERMISSION, EXIT.format(9), code=9)
    )
    assert found is not None
    assert (found.code, found.evidence) == ("busy", RESOURCE)


def test_the_exit_code_of_a_program_that_ncu_killed_is_not_the_programs() -> None:
    found = classify(ended(CONNECTED, *NCU["library-not-loaded"].lines, EXIT.format(9), NOTHING, code=9))
    assert found is not None
    assert found.code == "library-not-loaded"


def test_a_handled_import_error_is_not_the_cause_of_what_came_later() -> None:
    lines = [
        "ModuleNotFoundError: No module named 'flash_attn'",
        "falling back",
        "ValueError: shapes do not fit",
        EXIT.format(1),
        NOTHING,
    ]
    found = classify(ended(*lines, code=1))
    assert found is not None
    assert (found.code, found.message) == ("app-failed", "the program failed: ValueError: shapes do not fit")


def test_what_a_program_that_did_well_prints_is_no_failure() -> None:
    assert (
        classify(ended(CONNECTED, "ModuleNotFoundError: No module named 'x'", "CUDA out of memory")) is None
    )


def test_an_exit_code_that_may_be_a_signal_is_said_to_be() -> None:
    found = classify(ended(CONNECTED, EXIT.format(11), code=11))
    assert found is not None
    assert found.message == "the program ended with exit code 11 (or SIGSEGV)"
    found = classify(ended(code=137), Context(tool="nsys"))
    assert found is not None
    assert found.message == "the program ended with signal SIGKILL"


def test_replay_warning_save_failure_launch_failure_and_preparation_are_told_apart() -> None:
    prepare = NCU["prepare"].lines
    cases = (
        [SLOW],
        ["Could not allocate memory or file space to save context state"],
        ["==ERROR== LaunchFailed"],
        prepare,
    )
    found = [classify(ended(*lines)) for lines in cases]
    assert [f and f.id for f in found] == [None, "replay", "launch-failed", "driver-mismatch.prepare"]
    assert [note.id for note in notes(SLOW)] == ["note.slow-replay"]


@pytest.mark.parametrize(
    ("context", "why", "words"),
    [
        (Context(kernel="regex:gemm"), "filter", "no launch matched the kernel filter regex:gemm"),
        (Context(kernel="gemm", profiler_api=True), "filter", "no launch inside the marked region matched"),
        (Context(range="ncukit", range_opened=True), None, "no kernel was launched inside the marked region"),
        (Context(kernel="gemm", range="ncukit", range_opened=True), "filter", "gemm"),
        (
            Context(range="ncukit", range_opened=False, kernel="gemm"),
            "range",
            "the marked range ncukit never opened",
        ),
        (Context(range="ncukit"), "range", "ncukit"),
        (Context(profiler_api=True), "range", "cudaProfilerStart"),
        (Context(range="step/", range_opened=True), "thread", "thread"),
        (Context(), None, "launched no kernel"),
    ],
)
def test_nothing_profiled_says_why(context: Context, why: str | None, words: str) -> None:
    found = classify(ended(CONNECTED, NOTHING), context)
    assert found is not None
    assert (found.code, found.why) == ("nothing-profiled", why)
    assert words in found.message


def test_what_ncu_says_about_skipped_launches_decides() -> None:
    both = Context(kernel="gemm", range="ncukit")
    outside = "==PROF== Skipping launch in process 7: incorrect nvtx context"
    other = "==PROF== Skipping launch in process 7: kernel fill does not match exactly with gemm"
    whys = [classify(ended(CONNECTED, line, NOTHING), both) for line in (outside, other)]
    assert [found and found.why for found in whys] == ["range", "filter"]


def test_processes_that_were_seen_are_listed() -> None:
    found = classify(ended(*NCU["child"].lines))
    assert found is not None
    assert "41832 (no CUDA), 41833 (no CUDA), 41834 (no CUDA)" in found.hint
    assert "--target-processes all" in found.hint


@pytest.mark.parametrize(
    ("id", "place", "words"),
    [
        ("permission", "bare", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("permission", "container", "--cap-add=SYS_ADMIN"),
        ("permission", "container", "provider"),
        ("permission", "wsl", "NVIDIA Control Panel"),
        ("no-driver", "container", "--gpus all"),
        ("no-driver", "wsl", "Windows"),
        ("library-not-loaded", "container", "gVisor"),
        ("library-not-loaded", "wsl", "wsl --shutdown"),
    ],
)
def test_advice_fits_the_machine(id: str, place: str, words: str) -> None:
    others = {"bare", "container", "wsl"} - {place}
    assert words in failure(id, Context(place=place)).hint  # type: ignore[arg-type]
    if words != "NVreg_RestrictProfilingToAdminUsers=0":
        assert not any(words in failure(id, Context(place=other)).hint for other in others)  # type: ignore[arg-type]


def test_no_advice_uses_sudo() -> None:
    assert "sudo" not in Path(failures.__file__).with_name("failures.toml").read_text()


def test_the_owner_of_a_lock_file_is_named(tmp_path: Path) -> None:
    lock = tmp_path / "nsight-compute-lock"
    lock.touch()
    found = classify(LOCK.replace("/tmp/nsight-compute-lock", str(lock)))
    assert found is not None
    assert found.message == f"the lock file {lock} belongs to {lock.owner()}"
    assert "TMPDIR" in found.hint
    assert "nobody else profiles" in found.hint


def test_a_mismatch_names_versions_and_other_installs() -> None:
    facts = {"version": "2022.3", "driver": "580.65", "installs": "/opt/nvidia/nsight-compute/2025.3/ncu"}
    found = classify("==ERROR== Cuda driver is not compatible with Nsight Compute.", Context(facts=facts))
    assert found is not None
    assert found.message == "ncu 2022.3 and driver 580.65 do not fit together"
    assert "/opt/nvidia/nsight-compute/2025.3/ncu" in found.hint


def test_a_time_out_says_where_it_was() -> None:
    found = classify(ended(CONNECTED, '==PROF== Profiling "k" - 0 (1/1): 0%', timed_out=True, code=143))
    assert found is not None
    assert found.code == "timeout"
    assert '0 % of "k"' in found.message


def test_a_hang_of_many_ranks_or_of_kernels_that_wait_is_a_collective() -> None:
    alone = classify(ended(CONNECTED, HANG, timed_out=True))
    ranks = classify(ended(CONNECTED, timed_out=True), Context(ranks=4))
    assert [f and f.code for f in (alone, ranks)] == ["collective", "collective"]


def test_a_cause_printed_before_a_time_out_wins() -> None:
    found = classify(ended(CONNECTED, PERMISSION, timed_out=True))
    assert found is not None
    assert found.code == "permission"


def test_errors_carry_code_kind_and_evidence_into_json() -> None:
    found = classify(ended(CONNECTED, NOTHING), Context(kernel="gemm"))
    assert found is not None
    error = found.error()
    assert isinstance(error, ToolError)
    assert error.as_dict() == {
        "code": "nothing-profiled",
        "why": "filter",
        "message": found.message,
        "hint": found.hint,
        "evidence": NOTHING,
        "exit_code": 3,
    }


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (
            "==WARNING== Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling",
            "mig-clocks",
        ),
        (
            "==WARNING== No source files were imported. Check that the target application was compiled",
            "no-source",
        ),
        (
            "==WARNING== Unable to access the following 6 metrics: ctc__rx_bytes_data_user.sum, ctc__x",
            "metric-unknown",
        ),
        ("==WARNING== Found outstanding GPU clock reset, trying to revert...Success.", "clock-reset"),
    ],
)
def test_remarks_of_a_good_run_are_notes_and_no_failures(line: str, code: str) -> None:
    assert classify(ended(CONNECTED, line)) is None
    assert [note.code for note in notes(f"{line}\n{line}")] == [code]


def test_scenarios_of_the_stand_ins_have_known_codes() -> None:
    assert {s.code for s in (*NCU.values(), *NSYS.values())} <= {*CODES, "tool-failed"}
