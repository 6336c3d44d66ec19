"""The published JSON schemas, one file each: ``kernel-1.json`` is ``ncukit.kernel/1``."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).resolve().parent


def names() -> list[str]:
    """Return the names of all schemas.

    >>> "ncukit.kernel/1" in names()
    True
    """
    return sorted("ncukit." + "/".join(path.stem.rsplit("-", 1)) for path in _FOLDER.glob("*.json"))


def text(name: str) -> str:
    """Return the schema ``name`` as JSON text.

    Raises:
        FileNotFoundError: there is none of that name.
    """
    stem = name.removeprefix("ncukit.").replace("/", "-")
    return (_FOLDER / f"{stem}.json").read_text(encoding="utf-8").rstrip()
