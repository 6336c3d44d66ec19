"""What a report holds by instruction and over time, in plain values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ncukit.metrics.expression import NOT_ISSUED, STATES, sampled_counter
from ncukit.model import Wanted

# ---- Values of ``ncu_report``, as ``IMetric.value`` gives them but without the table that it makes for each

STRING, FLOAT, DOUBLE, UINT32, UINT64 = 2, 3, 4, 5, 6
"""``IMetric.ValueKind_*``; the others have no value, or are not known here."""


def value(metric: Any, *at: int) -> Any:
    """Return the value of ``metric``, or that of its instance ``at``; None where it has none."""
    kind = metric.kind(*at)
    if kind in (DOUBLE, FLOAT):
        return metric.as_double(*at)
    if kind in (UINT64, UINT32):
        return metric.as_uint64(*at)
    return metric.as_string(*at) if kind == STRING else metric.value(*at)


def column(metric: Any, count: int) -> list[Any]:
    """Return the values of the first ``count`` instances of ``metric``."""
    return [value(metric, i) for i in range(count)]


# ---- What a report holds by instruction and over time: SASS, lines, counters by PC, PM sampling
# Works on the results that `ncukit.report.native` walks. SASS is by far the slowest part of a report, so
# launches of the same code send it once: `Sent` in the reading process, a dict of codes in the receiving
# one.

Plain = dict[str, Any]
Columns = dict[str, list[list[int]]]

FUNCTIONS = "launch__function_pcs"
CONTEXT = 3
"""Lines kept before and after each line that has instructions."""

LONGEST = 400
"""[character] Longer source lines are cut: generated code has lines of megabytes."""

NO_TEXT = ("N/A", "???")
"""What the library says of an instruction whose text is not in the report, or that it cannot decode."""


class Sent:
    """Which codes have been sent already, by what they are."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def number(self, body: Plain) -> tuple[int, bool]:
        """Return the number of this code, and whether it is new."""
        import hashlib

        digest = hashlib.blake2b(digest_size=16)
        for part in (body["pcs"], body["sass"], body["lines"], body["files"]):
            digest.update(repr(part).encode(errors="replace"))
        key = digest.digest()
        new = key not in self._known
        return self._known.setdefault(key, len(self._known)), new


def counted(action: Any, present: Iterable[str], wanted: Wanted, sent: Sent) -> Plain:
    """Return what ``action`` holds by instruction and over time, JSON-ready."""
    names = set(present)
    series = _series(action, names, wanted.series)
    found: Plain = {"series": series} if series else {}
    columns, pcs = by_pc(action, _columns_of(names, wanted.by_pc))
    if not pcs:
        return found
    body: Plain = {"pcs": pcs, "sass": [_sass(action, pc) for pc in pcs], "lines": [], "files": []}
    _places(action, body)
    number, new = sent.number(body)
    if new:
        body["texts"] = _texts(action, body)
    found |= {"by_pc": columns, "code": number, "functions": _functions(action, names)}
    return found | {"body": body} if new else found


def by_pc(action: Any, names: Iterable[str]) -> tuple[Columns, list[int]]:
    """Return the instances of ``names`` as [PCs, values] without zeros, and every PC in address order.

    A counter that was not taken is left out; one that was, and counted nothing, is empty.
    """
    known: dict[tuple[Any, ...], list[Any]] = {}
    found: Columns = {}
    for name in names:
        metric = action.metric_by_name(name)
        count = 0 if metric is None else metric.num_instances()
        if count and metric.has_correlation_ids():
            pcs = _ids(metric, count, known)
            values = column(metric, count)
            rows = [(pc, n) for pc, n in zip(pcs, values, strict=True) if n and _whole(pc) and _whole(n)]
            rows = [(pc, n) for pc, n in rows if math.isfinite(n)]  # a failed pass leaves NaN
            found[name] = [[pc for pc, _ in rows], [int(n) for _, n in rows]]
        elif metric is not None and not count and value(metric) == 0:
            found[name] = [[], []]
    return found, sorted({pc for pcs in known.values() for pc in pcs if _whole(pc)})


