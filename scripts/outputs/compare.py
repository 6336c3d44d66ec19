"""What differs between two sets of outputs: each hunk once, with the command lines that show it."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from scripts.outputs.cases import Case
from scripts.outputs.run import NetError, Output

WIDTH = 240
"""Characters of a line that are printed."""
LINES = 16
"""Lines of a hunk that are printed."""
NAMED = 4
"""Command lines that are printed with a hunk."""


@dataclass
class Group:
    """One difference, and every place that shows it: a part of the output of a case."""

    kind: str
    hunk: tuple[str, ...]
    places: list[tuple[Case, str]] = field(default_factory=list)

    def text(self, *, full: bool = False) -> str:
        """Return it to be printed; shortened unless ``full``."""
        places = self.places if full else self.places[:NAMED]
        lines = self.hunk if full else self.hunk[:LINES]
        more = len(self.places) - len(places)
        cut = len(self.hunk) - len(lines)
        return "\n".join(
            (
                f"== {self.kind}, {len(self.places)} times",
                *(f"   {case.title}" for case, _ in places),
                *([f"   and {more} more"] if more else []),
                *(lines if full else _cut(lines)),
                *([f"... {cut} more lines"] if cut else []),
            )
        )


def _cut(lines: Sequence[str]) -> list[str]:
    """Return the lines; of long ones the part where the first removed and the first added one differ."""
    first = [next((line for line in lines if line.startswith(sign)), "") for sign in "-+"]
    same = sum(
        1
        for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*(line[1:] for line in first), strict=False))
    )
    start = max(1, 1 + same - WIDTH // 4)
    return [
        line if len(line) <= WIDTH else f"{line[0]}{'... ' * (start > 1)}{line[start : start + WIDTH]} ..."
        for line in lines
    ]


def differences(before: Mapping[Case, Output], after: Mapping[Case, Output]) -> list[Group]:
    """Return every difference, what most outputs show first.

    Raises:
        NetError: the two do not hold the same cases, or the differences cannot be told.
    """
    if before.keys() != after.keys():
        raise NetError("the two sides ran different cases")
    groups: dict[tuple[str, tuple[str, ...]], Group] = {}
    for case, old in before.items():
        for part, hunk in _differs(old, after[case]):
            kind = re.sub(r"^file .*\.", "file .", part)
            groups.setdefault((kind, hunk), Group(kind, hunk)).places.append((case, part))
    return sorted(groups.values(), key=lambda group: -len(group.places))


def _differs(old: Output, new: Output) -> Iterator[tuple[str, tuple[str, ...]]]:
    if old.code != new.code:
        yield "exit code", (f"-{old.code}", f"+{new.code}")
    for part in sorted({*old.parts, *new.parts}):
        before, after = old.parts.get(part), new.parts.get(part)
        if before is None or after is None:
            yield part, (f"-{_there(before)}", f"+{_there(after)}")
        elif before != after:
            for hunk in _hunks(part, before, after):
                yield part, hunk


def _there(data: bytes | None) -> str:
    return "(nothing written)" if data is None else f"({len(data)} bytes written)"


def _hunks(part: str, before: bytes, after: bytes) -> Iterator[tuple[str, ...]]:
    """Yield the hunks of a part: of what it holds, or of its bytes where only these differ."""
    old, new = _lines(part, before), _lines(part, after)
    if old == new:
        old, new = (data.decode(errors="replace").splitlines() for data in (before, after))
    found = list(_diff(old, new)) if old != new else []
    yield from found or [(f"-({len(before)} bytes)", f"+({len(after)} bytes) with the same content")]


def _lines(part: str, data: bytes) -> list[str]:
    """Return a part as lines of bearable length."""
    if part.endswith(".parquet"):
        data = _table(data)
    elif part.endswith(".gz"):
        data = _unzipped(data)
    text = data.decode(errors="replace")
    if text[:1] in ("{", "["):
        try:
            return [line for value in _values(text) for line in json.dumps(value, indent=0).splitlines()]
        except ValueError:
            pass
    if text.lstrip()[:5].lower() == "<!doc" or part.endswith((".html", ".xml")):
        text = re.sub(r"(?<=>)(?=<)", "\n", text)
    return text.splitlines()


def _values(text: str) -> Iterator[object]:
    """Yield the JSON values of a text: one, or one a line."""
    decoder = json.JSONDecoder()
    start = 0
    while start < len(text):
        value, start = decoder.raw_decode(text, start)
        yield value
        while text[start : start + 1].isspace():
            start += 1


def _table(data: bytes) -> bytes:
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(io.BytesIO(data))
    except (OSError, ValueError):  # ArrowInvalid is a ValueError
        return data
    rows = (json.dumps(row, default=str) for row in table.to_pylist())
    return "\n".join((str(table.schema), *rows)).encode()


def _unzipped(data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError):
        return data


def _diff(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield hunks without context, by git: difflib takes minutes for some pages."""
    with tempfile.TemporaryDirectory(prefix="ncukit-") as folder:
        paths = Path(folder, "old"), Path(folder, "new")
        for path, lines in zip(paths, (old, new), strict=True):
            path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass")
        command = [
            "git",
            "diff",
            "--no-index",
            "--no-color",
            "--no-ext-diff",
            "--text",
            "-U0",
            *map(str, paths),
        ]
        done = subprocess.run(command, capture_output=True)
    if done.returncode not in (0, 1):
        raise NetError(f"git cannot compare: {done.stderr.decode(errors='replace').strip()}")
    hunk: list[str] = []
    begun = False
    for line in done.stdout.decode("utf-8", errors="replace").split("\n"):
        if line.startswith("@@"):
            if hunk:
                yield tuple(hunk)
            hunk, begun = [], True
        elif begun and line.startswith(("+", "-")):
            hunk.append(line)
    if hunk:
        yield tuple(hunk)
