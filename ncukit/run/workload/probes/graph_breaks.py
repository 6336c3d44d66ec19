"""Where torch.compile breaks its graph: the line, the reason, and the usual rewrite.

``torch._dynamo.explain`` is private: it is asked for with care, and its answer is read by what it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ncukit.errors import NcukitError

REWRITES: tuple[tuple[str, str], ...] = (
    (
        r"Tensor\.item\(\)|aten\._local_scalar_dense|\.tolist\(\)",
        "Keep the value on the GPU: torch.where instead of an `if` on it, a tensor instead of a number. If "
        "the number is needed, take it after the compiled part.",
    ),
    (
        r"[Dd]ata-dependent (branching|jump)|generic_jump|control flow",
        "Use torch.where for values, torch.cond for branches, or move the `if` out of the compiled function.",
    ),
    (
        r"data.dependent output shape|nonzero|masked_select|unique",
        "Use a fixed shape: a mask with torch.where instead of boolean indexing, or padding to the largest.",
    ),
    (
        r"builtin operator `print`|logging|warnings\.warn",
        "Take the print out of the compiled function, or list it in "
        "torch._dynamo.config.reorderable_logging_functions.",
    ),
    (
        r"torch\.(_dynamo\.)?(disable|graph_break)|marked as skipped|skip(ped)? (function|file)",
        "The function is excluded from compilation: include it, or call it outside the compiled part.",
    ),
    (
        r"C\+\+ extension|C/C\+\+ function|pybind|custom op|non-Tensor|torch\.\* op returned",
        "Wrap the function as an operator: torch.library.custom_op with a fake (meta) implementation.",
    ),
    (
        r"\.(cpu|numpy|to_numpy)\(\)|from_numpy|numpy",
        "Stay in torch inside the compiled function: numpy runs on the CPU.",
    ),
    (r"context manager", "Enter the context manager outside the compiled function."),
    (r"generator|yield", "Return a list or a tensor instead of yielding from the compiled function."),
)
"""Pattern of the reason -> what usually takes the break away; the first that fits."""


@dataclass(frozen=True)
class Break:
    """One break: ``file`` and ``line`` of the user's code, None where torch does not say."""

    file: str | None
    line: int | None
    function: str | None
    text: str
    reason: str
    rewrite: str


def probe(run: Callable[[], Any] | None, script: Path | None) -> dict[str, Any]:
    """Return the graph breaks of ``run`` when torch.compile traces it.

    Raises:
        NcukitError: there is no workload, or this torch cannot explain.
    """
    if run is None:
        raise NcukitError("there is no function to compile", "add --script FILE --kernel NAME")
    explained = explain(run)
    breaks = [asdict(found) for found in breaks_of(explained)]
    import torch

    result = {
        "torch": str(torch.__version__),
        "script": None if script is None else script.name,
        "graphs": int(getattr(explained, "graph_count", 0)),
        "operations": int(getattr(explained, "op_count", 0)),
        "breaks": breaks,
    }
    notes = [] if breaks else ["no break: the function compiles to one graph"]
    if not result["operations"]:
        notes.append("no operation of torch was traced: nothing was compiled")
    return {"state": "done", "result": result, "notes": notes}


def explain(run: Callable[[], Any]) -> Any:
    """Return what torch says about compiling ``run``.

    Raises:
        NcukitError: this torch has no ``torch._dynamo.explain``, or it fails.
    """
    import logging

    import torch

    dynamo = getattr(torch, "_dynamo", None)
    if dynamo is None:
        try:
            from torch import _dynamo as dynamo
        except ImportError:
            dynamo = None
    asked = getattr(dynamo, "explain", None)
    if asked is None:
        raise NcukitError(
            f"torch {torch.__version__} has no torch._dynamo.explain", "use a torch of 2.1 or newer"
        )
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)  # every break is in the answer
    try:
        return asked(run)()
    except Exception as error:
        raise NcukitError(
            f"torch cannot explain it: {type(error).__name__}: {error}",
            "run it once without compiling: it may fail by itself",
        ) from error


def breaks_of(explained: Any) -> list[Break]:
    """Return the breaks in the answer of ``torch._dynamo.explain``, once each, in the order of the code."""
    found: dict[tuple[str | None, int | None, str], Break] = {}
    for reason in getattr(explained, "break_reasons", None) or ():
        if not getattr(reason, "graph_break", True):
            continue
        one = _break(str(getattr(reason, "reason", reason)), list(getattr(reason, "user_stack", None) or ()))
        found.setdefault((one.file, one.line, one.reason), one)
    return sorted(found.values(), key=lambda b: (b.file or "", b.line or 0))


def _break(reason: str, stack: list[Any]) -> Break:
    frame = stack[-1] if stack else None
    first = reason.strip().splitlines()[0].strip() if reason.strip() else "no reason given"
    detail = re.search(r"Explanation: (.+?)(?:\n  Hint|\n\n|\Z)", reason, re.DOTALL)
    said = f"{first}: {' '.join(detail.group(1).split())}" if detail else first
    return Break(
        getattr(frame, "filename", None),
        getattr(frame, "lineno", None),
        getattr(frame, "name", None),
        str(getattr(frame, "line", "") or "").strip(),
        said,
        rewrite(reason),
    )


def rewrite(reason: str) -> str:
    """Return the usual rewrite for a reason; torch's own hint where none is known.

    >>> rewrite("Unsupported Tensor.item() call")[:28]
    'Keep the value on the GPU: t'
    """
    for pattern, text in REWRITES:
        if re.search(pattern, reason):
            return text
    hint = re.search(r"Hint: (.+)", reason)
    return (
        hint.group(1).strip()
        if hint
        else "No usual rewrite is known: look the reason up in torch's documentation."
    )
