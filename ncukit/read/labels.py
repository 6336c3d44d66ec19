"""Which metric a label of ncu's details page stands for.

``details_names.json`` (made by ``scripts/details_names.py``) holds what reports of 2019 to 2026 say.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

_RAW_NAME = r"[A-Za-z]\w*(?:__|\.)[\w.:%]*|[a-z\d]+(?:_[a-z\d]+)+"
_LABEL_AND_NAME = re.compile(rf"(?:.* )?\(({_RAW_NAME})\)")


class Labels:
    """What the labels in the rows of one launch mean; ``rows`` by column."""

    def __init__(self, rows: list[dict[str, str]]) -> None:
        self.table = _details_names()
        changed = self.table["changed"]
        labels = {
            row["Metric Name"] for row in rows if row.get("Section Name") == changed["evidence_section"]
        }
        # 0 or 1: the version before or after the change; None where the section that would tell is absent.
        self.version = int(not labels.isdisjoint(changed["evidence"])) if labels else None

    def identifier(self, section: str) -> str:
        """Return the identifier of the section with this title, or the title."""
        return str(self.table["sections"].get(section, section))

    def metric(self, row: dict[str, str]) -> str:
        """Return the metric that the label of ``row`` stands for, or "section: label"."""
        section, label = row.get("Section Name", ""), row["Metric Name"].strip()
        if named := _LABEL_AND_NAME.fullmatch(label):
            return named[1]
        item = row.get("Body Item Label", "")
        key = f"{item}/{label}" if item else label
        major = row.get("CC", "").partition(".")[0]
        for names in ("before_7.0", "names") if major in ("5", "6") else ("names",):
            if name := self.table[names].get(section, {}).get(key):
                return str(name)
        changed = self.table["changed"]
        if section == changed["section"] and key in changed["labels"] and self.version is not None:
            return str(changed["labels"][key][self.version])
        if re.fullmatch(_RAW_NAME, label):
            return label
        return f"{section}: {key}"


@cache
def _details_names() -> dict[str, Any]:
    path = Path(__file__).with_name("details_names.json")
    names: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return names
