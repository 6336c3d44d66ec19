"""The view: what the page says about a launch, in which words, and what it leaves out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from ncukit.errors import UsageError
from ncukit.judge import diagnose
from ncukit.judge.ledger import FactsOnDemand
from ncukit.metrics import load
from ncukit.model import Diagnosis, Evidence, Kernel, ReportFile, Roofline, RuleResult, Value, Verdict
from ncukit.model.diagnosis import Advice, Bound
from ncukit.model.kernel import stored
from ncukit.quantity import MISSING
from ncukit.render import commands, words
from ncukit.render.cells import Cells, Tips, mark, state, text
from ncukit.render.view import page_view
from ncukit.render.view.advice import advice_view
from ncukit.render.view.families import families
from ncukit.render.view.opinion import ABOUT, against, opinion, readable
from ncukit.render.view.rows import FAMILIES, GLANCE, GLANCE_PIPES
from ncukit.render.view.stalls import NAMES, stalls
from ncukit.render.view.verdict import basis, glance, verdict
from tests import diagnoses
from tests.builders import kernel, raw_kernel
from tests.diagnoses import FILE, HOSTILE, transpose

NOW = "2026-11-29 17:50 UTC"


def view(*found: Diagnosis, file: ReportFile = FILE, command: str = "") -> dict[str, Any]:
    return page_view(replace(file, launches=len(found)), found, generated=NOW, command=command)


def cells(made: Kernel) -> Cells:
    return Cells(made, Tips())


def spoken(line: list[dict[str, Any]]) -> str:
    """Return a line as a person reads it."""
    return "".join(next(iter(p.values())) if "cell" not in p else p["cell"]["text"] for p in line).replace(
        "\u202f", " "
    )


def strings(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield key
            yield from strings(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from strings(item)


def row(page: dict[str, Any], id: str) -> dict[str, Any]:
    return next(r for f in page["kernel"]["families"] for r in f["rows"] if r["id"] == id)


@pytest.mark.parametrize(
    "make",
    [
        lambda: [transpose()],
        lambda: [diagnoses.fp64()],
        lambda: [diagnoses.undetermined()],
        lambda: [diagnoses.failed()],
        lambda: [*diagnoses.many(5), diagnoses.failed(5), diagnoses.undetermined(6)],
        lambda: diagnoses.many(201),
    ],
    ids=["transpose", "fp64", "undetermined", "failed", "many", "lazy"],
)
def test_a_view_is_plain_data_that_json_can_print(make: Callable[[], list[Diagnosis]]) -> None:
    page = view(*make())
    assert json.loads(json.dumps(page, allow_nan=False)) == page


def test_a_page_needs_a_launch() -> None:
    with pytest.raises(UsageError):
        page_view(FILE, [], generated=NOW)


# What a number looks like


@pytest.mark.parametrize(
    ("value", "words", "kind"),
    [
        (Value("dram_throughput_pct", 61.94, "%", "exact"), "61.9 %", "exact"),
        (Value("shared_bank_conflict_pct", 92.0, "%", "derived"), "92.0 %", "derived"),
        (Value("shared_bytes", 9.04e9, "byte", "estimate"), "9.04 GB", "estimate"),
        (Value("dram_bytes", 0, "byte", "exact"), "0 B", "exact"),
        (Value("l2_cache_size", 5 * 2**20, "byte", "exact"), "5 MiB", "exact"),
        (Value("ecc_enabled", 0, "bool", "exact"), "off", "exact"),
        (stored("x", "%", "not collected: section SpeedOfLight"), "not collected", "missing"),
        (stored("x", "%", "not on this GPU (CC 8.6)"), "–", "absent"),
        (stored("x", "%", "undefined: l1tex__t_requests.sum is 0"), "no requests", "missing"),
        (stored("x", "%", "failed pass: the duration is not a number"), "failed pass", "missing"),
        (Value("x", None, "%", reason="«any words»", short="«any»"), "«any»", "missing"),
        (Value("x", None, "%", lack="undefined", over="t_requests.sum"), "no requests", "missing"),
        (
            Value("x", 152.0, "%", "exact", reason="unreliable: above 100 %", reliable=False),
            "152.0 %",
            "flagged",
        ),
    ],
)
def test_a_value_shows_its_state(value: Value, words: str, kind: str) -> None:
    assert (text(value).replace("\u202f", " "), state(value)) == (words, kind)


def test_a_ratio_over_nothing_is_not_zero() -> None:
    made = cells(kernel(l1_hit_rate_pct=0, l1_sectors=0))
    assert made["l1_hit_rate_pct"]["text"] == "no lookups"
    made = cells(kernel(l1_hit_rate_pct=0, l1_sectors=16))
    assert made["l1_hit_rate_pct"]["text"] == "0\u202f%"


def test_the_evidence_of_a_number_is_in_its_tooltip() -> None:
    page = view(transpose())
    tips = page["tips"]
    value, quality, formula, raw, *_ = tips["k"]["1"]["shared_bank_conflict_pct"]
    assert value == "92\u202f%"
    assert tips["words"][quality] == "derived"
    assert tips["words"][formula] == "a.sum/b.sum*100"
    pairs = {tips["names"][raw[i]]: raw[i + 1] for i in range(0, len(raw), 2)}
    assert pairs == {"a.sum": "65,011,712", "b.sum": "70,664,192"}
    assert tips["cat"]["shared_bank_conflict_pct"][0] == load().metrics["shared_bank_conflict_pct"].meaning


def test_a_single_counter_has_no_formula_line() -> None:
    tips = Tips()
    single = Value("dram_bytes", 5, "byte", "exact", ("dram__bytes.sum",), formula="{dram__bytes.sum}")
    tips.metric(1, kernel(), single)
    assert "dram__bytes.sum" not in tips.as_dict()["words"]


def test_the_tooltip_of_a_missing_number_has_the_reason_and_the_command() -> None:
    tips = Tips()
    reason = "not collected: section SpeedOfLight"
    tips.metric(1, kernel(), Value("sm_throughput_pct", None, "%", reason=reason))
    island = tips.as_dict()
    assert reason in island["words"]
    assert island["words"][island["cat"]["sm_throughput_pct"][3]] == "--section SpeedOfLight"


def test_catalogue_text_is_there_once_however_many_launches_show_it() -> None:
    found = json.dumps(view(*diagnoses.many(50))["tips"], ensure_ascii=False)
    assert found.count(load().metrics["achieved_occupancy_pct"].meaning) == 1


# One launch


def test_the_first_screen_says_class_level_claim_and_the_busiest_units_first() -> None:
    page = view(transpose())["kernel"]["verdict"]
    assert (page["cls"], page["role"]) == ("memory-bound", "level: shared memory")
    assert spoken(page["claim"]) == "Bank conflicts on shared-memory loads saturate the L1 data pipe"
    shares = [bar["bar"] for bar in page["glance"]]
    assert shares == sorted(shares, reverse=True)
    assert [bar["label"] for bar in page["glance"] if bar["hot"]] == ["L1/TEX"]
    assert page["confidence"]["pips"] == 3


def test_the_pipe_that_limits_joins_the_first_screen() -> None:
    page = view(diagnoses.fp64())["kernel"]["verdict"]
    assert [bar["label"] for bar in page["glance"] if bar["hot"]] == ["FP64 pipe"]


def test_the_first_screen_shows_the_number_that_the_verdict_quotes() -> None:
    found = diagnoses.fp64()
    quoted = Evidence(
        "roofline_fp32_pct", 86.7, "%", "any words", "limit", "tensor operations over the dense peak"
    )
    made = diagnoses.launch(pipe_tensor_pct=43.3, roofline_fp32_pct=86.7)
    verdict = replace(found.verdict, limiter="tensor", evidence=(quoted,))
    quoting = replace(found, kernel=made, verdict=verdict, facts=FactsOnDemand(made))
    bars = view(quoting)["kernel"]["verdict"]["glance"]
    assert [(b["label"], b["bar"]) for b in bars if b["hot"]] == [
        ("Tensor operations over the dense peak", 86.7)
    ]


def test_every_line_of_evidence_has_a_number_that_opens_its_counters() -> None:
    page = view(transpose())["kernel"]["verdict"]
    assert [e["n"]["text"] for e in page["evidence"]] == ["90.5\u202f%", "92.0\u202f%"]
    assert [e["n"]["tip"] for e in page["evidence"]] == ["1/l1_throughput_pct", "1/shared_bank_conflict_pct"]
    assert {"code": "conflicts"} in page["evidence"][1]["text"]
    assert spoken(page["against"][0]["text"]) == "of DRAM peak: not the limit now"


def test_evidence_from_a_raw_counter_shows_that_counter() -> None:
    found = transpose()
    quoted = Evidence("a.sum", 65_011_712, "inst", "conflict wavefronts")
    page = view(replace(found, verdict=replace(found.verdict, evidence=(quoted,))))
    cell = page["kernel"]["verdict"]["evidence"][0]["n"]
    assert cell["text"] == "65.0\u202fM"
    assert cell["tip"]


def test_only_what_the_verdict_cites_is_red() -> None:
    page = view(transpose())
    hot = {r["id"] for f in page["kernel"]["families"] for r in f["rows"] if r["hot"]}
    assert hot == {"l1_throughput_pct", "shared_bank_conflict_pct"}


def test_the_experiment_is_a_diff_with_what_would_disprove_it() -> None:
    found = view(transpose())["kernel"]["verdict"]["experiment"]
    assert [d["kind"] for d in found["diff"]] == ["del", "add"]
    assert spoken(found["disproved"]).startswith("the conflicts go to 0")
    assert found["run"].splitlines()[0].startswith("ncu --set full")


def test_the_region_is_undetermined_without_a_timeline() -> None:
    assert spoken(view(transpose())["kernel"]["verdict"]["region"]).startswith("Region: undetermined.")


def test_a_synthetic_sample_is_announced_and_a_real_report_is_not() -> None:
    found = transpose()
    marked = replace(
        found.kernel.raw, metrics={**found.kernel.raw.metrics, "ncukit__synthetic": "made by tests"}
    )
    assert "no GPU was measured" in spoken(
        view(replace(found, kernel=replace(found.kernel, raw=marked)))["synthetic"]
    )
    assert view(found)["synthetic"] == []


def test_dimensions_are_shown_as_they_were_launched() -> None:
    facts = {f["name"]: spoken(f["text"]) for f in view(transpose())["facts"]}
    assert facts["Grid"] == "256 × 256 blocks of 32 × 8 threads"
    assert "not a benchmark" in facts["Profiled duration"]
    assert facts["Clean time"] == "not measured"


def test_a_long_name_is_cut_in_sight_and_whole_in_a_fold() -> None:
    heading = view(transpose(name="f" * 7000))["heading"]
    assert len(heading["name"]) == 120
    assert "f" * 7000 in heading["whole"]


def test_families_hide_what_this_gpu_lacks_and_count_it() -> None:
    page = view(transpose())
    ids = [r["id"] for f in page["kernel"]["families"] for r in f["rows"]]
    assert "pipe_tma_pct" not in ids
    foot = spoken(page["kernel"]["families"][0]["foot"])
    assert "1 row hidden: not on this GPU" in foot
    assert "1 further pipe reads 0" in foot


def test_what_was_not_collected_says_so_and_has_no_bar() -> None:
    found = row(view(transpose()), "l2_read_hit_rate_pct")
    assert found["cell"]["state"] == "missing"
    assert found["bar"] is None


def test_an_unreliable_value_keeps_its_number_without_a_bar() -> None:
    flagged = Value("l1_hit_rate_pct", 152.0, "%", "exact", (), "unreliable: above 100 %", reliable=False)
    found = row(view(transpose(l1_hit_rate_pct=flagged)), "l1_hit_rate_pct")
    assert (found["cell"]["text"], found["cell"]["mark"], found["bar"]) == (
        "152.0\u202f%",
        "unreliable",
        None,
    )


@pytest.mark.parametrize(("active", "told"), [(62.7, True), (97.0, False)])
def test_bars_of_the_working_time_are_told_from_those_of_the_whole(active: float, told: bool) -> None:
    values = {"l1_throughput_pct": 71.8, "dram_throughput_pct": 1.4, "issue_slot_utilization_pct": 17.3}
    found = view(diagnose(kernel(**values, sm_active_pct=active)))["kernel"]["verdict"]["basis"]
    words = "L1/TEX and issue slots: of the time in which an SM works, 62.7 %; the others: of the whole time."
    assert spoken(found) == (words if told else "")


def test_the_bar_of_a_pipe_counts_what_its_evidence_counts() -> None:
    """The verdict judges a pipe of few SMs by the time in which they work."""
    values = {"sm_active_pct": 62.7, "dram_throughput_pct": 1.4, "pipe_alu_pct": 55.7}
    said = Evidence("pipe_alu_pct", 55.7, "%", "any words", "limit", "ALU pipe", "active")
    made = kernel(**values)
    verdict = Verdict("compute-bound", "int", "high", "", (said,))
    cells = Cells(made, Tips())
    bars = glance(cells, Diagnosis(made, Roofline(), verdict, facts=FactsOnDemand(made)))
    assert spoken(basis(cells, bars)).startswith("ALU pipe: of the time in which an SM works, 62.7 %;")


def foot_of(family: int, **values: Any) -> str:
    found = families(Cells(kernel(**values), Tips()), ())
    return spoken(found[family]["foot"])


@pytest.mark.parametrize(("slots", "told"), [(26.6, True), (28.1, False)])
def test_two_counters_of_the_issue_rate_are_told_apart_where_they_differ(slots: float, told: bool) -> None:
    foot = foot_of(2, warps_issued_per_scheduler=0.282, issue_slot_utilization_pct=slots)
    assert ("issue slots, 26.6 %, count the cycles in which the SM has one" in foot) is told


@pytest.mark.parametrize(("bandwidth", "told"), [(2.83e12, True), (3.22e12, False)])
def test_the_busiest_part_of_dram_is_told_from_its_bytes(bandwidth: float, told: bool) -> None:
    foot = foot_of(0, dram_throughput_pct=32.6, dram_bandwidth=bandwidth, peak_dram_bandwidth=1e13)
    assert ("DRAM is its busiest part; the bytes alone are 28.3 % of its peak bandwidth" in foot) is told


def test_the_foot_says_which_unit_the_busiest_memory_is() -> None:
    foot = spoken(view(transpose())["kernel"]["families"][0]["foot"])
    assert "“busiest unit” is L1/TEX here, not DRAM" in foot


def test_cautions_come_first_when_there_are_more_than_two() -> None:
    page = view(transpose(kernel_duration=3e-6, pc_samples=12, flops_total=None))
    statuses = [f["status"] for f in page["kernel"]["quality"]["facts"]]
    cautions = [s in ("warn", "bad") for s in statuses]
    assert sum(cautions) > 2
    assert cautions == sorted(cautions, reverse=True)


def test_a_short_launch_has_only_nominal_roofs() -> None:
    page = view(transpose(kernel_duration=3e-6))
    figure = page["figures"]["kernel-1-roof"]
    solid = [
        t
        for t in figure["data"]
        if t["mode"] == "lines" and t["line"]["width"] >= 1.6 and "dash" not in t["line"]
    ]
    assert not [t for t in solid if t["line"]["color"] == "var(--ink2)"]
    assert "not reliable" in spoken(page["kernel"]["roofline"]["caption"])


def test_the_table_of_points_holds_what_the_figure_draws() -> None:
    page = view(transpose())["kernel"]["roofline"]
    points = {p["name"]: p for p in page["points"]}
    assert set(points) == {"Shared", "DRAM", "L2", "L1"}
    assert points["L2"]["attainable"]["text"] == "no roof"
    assert points["L2"]["share"] is None
    assert points["L1"]["share"]["state"] == "estimate"


def test_shared_memory_has_a_hollow_point_under_the_roof_of_l1_where_it_is_the_limiter() -> None:
    page = view(transpose())
    shared = next(p for p in page["kernel"]["roofline"]["points"] if p["name"] == "Shared")
    assert (shared["shape"], shared["hot"]) == ("◇", True)
    assert (shared["bytes"]["text"], shared["bytes"]["state"]) == ("9.04\u202fGB", "estimate")
    assert shared["attainable"]["text"] == "19.6\u202fG"
    figure = page["figures"]["kernel-1-roof"]
    (diamond,) = [t for t in figure["data"] if "diamond" in str(t.get("marker", {}).get("symbol"))]
    assert diamond["marker"]["symbol"] == ["diamond-open"]
    other = view(transpose(shared_bytes=None))["kernel"]["roofline"]
    assert "Shared" not in [p["name"] for p in other["points"]]


def test_the_next_unit_is_evidence_but_not_red_in_its_family() -> None:
    found = transpose()
    behind = Evidence("dram_throughput_pct", 61.9, "%", "DRAM, the next unit: 28.6 points behind")
    page = view(replace(found, verdict=replace(found.verdict, evidence=(*found.verdict.evidence, behind))))
    assert not row(page, "dram_throughput_pct")["hot"]


def test_the_limiting_point_is_marked() -> None:
    page = view(diagnoses.fp64())["kernel"]["roofline"]
    assert [(p["name"], p["hot"]) for p in page["points"]] == [("FP64, DRAM", True), ("FP32, DRAM", False)]
    assert page["checks"][0]["status"] == "warn"


# Why warps wait


def test_every_category_of_the_taxonomy_has_a_name() -> None:
    assert set(NAMES) == set(load().stalls)


def test_counters_and_samples_are_two_panels_and_the_sentence_compares_them() -> None:
    page = view(transpose())["kernel"]["stalls"]
    assert [p["unit"] for p in page["panels"]] == ["Cycles", "Samples"]
    assert "agree on the first reason" in spoken(page["sentence"])
    assert not page["folded"]


def test_shares_of_a_panel_add_up() -> None:
    panel = view(transpose())["kernel"]["stalls"]["panels"][0]
    assert math.isclose(sum(s["width"] for s in panel["stack"]), 100, abs_tol=0.05)


def test_busy_schedulers_fold_the_stalls_away() -> None:
    page = view(transpose(warps_issued_per_scheduler=0.91))["kernel"]["stalls"]
    assert page["folded"]
    assert "waiting warps cost little" in spoken(page["sentence"])


def test_a_state_that_nobody_knows_goes_to_other_by_name() -> None:
    raw = raw_kernel(
        "k",
        {
            "group:smsp__pcsamp_warp_stall_reasons": "smsp__pcsamp_warps_issue_stalled_newstate, known",
            "smsp__pcsamp_warps_issue_stalled_newstate": 60,
            "known": 40,
        },
    )
    known = Value("stall_samples_block_barrier", 40, "sample", "exact", ("known",))
    panel = stalls(cells(kernel(raw=raw, stall_samples_block_barrier=known)), frozenset())["panels"][0]
    names = {r["name"]: r for r in panel["rows"] if "name" in r}
    assert names["Other"]["share"] == "60.0\u202f%"
    assert names["Other"]["state"] == {"code": "newstate"}


def test_no_stalls_is_said_with_the_command() -> None:
    page = view(diagnoses.undetermined())["kernel"]["stalls"]
    assert page["panels"] == []
    assert page["collect"] == "--section WarpStateStats --section SourceCounters"


# The second opinion


def test_global_and_local_gains_are_never_in_one_column() -> None:
    rows = opinion(diagnoses.RULES, "memory-bound", "shared")["rows"]
    assert [(r["name"], r["global"], r["local"]) for r in rows] == [
        ("Shared Memory Conflicts", "87.2\u202f%", None),
        ("High Pipe Utilization", None, "96.2\u202f%"),
    ]


def test_rules_without_text_are_counted_and_errors_fold_to_one_line() -> None:
    note = opinion(diagnoses.RULES, "memory-bound", "shared")["note"]
    assert "1 rule without text is left out" in note
    assert "1 rule ended in an error" in note
    assert "/opt" not in note


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Check @section:LaunchStats:Launch Statistics@ first.", "Check Launch Statistics first."),
        ("See the @url:Guide:https://docs.nvidia.com/x/index.html#a@ for more.", "See the Guide for more."),
        ("Failed in /home/someone/ncu/sections/x.py, line 3", "Failed in …, line 3"),
        (r"Failed in C:\Users\someone\x.py here", "Failed in … here"),
        ("Metric missing. Traceback (most recent call last):\n  File x", "Metric missing."),
        ("2 GB/s and 1/4 of peak", "2 GB/s and 1/4 of peak"),
    ],
)
def test_messages_lose_markup_paths_and_tracebacks(message: str, shown: str) -> None:
    assert readable(message) == shown


def test_a_rule_is_judged_against_the_verdict_only_where_it_speaks_of_a_limit() -> None:
    assert against("SharedMemoryConflicts", "memory-bound", "shared").startswith("Agrees")
    assert against("SharedMemoryConflicts", "memory-bound", "dram").startswith("Not the limit")
    assert against("SharedMemoryConflicts", "undetermined", None) == ""
    assert against("SomethingNew", "memory-bound", "dram") == ""


def test_the_limiters_that_rules_speak_of_exist() -> None:
    assert {limiter for about in ABOUT.values() for limiter in about} <= set(words.LIMITERS)


# Provenance


def test_paths_and_folders_never_reach_the_page() -> None:
    page = view(
        transpose(), command="ncukit report /home/someone/runs/transpose.ncu-rep -o /tmp/secret/x.html"
    )
    assert not [s for s in strings(page) if "/home/" in s or "/tmp/" in s or "someone" in s]
    assert "ncukit report transpose.ncu-rep -o x.html" in list(strings(page))


def test_all_metrics_are_listed_and_the_missing_ones_by_reason() -> None:
    found = view(transpose())["metrics"]
    listed = [r["id"] for r in found["rows"]] + [id for group in found["lacking"] for id in group["ids"]]
    assert sorted(listed) == sorted(load().metrics)
    assert "not on this GPU" in {group["why"] for group in found["lacking"]}


def test_the_rows_of_the_page_are_metrics_of_the_catalog() -> None:
    catalog = load().metrics
    ids = [r.id for f in FAMILIES for r in f.rows]
    ids += [id for id, _, _ in GLANCE] + [id for id, _ in GLANCE_PIPES.values()]
    assert [id for id in ids if id not in catalog] == []
    assert len([r.id for f in FAMILIES for r in f.rows]) == len({r.id for f in FAMILIES for r in f.rows})


# States of a whole launch


def test_an_undetermined_launch_shows_what_is_missing_instead_of_evidence() -> None:
    page = view(diagnoses.undetermined())["kernel"]["verdict"]
    assert page["evidence"] == []
    assert [spoken(m) for m in page["missing"]] == [
        "Throughputs: --section SpeedOfLight",
        "Stall reasons: --section WarpStateStats",
    ]
    assert page["confidence"]["pips"] == 0
    assert page["collect"].startswith("ncu --set full")


def test_a_failed_launch_has_a_page_without_any_counter() -> None:
    page = view(diagnoses.failed())
    assert set(page["kernel"]) == {"n", "cls", "quality", "opinion", "failure"}
    ledger = {spoken(e["text"]): e["n"] for e in page["kernel"]["failure"]["ledger"]}
    void = next(n for words, n in ledger.items() if "No number of a failed launch" in words)
    assert (void["state"], void["text"]) == ("void", "1")
    assert page["figures"] == {}
    assert "Roofline" not in [c["text"] for c in page["contents"]]


# Many launches


def test_the_whole_file_has_one_verdict_the_common_cause_first() -> None:
    page = view(*diagnoses.many(10))
    assert spoken(page["verdict"]["claim"]) == "All 10 launches are memory-bound: shared memory"
    two = view(*diagnoses.many(2))
    assert spoken(two["verdict"]["claim"]) == "Both launches are memory-bound: shared memory"
    none = view(diagnoses.undetermined(), diagnoses.undetermined())
    assert spoken(none["verdict"]["claim"]) == "None of the 2 launches can be judged from this report"
    mixed = view(
        *diagnoses.many(9), replace(diagnoses.fp64(9), kernel=diagnoses.launch(9, kernel_duration=1.0))
    )
    claim = spoken(mixed["verdict"]["claim"])
    assert claim.startswith("Launch 10, ")
    assert claim.endswith("is compute-bound: FP64 pipe")
    shares = [spoken(e["text"]) for e in mixed["verdict"]["evidence"] if "profiled time" in spoken(e["text"])]
    assert len(shares) == 2


def test_the_evidence_of_a_file_is_the_range_over_its_launches() -> None:
    def measured(index: int, busy: float) -> Diagnosis:
        found = transpose(index)
        return replace(
            found,
            verdict=replace(
                found.verdict, evidence=(Evidence("l1_throughput_pct", busy, "%", "of peak: L1"),)
            ),
        )

    rows = view(measured(0, 85.2), measured(1, 91.4))["verdict"]["evidence"]
    assert (rows[-1]["n"]["text"], spoken(rows[-1]["text"])) == ("85.2–91.4\u202f%", "of peak: L1")


def test_failed_and_undetermined_launches_are_counted_in_sight() -> None:
    page = view(*diagnoses.many(3), diagnoses.failed(3), diagnoses.undetermined(4))
    against = {spoken(e["text"]): e["n"]["text"] for e in page["verdict"]["against"]}
    assert against["launch without a valid measurement; no number of it is used."] == "1"
    assert next(f for f in page["quality"]["facts"] if f["name"] == "Values")["status"] == "bad"


def test_a_kernel_without_a_duration_takes_no_zero_of_the_time() -> None:
    page = view(*diagnoses.many(3), diagnoses.failed(3))
    failed = page["tables"]["kernels"][-1]
    assert (failed["name"], failed["total"], failed["share"]) == ("nodeByPoint5", MISSING, MISSING)
    row = page["tables"]["launches"][-1]
    assert row["share"] == MISSING
    said = {spoken(e["text"]): e["n"]["text"] for e in page["verdict"]["evidence"]}
    assert said["launch, failed: launch 4, nodeByPoint5."] == "1"


def test_kernels_are_sorted_by_total_time_in_one_unit() -> None:
    table = view(*diagnoses.many(25))["tables"]
    totals = [float(k["total"].replace(",", "")) for k in table["kernels"]]
    assert totals == sorted(totals, reverse=True)
    assert (len(table["kernels"]), len(table["launches"])) == (5, 25)
    assert {k["count"] for k in table["kernels"]} == {"5"}


def test_durations_of_a_table_share_the_unit_in_its_head() -> None:
    short, long = transpose(0, "a", kernel_duration=42.2e-6), transpose(1, "b", kernel_duration=1.16)
    page = view(short, replace(long, kernel=long.kernel), transpose(2, "a", kernel_duration=44e-6))
    table = page["tables"]
    assert table["duration_unit"] == "µs"
    kernels = {k["name"]: k for k in table["kernels"]}
    assert (kernels["b"]["median"], kernels["a"]["median"]) == ("1,160,000", "43.1")
    assert kernels["a"]["range"] == "42.2–44.0"
    assert [x["duration"]["text"] for x in table["launches"]] == ["42.2", "1,160,000", "44.0"]


def test_a_column_that_no_launch_has_is_left_out_and_named() -> None:
    lost = [
        replace(d, kernel=diagnoses.launch(d.kernel.index, sm_throughput_pct=None)) for d in diagnoses.many(3)
    ]
    table = view(*lost)["tables"]
    assert "SM %" not in table["columns"]
    assert table["lacking"] == ["SM %"]


def test_kernels_of_one_function_name_are_told_apart() -> None:
    one, two = transpose(0, "Kernel2"), transpose(1, "Kernel2")
    other = replace(two.kernel.raw, demangled="void Kernel2<float, 64>(int)")
    page = view(one, replace(two, kernel=replace(two.kernel, raw=other)))
    names = [k["name"] for k in page["tables"]["kernels"]]
    assert len(set(names)) == 2


def test_from_200_launches_folds_are_built_when_opened() -> None:
    small, large = view(*diagnoses.many(199)), view(*diagnoses.many(200))
    assert "launches" not in small
    assert "claim" in small["folds"][0]
    assert "claim" not in large["folds"][0]
    assert len(large["launches"]["rows"]) == len(large["launches"]["table"]) == 200
    assert large["tables"]["launches"] == []


def test_a_selection_of_a_file_says_that_it_is_one() -> None:
    found = page_view(replace(FILE, launches=51), diagnoses.many(3), generated=NOW)
    assert (
        next(f for f in found["quality"]["facts"] if f["name"] == "Which launch")["word"] == "! a selection"
    )


def test_rules_over_many_launches_keep_global_and_local_apart() -> None:
    found = diagnoses.many(2)
    local = RuleResult("X", "Rule", "S", (("optimization", "T", "m"),), 10.0, "local")
    whole = RuleResult("X", "Rule", "S", (("optimization", "T", "m"),), 30.0, "global")
    kernels = [
        replace(d.kernel, raw=replace(d.kernel.raw, rules=(r,)))
        for d, r in zip(found, (local, whole), strict=True)
    ]
    (only,) = view(*(replace(d, kernel=k) for d, k in zip(found, kernels, strict=True)))["opinion"]["rows"]
    assert (only["launches"], only["global"], only["local"]) == ("2", "30.0\u202f%", "10.0\u202f%")


# Foreign text


def test_a_hostile_name_keeps_no_control_and_no_reordering_mark() -> None:
    page = view(transpose(name=HOSTILE))
    bad = set("\u202e\u2066\x00\x1b\u2028\ud800")
    assert not [s for s in strings(page) if bad & set(s)]


def test_a_name_enters_a_command_only_when_it_is_a_plain_word() -> None:
    assert "--kernel-name copy " in commands.collect(kernel(raw=raw_kernel("copy")))
    hostile = commands.collect(kernel(raw=raw_kernel("x; rm -rf ~", index=4)))
    assert "rm -rf" not in hostile
    assert "--launch-skip 4 " in hostile
    assert commands.quoted("a b;c.ncu-rep") == "'a b;c.ncu-rep'"


@pytest.mark.parametrize(
    ("name", "length", "short"),
    [("abc", 5, "abc"), ("abcdefghij", 5, "ab…ij"), ("", 5, ""), ("x" * 7000, 80, None)],
)
def test_names_are_cut_in_the_middle(name: str, length: int, short: str | None) -> None:
    cut = words.shorten(name, length)
    assert len(cut) <= max(length, len(name) if len(name) <= length else length)
    assert short is None or cut == short


FULL_L1 = {"l1_throughput_pct": 97.0, "issue_slot_utilization_pct": 10.5, "sm_throughput_pct": 38.0}
OTHER_UNITS = {
    "dram_throughput_pct": 0.1,
    "l2_throughput_pct": 0.8,
    "pipe_lsu_pct": 9.5,
    "sm_active_pct": 88.2,
}


@pytest.mark.parametrize(
    ("values", "says", "evidence"),
    [
        (
            {**FULL_L1, **OTHER_UNITS, "pipe_xu_pct": 43.1},
            "The busiest unit is L1/TEX, at 97.0 % of peak. The next unit is XU pipe (special functions, "
            "conversions), at 43.1 %.",
            "XU pipe (special functions, conversions), the next unit: 53.9 points behind",
        ),
        (
            {
                **OTHER_UNITS,
                "pipe_lsu_pct": 84.1,
                "l1_throughput_pct": 80.0,
                "issue_slot_utilization_pct": 24.2,
            },
            "The busiest unit is load/store issue, at 84.1 % of peak. The next unit beside L1/TEX, which the "
            "same work fills, is issue slots, at 24.2 %.",
            "issue slots, the next unit beside L1/TEX, which the same work fills: 59.9 points behind",
        ),
        (
            {
                **OTHER_UNITS,
                "pipe_fma_pct": 77.8,
                "issue_slot_utilization_pct": 85.9,
                "l1_throughput_pct": 45.4,
            },
            "The limit is FP32 (FMA) pipe, at 77.8 % of peak. The next unit beside issue slots, which the "
            "same work fills, is L1/TEX, at 45.4 %.",
            "L1/TEX, the next unit beside issue slots, which the same work fills: 32.4 points behind",
        ),
    ],
    ids=["a pipe without a bar", "what the limit fills as well", "what is busier and no reason of its own"],
)
def test_header_and_evidence_name_the_same_next_unit(values: dict[str, float], says: str, evidence: str):
    found = diagnose(kernel(**values))
    shown = verdict(cells(found.kernel), found)
    assert spoken(shown["deck"]) == says
    assert evidence in [row.text.replace("\u202f", " ") for row in found.verdict.evidence]


def test_without_a_limit_the_header_names_the_two_busiest_units():
    found = diagnose(
        kernel(
            **OTHER_UNITS,
            memory_throughput_pct=20.0,
            sm_throughput_pct=9.0,
            issue_slot_utilization_pct=5.0,
            l1_throughput_pct=20.0,
        )
    )
    assert found.verdict.cls == "latency-bound"
    assert spoken(verdict(cells(found.kernel), found)["deck"]) == (
        "No unit is at its limit. The busiest unit is L1/TEX, at 20.0 % of peak. The next unit is load/store "
        "issue, at 9.5 %."
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Value("x", None, "%", reason="«any words»", lack="absent"), ("absent", "–")),
        (Value("x", None, "%", reason="«any words»", lack="undefined"), ("missing", "undefined")),
        (Value("x", 3.0, "%", reason="«any words»", reliable=False, noisy=True), ("flagged", "noisy")),
        (Value("x", 3.0, "%", reason="«any words»", reliable=False), ("flagged", "unreliable")),
    ],
)
def test_the_state_of_a_number_does_not_depend_on_the_words_of_its_reason(
    value: Value, shown: tuple[str, str]
) -> None:
    assert (state(value), mark(value) if value.known else text(value)) == shown


@pytest.mark.parametrize("said", [True, False])
def test_the_bound_of_an_advice_is_told_once_whatever_its_sentence_says(said: bool) -> None:
    advice = Advice(
        "profile-top",
        False,
        "kernel",
        "Measure it",
        "Any words, faster or not.",
        bound=Bound(1.5, 33.3, "this kernel"),
        bound_said=said,
    )
    assert bool(advice_view(advice)["bound"]) is not said


def test_the_limit_on_the_first_screen_does_not_depend_on_the_words_of_its_evidence() -> None:
    found = diagnoses.fp64()
    evidence = tuple(replace(e, text=f"«{e.text[::-1]}»") for e in found.verdict.evidence)
    marked = replace(found, verdict=replace(found.verdict, evidence=evidence))
    assert view(marked)["kernel"]["verdict"]["glance"] == view(found)["kernel"]["verdict"]["glance"]
