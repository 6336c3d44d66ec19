"""Stand-ins for ncu and nsys: they act as the tools do on a machine with a GPU, from launches given as JSON.

``install`` puts them into a folder that tests put first on PATH (or name in NCUKIT_NCU and NCUKIT_NSYS).
Variables steer them; all are optional:

NCUKIT_FAKE_LAUNCHES   the launches of the program's GPU work: JSON, or the path of a file (read after the
                       program ran, so that it may write them); see ``launches.py``
NCUKIT_FAKE_DEVICE     {"name", "cc", "attributes"} of the GPU
NCUKIT_FAKE_NCU        a scenario of ``scenarios.NCU`` that ncu acts out; "NAME!" only the first time
NCUKIT_FAKE_NSYS       the same for nsys, from ``scenarios.NSYS``
NCUKIT_FAKE_STATE      a folder where "only the first time" is remembered, and calls are logged (calls.jsonl)
NCUKIT_FAKE_SKIP       "all": ncu counts launches outside the marks for --launch-skip as well
NCUKIT_FAKE_CAPTURE    ncu captures the first launch with this function name, whatever was asked for
NCUKIT_FAKE_VERSION    the version that ncu and nsys claim, "2020.3.0.0"; newer and older options follow it
NCUKIT_FAKE_PASSES     passes that ncu claims to have made (8)
NCUKIT_FAKE_REAL_NCU, NCUKIT_FAKE_REAL_NSYS   the real tools: check command lines, answer questions
"""

from __future__ import annotations

import sys
from pathlib import Path

FAKES = Path(__file__).parent


def install(folder: Path, *, ncu: Path | None = None, nsys: Path | None = None) -> dict[str, str]:
    """Put the stand-ins into ``folder``; return the variables that make ncukit use them.

    ``ncu`` and ``nsys`` are the real tools, which check every command line where given.
    """
    from tests.fakes.answers import answers  # late: the stand-ins themselves begin with this module

    folder.mkdir(parents=True, exist_ok=True)
    for name in ("ncu", "nsys"):
        script = folder / name
        start = f'exec "{sys.executable}" -S "{FAKES / name}" "$@"'
        script.write_text(f"#!/bin/sh\n{answers(name)}\n{start}\n")
        script.chmod(0o755)
    variables = {"NCUKIT_NCU": str(folder / "ncu"), "NCUKIT_NSYS": str(folder / "nsys")}
    real = {"NCUKIT_FAKE_REAL_NCU": ncu, "NCUKIT_FAKE_REAL_NSYS": nsys}
    return variables | {name: str(path) for name, path in real.items() if path}
