"""Verdicts on real reports: an expert's labels, the generated table, and pins."""

from __future__ import annotations

import difflib
import functools
import itertools
import re
import tomllib
from pathlib import Path

import pytest

from ncukit.api import read
from ncukit.judge import RULES
from ncukit.metrics import load
from ncukit.model import Diagnosis
from ncukit.quantity import brief
from scripts import disagreements, verdicts
from tests.conftest import tool

Judged = dict[Path, list[Diagnosis]]
AGREEMENT = 0.95
"""Share of the labels in whose acceptable answers ours must be."""

FINDINGS = 0.95
"""Share of the findings that the labels expect and that must be among ours (226 of 232 are)."""

EXPECTED = Path(__file__).with_name("expected_findings.toml")
PINNED = Path(__file__).with_name("real_findings.toml")

UNSEEN = {
    "atomic-traffic",
    "bank-arbitration",
    "bank-conflicts-stores",
    "carve-out",
    "contended-atomics",
    "debug-build",
    "fp32-without-tensor",
    "miss-destinations",
    "mma-where-wgmma",
    "partial-writes",
    "peer-memory",
    "reads-beyond-misses",
    "register-spills",
    "sector-promotion",
    "shared-atomics",
    "special-functions",
    "uneven-slices",
    "uneven-sms",
    "useful-bytes",
}
"""Rules that no launch of the real reports trips."""


@pytest.fixture(scope="module")
def judged(shared: Path) -> Judged:
    """Every launch of the real reports, judged once."""
    return verdicts.diagnoses(shared / "reports")


@pytest.fixture(scope="module")
def labels(shared: Path) -> list[dict[str, str]]:
    """An expert's labels: what is acceptable, what would be plainly wrong."""
    return disagreements.labels(shared)


@functools.cache
def with_code(path: Path, index: int) -> Diagnosis:
    """Return one launch judged with its instructions, which takes longer."""
    return next(itertools.islice(verdicts.judge(path, code=True), index, None))


def pick(judged: Judged, file: str, index: int = 0) -> Diagnosis:
    return next(launches[index] for path, launches in judged.items() if path.stem == file)


def nsight_sample(name: str) -> Path:
    """Return a report that the Nsight Compute package carries, or skip."""
    ncu = tool("ncu")
    roots = ncu.resolve().parents if ncu else ()
    found = [p for root in roots for p in root.glob(f"usr/share/doc/*/examples/*/{name}.ncu-rep*")]
    if not found:
        pytest.skip("no samples of Nsight Compute installed")
    return found[0]


def called(diagnosis: Diagnosis) -> set[str]:
    """Return our answer as the labels write it: class, and class with limiter."""
    verdict = diagnosis.verdict
    return {verdict.cls, f"{verdict.cls}:{verdict.limiter}"} if verdict.limiter else {verdict.cls}


def test_nothing_is_plainly_wrong(judged: Judged, labels: list[dict[str, str]]):
    wrong = []
    for label in labels:
        launches = {path.name: launches for path, launches in judged.items()}[label["file"]]
        ours = called(launches[int(label["index"])])
        if ours & set(label["not_acceptable"].split("|")):
            wrong.append((label["file"], label["index"], ours))
    assert wrong == []


@pytest.mark.parametrize("confidence", ["high", "medium", "low"])
def test_the_expert_would_accept_nearly_all(judged: Judged, labels: list[dict[str, str]], confidence: str):
    files = {path.name: launches for path, launches in judged.items()}
    rows = [label for label in labels if label["confidence"] == confidence]
    other = [
        (label["file"], label["index"], called(found), label["acceptable"])
        for label in rows
        for found in [files[label["file"]][int(label["index"])]]
        if not called(found) & set(label["acceptable"].split("|"))
    ]
    assert len(other) <= (1 - AGREEMENT) * len(rows), other


def clauses(label: dict[str, str]) -> list[str]:
    return [clause.strip() for clause in label["findings_expected"].split(";") if clause.strip()]


def place(label: dict[str, str]) -> str:
    return f"{Path(label['file']).stem}/{label['index']}"


def says(diagnosis: Diagnosis) -> dict[str, str]:
    """Return what each rule says of a launch, and the verdict, with plain spaces."""
    said = {finding.id: f"{finding.title} {finding.detail}" for finding in diagnosis.findings}
    said["verdict"] = " ".join((diagnosis.verdict.claim, *diagnosis.verdict.missing))
    return {id: text.replace("\u202f", " ") for id, text in said.items()}


def unmet(entry: str, said: dict[str, str]) -> list[str]:
    """Return the parts of a clause's entry that are not said: "rule: expression", joined by " & "."""
    parts = [part.partition(": ") for part in entry.split(" & ")]
    return [f"{id}: {words}" for id, _, words in parts if not re.search(words, said.get(id, ""))]


