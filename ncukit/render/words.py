"""The words of the pages: classes, limiters, precisions, levels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

LIMITERS: Mapping[str, str] = {
    "dram": "DRAM",
    "l2": "L2",
    "l1": "L1/TEX",
    "shared": "shared memory",
    "sysmem": "system memory",
    "tensor": "tensor cores",
    "fp32": "FP32 pipe",
    "fp64": "FP64 pipe",
    "fp16": "FP16 pipe",
    "int": "integer pipe",
    "xu": "XU pipe (special functions, conversions)",
    "lsu-issue": "load/store issue",
    "occupancy": "occupancy",
    "dependency": "dependencies between instructions",
    "synchronisation": "synchronisation",
    "imbalance": "imbalance between blocks or SMs",
    "tail": "partial last wave",
    "small-grid": "grid too small",
}
ROLE: Mapping[str, str] = {"memory-bound": "level", "compute-bound": "pipe", "latency-bound": "cause"}
"""What the limiter of a class is called."""

PRECISIONS: Mapping[str, tuple[str, str]] = {
    "fp64": ("FP64", "--p-fp64"),
    "fp32": ("FP32", "--p-fp32"),
    "fp16": ("FP16", "--p-fp16"),
    "tensor_fp64": ("FP64 tensor", "--p-fp64"),
    "tensor_tf32": ("TF32 tensor", "--p-ttf32"),
    "tensor_bf16": ("BF16 tensor", "--p-tfp16"),
    "tensor_fp16": ("FP16 tensor", "--p-tfp16"),
    "tensor_fp8": ("FP8 tensor", "--p-tfp8"),
    "tensor_fp4": ("FP4 tensor", "--p-tfp8"),
    "tensor_int8": ("INT8 tensor", "--p-tint8"),
    "tensor_int4": ("INT4 tensor", "--p-tint8"),
    "inst": ("Instructions", "--p-inst"),
}
"""Precision -> its name and its colour; FP16 and BF16 share a hue, the label tells."""

LEVELS: Mapping[str, tuple[str, str]] = {
    "dram": ("DRAM", "●"),
    "l2": ("L2", "■"),
    "l1": ("L1", "▲"),
    "shared": ("Shared", "◆"),
}
"""Memory level -> its name and the shape of its point."""

HOLLOW = str.maketrans("●■▲◆", "○□△◇")
"""The shape of a point that is an estimate."""

FAMILIES: Mapping[str, str] = {
    "speed_of_light": "Speed of light",
    "memory": "Memory workload",
    "scheduler": "Scheduler and warp state",
    "launch": "Launch statistics",
    "source": "Source counters",
    "tensor": "Tensor cores",
    "roofline": "Roofline",
    "context": "Context",
}

_MARKS = re.compile(r"\{([\w.]+)\}|@(?=\w)")


def shorten(text: str, length: int = 80) -> str:
    """Return ``text``, cut in the middle to ``length`` characters: names differ at both ends.

    >>> shorten("abcdefghij", 5)
    'ab…ij'
    """
    if len(text) <= length:
        return text
    head = length // 2
    return f"{text[:head]}…{text[len(text) - (length - head - 1) :]}"


def signature(function: str, demangled: str) -> str:
    """Return what the demangled name says beyond ``function``: template arguments and parameters.

    >>> signature("f", "void ns::f<int>(int*)"), signature("f", "g")
    ('<int>(int*)', 'g')
    """
    if demangled == function:
        return ""
    at = demangled.find(function)
    return demangled[at + len(function) :] if at >= 0 and function else demangled


def limited_by(cls: str, limiter: str | None) -> str:
    """Return class and limiter for one line of a table: "memory: dram"."""
    if limiter is None:
        return cls
    return f"{cls.removesuffix('-bound')}: {limiter}"


def named(reason: str) -> str:
    """Return a reason with the names in it as a reader knows them, without the marks of a formula.

    >>> named("undefined: {dram__bytes.sum}/@dram_bytes is 0")
    'undefined: dram__bytes.sum/dram_bytes is 0'
    """
    return _MARKS.sub(lambda match: match.group(1) or "", reason)


def listed(items: Sequence[str], last: str = "and") -> str:
    """Return ``items`` as a list in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def inside(label: str) -> str:
    """Return a label as it stands inside a sentence.

    >>> inside("Issue slots"), inside("DRAM")
    ('issue slots', 'DRAM')
    """
    return label[:1].lower() + label[1:] if label[1:2].islower() else label


def plural(count: int, noun: str) -> str:
    """Return "1 launch", "3 launches".

    >>> plural(1, "launch"), plural(3, "launch"), plural(2, "kernel")
    ('1 launch', '3 launches', '2 kernels')
    """
    return f"{count:,} {noun}" + (
        "" if count == 1 else "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    )


def prose(text: str) -> list[dict[str, str]]:
    """Split ``text`` at its backticks into plain and code parts, for a template that marks code.

    >>> prose("see `bar.sync` here")
    [{'text': 'see '}, {'code': 'bar.sync'}, {'text': ' here'}]
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return [{"text": text}]
    return [{"code" if i % 2 else "text": part} for i, part in enumerate(parts) if part]
