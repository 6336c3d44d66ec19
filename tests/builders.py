"""The only factories of launches in tests: ``raw_kernel`` with native names, ``kernel`` with neutral ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ncukit.metrics import load
from ncukit.model import Instance, Kernel, RawKernel, RawValue, Value
from ncukit.model.kernel import Code

Number = float | int | str | None

COLUMNS = {
    "inst": "inst_executed",
    "threads": "thread_inst_executed_true",
    "samples": "smsp__pcsamp_sample_count",
    "sectors": "memory_l2_theoretical_sectors_global",
    "ideal": "memory_l2_theoretical_sectors_global_ideal",
    "wavefronts": "memory_l1_wavefronts_shared",
    "ideal_wavefronts": "memory_l1_wavefronts_shared_ideal",
    "local": "memory_l2_theoretical_sectors_local",
    "divergent": "smsp__branch_targets_threads_divergent",
}
"""Short names of counters by instruction; any other name is a stall state, of samples that cost time."""
START = 0x7F00_0000_1000
"""PC of the first instruction of `code`."""
TARGET: Mapping[str, Any] = {
    "kind": "workload",
    "name": "gemm",
    "meaning": "workload gemm",
    "args": [],
    "params": {},
}
"""What a run measured, as its record says it."""


def raw_kernel(
    function: str = "k",
    metrics: Mapping[str, RawValue] | None = None,
    *,
    instances: Mapping[str, Mapping[int | str, float | int] | tuple[Instance, ...]] | None = None,
    index: int = 0,
    demangled: str | None = None,
    mangled: str | None = None,
    **fields: Any,
) -> RawKernel:
    """Return a launch with ``metrics`` (native name -> value) and ``instances`` (native name -> {id: value}).

    Further keywords are fields of ``RawKernel``.

    >>> k = raw_kernel("copy", {"dram__bytes.sum": 64}, instances={"inst_executed": {0x10: 2}})
    >>> k.metrics["dram__bytes.sum"], k.instances["inst_executed"], k.demangled
    (64, ((16, 2),), 'copy()')
    """
    pairs = {
        name: tuple(values.items()) if isinstance(values, Mapping) else tuple(values)
        for name, values in (instances or {}).items()
    }
    return RawKernel(
        index=index,
        function=function,
        demangled=f"{function}()" if demangled is None else demangled,
        mangled=f"_Z{len(function)}{function}v" if mangled is None else mangled,
        metrics=dict(metrics or {}),
        instances=pairs,
        **fields,
    )


def code(
    *rows: tuple[str, dict[str, int]] | tuple[str, dict[str, int], int],
    file: str = "/src/a.cu",
    text: str | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return fields of ``RawKernel`` for instructions (SASS, {column: value}, line of ``file``) in order.

    ``text`` is the source that the report carries; rows without a line have no line information.

    >>> fields = code(("LDG.E R1, [R2.64]", {"inst": 32, "long_scoreboard": 9}, 7))
    >>> fields["code"].lines, sorted(fields["by_pc"])[1]
    (((0, 7),), 'smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued')
    """
    pcs = tuple(START + 16 * i for i in range(len(rows)))
    by_pc: dict[str, dict[int, int]] = {}
    for pc, row in zip(pcs, rows, strict=True):
        for column, value in row[1].items():
            name = COLUMNS.get(column, f"smsp__pcsamp_warps_issue_stalled_{column}_not_issued")
            by_pc.setdefault(name, {})[pc] = value
    lines = tuple((0, row[2]) if len(row) > 2 else None for row in rows)
    files = (file,) if any(lines) else ()
    texts = {0: dict(enumerate(text.splitlines(), 1))} if text is not None else {}
    made = Code(pcs, tuple(row[0] for row in rows), files, lines, texts)
    return {"code": made, "by_pc": by_pc, "sass": made.text, **fields}


def kernel(
    *,
    raw: RawKernel | None = None,
    file: str = "test.ncu-rep",
    signals: Mapping[str, Number] | None = None,
    breakdowns: Mapping[str, Mapping[str, float]] | None = None,
    failed: str | None = None,
    **neutral: Number | Value,
) -> Kernel:
    """Return a launch whose neutral metrics are ``neutral`` by id; all others of the catalog are unknown.

    Units come from the catalog; an id that is not in it (``signals`` likewise) is an error of the test.
    A ``Value`` is taken as it is; None means unknown.

    Raises:
        KeyError: a neutral id is not in the catalog.

    >>> k = kernel(sm_count=132, dram_throughput_pct=91.5)
    >>> k.number("sm_count"), k.metrics["l2_hit_rate_pct"].reason
    (132, 'not given by the test')
    """
    catalog = load()
    unknown = sorted((set(neutral) - set(catalog.metrics)) | (set(signals or {}) - set(catalog.signals)))
    if unknown:
        raise KeyError(f"not in the catalog: {', '.join(unknown)}")
    unknown_metrics, unknown_signals = _unknown()
    return Kernel(
        file=file,
        raw=raw or raw_kernel(),
        metrics=unknown_metrics
        | {id: _value(id, value, catalog.metrics[id].unit) for id, value in neutral.items()},
        signals=unknown_signals
        | {id: _value(id, value, catalog.signals[id].unit) for id, value in (signals or {}).items()},
        breakdowns={id: tuple(members.items()) for id, members in (breakdowns or {}).items()},
        failed=failed,
    )


@cache
def _unknown() -> tuple[dict[str, Value], dict[str, Value]]:
    """Return every metric and every signal of the catalog without a value."""
    catalog = load()
    metrics, signals = (
        {id: _value(id, None, one.unit) for id, one in ids.items()}
        for ids in (catalog.metrics, catalog.signals)
    )
    return metrics, signals


def _value(id: str, value: Number | Value, unit: str) -> Value:
    if isinstance(value, Value):
        return value
    if value is None:
        return Value(id, None, unit, reason="not given by the test")
    return Value(id, value, unit, "exact", sources=("test",))