def test_every_label_says_where_its_findings_are(labels: list[dict[str, str]]):
    expected = tomllib.loads(EXPECTED.read_text(encoding="utf-8"))
    assert {place(label): len(clauses(label)) for label in labels} == {
        key: len(entries) for key, entries in expected.items()
    }


def test_nearly_all_findings_that_an_expert_expects_are_ours(judged: Judged, labels: list[dict[str, str]]):
    expected = tomllib.loads(EXPECTED.read_text(encoding="utf-8"))
    paths = {path.name: path for path in judged}
    missed, wrong, total = 0, {}, 0
    for label in labels:
        path, index, entries = paths[label["file"]], int(label["index"]), expected[place(label)]
        said = says(judged[path][index])
        claimed = [entry for entry in entries if not entry.startswith("missed: ")]
        if any(unmet(entry, said) for entry in claimed):  # some findings need the instructions
            said = says(with_code(path, index))
        wrong |= {f"{place(label)} {part}": said for entry in claimed for part in unmet(entry, said)}
        missed += len(entries) - len(claimed)
        total += len(entries)
    assert not wrong, wrong
    assert missed <= (1 - FINDINGS) * total


def test_the_committed_table_is_current(judged: Judged, labels: list[dict[str, str]]):
    now, committed = verdicts.document(judged, labels), verdicts.TARGET.read_text(encoding="utf-8")
    changes = list(difflib.unified_diff(committed.splitlines(), now.splitlines(), lineterm="", n=0))
    assert not changes, "run python -m scripts.verdicts:\n" + "\n".join(changes[:20])


def test_every_disagreement_has_its_reason_and_every_reason_a_disagreement(
    judged: Judged, labels: list[dict[str, str]]
):
    reasons = disagreements.data()
    met = {kind for launches in judged.values() for d in launches for kind in disagreements.kinds(d)}
    assert met == set(reasons["ncu"])
    assert {place for place, _, _ in disagreements.first_answers(judged, labels)} == set(reasons["labels"])
    assert all(len(line) < 250 for lines in (reasons["ncu"], reasons["labels"]) for line in lines.values())


def test_every_launch_has_a_claim_and_every_judged_one_numbers(judged: Judged):
    for launches in judged.values():
        for diagnosis in launches:
            found = diagnosis.verdict
            assert found.claim
            assert "{" not in found.claim
            if found.cls == "undetermined":
                assert found.missing
            elif found.cls != "failed":
                assert found.evidence
                assert found.experiment is not None
                assert all(isinstance(e.value, int | float) for e in (*found.evidence, *found.against))


def test_claim_and_evidence_carry_the_same_number(judged: Judged):
    compared = 0
    for path, launches in judged.items():
        for diagnosis in launches:
            found = diagnosis.verdict
            if found.evidence and found.evidence[0].role == "limit":
                limit = brief(found.evidence[0].value, "%")
                assert limit in found.claim, (path.name, diagnosis.kernel.index)
                compared += 1
    assert compared > 50


def test_the_six_reports_with_a_failed_launch_mark_it(judged: Judged):
    failed = {
        path.stem: [d.kernel.index for d in ds if d.verdict.cls == "failed"] for path, ds in judged.items()
    }
    assert {file: indices for file, indices in failed.items() if indices} == {
        "sm120-rtx-5060-ti-ncu2025.2-02": [44],
        "sm75-gtx-1660-super-ncu2021.1-01": [2],
        "sm80-a100-pcie-40gb-ncu2022.4-01": [0],
        "sm86-a10g-ncu2023.1-03": [3],
        "sm86-a10g-ncu2023.1-04": [5],
        "sm90-h800-ncu2023.3-01": [4],
    }


@pytest.mark.parametrize(
    ("file", "index", "cls", "limiter"),
    [
        ("sm89-rtx-4060-ti-ncu2025.4-m01", 0, "compute-bound", "tensor"),
        ("sm89-rtx-4070-ti-super-ncu2024.3-01", 0, "compute-bound", "fp64"),
        ("sm89-rtx-4090-ncu2023.1-04", 0, "memory-bound", "l2"),
        ("sm89-rtx-4090-ncu2023.1-04", 2, "memory-bound", "dram"),
        ("sm90-h100-80gb-hbm3-ncu2024.1-m01", 0, "memory-bound", "shared"),
        ("sm86-rtx-3070-ncu2020.3-m01", 0, "latency-bound", "synchronisation"),
        ("sm86-a10g-ncu2023.1-01", 3, "compute-bound", "fp32"),
        ("sm100-b200-ncu2025.3-m01", 0, "latency-bound", "small-grid"),
    ],
)
def test_pins(judged: Judged, file: str, index: int, cls: str, limiter: str):
    found = pick(judged, file, index).verdict
    assert (found.cls, found.limiter) == (cls, limiter)


