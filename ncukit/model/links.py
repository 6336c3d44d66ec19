"""What moved between the units of the memory system: the data of the memory chart.

`ncukit.diagnose.links.memory_links` makes them from a kernel.  Each number is a `Value` with its source and
quality, or unknown with the reason; a link without traffic has bytes 0 and stays in the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from ncukit.model.value import Value
from ncukit.record import dataclass

Box = Literal["kernel", "l1", "shared", "l2", "dram", "sysmem", "peer"]


@dataclass(frozen=True)
class Link:
    """Traffic one way: ``source`` -> ``target``; reads go towards the kernel.

    ``bytes`` [byte]; ``count`` is what the link counts beside bytes (instructions, requests); ``share`` [%]
    is that of this link's own peak; ``what`` says what the bytes are ("global loads").
    """

    id: str
    source: Box
    target: Box
    what: str
    bytes: Value
    count: Value | None = None
    share: Value | None = None

    @property
    def used(self) -> bool | None:
        """Whether anything moved; None when unknown."""
        known = [v.value for v in (self.bytes, self.count) if v is not None and v.value is not None]
        return any(known) if known else None


@dataclass(frozen=True)
class MemoryLinks:
    """All links, hit rates [%] by box, and which boxes the limit of the launch lies in."""

    links: tuple[Link, ...]
    hit_rates: Mapping[Box, Value] = field(default_factory=dict)
    busy: Mapping[Box, Value] = field(default_factory=dict)
    """How busy each box itself was [% of peak]."""
    hot: Box | None = None
    notes: tuple[str, ...] = ()
