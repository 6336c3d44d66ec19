"""What the stand-ins answer to the questions that each run of ncukit asks, as shell code."""

from __future__ import annotations

import io
import os
import shlex
from contextlib import redirect_stdout
from unittest.mock import patch

from tests.fakes import counting, tracing

QUESTIONS = {
    "ncu": ("--version", "--help", "--config-file off --list-sections", "--config-file off --list-chips"),
    "nsys": ("--version", "profile --help", "export --help"),
}
CHANGING = ("NCUKIT_FAKE_VERSION", "NCUKIT_FAKE_REAL_NCU", "NCUKIT_FAKE_REAL_NSYS")
"""Variables that change an answer: where one is set, the stand-in is asked."""


def answers(name: str) -> str:
    """Return shell code that answers as the stand-in of that name does, without starting it."""
    main = {"ncu": counting, "nsys": tracing}[name].main
    cases = []
    for question in QUESTIONS[name]:
        with patch.dict(os.environ), redirect_stdout(io.StringIO()) as said:
            for variable in CHANGING:
                os.environ.pop(variable, None)
            code = main(question.split())
        cases.append(f"{shlex.quote(question)}) printf %s {shlex.quote(said.getvalue())}; exit {code};;")
    changed = "".join(f"${variable}" for variable in CHANGING)
    return "\n".join((f'[ -n "{changed}" ] || case "$*" in', *cases, "esac"))
