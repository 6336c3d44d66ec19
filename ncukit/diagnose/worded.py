"""Entries of a TOML file, each parsed when it is asked for: a diagnosis needs few of them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_ENTRY = re.compile(r"^\[(?!\[)", re.MULTILINE)
_NAME = re.compile(r'\["?([^\]"\n]+)"?\]')


class Worded(Mapping[str, Mapping[str, Any]]):
    r"""The tables of ``text`` by name; what an entry holds below it (``[[name.experiment]]``) follows it.

    Raises:
        tomllib.TOMLDecodeError: when a damaged entry is asked for.

    >>> Worded("[a]\nx = 1\n[[a.b]]\ny = 2\n[c]\nz = 3")["a"]
    {'x': 1, 'b': [{'y': 2}]}
    """

    def __init__(self, text: str) -> None:
        starts = [found.start() for found in _ENTRY.finditer(text)]
        parts = [text[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
        self._texts = {_name(part): part for part in parts}
        self._parsed: dict[str, Mapping[str, Any]] = {}

    @classmethod
    def of(cls, file: Path) -> Worded:
        """Return the entries of ``file``."""
        return cls(file.read_text(encoding="utf-8"))

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        if name not in self._parsed:
            self._parsed[name] = tomllib.loads(self._texts[name])[name]
        return self._parsed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _name(part: str) -> str:
    found = _NAME.match(part)
    if found is None:
        raise ValueError(f"no name of an entry: {part[:40]!r}")
    return found[1]
