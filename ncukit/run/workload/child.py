#!/usr/bin/env python3
"""The measured child: imports a script once, makes its case, and does one step with it.

    child.py check|time|region|trace|operators SCRIPT --call NAME --result FILE [--param m=1024]... [-- ARGS]

It is run by its path, in the interpreter of the script, and brings its own ncukit along: what is installed
there does not matter.  What it found goes to FILE as JSON, which appears only when whole; standard output
stays the script's.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

SCHEMA = "ncukit.child/1"


def main(argv: list[str]) -> int:
    """Do one step and return the exit code."""
    end = argv.index("--") if "--" in argv else len(argv)
    options = _options().parse_args(argv[:end])
    own_package()
    from ncukit.errors import NcukitError
    from ncukit.run.workload import steps
    from ncukit.run.workload.script import UNUSABLE, write

    sys.argv = [str(options.script), *argv[end + 1 :]]
    result: dict[str, Any] = {"schema": SCHEMA, "step": options.step}
    try:
        return steps.STEPS[options.step](options, result)
    except NcukitError as error:
        result["error"] = error.as_dict()
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return UNUSABLE
    except BaseException as error:
        if isinstance(error, SystemExit) and error.code in (None, 0):
            result["error"] = {"code": "app-failed", "message": "the script ended itself (SystemExit)"}
            print("the script ended itself before the measured region (SystemExit)", file=sys.stderr)
            return UNUSABLE
        print_traceback(error)
        result["error"] = {"code": "app-failed", "message": f"{type(error).__name__}: {error}"}
        return 1
    finally:
        sys.stdout.flush()
        write(options.result, result)


def print_traceback(error: BaseException) -> None:
    """Print the traceback as the script alone would have, without the frames of this harness."""
    harness, trace = str(Path(__file__).resolve().parent), error.__traceback__
    while trace is not None and trace.tb_next is not None and _is_harness(trace, harness):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)


def _is_harness(trace: TracebackType, folder: str) -> bool:
    file = trace.tb_frame.f_code.co_filename
    return file.startswith((folder, "<frozen importlib")) or "importlib" in file


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="child.py", description="One step of a measured child of ncukit.")
    parser.add_argument("step", choices=("check", "time", "region", "trace", "operators"))
    parser.add_argument("script", type=Path)
    parser.add_argument("--call", required=True, help="workload or function to call")
    parser.add_argument("--result", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--baseline", help="of check: the workload or function to compare with")
    parser.add_argument("--baseline-param", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--tolerance", type=float, help="of check: where the case says none")
    parser.add_argument("--warmup", type=int, help="calls before the region; default: until timings agree")
    parser.add_argument("--calls", type=int, default=1, help="calls inside the region")
    parser.add_argument("--repeat", type=int, help="samples; default: what fits into a second")
    parser.add_argument("--trace", type=Path, help="where the profiler of torch writes its trace")
    parser.add_argument("--cprofile", type=Path, help="where cProfile's counts go, instead of a trace")
    parser.add_argument("--watch", action="store_true", help="ask NVML for the utilisation meanwhile")
    parser.add_argument("--least", type=float, default=0.0, help="seconds that the region lasts at least")
    parser.add_argument("--no-flush", action="store_true", help="leave the L2 warm between samples")
    parser.add_argument("--no-check", action="store_true", help="do not compare with the reference")
    return parser


def own_package() -> None:
    """Make ``import ncukit`` mean the package that this file belongs to, without touching the search path."""
    folder = Path(__file__).resolve().parents[2]
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    spec = importlib.util.spec_from_file_location(
        "ncukit", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if "ncukit" not in sys.modules and spec is not None and spec.loader is not None:
        sys.modules["ncukit"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["ncukit"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
