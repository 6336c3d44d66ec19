"""The masthead: which launch of which file, on which GPU, how long, and what the numbers are not."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Any

from ncukit import quantity
from ncukit.metrics.normalise import MARK
from ncukit.model import Diagnosis, Kernel, ReportFile
from ncukit.render import commands
from ncukit.render.cells import Cells
from ncukit.render.line import Line, line, small
from ncukit.render.words import plural, shorten, signature

NAME, SIGNATURE = 120, 300
"""Characters of a kernel name and of its signature that are shown unfolded."""
TOGETHER = {"range": "range", "graph": "CUDA graph", "cmdlist": "command list"}
"""Results that hold more than one launch, by `RawKernel.workload`."""
NOT_A_BENCHMARK = "one pass under the profiler: not a benchmark"


def brand(file: ReportFile, kernel: Kernel) -> str:
    """Return file and launch: "a.ncu-rep · launch 3 of 12"."""
    return f"{file_name(file)} · launch {kernel.index + 1:,} of {max(file.launches, kernel.index + 1):,}"


def file_name(file: ReportFile) -> str:
    """Return the base name of the report."""
    return PurePath(file.path).name or "report"


def heading(kernel: Kernel) -> dict[str, str]:
    """Return the kernel's name and signature, the rest folded where they are long."""
    rest = signature(kernel.name, kernel.demangled)
    whole = kernel.demangled if len(rest) > SIGNATURE or len(kernel.name) > NAME else ""
    return {
        "name": shorten(kernel.name or "kernel without a name", NAME),
        "signature": shorten(rest, SIGNATURE),
        "whole": whole,
    }


def synthetic(kernels: list[Kernel]) -> Line:
    """Return the warning over a page whose numbers nobody measured, or nothing."""
    marks = {str(k.raw.metrics[MARK]) for k in kernels if MARK in k.raw.metrics}
    if not marks:
        return []
    how = "; ".join(sorted(marks))
    return line(f"A program wrote these numbers to show the report; no GPU was measured ({how}).")


def facts(cells: Cells) -> list[dict[str, Any]]:
    """Return the fact line of one launch."""
    kernel = cells.kernel
    cc = f"CC {kernel.compute_capability}" if kernel.compute_capability else "compute capability unknown"
    known = cells.value("sm_count").known
    sms = [cells["sm_count"], small(" SMs")] if known else [small("SMs: "), cells["sm_count"]]
    return [
        _fact("gpu", "GPU", line(kernel.gpu or "name unknown", " ", small(f"{cc} · "), *sms)),
        _fact("grid", "Grid", _grid(cells)),
        _fact("duration", "Profiled duration", line(cells["kernel_duration"], " ", small(NOT_A_BENCHMARK))),
        clean_time(),
    ]


def clean_time() -> dict[str, Any]:
    """Return the fact that no time without a profiler is known."""
    return _fact("clean_time", "Clean time", line({"tip": "", "text": "not measured", "state": "missing"}))


def failure(cells: Cells, diagnosis: Diagnosis) -> dict[str, Any]:
    """Return what replaces the verdict of a launch without a valid measurement."""
    kernel = cells.kernel
    raw = kernel.raw.metrics
    nan = sum(isinstance(v, float) and math.isnan(v) for v in raw.values())
    zero = sum(v == 0 and ".peak_sustained" in name for name, v in raw.items())
    kept = sum(
        isinstance(v, int | float) and not math.isnan(v)
        for name, v in raw.items()
        if not name.startswith(("device__", "launch__")) and not (v == 0 and ".peak_sustained" in name)
    )
    errors = sum(kind == "error" for rule in kernel.raw.rules for kind, _, _ in rule.messages)
    true = sum(v.known for v in kernel.metrics.values())
    ledger = [
        (nan, f"of {len(raw):,} raw metrics read are not numbers.", "plain"),
        (zero, "peaks read 0, which a peak cannot be.", "plain"),
        (
            errors,
            f"{'rule' if errors == 1 else 'rules'} of ncu ended in an error because metrics are missing.",
            "plain",
        ),
        (
            kept,
            "counters hold a number. No number of a failed launch is used, even if it looks valid.",
            "void",
        ),
    ]
    return {
        "claim": line("The counters of this launch are not a measurement"),
        "deck": line(
            _sentence(kernel.failed or diagnosis.verdict.claim),
            " Nothing can be said about what limits the kernel.",
        ),
        "causes": line(
            "Usual causes: the kernel failed or hung when it was replayed, device memory was too small to "
            "save and restore, or another process held the counters."
        ),
        "ledger": [
            {"n": {"text": quantity.short(n), "state": state, "tip": ""}, "text": line(words)}
            for n, words, state in ledger
            if n
        ],
        "collect": commands.collect_failed(kernel),
        "kept": line(f"{plural(true, 'device and launch value')} stay true and are listed below."),
    }


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}." if not words.endswith(".") else words


def _grid(cells: Cells) -> Line:
    if (whole := TOGETHER.get(cells.kernel.raw.workload)) is not None:
        return line(f"a {whole}: everything that ran in it is counted together")
    if not cells.value("grid_size").known and not cells.value("block_size").known:
        return line(cells["grid_size"])
    blocks, threads = (cells.number(f"{what}_size") for what in ("grid", "block"))
    return line(
        _dims(cells, "grid"),
        small(" block of " if blocks == 1 else " blocks of "),
        _dims(cells, "block"),
        small(" thread" if threads == 1 else " threads"),
    )


def _dims(cells: Cells, what: str) -> Any:
    """Return the dimensions "256 × 256" as one cell; the size opens behind them."""
    dims = [cells.number(f"{what}_dim_{axis}") for axis in "xyz"]
    cell = cells[f"{what}_size"]
    if any(d is None for d in dims) or cell["state"] in ("missing", "absent"):
        return cell
    while len(dims) > 1 and dims[-1] == 1:
        dims.pop()
    return {**cell, "text": " × ".join(f"{int(d or 0):,}" for d in dims)}


def _fact(id: str, name: str, text: Line) -> dict[str, Any]:
    return {"id": id, "name": name, "text": text}
