"""What runs inside the profiled child, and what a script says about its kernels.

A script imports ``ncukit`` and decorates a function that makes a `Case`.  Everything here works with the
standard library alone, in whatever interpreter the script needs; torch is used only where the script itself
uses it.  Nothing here starts a process.
"""

from ncukit.workload.declare import Case, workload

__all__ = ["Case", "workload"]
