"""What the terminal shows: every state in words, within its width, in its characters, harmless."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from ncukit.judge.ledger import FactsOnDemand
from ncukit.metrics import load
from ncukit.model import (
    Check,
    Diagnosis,
    Evidence,
    Experiment,
    Finding,
    Kernel,
    Point,
    ReportFile,
    Roof,
    Roofline,
    RuleResult,
    Skipped,
    Value,
    Verdict,
)
from ncukit.render.text import catalog_text, metrics_text, show_text
from ncukit.render.text.parts import shell
from ncukit.render.text.terminal import Terminal
from tests.builders import kernel, raw_kernel
from tests.conftest import each_report
from tests.real import judged

FILE = ReportFile("/data/runs/transpose.ncu-rep", 1_234_567, "ab" * 32, launches=1)
STEERS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
HOSTILE = "evil\x1b[31m\x07\r\nVERDICT  compute-bound\x9b2J\u202e\u2066\u200b\ud800\U000e0041\ue000"

METRICS: dict[str, Any] = {
    "gpu_name": "NVIDIA RTX A4500",
    "compute_capability": 86,
    "sm_count": 56,
    "grid_dim_x": 256,
    "grid_dim_y": 256,
    "grid_dim_z": 1,
    "grid_size": 65536,
    "block_dim_x": 32,
    "block_dim_y": 8,
    "block_dim_z": 1,
    "block_size": 256,
    "registers_per_thread": 24,
    "kernel_duration": 0.00141747,
    "sm_clock": 1.05e9,
    "sm_clock_max": 1.65e9,
    "l2_cache_size": 5 * 2**20,
    "dram_bytes": 534_000_000,
    "dram_throughput_pct": 61.9,
    "l2_throughput_pct": 26.6,
    "l1_throughput_pct": 90.5,
    "sm_throughput_pct": 22.6,
    "warps_issued_per_scheduler": 0.0709,
    "warp_cycles_per_issued_instruction": 159,
    "stall_cycles_shared_queue_full": 83.8,
    "stall_cycles_global_queue_full": 3.1,
    "stall_cycles_global_memory_dependency": 36.6,
    "stall_cycles_block_barrier": 22.2,
    "stall_cycles_selected": 1,
    "flops_total": 0,
    "pc_samples": 81_376,
    "shared_load_bank_conflicts": 65_011_712,
    "shared_bytes": Value("shared_bytes", 9.04e9, "byte", "estimate", sources=("wavefronts",)),
    "l2_hit_rate_pct": Value(
        "l2_hit_rate_pct", 152.0, "%", "exact", reason="unreliable: above 100 %", reliable=False
    ),
    "l1_hit_rate_pct": Value(
        "l1_hit_rate_pct",
        None,
        "%",
        reason="not collected: section MemoryWorkloadAnalysis",
        short="not collected",
    ),
    "pipe_tma_pct": Value("pipe_tma_pct", None, "%", reason="not on this GPU (CC 8.6)", lack="absent"),
}
VERDICT = Verdict(
    "memory-bound",
    "shared",
    "high",
    "Bank conflicts on shared-memory loads saturate the L1 data pipe.",
    evidence=(
        Evidence("l1_throughput_pct", 90.5, "%", "L1/TEX data pipe, 28 points ahead of the next unit"),
        Evidence(
            "shared_load_bank_conflicts",
            65_011_712,
            "conflict",
            "conflicts of 67.4 M wavefronts for shared loads",
        ),
        Evidence("shared_bytes", 9.04e9, "byte", "move through shared memory"),
    ),
    against=(
        Evidence(
            "dram_throughput_pct",
            61.9,
            "%",
            "of DRAM peak, short of the 85 to 93 % of a plain copy: the next limit",
        ),
        Evidence("l1_hit_rate_pct", None, "%", "would tell whether L1 helps"),
    ),
    experiment=Experiment(
        title="Pad the shared tile by one column",
        change="transpose.cu:76\n- __shared__ float t[TILE][TILE];\n+\t__shared__ float t[TILE][TILE + 1];",
        why="Columns of a tile that is 32 words wide lie in one bank.",
        expect="≈ 0.95 to 1.03 ms profiled, then DRAM-bound",
        watch="`shared_load_bank_conflicts` → 0, and the clean time",
        disproved_if="conflicts go to 0 and the clean time improves by less than 5 % or less than its spread",
        cost="one line",
        run=(
            "ncu --set full -o padded ./transpose 1 8192",
            "ncukit compare transpose.ncu-rep padded.ncu-rep",
        ),
    ),
)
ROOFLINE = Roofline(
    points=(
        Point(
            "inst", "dram", 23.6e6, 534e6, 0.0441, 16.6e9, 26.8e9, 235e9, 607e9, "derived", ("inst_executed",)
        ),
        Point("inst", "l1", 23.6e6, 537e6, 0.0439, 16.6e9, 235e9, 235e9, 7.5e12, "estimate"),
        Point("inst", "l2", 23.6e6, 537e6, 0.0439, 16.6e9, None, 235e9, None, "exact"),
    ),
    roofs=(Roof("compute", "inst", 235e9, "exact"), Roof("bandwidth", "dram", 607e9, "exact")),
    checks=(
        Check("above", False, "A point lies above its roof: the peak is suspect."),
        Check("bytes", True, "DRAM bytes fit the duration."),
    ),
    missing=("No L2 roof: not collected.",),
)
RULES = (
    RuleResult(
        "SharedMemoryConflicts", "Shared Memory Conflicts", "MemoryWorkloadAnalysis",
        (("optimization", "", "A 32.2 - way bank conflict."),), 87.2, "global",
    ),
    RuleResult(
        "HighPipeUtilization", "High Pipe Utilization", "ComputeWorkloadAnalysis",
        (("warning", "", "All pipelines are under-utilized."),), 96.2, "local",
    ),
    RuleResult("SOLBottleneck", "Bottleneck", "SpeedOfLight", (("ok", "", "More than 80 % of the peak."),)),
)  # fmt: skip


def launch(
    function: str = "transposeCoalesced",
    demangled: str = "void transposeCoalesced(float *, float *, int, int)",
    *,
    index: int = 0,
    verdict: Verdict = VERDICT,
    roofline: Roofline = ROOFLINE,
    findings: Sequence[Finding] = (),
    skipped: Sequence[Skipped] = (),
    rules: Sequence[RuleResult] = RULES,
    failed: str | None = None,
    raw: dict[str, Any] | None = None,
    **metrics: Any,
) -> Diagnosis:
    """Return the diagnosed launch of a transpose with bank conflicts; keywords change it."""
    origin = raw_kernel(function, raw, demangled=demangled, index=index, rules=tuple(rules))
    k = kernel(raw=origin, failed=failed, **{**METRICS, **metrics})
    return Diagnosis(k, roofline, verdict, tuple(findings), tuple(skipped), facts=FactsOnDemand(k))


def show(
    *diagnoses: Diagnosis, file: ReportFile = FILE, color: bool = False, encoding: str = "utf-8", **kw: Any
) -> str:
    return show_text(file, diagnoses, color=color, encoding=encoding, **kw)


def block(text: str, heading: str) -> list[str]:
    """Return the lines of the part that starts with ``heading``, up to the next empty line."""
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(heading))
    end = next((i for i in range(start, len(lines)) if not lines[i]), len(lines))
    return lines[start:end]


def harmless(text: str) -> bool:
    """Return whether nothing but line ends steers a terminal."""
    return not any(unicodedata.category(c) in STEERS for c in set(text) - {"\n"})


FINDINGS = (
    Finding(
        "tail", "launch", "The last wave is half empty", "low", "0.5 waves", "Use a persistent grid.",
        {"waves_per_sm": Value("waves_per_sm", 3.5, "wave", "exact")}, gain_pct=4.0, gain_kind="global",
    ),
    Finding(
        "conflicts", "memory", "Shared loads conflict", "high",
        metrics={"l1_throughput_pct": Value("l1_throughput_pct", 90.5, "%", "exact")},
        source="transpose.cu:95", gain_pct=80.0, gain_kind="local",
    ),
)  # fmt: skip
SKIPPED = (
    Skipped(
        "spills",
        "memory",
        "needs local_load_inst: not collected: section MemoryWorkloadAnalysis",
        "not collected: section MemoryWorkloadAnalysis",
    ),
)


def test_one_launch_reads_like_the_golden_text(golden: Callable[[str, str], None]) -> None:
    text = show(launch(findings=FINDINGS, skipped=SKIPPED))
    golden("show.txt", text + "\n")


def test_verbose_adds_commands_roofs_passed_checks_messages_and_reasons(
    golden: Callable[[str, str], None],
) -> None:
    text = show(launch(findings=FINDINGS, skipped=SKIPPED), verbose=True, encoding="ascii")
    golden("show-verbose-ascii.txt", text + "\n")
    plain = show(launch(findings=FINDINGS, skipped=SKIPPED))
    for words in (
        "ncukit report /data/runs/transpose.ncu-rep --timeline",
        "DRAM bytes fit",
        "A 32.2 - way bank conflict",
        "skipped spills: not collected: section",
    ):
        assert words in text
        assert words not in plain


def test_a_failing_check_is_said_a_passed_one_only_when_verbose() -> None:
    assert "  ! A point lies above its roof: the peak is suspect." in show(launch())


def test_the_limit_is_marked_at_its_unit_only() -> None:
    marked = [line for line in show(launch()).split("\n") if line.endswith("<- limit")]
    assert [line.split()[0] for line in marked] == ["L1/TEX"]


def test_evidence_stands_for_and_against_with_digits_under_each_other() -> None:
    text = show(launch())
    rows = block(text, "for")
    assert rows[0] == "for"
    assert rows.index("against") == 4
    percents = [line for line in rows if "%  " in line]
    assert len({line.index("%") for line in percents}) == 1
    assert any(line.startswith("not collected") and "whether L1 helps" in line for line in rows)


def test_an_estimate_carries_a_tilde() -> None:
    assert re.search(r"~ 9\.04 GB +move through", show(launch()))


def test_global_and_local_gains_stand_in_columns_of_their_own() -> None:
    head, *rows = block(show(launch()), "NCU'S RULES")[1:4]
    ends = {name: head.index(name) + len(name) for name in ("global", "local")}
    assert [row.rindex("%") + 1 for row in rows] == [ends["global"], ends["local"]]
    assert "agrees" in rows[0]
    assert "not the limit" in rows[1]


def test_a_rule_without_gain_is_counted_not_listed() -> None:
    assert "Bottleneck" not in show(launch())
    assert "1 more (--verbose)" in show(launch())


def test_without_gains_the_rules_that_speak_of_a_limit_are_named() -> None:
    old = RuleResult("CPIStallBarrier", "Warp Stall", "WarpStateStats", (("warning", "", "Barrier."),))
    lines = block(show(launch(rules=(old, RULES[2]))), "NCU'S RULES")
    assert lines[0].endswith("no gain is estimated")
    assert lines[1].split("  ") == ["", "Warp Stall", "not the limit"]
    assert lines[2] == "  1 more (--verbose)."


def test_findings_of_the_verdict_are_not_said_twice() -> None:
    text = show(launch(findings=FINDINGS, skipped=SKIPPED))
    assert "The last wave is half empty (~ 4.0 % of the kernel)" in text
    assert "Shared loads conflict" not in text
    assert "1 rule could not be applied" in text


def test_stalls_are_one_sentence_where_schedulers_are_busy() -> None:
    busy = show(launch(warps_issued_per_scheduler=0.93))
    assert len(block(busy, "STALLS")) == 2
    assert "busy, so waiting warps cost little" in block(busy, "STALLS")[1]
    assert "Memory queue full" not in busy
    assert any("Memory queue full" in line for line in block(show(launch()), "STALLS"))


def test_nothing_collected_is_said_in_words() -> None:
    bare = Diagnosis(
        kernel(),
        Roofline(missing=("No point: the duration was not collected.",)),
        Verdict(
            "undetermined",
            None,
            "low",
            "The report holds too little.",
            missing=("FLOPs: section InstructionStats",),
        ),
    )
    text = show(bare)
    assert "VERDICT  undetermined" in text
    assert "no confidence" in text
    assert "missing to decide\n  - FLOPs: section InstructionStats" in text
    assert "ncu --set full" in text
    assert "STALLS  Not collected." in text
    assert "not collected: DRAM; L2; L1/TEX" in text
    assert "unknown" in text.split("\n")[1]
    assert " 0.0 %" not in text
    assert " 0 %" not in text


def test_a_duration_that_was_not_collected_is_no_profiled_time() -> None:
    text = show(
        launch(
            kernel_duration=Value(
                "kernel_duration", None, "s", reason="not collected: section X", short="not collected"
            )
        )
    )
    assert "duration: not collected    clean time: not measured" in text
    assert "profiled" not in text.split("\n\n")[0]


def test_a_launch_without_configuration_has_no_grid() -> None:
    assert "launch configuration: not recorded" in show(launch(grid_size=None))


def test_a_failed_launch_has_no_numbers_of_its_measurement() -> None:
    why = "the launch was not profiled: zero replay passes"
    failed = launch(
        failed=why,
        verdict=Verdict("failed", None, "low", why),
        rules=(),
        raw={"gpu__time_duration.sum": float("nan"), "x": 1},
    )
    text = show(failed)
    assert "VERDICT  failed" in text
    assert "The launch was not profiled: zero replay passes." in text
    assert "of 2 raw metrics read are not numbers" in text
    assert "no valid measurement" in text
    assert "registers per thread" in text
    for number in ("1.42", "90.5", "61.9", "confidence"):
        assert number not in text


def test_a_value_out_of_its_range_is_flagged_and_its_bar_is_full() -> None:
    doubtful = Value(
        "dram_throughput_pct", 152.0, "%", "exact", reason="unreliable: above 100 %", reliable=False
    )
    text = metrics_text([launch(dram_throughput_pct=doubtful).kernel], color=False, encoding="utf-8")
    assert re.search(r"dram_throughput_pct +152\.0 +% +unreliable", text)
    assert "! dram_throughput_pct: unreliable: above 100 %" in text
    assert Terminal().bar(152, 4) == "████"


def test_bars_have_eighths_or_signs() -> None:
    assert Terminal().bar(90.2, 32) == "█" * 28 + "▉" + "···"
    assert Terminal(encoding="latin-1").bar(50, 8) == "####...."
    assert Terminal().bar(0, 4) == "····"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "cp437", "utf-8"])
@pytest.mark.parametrize("verbose", [False, True])
def test_the_text_fits_the_encoding(encoding: str, verbose: bool) -> None:
    diagnosis = launch("核函数_ñ", "核函数_ñ<1.4 µs ≥ 3 × 10⁻⁵ − ∞>(int)")
    for text in (
        show(diagnosis, encoding=encoding, verbose=verbose),
        metrics_text([diagnosis.kernel], color=False, encoding=encoding, verbose=verbose),
        catalog_text(None, encoding=encoding),
    ):
        text.encode(encoding)
        assert max(map(cell_len, text.split("\n"))) <= 80


def test_characters_that_the_encoding_lacks_are_spelled() -> None:
    assert Terminal(encoding="ascii").text("1.4 µs × 10⁻⁵ ≈ −3 … “a”") == '1.4 us x 10^-5 ~ -3 ... "a"'
    assert Terminal(encoding="latin-1").text("1.4 µs × 3 −2") == "1.4 µs × 3 -2"
    assert Terminal(encoding="ascii").text("é漢") == r"\xe9\u6f22"
    assert Terminal(encoding="no-such-encoding").text("µ") == "u"


def test_spaces_are_plain_spaces() -> None:
    assert not set(show(launch()) + metrics_text([launch().kernel], color=False, encoding="utf-8")) & set(
        "\u202f\u00a0\t"
    )


def test_no_colour_means_no_escape() -> None:
    assert "\x1b" not in show(launch(), color=False)


def test_colour_marks_class_and_limiter_and_nothing_else() -> None:
    text = show(launch(), color=True)
    marked = re.findall(r"\x1b\[31m(.*?)\x1b\[0m", text)
    assert re.sub(r"\x1b\[(31|0)m", "", text) == show(launch())
    assert marked[0] == "memory-bound, level shared memory"
    assert [words.split()[0] for words in marked[1:]] == ["L1/TEX"]


def _all_hostile() -> Diagnosis:
    def bad(n: int) -> str:
        return f"{HOSTILE}{n}"

    return launch(
        bad(1),
        f"{bad(1)}<{bad(2)}>",
        verdict=Verdict(
            "memory-bound",
            bad(3),
            "high",
            bad(4),
            evidence=(Evidence(bad(5), bad(6), "", bad(7)),),
            against=(Evidence("dram_throughput_pct", 61.9, "%", bad(8)),),
            experiment=Experiment(*(bad(n) for n in range(9, 16)), run=(bad(16),)),
            missing=(bad(17),),
        ),
        roofline=Roofline(
            points=(Point(bad(18), bad(19), 1, 1, 1, 1, 1, 1, 1, "exact"),),
            checks=(Check("x", False, bad(20)),),
            missing=(bad(21),),
        ),
        findings=(Finding(bad(22), bad(23), bad(24), "high", bad(25), bad(26), source=bad(27)),),
        skipped=(Skipped(bad(28), bad(29), bad(30)),),
        rules=(RuleResult("x", bad(31), "y", (("warning", bad(32), bad(33)),), 5.0, "global"),),
        gpu_name=bad(34),
        occupancy_limiter=bad(35),
    )


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("count", [1, 3])
def test_names_cannot_steer_the_terminal(verbose: bool, encoding: str, count: int) -> None:
    file = ReportFile(f"/tmp/{HOSTILE}.ncu-rep", 1, "", launches=count, warnings=(HOSTILE,))
    diagnoses = [_all_hostile() for _ in range(count)]
    text = show(*diagnoses, file=file, verbose=verbose, encoding=encoding)
    assert harmless(text)
    assert not re.search(r"(?m)^VERDICT  compute-bound", text)
    assert "\\x1b[31m" in text


def test_hostile_names_in_the_metrics_table_are_harmless() -> None:
    kernels = [_all_hostile().kernel, _all_hostile().kernel]
    for ids in (None, ["gpu_name", "occupancy_limiter"]):
        assert harmless(metrics_text(kernels, ids, color=True, encoding="utf-8", verbose=True))


def test_a_failed_launch_with_a_hostile_reason_is_harmless() -> None:
    failed = launch(failed=HOSTILE, verdict=Verdict("failed", None, "low", HOSTILE))
    assert harmless(show(failed))


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    long = "very_long_kernel_name_" * 12
    wide = "核" * 70
    for function in (long, wide):
        launches = [launch(function, f"void {function}<{long}>({long})", index=i) for i in range(3)]
        for chosen in (launches[:1], launches):
            for verbose in (False, True):
                text = show(*chosen, width=width, verbose=verbose)
                assert max(map(cell_len, text.split("\n"))) <= width


def test_a_long_name_is_cut_with_an_ellipsis_in_display_only() -> None:
    name = "begin_" + "x" * 100 + "_end"
    first = show(launch(name, f"{name}()")).split("\n")[0]
    assert re.match(r"begin_x+…x+_end  launch 1 of 1$", first)
    assert first.endswith("launch 1 of 1")
    assert cell_len(first) == 80
    assert name in show(launch(name, f"{name}()"), verbose=True).replace("\n    ", "")


def test_wrapping_keeps_a_number_with_its_unit() -> None:
    text = "takes 12.3\u202fms of 45.6\u202fms in all 7\u202f% of it"
    for width in range(9, 40):
        lines = Terminal(width=width).wrap(text, indent="  ")
        for number in ("12.3\u202fms", "45.6\u202fms", "7\u202f%"):
            assert any(number in line for line in lines)


def test_wrapping_knows_which_plain_space_belongs_to_a_number() -> None:
    lines = Terminal(width=24).wrap("improves by less than 5 % or 1.4 x of 3 blocks here, 16 tiles of 8 x 8")
    assert [line.replace("\u202f", " ") for line in lines] == [
        "improves by less than",
        "5 % or 1.4 x of 3 blocks",
        "here, 16 tiles of 8 x 8",
    ]


def test_a_long_command_goes_on_after_a_backslash_outside_quotes() -> None:
    command = (
        "ncu --set full --kernel-name 'regex:a  b c d e f g h i j k l m' -o again ./your_program --size 81"
    )
    lines = shell(Terminal(), command, "  run  ")
    assert len(lines) == 2
    assert lines[0].endswith(" \\")
    assert " ".join(line.removesuffix("\\").strip() for line in lines).removeprefix("run  ") == command


def test_many_launches_start_with_a_table_of_kernels() -> None:
    copies = [launch("copy", "copy(int)", index=i, kernel_duration=(i + 1) * 1e-4) for i in range(3)]
    text = show(launch(index=3, kernel_duration=4e-4), *copies)
    table = block(text, "kernel ")
    assert table[0].split() == ["kernel", "n", "total", "share", "median", "limit"]
    assert table[1].split() == ["µs", "%", "µs"]
    assert table[2].split() == ["copy(int)", "3", "600", "60.0", "200", "memory:shared", "90.5", "%"]
    assert table[3].split()[-7:] == ["1", "400", "40.0", "400", "memory:shared", "90.5", "%"]
    assert "profiled 1.00 ms in total (one pass each, not a benchmark)" in text


def test_the_launch_shown_is_the_one_that_the_advice_is_about() -> None:
    """The longest launch may be of a kernel that takes little of the time."""
    copies = [launch("copy", "copy(int)", index=i, kernel_duration=(i + 1) * 1e-4) for i in range(3)]
    text = show(launch(index=3, kernel_duration=4e-4), *copies)
    assert block(text, "LAUNCH")[0].startswith("LAUNCH 3  copy(")
    assert "(copy, launch 3)" in text
    assert "--launch 3" in text


def test_launches_of_different_kernels_are_listed_by_number_and_time() -> None:
    some = [launch(f"k{i}", f"k{i}()", index=i, kernel_duration=(i + 1) * 1e-4) for i in range(2)]
    table = block(show(*some), "kernel ")
    assert table[0].split() == ["kernel", "launch", "duration", "share", "limit"]
    assert [row.split()[1] for row in table[2:]] == ["2", "1"]


def test_kernels_of_one_function_are_named_from_where_they_differ() -> None:
    common = "void Kernel<cutlass::gemm::threadblock::Mma<64, 64, "
    some = [launch("Kernel", f"{common}{kind}>>()", index=i) for i, kind in enumerate(("sliced", "serial"))]
    rows = block(show(*some), "kernel ")[2:]
    assert [row.split("  ")[0] for row in rows] == ["Kernel…sliced>>()", "Kernel…serial>>()"]


def test_more_than_twenty_kernels_are_folded_with_their_share() -> None:
    some = [launch(f"k{i}", f"k{i}()", index=i, kernel_duration=1e-4) for i in range(25)]
    assert block(show(*some), "kernel ")[-1] == "5 rows more, 20.0 % of the time (--verbose)"
    assert len(block(show(*some, verbose=True), "kernel ")) == 27


def test_a_failed_launch_among_many_adds_no_time() -> None:
    failed = launch(
        "bad", "bad()", index=1, failed="zero passes", verdict=Verdict("failed", None, "low", "zero passes")
    )
    text = show(launch(), failed)
    rows = {line.split("(")[0]: line for line in block(text, "kernel ")[2:]}
    assert rows["bad"].split()[-3:] == ["–", "–", "failed"]
    assert " 100.0 " in rows["transposeCoalesced"]
    assert "launch without a valid measurement" in text
    assert not re.search(r"(?m)^ +0 % ", text)


def test_durations_that_were_not_collected_are_not_zero() -> None:
    some = [launch(f"k{i}", f"k{i}()", index=i, kernel_duration=None) for i in range(2)]
    text = show(*some)
    assert "duration: not collected" in text
    assert all(row.split()[2:4] == ["–", "–"] for row in block(text, "kernel ")[2:])


def test_metrics_of_one_launch_stand_by_family_with_unit_and_quality() -> None:
    text = metrics_text([launch().kernel], color=False, encoding="utf-8")
    assert text.startswith("transposeCoalesced(float *")
    assert re.search(r"(?m)^  kernel_duration +1\.42  ms$", text)
    assert re.search(r"(?m)^  shared_load_bank_conflicts +65\.0  M conflict$", text)
    assert re.search(r"(?m)^  shared_bytes +~ 9\.04  GB +estimate$", text)
    memory = block(text, "Memory workload")
    assert re.fullmatch(r"  - \d+ unknown: .*\b1 not collected.*", memory[-1])
    assert "l1_hit_rate_pct" not in text


def test_verbose_metrics_give_every_reason_and_every_id_in_full() -> None:
    text = metrics_text([launch().kernel], color=False, encoding="utf-8", verbose=True)
    assert "- l1_hit_rate_pct: not collected: section MemoryWorkloadAnalysis" in text
    assert "- pipe_tma_pct: not on this GPU (CC 8.6)" in text
    assert all(re.search(rf"(?m)^  (- )?{id}\b", text) for id in load().metrics)


def test_chosen_metrics_of_several_launches_are_tables_by_metric() -> None:
    kernels = [launch(index=0).kernel, launch("copy", "copy(int)", index=4, dram_bytes=None).kernel]
    text = metrics_text(kernels, ["dram_bytes", "kernel_duration"], color=False, encoding="utf-8")
    rows = block(text, "dram_bytes [byte]")
    assert [row.split() for row in rows[1:]] == [
        ["1", "transposeCoalesced", "534", "MB"],
        ["5", "copy", "–", "not", "given", "by", "the", "test"],
    ]
    assert block(text, "kernel_duration [s]")


def test_the_metrics_of_a_failed_launch_say_so() -> None:
    text = metrics_text([launch(failed="zero replay passes").kernel], color=False, encoding="utf-8")
    assert "! failed: zero replay passes; only device and launch values are true" in text


@pytest.mark.parametrize("metric", load().metrics.values(), ids=load().metrics)
def test_every_metric_of_the_catalog_is_explained(metric: Any) -> None:
    text = catalog_text(metric)
    assert metric.id in text.split("\n")[0]
    for source in metric.sources:
        assert all(raw in text for raw in source.expression.raws)
    assert text.count("\n   ") >= len(metric.sources)


def test_the_catalog_lists_every_id_with_its_unit() -> None:
    text = catalog_text(None)
    for metric in load().metrics.values():
        assert re.search(rf"(?m)^  {metric.id}( +{re.escape(metric.unit)})?$", text)


def test_a_source_says_where_it_holds() -> None:
    text = catalog_text(load().metrics["flops_tensor_fp16"])
    assert "exact; CC 7.0 to 7.2" in text
    assert "ncu --section SpeedOfLight_HierarchicalDoubleRooflineChart" in text


@each_report()
def test_every_real_report_reads_within_its_width(report: Path) -> None:
    opened, diagnoses = judged(report)
    file = opened.file(len(diagnoses))
    forms = list(itertools.product((False, True), ("utf-8", "ascii")))
    every_form = itertools.product((diagnoses, diagnoses[:1]), forms)
    in_turn = (([one], form) for one, form in zip(diagnoses[1:40], itertools.cycle(forms), strict=False))
    for some, (verbose, encoding) in itertools.chain(every_form, in_turn):
        text = show_text(file, some, color=False, encoding=encoding, verbose=verbose)
        wide = [line for line in text.split("\n") if cell_len(line) > 80]
        assert not [line for line in wide if line.strip(" \\") != str(report)]  # which is pasted whole
        assert harmless(text)
        text.encode(encoding)
    kernels: list[Kernel] = [d.kernel for d in diagnoses[:3]]
    for line in metrics_text(kernels, color=False, encoding="utf-8", verbose=True).split("\n"):
        assert cell_len(line) <= 80
