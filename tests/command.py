"""The command line in this process: what `ncukit WORDS` prints and the exit code that it ends with."""

from __future__ import annotations

import io
import json
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ncukit.cli import main


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def documents(self) -> list[Any]:
        """The JSON documents on stdout, one a line."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def json(self) -> Any:
        """The one JSON document on stdout, without NaN."""
        return json.loads(self.stdout, parse_constant=_refused)


def ncukit(*words: object, cwd: Path | None = None, stdin: str = "") -> Done:
    """Run ``ncukit`` with ``words``, in the folder ``cwd``."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in ("stdout", "stderr")
    )
    with (
        patch.object(sys, "argv", ["ncukit", *map(str, words)]),
        patch.object(sys, "stdin", io.StringIO(stdin)),
        chdir(cwd or Path.cwd()),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    for stream in (out, err):
        stream.seek(0)
    return Done(code, out.read(), err.read())
