"""docs/rules.md: what each rule means, needs and decides by, what to try, and what would disprove it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from ncukit.judge import RULES
from ncukit.judge.facts import Facts
from ncukit.judge.rule import SPECIAL, STANDARD, Need, Rule, entries
from ncukit.metrics import load
from ncukit.model import Finding
from ncukit.render.words import FAMILIES
from scripts.pages.metrics import anchor
from scripts.pages.thresholds import Threshold, thresholds
from scripts.pages.words import plain
from tests.test_rules import CASES, launch

HEAD = """\
# Rules

Generated from the rules and their tests by `scripts/reference.py`; a test keeps it current.

There are {count} rules.  A rule looks at one launch and says one thing about it, with the numbers that it
read as evidence.  It declares what it needs: where that is unknown or unreliable the rule is *skipped, with
the reason*, and never counts as passed.  The verdict is not made by rules: it comes from the steps that
[the page explains](reading.md#the-verdict).

- **Needs** are metrics ([reference](metrics.md)) and facts about a launch; *or* means that one of them is
  enough.
- **Decides by**: the thresholds, with the reason that stands beside each of them in the source.  They
  follow NVIDIA's own rules and published practice, and were [not fitted to measured
  speedups](uncertain.md).
- **For example**: what the rule says of the first launch that its test gives it, a made-up one.
- **Against it**: what is looked for that could speak against the finding.  **Watch**: what must move when
  it is true.  **Disproved if**: the outcome of the experiment that ends it.  A dot in them, “…”, is a value
  of the launch.
- **Gains** are estimates: *global* of the launch's time, where the unit is what limits; *local* of that
  unit's own work, which may not shorten the launch at all.
"""


def page() -> str:
    """Return the text of docs/rules.md."""
    parts = [HEAD.format(count=len(RULES))]
    order = list(FAMILIES)
    ranked = sorted(RULES.values(), key=lambda rule: _rank(order, rule.family))
    for family, members in groupby(ranked, key=lambda rule: rule.family):
        parts.append(f"\n## {FAMILIES.get(family, family.replace('_', ' ').capitalize())}\n")
        parts += ["\n" + "\n".join(_entry(rule)) + "\n" for rule in members]
    return "".join(parts)


def _rank(order: list[str], family: str) -> int:
    return order.index(family) if family in order else len(order)


def _entry(rule: Rule) -> Iterator[str]:
    yield f"### {rule.id}"
    yield ""
    yield plain((rule.function.__doc__ or "").split("\n\n")[0].strip())
    yield ""
    yield f"**Needs** {'; '.join(map(need, rule.needs)) or 'nothing'}."
    yield ""
    if numbers := thresholds(rule.function):
        yield "**Decides by**"
        yield ""
        yield from map(_threshold, numbers)
        yield ""
    finding = example(rule)
    gain = (
        f"  Gain: {finding.gain_pct:.3g} % {finding.gain_kind}, {plain(finding.formula)}."
        if finding.gain_pct
        else ""
    )
    yield f"**For example** ({finding.severity}): “{plain(finding.title)}.”{gain}"
    yield ""
    if finding.advice:
        yield f"**What to try**: {plain(finding.advice)}"
        yield ""
    yield from _trial(entries().get(rule.id, {}))


def need(one: Need) -> str:
    """Return a need in words."""
    ids = (one,) if isinstance(one, str) else one
    return " or ".join(map(_need, ids))


def _need(id: str) -> str:
    if id in SPECIAL:
        return f"*{id[1:]}* (without it: {plain(SPECIAL[id][1])})"
    metric = load().metrics.get(id)
    return f"`{id}`" if metric is None else f"[`{id}`](metrics.md#{anchor(metric)})"


def _threshold(one: Threshold) -> str:
    return f"- `{one.text}`" + (f": {plain(one.reason)}" if one.reason else "")


def example(rule: Rule) -> Finding:
    """Return the finding on the launch that the rule's test gives it."""
    found = rule.apply(Facts.of(launch(**CASES[rule.id].trips)))
    assert isinstance(found, Finding), rule.id
    return found


def _trial(entry: dict[str, Any] | Any) -> Iterator[str]:
    """Yield how a finding can be tested; nothing for one that only informs."""
    if not entry:
        return
    if rows := entry.get("against"):
        yield "**Against it**"
        yield ""
        for row in rows:
            texts = [plain(template(row[key])) for key in ("text", "open") if key in row]
            name = row["metric"].removeprefix("@")
            yield f"- `{name}` " + "; or ".join(texts)
        yield ""
    if watch := entry.get("watch"):
        yield f"**Watch**: {plain(template(watch))}"
        yield ""
    yield f"**Disproved if** {plain(template(entry.get('disproved_if', STANDARD)))}"
    yield ""


def template(text: str) -> str:
    """Return the words of a rule without the values of one launch.

    >>> template("dram_bytes: {dram_bytes} now, towards the {asked_bytes} that are asked for.")
    'dram_bytes, towards the … that are asked for.'
    """
    text = re.sub(r": {\w+} now(?=[,;.])", "", text)
    return re.sub(r"{\w+}", "…", text)