def _ids(metric: Any, count: int, known: dict[tuple[Any, ...], list[Any]]) -> list[Any]:
    """Return the PCs of a counter; all sampled states share theirs, and so do most others."""
    ids = metric.correlation_ids()
    key = (count, *(value(ids, i) for i in (0, count // 3, count // 2, count - 1)))
    if key not in known:
        known[key] = column(ids, count)
    return known[key]


def _whole(number: Any) -> bool:
    return isinstance(number, int) or (isinstance(number, float) and number.is_integer())


def _columns_of(present: set[str], wanted: frozenset[str]) -> list[str]:
    prefixes = tuple(name[:-1] for name in wanted if name.endswith("*"))
    names = sorted(name for name in present if name in wanted or name.startswith(prefixes or ("\0",)))
    waiting = [name for name in names if name.startswith(STATES) and name.endswith(NOT_ISSUED)]
    if not waiting:
        return names
    # with a total a PC, the states of samples that cost time say all that is shown
    plain = "smsp__pcsamp_sample_count" in names
    return [n for n in names if not n.startswith(STATES) or n.endswith(NOT_ISSUED) or not plain]


def _sass(action: Any, pc: int) -> str:
    text = action.sass_by_pc(pc) or ""
    return "" if text.strip() in NO_TEXT else _clean(text)


def _places(action: Any, body: Plain) -> None:
    """Fill in the file and line of every instruction of ``body``."""
    files: dict[str, int] = {}
    for pc in body["pcs"]:
        info = action.source_info(pc)
        if info is None:
            body["lines"].append(None)
        else:
            number = files.setdefault(_clean(info.file_name()), len(files))
            body["lines"].append([number, info.line()])
    body["files"] = list(files)


def _texts(action: Any, body: Plain) -> list[list[Any]]:
    """Return, by file, the embedded lines around counted instructions."""
    if not body["files"]:
        return []
    embedded = {_clean(file): content for file, content in dict(action.source_files()).items() if content}
    found: list[list[Any]] = []
    for number, file in enumerate(body["files"]):
        if (content := embedded.get(file)) is not None:
            used = {line[1] for line in body["lines"] if line and line[0] == number}
            found.append([number, sorted(near(content, used).items())])
    return found


def near(content: str, used: Iterable[int]) -> dict[int, str]:
    """Return the lines of ``content`` that are used, and some around them, by number from 1.

    >>> near("a\\nb\\nc\\nd\\ne\\nf\\ng\\nh\\ni", [9])
    {6: 'f', 7: 'g', 8: 'h', 9: 'i'}
    """
    lines = content.split("\n")
    numbers = {n for line in used for n in range(line - CONTEXT, line + CONTEXT + 1)}
    return {n: _clean(lines[n - 1].rstrip("\r")[:LONGEST]) for n in sorted(numbers) if 0 < n <= len(lines)}


def _functions(action: Any, present: set[str]) -> list[int]:
    metric = action.metric_by_name(FUNCTIONS) if FUNCTIONS in present else None
    if metric is None:
        return []
    values = column(metric, metric.num_instances()) or [value(metric)]
    return [int(n) for n in values if isinstance(n, int | float) and math.isfinite(n)]


def _series(action: Any, present: set[str], wanted: frozenset[str]) -> dict[str, list[list[Any]]]:
    if not wanted:
        return {}
    found: dict[str, list[list[Any]]] = {}
    for name in sorted(present):
        if sampled_counter(name) not in wanted:
            continue
        metric = action.metric_by_name(name)
        if metric is None or not metric.has_correlation_ids():
            continue
        ids, count = metric.correlation_ids(), metric.num_instances()
        found[name] = [column(ids, count), column(metric, count)]
    return found


def _clean(text: str) -> str:
    return text if text.isprintable() else text.encode(errors="surrogateescape").decode(errors="replace")
