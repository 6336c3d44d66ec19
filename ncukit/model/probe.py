"""What a probe found, or why it found nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any, Literal

from ncukit.record import dataclass

PROBE_SCHEMA = "ncukit.probe/1"


@dataclass(frozen=True)
class Probed:
    """One probe: "done" with a ``result``, "unavailable" here with the reason, or "failed".

    Numbers of ``result`` are base SI: bytes, seconds, hertz, FLOP/s, byte/s.
    """

    name: str
    state: Literal["done", "unavailable", "failed"]
    result: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)
