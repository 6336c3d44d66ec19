"""What runs inside the profiled child, and what a script says about its kernels.

A script imports ``ncukit`` and decorates a function that makes a `Case`.  Everything here works with the
standard library alone, in whatever interpreter the script needs; torch is used only where the script itself
uses it.  Nothing here starts a process.

``ncukit.workload`` is both this package and the decorator: the package can be called.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from ncukit.workload.declare import Case, workload

__all__ = ["Case", "workload"]


class _Package(ModuleType):
    """Mark a function as a workload: ``@ncukit.workload(m=4096)``; see `ncukit.workload.declare.workload`."""

    def __call__(self, *function: Any, **defaults: Any) -> Any:
        return workload(*function, **defaults)


sys.modules[__name__].__class__ = _Package