KINDS: dict[str, dict[str, set[str]]] = {
    "tensor GEMM": {
        "sm80-a100-80gb-pcie-ncu2024.1-01/0": {"latency-bound:small-grid"},  # CUTLASS int8, 36 blocks
        "sm80-a100-80gb-pcie-ncu2024.1-02/1": {"latency-bound:small-grid"},  # CUTLASS int8, 96 blocks
        "sm100-b200-ncu2025.2-01/0": {"latency-bound:small-grid"},  # int8
        "sm75-t4-ncu2025.1-01/2": {"memory-bound:l1"},  # fp16 wmma, fragments from global memory
        "sm89-rtx-4060-ti-ncu2025.4-m01/0": {"compute-bound:tensor"},  # fp16 attention
        "sm90-h100-80gb-hbm3-ncu2024.1-m02/0": {"balanced", "compute-bound:tensor"},  # bf16 wgmma
        "sm100-b200-ncu2025.3-m01/0": {"latency-bound:small-grid"},  # fp4 tcgen05
    },
    "GEMM without tensor cores": {
        "sm75-gtx-1660-super-ncu2024.1-01/0": {"compute-bound:lsu-issue"},
        "sm86-a10g-ncu2023.1-04/0": {"memory-bound:l1"},
        "sm86-a10g-ncu2023.1-01/3": {"compute-bound:fp32"},
        "sm90-h100-80gb-hbm3-ncu2024.1-m01/0": {"memory-bound:shared"},
    },
    "transpose": {
        "sm89-rtx-4090-ncu2023.1-04/0": {"memory-bound:l2"},  # naive: scattered stores
        "sm89-rtx-4090-ncu2023.1-04/2": {"memory-bound:dram"},  # 16-way conflicts behind a full DRAM
        "sm89-rtx-4090-ncu2023.1-04/3": {"memory-bound:dram"},  # padded
    },
    "reduction and scan": {
        "sm89-rtx-4060-ncu2024.3-01/0": {"latency-bound:small-grid"},
        "sm89-rtx-4060-ncu2024.3-01/1": {"latency-bound:occupancy"},
        "sm86-rtx-3070-ncu2020.3-m01/0": {"latency-bound:synchronisation"},
    },
    "local memory": {
        "sm86-a40-ncu2022.4-01/4": {"balanced", "memory-bound:dram"},  # spills
        "sm89-rtx-4080-laptop-gpu-ncu2026.1-m01/0": {"memory-bound:l2"},  # a stack per thread
    },
    "gather and scatter": {
        "sm80-a100-pcie-40gb-ncu2021.2-03/0": {"latency-bound:dependency"},
        "sm80-a100-pcie-40gb-ncu2021.2-02/0": {"balanced", "compute-bound:int"},
        "sm75-rtx-2080-ti-ncu2022.3-01/1": {"memory-bound:l1"},  # strided
    },
    "tiny grid": {
        "sm70-v100-pcie-16gb-ncu2020.1-01/0": {"latency-bound:small-grid"},
        "sm80-a100-pcie-40gb-ncu2020.3-02/2": {"latency-bound:small-grid"},
        "sm89-rtx-4080-super-ncu2024.3-01/30": {"latency-bound:small-grid"},
        "sm90-h100-ncu2024.3-m01/0": {"latency-bound:small-grid"},
    },
    "CUB sort": {
        "sm80-a100-pcie-40gb-ncu2021.2-01/2": {"latency-bound:imbalance"},  # histogram
        "sm80-a100-pcie-40gb-ncu2021.2-01/4": {"latency-bound:small-grid"},  # sum of the histogram
        "sm80-a100-pcie-40gb-ncu2021.2-01/6": {"latency-bound:None"},  # onesweep; stalls not collected
        "sm80-a100-pcie-40gb-ncu2021.2-01/20": {"latency-bound:small-grid"},  # onesweep, few keys
    },
    "no floating point": {
        "sm86-a40-ncu2022.1-01/0": {"memory-bound:dram"},  # fill
        "sm89-rtx-4090-ncu2023.1-04/1": {"memory-bound:dram"},  # copy
        "sm86-rtx-3070-ncu2022.3-02/0": {"memory-bound:dram"},  # initialisation
        "sm75-gtx-1660-super-ncu2021.1-01/0": {"latency-bound:small-grid"},  # objects made on the device
        "sm86-rtx-3080-ti-ncu2022.4-01/0": {"latency-bound:small-grid"},
    },
}
"""Kinds of kernels, and the answers an expert would give to launches of each."""


