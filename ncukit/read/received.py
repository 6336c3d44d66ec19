"""Launches from what the reading process sent: the other end of `ncukit.read.native`."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from ncukit.model import RawKernel, RuleResult
from ncukit.model.raw import Code
from ncukit.read.native import Plain


def raw_kernel(plain: Plain, codes: MutableMapping[int, Code] | None = None) -> RawKernel:
    """Return the launch that `results` described; ``codes`` keeps what launches of one report share."""
    function, demangled, mangled = plain["names"]
    sass = plain.get("sass")
    shared = _code(plain, {} if codes is None else codes)
    return RawKernel(
        plain["index"],
        function,
        demangled,
        mangled,
        workload=plain["workload"],
        metrics=plain["metrics"],
        instances={name: tuple((id, n) for id, n in rows) for name, rows in plain["instances"].items()},
        units=plain.get("units", {}),
        sections=tuple(plain.get("sections", ())),
        rules=tuple(_rule_result(rule) for rule in plain.get("rules", ())),
        nvtx=tuple(plain.get("nvtx", ())),
        source_files=plain.get("source_files", {}),
        sass=shared.text if shared is not None else None if sass is None else dict(sass),
        lines={pc: (file, line) for pc, file, line in plain.get("lines", ())},
        code=shared,
        by_pc=_columns(plain),
        functions=tuple(plain.get("functions", ())),
        series={name: (tuple(times), tuple(v)) for name, (times, v) in plain.get("series", {}).items()},
    )


def _rule_result(rule: Plain) -> RuleResult:
    messages = tuple((kind, title, text) for kind, title, text in rule["messages"])
    focus = tuple((metric, value, information) for metric, value, information in rule["focus"])
    return RuleResult(**{**rule, "messages": messages, "focus": focus})


def _code(plain: Plain, codes: MutableMapping[int, Code]) -> Code | None:
    """Return the code of the launch that was described; ``codes`` remembers those sent before."""
    if (body := plain.get("body")) is not None:
        lines = tuple(None if line is None else (line[0], line[1]) for line in body["lines"])
        texts = {file: dict(rows) for file, rows in body["texts"]}
        codes[plain["code"]] = Code(
            tuple(body["pcs"]), tuple(body["sass"]), tuple(body["files"]), lines, texts
        )
    return codes.get(plain["code"]) if "code" in plain else None


def _columns(plain: Plain) -> dict[str, Mapping[int, int]]:
    """Return the counters by PC of the launch that was described."""
    found: dict[str, list[list[int]]] = plain.get("by_pc", {})
    return {name: dict(zip(pcs, values, strict=True)) for name, (pcs, values) in found.items()}
