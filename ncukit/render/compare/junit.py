"""Gates as JUnit XML: one test case a gate and pair, as CI systems read it.

Elements and attributes are those that the common schema (junit-10.xsd of the Jenkins xUnit plug-in) allows.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from ncukit.media import line
from ncukit.model.comparison import Comparison, Outcome


def junit_text(comparison: Comparison, *, timestamp: str = "") -> str:
    """Return the gates as one test suite; what failed is a failure, what was allowed is skipped."""
    gates = comparison.gates
    failed = sum(outcome.failed for outcome in gates)
    skipped = sum(_is_skipped(outcome) for outcome in gates)
    counts = {"tests": len(gates), "failures": failed, "errors": 0}
    root = ET.Element("testsuites", {name: str(n) for name, n in counts.items()} | {"name": "ncukit"})
    attributes = {
        "name": "ncukit compare",
        **{name: str(n) for name, n in counts.items()},
        "skipped": str(skipped),
    }
    if timestamp:
        attributes["timestamp"] = timestamp
    suite = ET.SubElement(root, "testsuite", attributes)
    properties = ET.SubElement(suite, "properties")
    sides = [comparison.base, *(against.other for against in comparison.others)]
    for name, side in zip(("base", *("other",) * len(comparison.others)), sides, strict=True):
        ET.SubElement(properties, "property", {"name": name, "value": _text(side.label)})
    for outcome in gates:
        _case(suite, outcome)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, outcome: Outcome) -> None:
    of = f"{outcome.other}.{outcome.kernel}" if outcome.kernel else outcome.other
    case = ET.SubElement(suite, "testcase", {"classname": _text(of), "name": _text(outcome.gate)})
    message = _text(outcome.message)
    if outcome.failed:
        failure = ET.SubElement(case, "failure", {"type": outcome.state, "message": message})
        failure.text = _text(f"{outcome.gate}: {outcome.message}")
    elif _is_skipped(outcome):
        ET.SubElement(case, "skipped", {"message": message})
    else:
        ET.SubElement(case, "system-out").text = message


def _is_skipped(outcome: Outcome) -> bool:
    return outcome.state == "undecided" and outcome.allowed


def _text(text: str) -> str:
    """Return ``text`` without what XML 1.0 cannot hold, and with plain spaces."""
    return line(text).replace("\u202f", " ")
