"""What a caller can ask of a comparison, and what a project settles once in ``ncukit.toml``."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ncukit.comparison import baseline
from ncukit.comparison.baseline import Choice
from ncukit.comparison.gates import Gate, parse
from ncukit.comparison.pairs import Steering
from ncukit.errors import UsageError
from ncukit.model import Kernel
from ncukit.record import dataclass
from ncukit.run.tools.names import NamePattern

# ---- What a caller can ask of a comparison: shared by the command line and the library


@dataclass(frozen=True)
class CompareOptions:
    """How two sides are read and matched, and which gates decide.

    ``match`` holds "BASE=OTHER" and the word "order"; ``kernel`` restricts to kernels of that name;
    ``fail_on`` holds gates as text, ``gates`` those that are parsed already; ``elements`` holds numbers of
    output elements; ``lines`` reads source lines; ``baselines`` is the folder of named baselines.
    """

    match: tuple[str, ...] = ()
    kernel: str | None = None
    fail_on: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()
    allow_unknown: bool = False
    beyond_noise: bool = False
    elements: tuple[float, ...] = ()
    lines: bool = True
    baselines: Path = baseline.FOLDER
    isolate: bool = True

    @property
    def steering(self) -> Steering:
        """How launches are matched."""
        return Steering.of(self.match)

    @property
    def choice(self) -> Choice:
        """What is read of each side."""
        pattern = None if self.kernel is None else NamePattern(self.kernel)

        def keep(kernel: Kernel) -> bool:
            return pattern is None or pattern.matches(kernel.name, kernel.demangled)

        return Choice(
            keep,
            apart=self.steering.in_order,
            lines=self.lines,
            isolate=self.isolate,
            baselines=self.baselines,
        )


# ---- What a project settles once: ``ncukit.toml``, found in the current folder or one above it
# [compare] fail_on = ["dram_bytes > +5%", "kernel_duration > 1.02x"] allow_unknown = false beyond_noise =
# false baselines = ".ncukit/baselines" [compare.kernels."gemm*"] fail_on = ["spill_inst > 0"]

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

    The search ends at the root of a git repository, at the user's home folder, and below a folder or a file
    that belongs to somebody else.  Baselines lie beside the file, else at the root of the repository, else in
    ``start``; no link leads out of that folder.

    Raises:
        UsageError: the file cannot be read, holds a key that nobody knows, or a gate that is none.
    """
    if file is None:
        file, root = _found((start or Path.cwd()).absolute())
        if file is None:
            return Settings(baselines=_inside(root, baseline.FOLDER, root))
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", "check the path") from error
    except RecursionError as error:
        raise UsageError(f"{file} is not valid TOML: it is nested too deeply", "mend the file") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not valid TOML: it is not UTF-8", "mend the file") from error
    except ValueError as error:  # also a number of thousands of digits
        place = re.search(r"\(at [^()]*\)$", str(error))
        where = f" {place[0]}" if place else ""
        raise UsageError(f"{file} is not valid TOML{where}", "mend the file") from error
    return _settings(data, file)


def _found(start: Path) -> tuple[Path | None, Path]:
    """Return the nearest ``ncukit.toml``, if there is one, and the root of the repository, else ``start``.

    Raises:
        UsageError: that file is a link: it may lead anywhere.
    """
    home = Path(os.path.expanduser("~"))
    trusted = {0, os.geteuid(), owner(start)}
    for folder in (start, *start.parents):
        if owner(folder) not in trusted:
            break
        file = folder / FILE
        with suppress(FileNotFoundError, NotADirectoryError):
            found = file.lstat()
            if stat.S_ISLNK(found.st_mode):
                raise UsageError(
                    f"{file} is a link, which is not followed",
                    "put the file itself there, or name it with --config",
                )
            if stat.S_ISREG(found.st_mode):
                return (file, folder) if owner(file) in trusted else (None, start)
        if os.path.lexists(folder / ".git"):
            return None, folder
        if folder == home:
            break
    return None, start


def owner(path: Path) -> int | None:
    """Return the user that ``path`` itself belongs to; None where that cannot be told."""
    try:
        return path.lstat().st_uid
    except OSError:
        return None


def _inside(folder: Path, name: Path, file: Path) -> Path:
    """Return the folder ``name`` of ``folder``; neither a link nor the name leads out of it.

    Raises:
        UsageError: it does, as ``file`` says.
    """
    place = folder / name
    if "\0" in str(name) or not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder)):
        raise UsageError(
            f"{file}: the folder of baselines {str(name)!r} leads out of {folder}",
            "keep baselines inside, or give another folder with --folder",
        )
    return place


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
        _inside(file.parent, Path(table.get("baselines", baseline.FOLDER)), file),
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
