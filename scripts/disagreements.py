"""Where the verdicts differ from ncu's own rules, and from an expert's first answer, and why."""

from __future__ import annotations

import csv
import functools
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ncukit.model import Diagnosis, RuleResult
from ncukit.quantity import plain

DATA = Path(__file__).with_name("disagreements.toml")
BOTTLENECK = "SOLBottleneck"
FILES = 3
"""Reports named for one kind of disagreement; more are counted."""

Judged = Mapping[Path, list[Diagnosis]]


@functools.cache
def data() -> Mapping[str, Any]:
    """Return what statements speak for, and the reasons: `disagreements.toml`."""
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def top_rule(diagnosis: Diagnosis) -> RuleResult | None:
    """Return ncu's rule with the largest estimated gain, global before local; None where no gain is given."""
    rated = [rule for rule in diagnosis.kernel.raw.rules if rule.speedup]
    return max(rated, key=lambda r: (r.speedup_kind == "global", r.speedup or 0.0), default=None)


def bottleneck(diagnosis: Diagnosis) -> str:
    """Return the title of ncu's bottleneck rule, older ones by what they say; empty where it has none."""
    messages = [
        (title, text)
        for rule in diagnosis.kernel.raw.rules
        if rule.id == BOTTLENECK
        for kind, title, text in rule.messages
        if kind != "error"
    ]
    said = (word for _, text in messages for part, word in data()["said"].items() if part in text)
    return next((title for title, _ in messages if title), "") or next(said, "")


def opinion(diagnosis: Diagnosis) -> str:
    """Return what ncu says first: its bottleneck, and its rule with the largest estimated gain."""
    rule = top_rule(diagnosis)
    gain = "" if rule is None else f"{rule.id} ({plain(rule.speedup or 0.0)} % {rule.speedup_kind})"
    return "; ".join(filter(None, (bottleneck(diagnosis), gain)))


def kinds(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what of ncu's opinion does not speak for our verdict: "statement against class: limiter"."""
    found, rule = diagnosis.verdict, top_rule(diagnosis)
    if found.cls in ("failed", "undetermined"):
        return
    ours = {found.cls, f"{found.cls}:{found.limiter}"}
    for statement in filter(None, (bottleneck(diagnosis), "" if rule is None else rule.id)):
        if not ours & set(data()["speaks_for"][statement]):
            yield f"{statement} against {answer(diagnosis)}"


def answer(diagnosis: Diagnosis) -> str:
    """Return class and limiter in words."""
    found = diagnosis.verdict
    return f"{found.cls}: {found.limiter}" if found.limiter else found.cls


def against_ncu(judged: Judged) -> Iterator[str]:
    """Yield one line for each kind of disagreement with ncu's rules, with our reason."""
    met: dict[str, dict[str, int]] = {}
    for path, launches in judged.items():
        for diagnosis in launches:
            for kind in kinds(diagnosis):
                files = met.setdefault(kind, {})
                files[path.stem] = files.get(path.stem, 0) + 1
    for kind, files in sorted(met.items()):
        count = sum(files.values())
        named = ", ".join(list(files)[:FILES]) + (", …" if len(files) > FILES else "")
        launches = "1 launch" if count == 1 else f"{count} launches"
        yield f"- **{kind}** ({launches}: {named}): {data()['ncu'][kind]}."


def labels(shared: Path) -> list[dict[str, str]]:
    """Return an expert's labels of launches: what is acceptable, best first, and what would be wrong."""
    with open(shared / "domain" / "VERDICTS.tsv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def first_answers(judged: Judged, labelled: list[dict[str, str]]) -> Iterator[tuple[str, Diagnosis, str]]:
    """Yield the launches in which the verdict is not the expert's first answer: place, ours, his."""
    launches = {path.name: found for path, found in judged.items()}
    for label in labelled:
        diagnosis = launches[label["file"]][int(label["index"])]
        first = label["acceptable"].split("|")[0]
        if first not in (diagnosis.verdict.cls, f"{diagnosis.verdict.cls}:{diagnosis.verdict.limiter}"):
            yield f"{Path(label['file']).stem}/{label['index']}", diagnosis, first.replace(":", ": ")


def against_labels(judged: Judged, labelled: list[dict[str, str]]) -> Iterator[str]:
    """Yield one line for each launch in which the verdict is not the expert's first answer."""
    for place, diagnosis, first in first_answers(judged, labelled):
        file, index = place.rsplit("/", 1)
        yield (
            f"- {file}, launch {index}: {answer(diagnosis)}, where the expert says {first} first: "
            f"{data()['labels'][place]}."
        )
