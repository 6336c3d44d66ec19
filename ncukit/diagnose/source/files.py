"""Source files of a report: which are whose, where their text is, and what to say when it is nowhere.

Text comes from the report itself, else from the disk: only of files below the current folder that look like
source code, only the lines around counted instructions, and only where the file has not changed since the
report was written.  A report can name any file: a page of a stranger's must not show the user's others.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath

from ncukit.model.raw import Code
from ncukit.model.source import Status
from ncukit.read.code import near

ENDINGS = frozenset(
    [
        ".cu",
        ".cuh",
        ".c",
        ".cc",
        ".cpp",
        ".cxx",
        ".h",
        ".hh",
        ".hpp",
        ".hxx",
        ".inl",
        ".inc",
        ".ipp",
        ".py",
        ".jl",
        ".rs",
        ".f90",
        ".f95",
        ".cl",
        ".ptx",
        ".mlir",
        ".ttir",
        ".ttgir",
        ".llir",
        ".mojo",
        ".zig",
    ]
)
"""What a file must end in for its text to be taken from the disk: a report can name any file."""

LARGEST = 4 << 20
"""[byte] Larger files on the disk are not read."""

COMPILERS = {"torchinductor": "Inductor", ".triton": "Triton", "triton/cache": "Triton"}
"""Part of a path -> the compiler that wrote the file there; such files are caches and vanish."""


def names(paths: Sequence[str]) -> list[str]:
    """Return for each path its shortest end that no other has.

    >>> names(["/a/x/main.cu", "/a/y/main.cu", "/a/y/util.h"])
    ['x/main.cu', 'y/main.cu', 'util.h']
    """
    parts = [_parts(path) for path in paths]
    found: dict[int, str] = {}
    depth = 1
    while len(found) < len(paths):
        ends = {i: "/".join(p[-depth:]) for i, p in enumerate(parts) if i not in found}
        often = Counter(ends.values())
        for i, end in ends.items():
            if often[end] == 1 or depth >= len(parts[i]):
                found[i] = end
        depth += 1
    return [found[i] for i in range(len(paths))]


def _parts(path: str) -> tuple[str, ...]:
    kind = PureWindowsPath if "\\" in path or path[1:2] == ":" else PurePosixPath
    return kind(path).parts or (path,)


def generated(path: str) -> str:
    """Return the compiler in whose cache ``path`` lies, or an empty text."""
    normal = path.replace("\\", "/")
    return next((compiler for part, compiler in COMPILERS.items() if part in normal), "")


def texts(code: Code, number: int, used: Iterable[int], report: str) -> tuple[Status, Mapping[int, str]]:
    """Return where the text of file ``number`` comes from, and its lines near the ``used`` ones."""
    path = code.files[number]
    if (embedded := code.texts.get(number)) is not None:
        return "embedded", embedded
    if len(_parts(path)) == 1:
        return "builtin", {}
    return _on_disk(path, set(used), report)


def _on_disk(path: str, used: set[int], report: str) -> tuple[Status, Mapping[int, str]]:
    if os.path.splitext(path)[1] not in ENDINGS or not os.path.isabs(path):
        return "missing", {}
    try:
        if not _is_below_here(path):
            return "missing", {}
        found = os.stat(path)
        if not os.path.isfile(path) or found.st_size > LARGEST:
            return "missing", {}
        newer = os.path.exists(report) and found.st_mtime > os.stat(report).st_mtime
        with open(path, encoding="utf-8", errors="replace") as file:
            content = file.read()
    except (OSError, ValueError):
        return "missing", {}
    if newer or max(used, default=0) > content.count("\n") + 1:
        return "changed", {}
    return "found", near(content, used)


def _is_below_here(path: str) -> bool:
    """Return whether the file ``path`` lies below the current folder, links resolved, and none hides it."""
    here, real = os.path.realpath("."), os.path.realpath(path)
    if os.path.commonpath([here, real]) != here:
        return False
    return not any(part.startswith(".") for part in os.path.relpath(real, here).split(os.sep))
