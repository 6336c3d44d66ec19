"""What Python did on the host: samples of py-spy, counts of cProfile, stacks of torch's profiler.

Files of py-spy are Chrome traces whose events begin and end where the stack changes between two samples.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from ncukit.errors import ReportEmpty, ReportFormatError
from ncukit.model.ops import Counted, Stay
from ncukit.read.json_events import Events

REGION = "ncukit_region"
"""The function around the region, in `ncukit.workload.operators`."""


def read_pyspy(path: str | Path) -> list[Stay]:
    """Return the stretches of the thread that ran the region, on the clock of py-spy.

    Raises:
        ReportError: it is no trace of py-spy, or the region was never seen in it.
    """
    open_: dict[Any, list[tuple[str, str]]] = defaultdict(list)
    since: dict[Any, int] = {}
    found: list[Stay] = []
    for event in Events(path):
        if not isinstance(event, dict) or event.get("ph") not in ("B", "E") or event.get("cat") != "py-spy":
            continue
        try:
            thread, at = event["tid"], round(event["ts"] * 1000)
            args, name = event["args"], str(event["name"])
        except (KeyError, TypeError) as error:
            raise ReportFormatError(path, f"{path} is no trace of py-spy: an event lacks {error}") from error
        stack = open_[thread]
        names = [function for function, _ in stack]
        if REGION in names and at > since[thread]:
            inside = stack[names.index(REGION) + 1 :]
            found.append(Stay(since[thread], at, tuple(label for _, label in inside)))
        since[thread] = at
        if event["ph"] == "B":
            stack.append((name, _label(str(args.get("filename", "?")), args.get("line"), name)))
        elif stack:
            stack.pop()
    if not found:
        raise ReportEmpty(
            path, f"{path} has no sample of the region", "the region is too short: --calls more"
        )
    return found


def _label(file: str, line: Any, name: str) -> str:
    return f"{name} ({short_file(file)})"


def short_file(file: str) -> str:
    """Return a file as people name it: from site-packages or the standard library on, else its last part.

    >>> short_file("/usr/lib/python3/site-packages/torch/nn/linear.py"), short_file("/home/me/model.py")
    ('torch/nn/linear.py', 'model.py')
    """
    for mark in ("site-packages/", "dist-packages/"):
        if mark in file:
            return file.rsplit(mark, 1)[1]
    return file.rsplit("/", 1)[-1]


def read_counts(path: str | Path) -> list[Counted]:
    """Return what cProfile counted, without the profiler itself.

    Raises:
        ReportFormatError: the file is not what the measured child wrote.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        return [
            Counted(
                _label(row["file"], row["line"], row["name"]) if row["file"] != "~" else row["name"],
                row["calls"],
                round(row["self"] * 1e9),
                round(row["total"] * 1e9),
            )
            for row in data["functions"]
            if "_lsprof.Profiler" not in row["name"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ReportFormatError(path, f"{path} holds no counts of cProfile") from error
