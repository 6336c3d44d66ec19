"""Run a workload under torch's profiler in a child, and keep the trace; with samples of the host if asked."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from ncukit.collect.identity import profilers_in
from ncukit.collect.measure import why
from ncukit.collect.options import ProfileOptions
from ncukit.collect.session import Listener, Silent
from ncukit.collect.target import Target
from ncukit.errors import ReportError, UsageError
from ncukit.model.ops import Counted, Stay
from ncukit.read.host_samples import read_counts, read_pyspy
from ncukit.record import dataclass
from ncukit.schemas.documents import read_json
from ncukit.tools import pyspy
from ncukit.tools.environment import child_environment
from ncukit.tools.extras import install_command
from ncukit.tools.run import Completed, run
from ncukit.whole import beside

CALLS = 10
"""The region runs so often unless the user says otherwise."""
SAMPLED = 0.5
"""[s] The region lasts at least so long when the host is sampled and nobody says how often it runs."""


@dataclass(frozen=True)
class Recorded:
    """A trace that was made at ``trace``; what the child says about it; what was seen of the host."""

    trace: Path
    result: Mapping[str, Any]
    settings: Mapping[str, str] = field(default_factory=dict)
    """Variables of NCCL that the program was given."""
    stays: tuple[Stay, ...] = ()
    counts: tuple[Counted, ...] = ()
    notes: tuple[str, ...] = ()


def record(
    target: Target,
    options: ProfileOptions,
    trace: Path,
    *,
    calls: int | None = None,
    host: bool = False,
    environ: Mapping[str, str] | None = None,
    listener: Listener | None = None,
) -> Recorded:
    """Run the workload of ``target`` under torch's profiler and move the trace to ``trace`` (.json.gz).

    Raises:
        UsageError: the target is no workload or function, or the trace cannot be put there.
        ToolError: the program fails.
    """
    if not target.marked:
        found = target.meaning.partition(":")[0]
        raise UsageError(
            f"{found}: torch's profiler can only be put around a workload or a function",
            "give --kernel NAME of one, or record a trace in the script and give its file",
        )
    env = os.environ if environ is None else environ
    child = child_environment(env, keep=options.env, clean=options.clean_env)
    heard = listener or Silent()
    heard.note(target.meaning)
    notes = [
        f"the script mentions {name}: only one profiler at a time sees the GPU"
        for name in profilers_in(target.source)
    ]
    with tempfile.TemporaryDirectory(prefix="ncukit-") as folder:
        work = Path(folder)
        least = ("--least", str(SAMPLED)) if host and calls is None else ()
        extra = ("--calls", str(calls or CALLS), *least, *(("--watch",) if host else ()))
        written, result = work / "trace.json.gz", work / "child.json"
        command = target.child("operators", result, *extra, "--trace", str(written))
        samples, spied = work / "samples.json", pyspy.find(child.variables) if host else None
        stays: tuple[Stay, ...] = ()
        refused = f"py-spy is not installed ({install_command('host')})" if host and spied is None else ""
        if spied is not None:
            done = _run(heard, pyspy.argv(spied, samples, command), child.variables, options)
            if not (refused := pyspy.refused(done, samples)):
                try:
                    stays = tuple(read_pyspy(samples))
                except ReportError as error:
                    refused = error.message.replace(str(samples), "py-spy's file")
        if spied is None or not result.is_file():
            done = _run(heard, command, child.variables, options)
        data = _checked(target, done, result, written)
        counts: tuple[Counted, ...] = ()
        if refused:
            notes.append(f"{refused}: cProfile counted the functions instead, in a run of its own")
            counted, again = work / "counts.json", work / "again.json"
            command = target.child("operators", again, *extra, "--cprofile", str(counted))
            done = _run(heard, command, child.variables, options)
            _checked(target, done, again, counted)
            counts = tuple(read_counts(counted))
        settings = {k: v for k, v in sorted(child.variables.items()) if k.startswith("NCCL_")}
        _keep(written, trace)
        return Recorded(trace, data, settings, stays, counts, tuple(notes))


def _run(
    heard: Listener, command: tuple[str, ...], variables: Mapping[str, str], options: ProfileOptions
) -> Completed:
    heard.started("operators", command)
    return run(command, env=variables, timeout=options.timeout, on_text=heard.text)


def _checked(target: Target, done: Completed, result: Path, written: Path) -> dict[str, Any]:
    """Return what the child says.

    Raises:
        ToolError: it failed.
    """
    try:
        data = dict(read_json(result))
    except ReportError:
        data = {}
    if done.returncode or done.timed_out or not data.get("closed") or not written.is_file():
        raise why(target.python, done, data).error()
    return data


def _keep(written: Path, trace: Path) -> None:
    with beside(trace) as name:
        shutil.copyfile(written, name)
