"""What a project settles once: ``ncukit.toml``, found in the current folder or one above it.

[compare]
fail_on = ["dram_bytes > +5%", "kernel_duration > 1.02x"]
allow_unknown = false
beyond_noise = false
baselines = ".ncukit/baselines"
[compare.kernels."gemm*"]
fail_on = ["spill_inst > 0"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ncukit.compare import baseline
from ncukit.compare.gates import Gate, parse
from ncukit.errors import UsageError
from ncukit.record import dataclass

FILE = "ncukit.toml"
_KEYS = {"fail_on": list, "allow_unknown": bool, "beyond_noise": bool, "baselines": str, "kernels": dict}


@dataclass(frozen=True)
class Settings:
    """What ``ncukit.toml`` says about comparing; ``file`` is None where there is none."""

    gates: tuple[Gate, ...] = ()
    allow_unknown: bool = False
    beyond_noise: bool = False
    baselines: Path = baseline.FOLDER
    file: Path | None = None


def load_settings(start: Path | None = None, file: Path | None = None) -> Settings:
    """Return the settings of ``file``, or of the nearest ``ncukit.toml`` from ``start`` upwards.

    The search ends at the root of a git repository.  Baselines lie beside the file, else at that root, else
    in ``start``.

    Raises:
        UsageError: the file cannot be read, holds a key that nobody knows, or a gate that is none.
    """
    start = (start or Path.cwd()).absolute()
    root = start
    if file is None:
        for folder in (start, *start.parents):
            if (folder / FILE).is_file():
                file = folder / FILE
                break
            if (folder / ".git").exists():
                root = folder
                break
    if file is None:
        return Settings(baselines=root / baseline.FOLDER)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", "check the path") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file} is no valid TOML: {error}", "mend the file") from error
    return _settings(data, file)


def _settings(data: Mapping[str, Any], file: Path) -> Settings:
    table = _table(data.get("compare", {}), file, "compare", _KEYS)
    unknown = [key for key in data if key != "compare"]
    if unknown:
        raise UsageError(
            f"{file}: there is no table [{unknown[0]}]", "settings of gates belong into [compare]"
        )
    gates = [parse(_text(text, file)) for text in table.get("fail_on", [])]
    for kernel, inner in table.get("kernels", {}).items():
        some = _table(inner, file, f"compare.kernels.{kernel}", {"fail_on": list})
        gates += [parse(_text(text, file), kernel) for text in some.get("fail_on", [])]
    return Settings(
        tuple(gates),
        table.get("allow_unknown", False),
        table.get("beyond_noise", False),
        file.parent / table.get("baselines", str(baseline.FOLDER)),
        file,
    )


def _table(found: Any, file: Path, name: str, keys: Mapping[str, type]) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise UsageError(f"{file}: {name} is no table", f"write [{name}] on a line of its own")
    for key, value in found.items():
        if key not in keys:
            near = get_close_matches(key, keys, 1, 0.4) or list(keys)
            raise UsageError(f"{file}: [{name}] has no key {key!r}", f"nearest: {near[0]}")
        if not isinstance(value, keys[key]):
            kind, example = _KINDS[keys[key]]
            raise UsageError(f"{file}: {key} must be {kind}", f"write {key} = {example}" if example else "")
    return found


def _text(value: Any, file: Path) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{file}: {value!r} is no gate", "write gates as text, such as 'dram_bytes > +5%'")
    return value


_KINDS = {
    list: ("a list", "['dram_bytes > +5%']"),
    bool: ("true or false", "true"),
    str: ("text", "'.ncukit/baselines'"),
    dict: ("a table", ""),
}
"""What a key of a type must be, in words, and an example."""
