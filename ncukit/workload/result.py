"""What a measured child hands back: one JSON file, which appears only when whole, and an exit code."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

WRONG, UNUSABLE = 87, 88
"""Exit codes: the result is wrong; the script does not hold what was asked for."""


def write(path: Path, result: dict[str, Any]) -> None:
    """Write ``result`` beside ``path``, then rename."""
    result.setdefault("python", platform.python_version())
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(plain(result), ensure_ascii=False), encoding="utf-8")
    os.replace(beside, path)


def plain(value: Any) -> Any:
    """Return ``value`` as JSON data: dataclasses become objects, what JSON cannot hold its text, NaN null."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
