"""Probes: single questions about this machine, each answered or told why not.

``device`` and ``dtype`` ask the driver and tables; the others run with torch in a child process.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from ncukit.record import dataclass

NAMES = ("device", "dtype", "allocator", "graph-breaks", "copy", "matmul")


@dataclass(frozen=True)
class ProbeOptions:
    """What probes are about; ``compute_capability`` ("9.0") asks about a GPU that is not here.

    ``script`` and ``call`` name a workload for "allocator" and "graph-breaks", ``params`` its parameters;
    ``steps`` are those between which memory is compared; ``snapshot`` is where memory_snapshot() goes.
    """

    shape: tuple[int, ...] | None = None
    dtypes: tuple[str, ...] = ()
    compute_capability: str | None = None
    script: Path | None = None
    call: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    steps: int = 20
    snapshot: Path | None = None
    python: str = sys.executable
    timeout: float = 600.0
