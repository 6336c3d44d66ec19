"""A second, slow and plain evaluation of a metric list in YAML, written apart from ncukit's own.

It shares nothing with ``ncukit.catalog``: expressions become Python source, operands are read one by one
through ``ncu_report``.  The test compares every value of every real report with it.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any


@functools.cache
def _python(text: str) -> CodeType:
    """Return an expression of the metric list as compiled Python."""
    code = re.sub(r"\{([^{}]+)\}\?", r'raw("\1",None)', text)
    code = re.sub(r"\{([^{}]+)\}", r'raw("\1")', code)
    code = re.sub(r"@(\w+)", r'ref("\1")', code)
    for start in [m.end() for m in re.finditer(r"\b(?:sum_)?opt\(", code)][::-1]:
        depth, end = 1, start
        while depth:
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        inside = re.sub(r'(raw|ref)\("([^"]*)"\)', r'maybe_\1("\2")', code[start : end - 1])
        code = code[:start] + inside + code[end - 1 :]
    return compile(code, text, "eval")


class Absent(Exception):
    """An operand is missing."""


class Oracle:
    """Evaluates the metrics of one YAML document on one ``ncu_report`` action."""

    def __init__(self, document: dict[str, Any], action: Any) -> None:
        self.document = document
        self.metrics = {m["id"]: m for m in document["metrics"]}
        self.action = action
        self.names = set(action.metric_names())
        self.values: dict[str, Any] = {}
        major = self.raw("device__attribute_compute_capability_major", None)
        minor = self.raw("device__attribute_compute_capability_minor", None)
        self.functions = self._functions()
        self.cc = None if major is None else int(major) * 10 + int(minor)

    def raw(self, name: str, *default: Any) -> Any:
        value = self.action.metric_by_name(name).value() if name in self.names else None
        bad = value is None or value == "n/a" or (isinstance(value, float) and math.isnan(value))
        if bad or (value == 0 and ".peak_sustained" in name):
            if default:
                return default[0]
            raise Absent(name)
        return value

    def ref(self, id: str) -> Any:
        value = self.value(id)
        if value is None:
            raise Absent(id)
        return value

    def value(self, id: str) -> Any:
        if id not in self.values:
            self.values[id] = next(self._results(self.metrics[id]), None)
        return self.values[id]

    def _results(self, metric: dict[str, Any]) -> Iterator[Any]:
        for source in metric["sources"]:
            low, high = source.get("cc") or (None, None)
            if source.get("cc") and self.cc is None:
                continue
            if (low is not None and self.cc < low) or (high is not None and self.cc > high):
                continue
            try:
                result = self._evaluate(source["expr"])
            except (Absent, ZeroDivisionError):
                continue
            if isinstance(result, str) or math.isfinite(result):
                yield result

    def _evaluate(self, text: str) -> Any:
        return eval(_python(text), {"__builtins__": {}}, self.functions)

    def _functions(self) -> dict[str, Any]:
        def sum_opt(*terms: Any) -> Any:
            values = [term for term in terms if term is not None]
            if not values:
                raise Absent("all")
            return sum(values)

        def argmin(**limits: Any) -> str:
            limits = {k: v for k, v in limits.items() if v is not None}
            kept = {k: v for k, v in limits.items() if v} or limits
            return "+".join(k for k, v in kept.items() if v == min(kept.values()))

        return {
            "raw": self.raw,
            "ref": self.ref,
            "maybe_raw": lambda name: self.raw(name, None),
            "maybe_ref": self.value,
            "opt": lambda term: term or 0,
            "sum_opt": sum_opt,
            "max": max,
            "ceil": math.ceil,
            "round": round,
            "tail": lambda w: 0 if w <= 0 or w == int(w) else 100 / (int(w) + 1),
            "argmin": argmin,
            "inst": lambda metric, pattern: sum(
                v for k, v in self.instances(metric) if re.search(pattern, str(k))
            ),
            "opcount": self.count,
            "opmix": self.mix,
            "tensor_ops": self.tensor_ops,
            "half_ops": self.half_ops,
            "table": self.table,
        }

    def instances(self, name: str) -> list[tuple[Any, Any]]:
        if name not in self.names:
            raise Absent(name)
        metric = self.action.metric_by_name(name)
        if not metric.has_correlation_ids():
            return []
        ids = metric.correlation_ids()
        return [(ids.value(i), metric.value(i)) for i in range(metric.num_instances())]

    def classify(self, opcode: str) -> str:
        for name, pattern in self.document["opcode_classes"]:
            if re.match(pattern, opcode):
                return str(name)
        return "other"

    def count(self, name: str) -> float:
        return sum(v for k, v in self.instances("sass__inst_executed_per_opcode") if self.classify(k) == name)

    def mix(self, name: str) -> float:
        rows = self.instances("sass__inst_executed_per_opcode")
        return 100 * sum(v for k, v in rows if self.classify(k) == name) / sum(v for _, v in rows)

    def table(self, key: str) -> float:
        value = self.document["flop_per_cycle_per_sm"].get(self.cc, {}).get(key)
        if not value:
            raise Absent(key)
        return float(value)

    def tensor_ops(self, dtype: str) -> float:
        rules = self.document["tensor_opcodes"]
        total = 0.0
        for opcode, count in self.instances("sass__inst_executed_per_opcode_with_modifier_all"):
            name, *modifiers = opcode.split(".")
            if self.classify(name) != "tensor" or not count:
                continue
            if name not in rules["opcodes"]:
                raise Absent(opcode)
            each = None
            for modifier in modifiers:
                if modifier.isdigit() and modifier in rules["shapes"]:
                    m, n, k = rules["shapes"][modifier]
                    each = 512 if (name, modifier) == ("HMMA", "884") else 2 * m * n * k
                elif re.fullmatch(r"\d+x\d+x\d+", modifier):
                    m, n, k = map(int, modifier.split("x"))
                    each = m * n * k / 2
            if each is None:
                raise Absent(opcode)
            if name in ("HMMA", "HGMMA"):
                kind = "tf32" if "TF32" in modifiers else "bf16" if "BF16" in modifiers else "fp16"
            elif name in ("QMMA", "QGMMA"):
                kind = "fp4" if "E2M1" in modifiers else "fp8"
            elif name in ("IMMA", "IGMMA"):
                kind = "int4" if "S4" in modifiers or "U4" in modifiers else "int8"
            else:
                kind = {"DMMA": "fp64"}.get(name, "int1")
            total += count * each if kind == dtype else 0
        return total

    def half_ops(self) -> float:
        total, seen = 0.0, False
        for pc, threads in self.instances("thread_inst_executed_true"):
            text = self.action.sass_by_pc(pc)
            if not text:
                continue
            seen = True
            words = re.sub(r"^\s*(@!?U?P\w+)?\s*", "", text).split(None, 1)
            name, *modifiers = words[0].split(".")
            operands = [o.strip() for o in (words[1] if len(words) > 1 else "").split(",")]
            if name == "HFMA2" and operands[1].lstrip("-") == "RZ" and operands[2].lstrip("-") == "RZ":
                continue
            if name == "HADD2" and "F32" in modifiers:
                continue
            total += {"HADD2": 2, "HMUL2": 2, "HFMA2": 4}.get(name, 0) * threads
        if not seen:
            raise Absent("SASS")
        return total


def actions(path: Path) -> Iterator[Any]:
    """Yield every action of a report."""
    import ncu_report

    context = ncu_report.load_report(str(path))
    for r in range(context.num_ranges()):
        one = context.range_by_idx(r)
        for a in range(one.num_actions()):
            yield one.action_by_idx(a)
