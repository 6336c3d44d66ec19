"""Costs of instructions, lines, files, functions; who waits for whom; what is said when something lacks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ncukit.judge import diagnose
from ncukit.judge.sass import parse
from ncukit.judge.source_view import source_view
from ncukit.model import Diagnosis, Finding
from ncukit.model.source import SourceFile, SourceView
from scripts import verdicts
from tests.builders import START, code, kernel, raw_kernel

TEXT = "\n".join(f"line {n}" for n in range(1, 21))


def view(*rows: Any, file: str = "/src/a.cu", report: str = "r.ncu-rep", **fields: Any) -> SourceView:
    found = source_view(kernel(raw=raw_kernel("k", **code(*rows, file=file, **fields)), file=report))
    assert found is not None
    return found


def only_file(found: SourceView) -> SourceFile:
    (file,) = found.files
    return file


# ------------------------------------------------------------------- costs


def test_a_line_is_the_sum_of_its_instructions_wherever_they_were_inlined():
    found = view(
        ("LDG.E R1, [R2.64]", {"inst": 10, "long_scoreboard": 1, "sectors": 320, "ideal": 40}, 7),
        ("FADD R3, R1, R1", {"inst": 10, "long_scoreboard": 60}, 8),
        ("LDG.E R4, [R6.64]", {"inst": 10, "wait": 39, "sectors": 40, "ideal": 40}, 7),
        text=TEXT,
    )
    line = next(line for line in only_file(found).lines if line.number == 7)
    assert line.rows == (0, 2)
    assert line.text == "line 7"
    assert line.cost is not None
    assert (line.cost.waiting, line.cost.instructions) == (40, 20)
    assert (line.cost.sectors, line.cost.excess_sectors) == (360, 280)
    assert line.cost.categories == {"memory_dependency": 1, "execution_dependency": 39}
    assert found.share(line.cost) == pytest.approx(40.0)


def test_rows_lines_files_and_functions_each_add_up_to_the_total():
    found = view(*((f"FADD R{i}, R1, R1", {"inst": i, "wait": i}, 1 + i % 3) for i in range(1, 9)))
    total = found.amount(found.total)
    lines = [line.cost for file in found.files for line in file.lines if line.cost]
    for costs in (
        [r.cost for r in found.rows],
        lines,
        [f.cost for f in found.files],
        [f.cost for f in found.functions],
    ):
        assert sum(found.amount(cost) for cost in costs) == total == 36


def test_an_unknown_state_goes_to_other_by_name():
    found = view(("NOP", {"inst": 1, "stuck_in_traffic": 5}))
    assert found.total.states == {"stuck_in_traffic": 5}
    assert found.total.categories == {"other": 5}


def test_what_was_not_counted_is_unknown_and_what_was_counted_may_be_zero():
    found = view(("NOP", {"inst": 4, "divergent": 0}))
    assert found.basis == "none"
    assert found.share(found.total) is None
    assert (found.total.instructions, found.total.divergent, found.total.sectors) == (4, 0, None)


def test_without_the_counter_of_idle_cycles_shares_are_of_all_samples_and_say_so():
    raw = code(("FADD R1, R2, R3", {"inst": 1}))
    raw["by_pc"]["smsp__pcsamp_warps_issue_stalled_wait"] = {START: 200}
    found = source_view(kernel(raw=raw_kernel("k", **raw)))
    assert found is not None
    assert (found.basis, found.amount(found.total)) == ("samples", 200)
    assert any("not told apart" in note for note in found.notes)


@pytest.mark.parametrize("damage", [int(1.7e308), 2**64, -1])
def test_a_count_that_no_counter_can_hold_is_left_out_and_said(damage: int):
    found = view(
        ("LDG.E R1, [R2.64]", {"inst": damage, "long_scoreboard": damage, "sectors": 8, "ideal": 8}),
        ("FADD R3, R1, R1", {"inst": 7, "long_scoreboard": 300}),
    )
    assert (found.total.instructions, found.total.waiting) == (7, 300)
    assert found.notes[0] == "2 counts are negative or beyond 64 bits: damaged, and left out."


def test_a_launch_with_damaged_counts_is_diagnosed():
    rows = [("LDG.E R1, [R2.64]", {"inst": int(1.7e308), "long_scoreboard": int(1.7e308)})] * 2
    found = diagnose(kernel(raw=raw_kernel("k", **code(*rows))))
    assert found.verdict.cls == "undetermined"


def test_a_failed_launch_and_one_without_counters_by_instruction_have_no_view():
    rows = code(("NOP", {"inst": 1}))
    assert source_view(kernel(raw=raw_kernel("k", **rows), failed="the pass failed")) is None
    assert source_view(kernel()) is None


def test_called_functions_are_told_apart():
    found = view(
        (f"CALL.REL.NOINC 0x{START + 32:x}", {"inst": 2}),
        ("EXIT", {"inst": 2}),
        ("FADD R1, R2, R3", {"inst": 7}),
        ("RET.REL.NODEC R4", {"inst": 7}),
    )
    assert [(f.name, f.first, f.last) for f in found.functions] == [("k", 0, 1), ("function at +0x20", 2, 3)]
    assert [row.offset for row in found.rows] == [0, 16, 0, 16]


# ------------------------------------------------------------------- who waits for whom

LOAD = ("LDG.E R1, [R2.64]", {"inst": 9})
USE = ("FADD R3, R1, R1", {"long_scoreboard": 900})


@pytest.mark.parametrize(
    ("rows", "cause"),
    [
        pytest.param([LOAD, USE], 0, id="a load and its use"),
        pytest.param(
            [LOAD, ("MOV R1, R9", {}), USE], None, id="overwritten since"
        ),
        pytest.param(
            [LOAD, ("@P0 MOV R1, R9", {}), USE], 0, id="perhaps overwritten"
        ),
        pytest.param(
            [USE, LOAD, (f"@P1 BRA 0x{START:x}", {})],
            1,
            id="the load of the iteration before",
        ),
        pytest.param(
            [("BAR.SYNC 0x0", {}), ("LDS R1, [R2]", {"barrier": 900})], 0, id="a barrier"
        ),
        pytest.param(
            [("STG.E [R4.64], R3", {}), ("EXIT", {}), ("BRA 0x10", {"drain": 900})], 0, id="draining stores"
        ),
        pytest.param(
            [
                ("LDGSTS.E.128 [R1], [R2.64]", {}),
                ("LDGDEPBAR", {}),
                ("DEPBAR.LE SB0, 0x1", {}),
                ("BAR.SYNC 0x0", {"long_scoreboard": 900}),
            ],
            0,
            id="asynchronous copies",
        ),
        pytest.param(
            [
                ("HGMMA.64x128x16.F32.BF16 R8, gdesc[UR16], R8.gsb0", {}),
                ("WARPGROUP.DEPBAR.LE gsb0, 0x0", {"barrier": 900}),
            ],
            0,
            id="warp-group MMA",
        ),
        pytest.param(
            [("LDS R1, [R2]", {}), ("FADD R3, R1, R1", {"short_scoreboard": 900})], 0, id="shared memory"
        ),
        pytest.param([("MUFU.EX2 R1, R2", {}), ("FADD R3, R1, R1", {"wait": 900})], None, id="latency"),
    ],
)  # fmt: skip
def test_the_row_that_waits_names_what_it_waits_for(rows: list[Any], cause: int | None):
    found = view(*rows)
    (waiting,) = [row for row in found.rows if found.amount(row.cost)]
    assert waiting.producer == cause


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("@!P0  LDG.E.64 R8, [R2.64+0x10]", {"R8", "R9"}, {"P0", "R2", "R3"}),
        ("ISETP.NE.AND P0, PT, R2, RZ, PT", {"P0"}, {"R2"}),
        ("SHFL.IDX PT, R0, R92, RZ, 0x1f", {"R0"}, {"R92"}),
        ("IADD3 R10, P0, R11, R4, RZ", {"R10", "P0"}, {"R11", "R4"}),
        ("STG.E [R4.64], R3", set(), {"R3", "R4", "R5"}),
        ("LDSM.16.M88.4 R4, [R8]", {"R4", "R5", "R6", "R7"}, {"R8"}),
        ("", set(), set()),
        ("no SASS at all", set(), set()),
    ],
)
def test_registers_of_an_instruction(text: str, writes: set[str], reads: set[str]):
    found = parse(text)
    assert (found.writes, found.reads) == (writes, reads)


# ------------------------------------------------------------------- no source lines, or no source

ROW = ("LDG.E R1, [R2.64]", {"inst": 9, "wait": 900}, 7)


def test_without_line_information_the_notes_say_how_to_get_it():
    found = view(("LDG.E R1, [R2.64]", {"inst": 9, "wait": 900}))
    assert found.files == ()
    assert found.hot_lines() == []
    assert found.hot_rows() == [0]
    assert any("-lineinfo" in note and "TRITON_DISABLE_LINE_INFO" in note for note in found.notes)


def test_a_source_that_is_gone_is_said_to_be_not_found():
    found = view(ROW, file="/nowhere/k.cu")
    assert only_file(found).status == "missing"
    assert only_file(found).lines[0].text is None
    assert any(note.startswith("Source not found") and "--import-source yes" in note for note in found.notes)


@pytest.mark.parametrize(
    ("path", "compiler"),
    [("/tmp/torchinductor_me/ab/cab.py", "Inductor"), ("/home/me/.triton/cache/x/k.py", "Triton")],
)
def test_generated_files_are_named_as_such(path: str, compiler: str):
    found = view(ROW, file=path)
    assert only_file(found).generated == compiler
    assert any(f"{compiler} wrote some of them into a cache" in note for note in found.notes)


def test_library_code_without_a_folder_is_not_looked_for():
    assert only_file(view(ROW, file="float.jl")).status == "builtin"


def on_disk(folder: Path, name: str, lines: int = 20) -> tuple[Path, Path]:
    """Write a source file, and a report after it."""
    source, report = folder / name, folder / "r.ncu-rep"
    source.write_text("\n".join(f"int x{n};" for n in range(1, lines + 1)))
    report.write_bytes(b"")
    os.utime(source, (1, 1))
    return source, report


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_source_that_is_still_there_gives_the_lines_around(here: Path):
    source, report = on_disk(here, "k.cu")
    file = only_file(view(ROW, file=str(source), report=str(report)))
    assert file.status == "found"
    assert [line.number for line in file.lines] == list(range(4, 11))
    assert file.lines[3].text == "int x7;"
    assert file.lines[0].cost is None, "context"


@pytest.mark.parametrize("change", ["newer", "shorter"])
def test_a_source_that_changed_since_is_not_shown(here: Path, change: str):
    source, report = on_disk(here, "k.cu", lines=20 if change == "newer" else 3)
    if change == "newer":
        os.utime(report, (1, 1))
        os.utime(source, (9, 9))
    file = only_file(view(ROW, file=str(source), report=str(report)))
    assert file.status == "changed"
    assert all(line.text is None for line in file.lines)


def test_a_report_cannot_make_us_read_what_is_no_source(here: Path):
    notes, report = on_disk(here, "notes.txt")
    assert only_file(view(ROW, file=str(notes), report=str(report))).status == "missing"


@pytest.mark.parametrize("way", ["above", "behind a link", "hidden", "climbing"])
def test_a_report_cannot_make_us_read_a_source_elsewhere(here: Path, monkeypatch, way: str):
    source, report = on_disk(here, "k.cu")
    work = here / "work"
    (work / ".venv").mkdir(parents=True)
    match way:
        case "behind a link":
            (work / "k.cu").symlink_to(source)
            source = work / "k.cu"
        case "hidden":
            source = source.rename(work / ".venv" / "k.cu")
        case "climbing":
            source = work / ".venv" / ".." / ".." / "k.cu"
    monkeypatch.chdir(work)
    file = only_file(view(ROW, file=str(source), report=str(report)))
    assert (file.status, {line.text for line in file.lines}) == ("missing", {None})


def test_an_embedded_source_wins_over_the_disk(tmp_path: Path):
    source, report = on_disk(tmp_path, "k.cu")
    file = only_file(view(ROW, file=str(source), report=str(report), text=TEXT))
    assert file.status == "embedded"
    assert {line.text for line in file.lines if line.number == 7} == {"line 7"}


def test_instructions_without_text_are_counted_all_the_same():
    found = view(("", {"inst": 9, "wait": 900}))
    assert found.total.instructions == 9
    assert any("no SASS text" in note for note in found.notes)


# ------------------------------------------------------------------- real reports


def judged(shared: Path, name: str, index: int = 0) -> Diagnosis:
    for folder in ("ncu", "ncu-more"):
        if (path := shared / "reports" / folder / f"{name}.ncu-rep").exists():
            return list(verdicts.judge(path, code=True))[index]
    raise FileNotFoundError(name)


def seen(diagnosis: Diagnosis) -> SourceView:
    found = source_view(diagnosis.kernel)
    assert found is not None
    return found


def finding(diagnosis: Diagnosis, id: str) -> Finding:
    return next(f for f in diagnosis.findings if f.id == id)


def test_a_cuda_report_with_embedded_source(shared: Path):
    diagnosis = judged(shared, "sm89-rtx-4090-ncu2023.1-04", 0)
    found = seen(diagnosis)
    assert only_file(found).name == "smemTranspose.cu"
    assert only_file(found).status == "embedded"
    stores = finding(diagnosis, "uncoalesced-stores")
    assert stores.source == "smemTranspose.cu:18"
    assert stores.places[0].text.endswith(";")
    assert finding(diagnosis, "hot-line").source == "smemTranspose.cu:18"
    assert "which waits for this STG" in finding(diagnosis, "hot-line").places[0].note


def test_a_cutlass_report_points_at_the_load_not_at_the_conversion_that_waits(shared: Path):
    diagnosis = judged(shared, "sm80-a100-80gb-pcie-ncu2024.1-01", 1)
    hot = finding(diagnosis, "hot-line")
    assert hot.source == "s8_gemm.cu:286"
    assert "I2F.S16, which waits for this LDG.E.S8" in hot.places[0].note
    assert finding(diagnosis, "uncoalesced-loads").source == "s8_gemm.cu:286"


def test_a_julia_report_without_its_sources(shared: Path):
    found = seen(judged(shared, "sm86-a40-ncu2021.2-02"))
    assert {file.status for file in found.files} == {"missing", "builtin"}
    top, line = found.hot_lines(1)[0]
    assert (top.name, line.number) == ("float.jl", 94)
    assert line.text is None


def test_warp_group_waits_are_told_from_block_barriers(shared: Path):
    diagnosis = judged(shared, "sm90-h100-80gb-hbm3-ncu2024.1-m02")
    waits = finding(diagnosis, "group-mma-waits")
    assert waits.source == "profiling_main.cu:356"
    assert "46.2\u202f% of all are labelled barrier" in waits.title
    assert "85.1\u202f%" in finding(diagnosis, "mbarrier-waits").title


def test_sleeping_warps_are_told_from_global_loads(shared: Path):
    waits = finding(judged(shared, "sm100-b200-ncu2025.3-m01"), "mbarrier-waits")
    assert "in warps that sleep there" in waits.title


def test_a_look_back_is_recognised(shared: Path):
    assert "LDG.E.STRONG.SYS" in finding(judged(shared, "sm86-rtx-3070-ncu2020.3-m01"), "polling").title


def test_a_pascal_report_without_sass_says_so(shared: Path):
    path = shared / "reports" / "ncu" / "sm61-gtx-1080-ncu2020.1-01.nsight-cuprof-report"
    (diagnosis,) = verdicts.judge(path, code=True)
    found = seen(diagnosis)
    assert len(found.rows) == 20_046
    assert any("no SASS text" in note for note in found.notes)
