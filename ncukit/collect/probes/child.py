"""Probes that need torch, each in a child process: a broken CUDA or torch takes only its own answer along."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ncukit.collect.probes import ProbeOptions
from ncukit.errors import ReportError
from ncukit.model.probe import Probed
from ncukit.schemas.documents import read_json
from ncukit.tools.environment import child_environment
from ncukit.tools.run import Completed, run

CHILD = Path(__file__).resolve().parents[2] / "workload" / "probing.py"


def in_child(name: str, options: ProbeOptions) -> Probed:
    """Return what the probe ``name`` found in a process of its own; never raises for what happens there.

    Raises:
        ToolError: the interpreter cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="ncukit-") as folder:
        result = Path(folder) / "probe.json"
        argv = [options.python, str(CHILD), name, "--result", str(result), "--steps", str(options.steps)]
        if options.script is not None:
            argv += ["--script", str(options.script), "--call", str(options.call)]
        argv += [word for key, value in options.params.items() for word in ("--param", f"{key}={value}")]
        if options.snapshot is not None:
            argv += ["--snapshot", str(options.snapshot.absolute())]
        done = run(argv, env=child_environment(os.environ).variables, timeout=options.timeout)
        try:
            data = read_json(result)
        except ReportError:
            return Probed(name, "failed", reason=_ended(done, options), hint=_HINT)
    known = {key: data[key] for key in ("state", "result", "reason", "hint") if key in data}
    return Probed(name, **known, notes=tuple(data.get("notes", ())))


_HINT = "run `python -c 'import torch; torch.cuda.init()'` to see whether torch and CUDA work at all"


def _ended(done: Completed, options: ProbeOptions) -> str:
    if done.timed_out:
        return f"no answer within {options.timeout:.0f} s"
    how = done.signal or f"exit code {done.returncode}"
    said = done.tail(1).strip()
    return f"the process ended with {how}" + (f": {said}" if said else "")
