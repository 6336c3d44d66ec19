"""Single questions about this machine and about torch on it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncukit.collect.probes import ProbeOptions
    from ncukit.model.probe import Probed


def probe(*names: str, options: ProbeOptions | None = None) -> list[Probed]:
    """Return what the probes ``names`` find: device, dtype, allocator, graph-breaks, copy, matmul.

    What needs CUDA or torch runs in a process of its own; a probe that cannot answer says why.

    Raises:
        UsageError: there is no such probe, or an option does not fit.
        ToolError: the interpreter that was given cannot be started.

    >>> probe("dtype")[0].result["types"][0]["bytes_per_element"]
    8.0
    """
    from ncukit.collect.probes import NAMES, ProbeOptions
    from ncukit.errors import UsageError
    from ncukit.tools import cuda
    from ncukit.tools.environment import child_environment
    from ncukit.tools.smi import smi

    wanted, chosen = list(dict.fromkeys(names)), options or ProbeOptions()
    if not wanted:
        raise UsageError("there is no probe to run", f"one or more of: {', '.join(NAMES)}")
    if unknown := [name for name in wanted if name not in NAMES]:
        raise UsageError(f"there is no probe {unknown[0]!r}", f"one or more of: {', '.join(NAMES)}")
    if chosen.script is not None and chosen.call is None:
        raise UsageError("a script without --kernel", "name the workload or function of it to run")
    env = child_environment(os.environ).variables
    driver = cuda.driver(env) if {"device", "dtype"} & set(wanted) else cuda.Driver(None)

    def run(name: str) -> Probed:
        from ncukit.collect.probes.child import in_child
        from ncukit.collect.probes.device import device
        from ncukit.collect.probes.dtype import dtype

        if name == "device":
            return device(driver, smi(env), os.environ)
        return dtype(chosen, driver) if name == "dtype" else in_child(name, chosen)

    return [run(name) for name in wanted]


def parse_shape(text: str) -> tuple[int, ...]:
    """Return "4096x4096" as (4096, 4096); commas serve as well.

    Raises:
        UsageError: it is no shape.

    >>> parse_shape("32x4096"), parse_shape("7")
    ((32, 4096), (7,))
    """
    from ncukit.errors import UsageError

    parts: Iterable[str] = text.lower().replace(",", "x").split("x")
    try:
        shape = tuple(int(part) for part in parts)
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise UsageError(f"{text!r} is no shape", "write it as 4096x4096")
    return shape