def at(judged: Judged, where: str) -> Diagnosis:
    file, index = where.rsplit("/", 1)
    return pick(judged, file, int(index))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_kernel_gets_the_class_an_expert_would_give(judged: Judged, kind: str):
    for where, accepted in KINDS[kind].items():
        verdict = at(judged, where).verdict
        assert {verdict.cls, f"{verdict.cls}:{verdict.limiter}"} & accepted, (where, verdict.claim)


def test_kernels_without_floating_point_get_the_instruction_roofline(judged: Judged):
    for where in KINDS["no floating point"]:
        assert {point.precision for point in at(judged, where).roofline.points} == {"inst"}, where
    for launches in judged.values():
        for d in launches:
            kinds = {point.precision for point in d.roofline.points}
            assert kinds == {"inst"} or "inst" not in kinds
            if d.kernel.number("flops_total"):
                assert "inst" not in kinds


@pytest.mark.parametrize(
    ("file", "index", "finding", "words"),
    [
        ("sm89-rtx-4090-ncu2023.1-04", 0, "uncoalesced-stores", "32 sectors"),
        ("sm89-rtx-4090-ncu2023.1-04", 2, "bank-conflicts-loads", "cost little here"),
        ("sm89-rtx-4060-ti-ncu2025.4-m01", 0, "tensor-pipe-reads-half", "43.3"),
        ("sm90-h100-80gb-hbm3-ncu2024.1-m02", 0, "barrier-stalls", "warp-group MMA results"),
        ("sm80-a100-pcie-40gb-ncu2020.3-01", 0, "divergence", "19.8 of 32"),
        ("sm86-a40-ncu2022.4-01", 4, "local-memory", "95.1"),
        ("sm86-a10g-ncu2023.1-04", 1, "one-number-twice", "load/store pipe"),
        ("sm75-rtx-2060-with-max-q-design-ncu2024.3-m01", 0, "system-memory", "system memory"),
        ("sm80-a100-pcie-40gb-ncu2021.2-02", 0, "tensor-pipe-without-mma", "without a single MMA"),
        ("sm89-rtx-4090-ncu2023.1-04", 1, "dram-clock", "7.89"),
    ],
)
def test_findings_on_real_reports(judged: Judged, file: str, index: int, finding: str, words: str):
    found = {f.id: f for f in pick(judged, file, index).findings}
    assert words in found[finding].title + found[finding].detail


def test_nothing_is_to_be_collected_that_is_in_the_report(judged: Judged):
    everything = (*load().metrics.values(), *load().signals.values())
    asked = 0
    for path, launches in judged.items():
        for diagnosis in launches:
            values = {**diagnosis.kernel.metrics, **diagnosis.kernel.signals}
            for finding in diagnosis.findings:
                for section in re.findall(r"[Cc]ollect [^.]*?\b([A-Z][a-z]+[A-Z]\w+)", finding.advice):
                    reasons = [values[m.id].reason or "" for m in everything if section in m.sections]
                    where = (path.name, diagnosis.kernel.index, finding.id, section)
                    lacking = sum(reason.startswith("not collected") for reason in reasons)
                    assert lacking > len(reasons) / 2, where  # some are not in every version of a section
                    asked += 1
    assert asked > 10


def test_every_rule_that_a_real_launch_trips_is_pinned_there(judged: Judged):
    pinned = tomllib.loads(PINNED.read_text(encoding="utf-8"))
    assert set(pinned) | UNSEEN == set(RULES)
    tripped = {f.id for launches in judged.values() for d in launches for f in d.findings}
    assert not tripped & UNSEEN, "pin it"
    for rule, where in pinned.items():
        if rule not in {f.id for f in at(judged, where).findings}:  # it needs the instructions
            file, index = where.rsplit("/", 1)
            path = next(path for path in judged if path.stem == file)
            assert rule in {f.id for f in with_code(path, int(index)).findings}, where


@pytest.mark.parametrize(
    ("name", "cls", "limiter", "words"),
    [
        ("transposeCoalesced", "memory-bound", "shared", "32-way bank conflicts"),
        ("transposeNoBankConflicts", "memory-bound", "dram", "DRAM is full"),
        ("sobelDouble", "compute-bound", "fp64", "FP64 pipe is full"),
        ("addConstDouble", "memory-bound", "dram", "DRAM is full"),
    ],
)
def test_the_samples_of_nsight_compute(name: str, cls: str, limiter: str, words: str):
    (diagnosis,) = read(nsight_sample(name)).diagnoses()
    assert (diagnosis.verdict.cls, diagnosis.verdict.limiter) == (cls, limiter)
    assert words in diagnosis.verdict.claim
    assert diagnosis.verdict.confidence == "high"
