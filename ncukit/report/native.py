"""The only user of NVIDIA's ``ncu_report``: walks a report and yields each result as plain data.

``ncu_report`` returns base units in every version, None for what is absent, an empty context for a file that
it cannot read, and aborts the process on some damaged files: check the container first and run it in a child
(`ncukit.report.wire`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from ncukit.media import visible
from ncukit.metrics.evaluation import HALF_OPCODES, is_half
from ncukit.metrics.expression import OPCODES, THREADS_BY_PC
from ncukit.model import Wanted
from ncukit.report import source_code
from ncukit.report.source_code import column, value

WORKLOADS = {0: "kernel", 1: "range", 2: "cmdlist", 3: "graph", 4: "subgrid"}
MESSAGES = {0: "none", 1: "ok", 2: "optimization", 3: "warning", 4: "error"}
SPEEDUPS = {1: "local", 2: "global"}


DAMAGE = (TypeError, ValueError, RuntimeError, OverflowError, MemoryError)
"""What the bindings raise on damaged content: text that is none, numbers out of range, lengths of garbage.

Anything else (a name, an attribute, a module or a key that is missing) is a fault of the program.
"""
Plain = dict[str, Any]


def load(path: str) -> Any:
    """Return the library's context of the report at ``path``, parsed; empty for a file it cannot read.

    Its first result is read as well, before anybody says what is wanted of it: that takes longest.
    """
    try:
        import ncu_report
    except Exception as error:
        raise ImportError(f"ncu_report cannot be loaded: {type(error).__name__}: {error}") from error
    path = _named(path)
    context = ncu_report.load_report(path)
    if context.num_ranges() and context.range_by_idx(0).num_actions():
        context.range_by_idx(0).action_by_idx(0)
    return context


def _named(path: str) -> str:
    """Return a path that the library takes: it wants UTF-8, and a file may have another name."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return f"/proc/self/fd/{os.open(path, os.O_RDONLY)}"  # until the process ends: it reads one report
    return path


def results(context: Any, wanted: Wanted) -> Iterator[Plain]:
    """Yield every result of a loaded report, in order, as JSON-ready data."""
    index, sent = 0, source_code.Sent()
    for r in range(context.num_ranges()):
        actions = context.range_by_idx(r)
        for a in range(actions.num_actions()):
            yield _result(actions.action_by_idx(a), index, wanted, sent)
            index += 1


def _result(action: Any, index: int, wanted: Wanted, sent: source_code.Sent) -> Plain:
    present = frozenset(action.metric_names())
    names = present if wanted.metrics is None else wanted.metrics & present
    metrics: dict[str, Any] = {}
    units: dict[str, str] = {}
    for name in names:
        metric = action.metric_by_name(name)
        if metric is not None and (found := value(metric)) is not None:
            metrics[name] = _text(found) if isinstance(found, str) else found
            if wanted.units:
                units[name] = metric.unit() or ""
    for name in wanted.breakdowns.intersection(present):
        _take(metrics, name, action.metric_by_name(name))
        members = metrics.get(name)
        if isinstance(members, str):
            if not members.isprintable():
                raise ValueError(f"{name} is not text")
            for member in {m.strip() for m in members.split(",")} - metrics.keys():
                _take(metrics, member, action.metric_by_name(member))
    plain: Plain = {
        "index": index,
        "names": [
            visible(_text(action.name(kind) or ""))
            for kind in (action.NameBase_FUNCTION, action.NameBase_DEMANGLED, action.NameBase_MANGLED)
        ],
        "workload": WORKLOADS.get(action.workload_type(), "unknown"),
        "metrics": metrics,
        "instances": {},
    }
    for name in wanted.instances.intersection(present):
        plain["instances"][name] = _instances(action.metric_by_name(name))
    if wanted.units:
        plain["units"] = units
    if wanted.sections:
        plain["sections"] = [section.identifier() for section in action.sections()]
    if wanted.rules:
        plain["rules"] = [_rule(rule) for rule in action.rule_results_as_dicts()]
    if wanted.nvtx:
        plain["nvtx"] = _nvtx(action.nvtx_state())
    if wanted.sources:
        files = dict(action.source_files())
        plain["source_files"] = {_text(file): _text(content) for file, content in files.items()}
    if wanted.code:
        plain.update(source_code.counted(action, present, wanted, sent))
    if wanted.sass != "none" and "code" not in plain:
        plain.update(_code(action, plain["instances"], wanted))
    return plain


def _take(metrics: dict[str, Any], name: str, metric: Any) -> None:
    if metric is not None and (found := value(metric)) is not None:
        metrics[name] = _text(found) if isinstance(found, str) else found


def _text(text: str) -> str:
    """Return text that can be written anywhere: the library hands out what is no UTF-8 as surrogates."""
    return text if text.isprintable() else text.encode(errors="surrogateescape").decode(errors="replace")


def _instances(metric: Any) -> list[list[Any]]:
    if metric is None or not metric.has_correlation_ids():
        return []
    count, ids = metric.num_instances(), metric.correlation_ids()
    return [[id, number] for id, number in zip(column(ids, count), column(metric, count), strict=True)]


def _rule(rule: Plain) -> Plain:
    message = rule["rule_message"] or {}
    speedup = rule.get("speedup_estimation") or {}
    kind = SPEEDUPS.get(speedup.get("type", 0))
    return {
        "id": rule["rule_identifier"],
        "name": rule["name"],
        "section": rule["section_identifier"],
        "messages": [
            [
                MESSAGES.get(message.get("type", 0), "none"),
                _text(message.get("title", "")),
                _text(message.get("message", "")),
            ]
        ],
        "speedup": speedup.get("speedup") if kind else None,
        "speedup_kind": kind,
        "focus": [[f["name"], f["value"], f["info"]] for f in rule.get("focus_metrics") or ()],
    }


def _nvtx(state: Any) -> list[str]:
    if state is None:
        return []
    ranges: list[str] = []
    for id in state.domains():
        domain = state.domain_by_id(id)
        ranges += [*domain.push_pop_ranges(), *domain.start_end_ranges()]
    return [_text(range) for range in ranges]


def _code(action: Any, instances: dict[str, list[list[Any]]], wanted: Wanted) -> Plain:
    """Return SASS (and with "all" the source lines) at the PCs that were counted."""
    if wanted.sass == "half":
        opcodes = instances.get(OPCODES)
        if opcodes is not None and not any(str(opcode).startswith(HALF_OPCODES) for opcode, _ in opcodes):
            return {"sass": []}
        if not instances.get(THREADS_BY_PC):
            return {}
    pcs = _counted_pcs(action, instances)
    sass = [[pc, text] for pc in pcs if (text := action.sass_by_pc(pc))]
    if wanted.sass == "half":
        return {"sass": [row for row in sass if is_half(row[1])]} if sass else {}
    lines = [
        [pc, _text(info.file_name()), info.line()]
        for pc in pcs
        if (info := action.source_info(pc)) is not None
    ]
    return {"sass": sass or None, "lines": lines}


def _counted_pcs(action: Any, instances: dict[str, list[list[Any]]]) -> Iterable[int]:
    for name in (THREADS_BY_PC, "inst_executed"):
        rows = instances.get(name) or _instances(action.metric_by_name(name))
        if rows:
            return [pc for pc, _ in rows if isinstance(pc, int)]
    return []
