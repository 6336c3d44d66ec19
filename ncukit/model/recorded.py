"""What a report says about how it was made."""

from __future__ import annotations

from ncukit.record import dataclass


@dataclass(frozen=True)
class Recorded:
    """What a file says about how it was made; None where it does not.

    ``command`` is the command line of ncu; ``clock_control`` and ``cache_control`` are those of the command,
    or ncu's defaults where it names none.
    """

    ncu: str | None = None
    driver: str | None = None
    cuda: str | None = None
    command: str | None = None
    clock_control: str | None = None
    cache_control: str | None = None
    git: str | None = None
    ranks: int | None = None
    """Processes that ran the program together."""
