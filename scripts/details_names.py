"""Make ncukit/report/details_names.json: which metric each label on ncu's details page stands for.

    python scripts/details_names.py --ncu NCU REPORT... > ncukit/report/details_names.json

Every report carries the sections that its ncu used, so reports of many versions give the labels of many
versions.  A real ncu prints label and metric side by side; for reports too new for it the headers of the
sections are read from the report itself.  A label that means two metrics is left out, unless another label
tells the versions apart (CHANGED).
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

NAMED = re.compile(r"(.*?) ?\(([A-Za-z0-9_.%:]*__[^()]*)\)")
# Sections of single users, and the tensor roofline (one item a data type, none of which the catalog needs).
SKIP = re.compile(
    r"Load Metrics|Store Metrics|Shared Memory Analysis|Device Memory Table|.*Tensor Core|.*line prof"
)
# Since 2025.3 these are shares of all cycles, not of the active ones; the same version brought the evidence.
CHANGED = {
    "section": "Compute Workload Analysis",
    "labels": ["Issue Slots Busy", "Max. Issued Slots Busy", "SM Busy"],
    "evidence_section": "Memory Workload Analysis",
    "evidence": ["L2 Persisting Size", "Local Memory Spilling Requests"],
}
Row = tuple[str, str, str, str]


def printed(ncu: str, report: Path) -> Iterator[Row]:
    """Yield (section, label, metric, compute capability) as ncu prints them; a body item precedes a slash."""
    options = ["--page", "details", "--csv", "--print-details", "all", "--print-metric-name", "label-name"]
    run = subprocess.run([ncu, "--import", str(report), *options], capture_output=True, text=True, check=True)
    columns: list[str] = []
    for line in run.stdout.splitlines():
        cells = line.rstrip(",")[1:-1].split('","')
        if line.startswith('"ID"'):
            columns = cells[: cells.index("Metric Value") + 1]
        elif len(cells) == len(columns):
            row = dict(zip(columns, cells, strict=True))
            if named := NAMED.fullmatch(row["Metric Name"]):
                item = row["Body Item Label"]
                label = f"{item}/{named[1]}" if item else named[1]
                yield row["Section Name"], label, named[2], row["CC"]


def fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the length-delimited fields of a protobuf message."""
    pos = 0
    while pos < len(data):
        key, pos = varint(data, pos)
        if key & 7 == 0:
            _, pos = varint(data, pos)
        elif key & 7 == 2:
            size, pos = varint(data, pos)
            yield key >> 3, data[pos : pos + size]
            pos += size
        else:
            pos += 8 if key & 7 == 1 else 4


def varint(data: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while data[pos] & 0x80:
        value |= (data[pos] & 0x7F) << shift
        pos, shift = pos + 1, shift + 7
    return value | data[pos] << shift, pos + 1


def embedded(report: Path) -> Iterator[tuple[str, str, list[Row]]]:
    """Yield (identifier, title, header rows) of the sections inside the report; "9.9" as capability."""
    data = report.read_bytes()
    for found in re.finditer(rb"\x8a\x01", data):  # field 17 of a result: a section
        try:
            size, pos = varint(data, found.end())
            section = list(fields(data[pos : pos + size])) if 50 < size < 100_000 else []
            identifier, title = (dict(section)[number].decode() for number in (1, 2))
            rows = []
            for header in (value for number, value in section if number == 4):
                for number, metric in fields(header):
                    cell = dict(fields(metric)) if number == 2 else {}
                    if cell.keys() >= {1, 2} and b"__" in cell[1]:
                        rows.append((title, cell[2].decode(), cell[1].decode(), "9.9"))
        except (IndexError, KeyError, UnicodeDecodeError):
            continue
        if title.isprintable() and identifier.isidentifier():
            yield identifier, title, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ncu", required=True)
    parser.add_argument("reports", nargs="+", type=Path)
    options = parser.parse_args()
    seen: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    pascal: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    identifiers: dict[str, str] = {}
    for report in sorted(options.reports):
        sections = list(embedded(report))
        identifiers |= {title: identifier for identifier, title, rows in sections if not SKIP.match(title)}
        try:
            rows = list(printed(options.ncu, report))
        except subprocess.CalledProcessError:
            rows = []
        for section, label, metric, cc in rows or [row for *_, header in sections for row in header]:
            if not SKIP.match(section) and label != metric and not label.endswith("/" + metric):
                table = pascal if float(cc) < 7 else seen
                table[section, label][metric] = None

    def unique(table: dict[tuple[str, str], dict[str, None]]) -> dict[str, dict[str, str]]:
        names: dict[str, dict[str, str]] = defaultdict(dict)
        for (section, label), metrics in sorted(table.items()):
            if len(metrics) == 1:
                names[section][label] = next(iter(metrics))
        return names

    changed = {}
    for label in CHANGED["labels"]:
        before = next(m for m in seen[CHANGED["section"], label] if m.endswith("_active"))
        changed[label] = [before, before.removesuffix("_active") + "_elapsed"]
    identifiers = dict(sorted(identifiers.items()))
    result = {
        "sections": identifiers,
        "names": unique(seen),
        "before_7.0": unique(pascal),
        "changed": {**CHANGED, "labels": changed},
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
