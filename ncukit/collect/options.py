"""What a user can ask of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, Literal

from ncukit.errors import UsageError
from ncukit.record import dataclass

Preset = Literal["quick", "standard", "full"]
PRESETS: tuple[Preset, ...] = ("quick", "standard", "full")
TIMEOUT = 1800.0
"""[s] after which a step is stopped, unless the user says otherwise."""


@dataclass(frozen=True)
class ProfileOptions:
    """Everything about a run besides its target; the same for the command line and the library.

    ``params`` holds a value, or several for a sweep, per name; ``timeout`` [s] is for each step; ``env`` are
    variables that children get although they look like secrets; ``tools`` are paths by name (ncu, nsys,
    nvcc, python); only launches inside the NVTX range ``range`` are looked at, where one is named.

    Raises:
        UsageError: a value that does not exist, or options that contradict each other.
    """

    kernel: str | None = None
    gpu_kernel: str | None = None
    params: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    preset: Preset = "standard"
    skip_time: bool = False
    skip_nsys: bool = False
    skip_ncu: bool = False
    skip_check: bool = False
    l2_flush: bool = True
    repeat: int | None = None
    timeout: float = TIMEOUT
    clock_control: Literal["base", "none"] = "base"
    cache_control: Literal["all", "none"] = "all"
    replay_mode: Literal["kernel", "application"] = "kernel"
    graph_profiling: Literal["node", "graph"] = "node"
    allow_collective: bool = False
    range: str | None = None
    arch: str = "native"
    env: tuple[str, ...] = ()
    clean_env: bool = False
    tools: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        allowed: dict[str, tuple[str, ...]] = {
            "preset": PRESETS,
            "clock_control": ("base", "none"),
            "cache_control": ("all", "none"),
            "replay_mode": ("kernel", "application"),
            "graph_profiling": ("node", "graph"),
        }
        for name, values in allowed.items():
            if (given := getattr(self, name)) not in values:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"{option} {given} does not exist", f"there is: {', '.join(values)}")
        if not self.timeout > 0:
            raise UsageError(
                f"a time-out of {self.timeout:g} s ends everything", "give --timeout SECONDS above 0"
            )
        if self.range == "":
            raise UsageError("an NVTX range without a name", "give --range NAME")
        if self.repeat is not None and self.repeat < 1:
            raise UsageError(f"{self.repeat} samples time nothing", "give --repeat 1 or more")
        if self.skip_time and self.skip_nsys and self.skip_ncu:
            raise UsageError("nothing is left to do", "leave out one of --skip-time, --skip-nsys, --skip-ncu")

    @property
    def points(self) -> tuple[dict[str, str], ...]:
        """The parameters of each point of the sweep, the last name fastest; one point without a sweep."""
        found: list[dict[str, str]] = [{}]
        for name, values in self.params.items():
            found = [{**point, name: value} for point in found for value in values]
        return tuple(found)

    def as_dict(self) -> dict[str, Any]:
        """Return the options as JSON data."""
        params = {name: list(values) for name, values in self.params.items()}
        return {**asdict(self), "params": params, "env": list(self.env), "tools": dict(self.tools)}

    def words(self) -> list[str]:
        """Return the words of the command line that ask for the same.

        >>> ProfileOptions(kernel="gemm", params={"n": ("8", "16")}, l2_flush=False, skip_ncu=True).words()
        ['--kernel', 'gemm', '--param', 'n=8,16', '--skip-ncu', '--no-l2-flush']
        """
        found: list[str] = []
        plain = type(self)()
        for name in self.__dataclass_fields__:
            option, value = f"--{name.replace('_', '-')}", getattr(self, name)
            if name == "params":
                found += [
                    w for key, values in value.items() for w in ("--param", f"{key}={','.join(values)}")
                ]
            elif name == "tools":
                found += [w for tool, path in value.items() for w in (f"--{tool}", path)]
            elif name == "env":
                found += [w for variable in value for w in (option, variable)]
            elif value == getattr(plain, name):
                continue
            elif isinstance(value, bool):
                found.append(option if value else f"--no-{option[2:]}")
            else:
                found += [option, str(value)]
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ProfileOptions:
        """Return the options that ``data`` (from `as_dict`) holds; what it lacks has its default."""
        known = {name: value for name, value in data.items() if name in cls.__dataclass_fields__}
        known["params"] = {name: tuple(values) for name, values in known.get("params", {}).items()}
        known["env"] = tuple(known.get("env", ()))
        return cls(**known)


def sweep(pairs: list[str]) -> dict[str, tuple[str, ...]]:
    """Return ``["m=1024,2048", "k=64"]`` as names with their values; commas inside brackets do not part.

    Raises:
        UsageError: a pair is not NAME=VALUE, or a name comes twice.

    >>> sweep(["m=1024,2048", "shape=(1,2)"])
    {'m': ('1024', '2048'), 'shape': ('(1,2)',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip()
        values = tuple(_split(text))
        if not equals or not name.isidentifier() or not all(values):
            raise UsageError(
                f"--param {pair} is not NAME=VALUE", "write --param m=4096, or m=1024,2048 to sweep"
            )
        if name in found:
            raise UsageError(f"--param {name} is given twice", f"write --param {name}=A,B to sweep")
        found[name] = values
    return found


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def script_path(text: str) -> Path | None:
    """Return the Python or CUDA source that ``text`` names by its suffix, None for a command."""
    return Path(text) if text.endswith((".py", ".cu")) else None
