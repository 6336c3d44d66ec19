#!/usr/bin/env python3
"""One probe in a process of its own.

    probing.py allocator|graph-breaks|copy|matmul --result FILE [--script S --call NAME] [--param m=1]...

It is run by its path, in the interpreter that has torch, and brings its own ncukit along.  The answer goes to
FILE as JSON, also the reason for none.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

Answer = dict[str, Any]


def main(argv: list[str]) -> int:
    """Answer one question and return the exit code."""
    child = _beside("child")
    child.own_package()
    from ncukit.errors import NcukitError
    from ncukit.run.workload.script import write

    options = _parser().parse_args(argv)
    try:
        answer = _answer(options)
    except NcukitError as error:
        answer = {"state": "unavailable", "reason": error.message, "hint": error.hint}
    except Exception as error:
        child.print_traceback(error)
        answer = {"state": "failed", "reason": f"{type(error).__name__}: {error}"}
    write(options.result, answer)
    return 0


def _beside(name: str) -> Any:
    """Return the module in the file beside this one, whatever the search path is (python -P, -I)."""
    spec = importlib.util.spec_from_file_location(f"_ncukit_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _answer(options: argparse.Namespace) -> Answer:
    if importlib.util.find_spec("torch") is None:
        return {
            "state": "unavailable",
            "reason": f"torch is not installed for {sys.executable}",
            "hint": "pip install torch, or give --python of the environment that has it",
        }
    if options.probe == "allocator":
        from ncukit.run.workload.probes import allocator

        return allocator.probe(_run(options), options.steps, options.snapshot)
    if options.probe == "graph-breaks":
        from ncukit.run.workload.probes import graph_breaks

        return graph_breaks.probe(_run(options), options.script)
    from ncukit.run.workload.probes import ceilings

    return ceilings.copy() if options.probe == "copy" else ceilings.matmul()


def _run(options: argparse.Namespace) -> Any:
    """Return the measured region of the workload that was named, None where none was."""
    if options.script is None:
        return None
    from ncukit.run.workload import script

    sys.argv = [str(options.script)]
    given = script.parse_parameters(options.param)
    case, _, _ = script.make_case(script.load(options.script), options.call, given)
    return case.run


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="probing.py", description="One probe of ncukit that needs torch.")
    parser.add_argument("probe", choices=("allocator", "graph-breaks", "copy", "matmul"))
    parser.add_argument("--result", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--script", type=Path, help="script with the workload")
    parser.add_argument("--call", help="workload or function to call")
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--steps", type=int, default=20, help="calls between the two boundaries")
    parser.add_argument("--snapshot", type=Path, help="where torch.cuda.memory_snapshot() goes")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
