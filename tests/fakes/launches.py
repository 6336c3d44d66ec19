"""The GPU work of a program, as the stand-ins see it: one list for ncu and nsys, so that both agree.

A launch is a JSON object; only ``name`` (demangled) is needed:

    {"name": "void gemm<float>(float*)", "function": "gemm", "mangled": "_Z4gemmv", "repeat": 3,
     "grid": [64, 1, 1], "block": [256, 1, 1], "registers": 32, "shared": 0, "stream": 7,
     "metrics": {"gpu__time_duration.sum": 12000.0}, "duration": 12000, "gap": 2000,
     "ranges": ["ncukit"], "push_pop": [], "profiler": true}

``duration`` and ``gap`` (before it) are in ns; ``ranges`` are open NVTX start/end ranges; ``profiler``
says that it lies between cudaProfilerStart and Stop (default: whether a range is open).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Work:
    """One launch of the program."""

    name: str
    function: str
    mangled: str
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    metrics: dict[str, Any] = field(default_factory=dict)
    duration: int = 10_000
    gap: int = 2_000
    registers: int = 32
    shared: int = 0
    ranges: tuple[str, ...] = ()
    push_pop: tuple[str, ...] = ()
    profiler: bool = False
    stream: int = 7

    def by(self, base: str) -> str:
        return {"function": self.function, "demangled": self.name, "mangled": self.mangled}[base]


def from_environment() -> list[Work]:
    """Return the launches that NCUKIT_FAKE_LAUNCHES tells of, in order."""
    given = os.environ.get("NCUKIT_FAKE_LAUNCHES", "[]")
    if not given.lstrip().startswith("["):
        with open(given, encoding="utf-8") as file:
            given = file.read()
    return list(parse(json.loads(given)))


def parse(entries: Sequence[dict[str, Any]]) -> Iterator[Work]:
    for entry in entries:
        head = entry["name"].split("(")[0].split("<")[0]
        function = entry.get("function") or head.split()[-1].split("::")[-1]
        marked = bool(entry.get("ranges") or entry.get("push_pop"))
        fields = {key: tuple(v) if isinstance(v, list) else v for key, v in entry.items() if key != "repeat"}
        fields = {
            "function": function,
            "mangled": f"_Z{len(function)}{function}v",
            "profiler": marked,
        } | fields
        for _ in range(entry.get("repeat", 1)):
            yield Work(**fields)


@dataclass(frozen=True)
class Filters:
    """The filters of one ncu command line."""

    name: str | None
    base: str
    skip: int
    count: int | None
    includes: tuple[str, ...]
    from_start: bool

    def pick(self, launches: Sequence[Work], *, skip_counts: str) -> list[Work]:
        """Return the launches that are let through; ``skip_counts`` "all" counts those outside the marks."""
        matching = [(launch, self._marked(launch)) for launch in launches if self._named(launch)]
        seen = [(launch, marked) for launch, marked in matching if marked or skip_counts == "all"]
        picked = [launch for launch, marked in seen[self.skip :] if marked]
        return picked if self.count is None else picked[: self.count]

    def _named(self, launch: Work) -> bool:
        if self.name is None:
            return True
        name = launch.by(self.base)
        return bool(re.search(self.name[6:], name)) if self.name.startswith("regex:") else name == self.name

    def _marked(self, launch: Work) -> bool:
        if not self.from_start and not launch.profiler:
            return False
        return not self.includes or any(_inside(launch, include) for include in self.includes)


def _inside(launch: Work, include: str) -> bool:
    name = re.sub(r"\\(.)", r"\1", re.split(r"(?<!\\)@", include)[-1])
    return name[:-1] in launch.push_pop if include.endswith("/") else name in launch.ranges
