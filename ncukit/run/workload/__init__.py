"""What runs inside the profiled child, and what a script says about its kernels.

A script imports ``ncukit`` and decorates a function that makes a `Case`.  Everything here works with the
standard library alone, in whatever interpreter the script needs; torch is used only where the script itself
uses it.  Nothing here starts a process.  In reading order: `script` declares and looks up, `child` is the
program, `steps` what it does, `correctness`, `timing` and `annotation` how; `probing` and `probes` look at
torch.
"""

from ncukit.run.workload.script import Case, workload

__all__ = ["Case", "workload"]
