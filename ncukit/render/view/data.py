"""All numbers of a page, from which its script writes JSON and CSV: the columns of `ncukit.kernel/1`.

Every text stands once, in ``words``; columns are `ncukit.render.by_instruction.runs`, one entry a launch.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ncukit.model import Diagnosis, ReportFile, Value
from ncukit.render.by_instruction import runs
from ncukit.render.json import diagnosis_data, hot_lines_data, verdict_data
from ncukit.render.view.head import file_name

DOWNLOADS = {
    "json": "All data, JSON",
    "metrics": "Metrics, CSV",
    "lines": "Source lines, CSV",
    "sass": "SASS, CSV",
    "hot": "Hot lines, CSV",
}
"""What the page's script can write, and what the button says."""
FULL = 2
"""Launches up to which everything that was concluded goes into the page."""


def page_data(
    file: ReportFile, diagnoses: Sequence[Diagnosis], only: Collection[str] | None = None
) -> dict[str, Any]:
    """Return the data of a page; ``only`` are the metrics of a page that has no room for all.

    Then, too, the verdict is left out: class and limiter stand in the table.
    """
    words: dict[str, int] = {}

    def word(value: Any) -> int:
        return words.setdefault(json.dumps(value, ensure_ascii=False), len(words))

    evidence: dict[tuple[Any, ...], int] = {}

    def about(value: Value) -> int:
        """Write what hardly differs between launches as JSON once."""
        key = (value.quality, value.sources, value.reason, value.status)
        if (found := evidence.get(key)) is None:
            found = evidence[key] = word([value.quality, list(value.sources), value.reason, value.status])
        return found

    kernels = [d.kernel for d in diagnoses]
    ids = [id for id in dict.fromkeys(id for k in kernels for id in k.metrics) if only is None or id in only]
    missing = Value("", None, "", reason="not collected")
    columns = [(id, [k.metrics.get(id, missing) for k in kernels]) for id in ids]
    return {
        "file": file_name(file),
        "head": {
            name: runs(word(of(d)) for d in diagnoses) for name, of in HEAD.items()
        },
        "metrics": [
            [
                id,
                next((v.unit for v in values if v.unit), ""),
                runs(_number(v.value) for v in values),
                runs(map(about, values)),
            ]
            for id, values in columns
        ],
        "diagnoses": runs(
            word(_concluded(d, len(diagnoses), whole=only is None)) for d in diagnoses
        ),
        "words": [json.loads(text) for text in words],
    }  # fmt: skip


HEAD: dict[str, Callable[[Diagnosis], Any]] = {
    "index": lambda d: d.kernel.index,
    "name": lambda d: d.kernel.name,
    "demangled": lambda d: d.kernel.demangled,
    "gpu": lambda d: d.kernel.gpu,
    "compute_capability": lambda d: d.kernel.compute_capability,
    "failed": lambda d: d.kernel.failed is not None,
}
"""What `ncukit.kernel/1` says of a launch beside its metrics."""


def buttons(diagnoses: Sequence[Diagnosis], *, sources: bool) -> list[dict[str, str]]:
    """Return what can be downloaded: lines and SASS where the page holds them, else the hot lines."""
    found = ["json", "metrics"]
    if sources:
        found += ["lines", "sass"]
    elif any(d.hot for d in diagnoses):
        found.append("hot")
    return [{"id": id, "text": DOWNLOADS[id]} for id in found]


def _concluded(diagnosis: Diagnosis, count: int, *, whole: bool) -> dict[str, Any]:
    if count <= FULL:
        return diagnosis_data(diagnosis)
    found: dict[str, Any] = {}
    if whole:
        found["verdict"] = verdict_data(diagnosis.verdict)
        if diagnosis.hot:
            found["hot_lines"] = hot_lines_data(diagnosis.hot)
    return found


def _number(value: float | int | str | None) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
