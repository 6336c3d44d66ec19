"""What both stand-ins do alike: choose the scenario, log the call, fail before the program runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.fakes.scenarios import Scenario


def scenario(known: Mapping[str, Scenario], variable: str) -> tuple[str | None, Scenario | None]:
    """Return the scenario that ``variable`` asks for; "NAME!" is played once, then all goes well."""
    log_call()
    if not (given := os.environ.get(variable)):
        return None, None
    name = given.removesuffix("!")
    if given.endswith("!"):
        played = Path(os.environ["NCUKIT_FAKE_STATE"]) / f"{variable}-{name}"
        if played.exists():
            return None, None
        played.touch()
    return name, known[name]


def log_call() -> None:
    """Add this command line to calls.jsonl, so that tests see what was run and how often."""
    if folder := os.environ.get("NCUKIT_FAKE_STATE"):
        with open(Path(folder) / "calls.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps([Path(sys.argv[0]).name, *sys.argv[1:]]) + "\n")


def act(played: Scenario, **words: str) -> int:
    """Print what a tool says that does not even start the program; return its exit code."""
    for line in played.stderr:
        print(line.format_map(words), file=sys.stderr, flush=True)
    for line in played.before:
        print(line.format_map(words), flush=True)
    return played.rc or 0


def say_version(template: str, default: str) -> int:
    """Print the version that the stand-in claims to have."""
    print(template.format(os.environ.get("NCUKIT_FAKE_VERSION", default)))
    return 0
