"""One round: an attack, the commands that meet it, and what they did that they must not."""

from __future__ import annotations

from dataclasses import dataclass

from tests.attacks.commands import Command
from tests.attacks.ground import Ground
from tests.attacks.kinds import attack, page_faults
from tests.mutations.run import Ended


@dataclass(frozen=True)
class Round:
    """What came of a seed."""

    kind: str
    ends: tuple[tuple[Command, Ended], ...]
    faults: tuple[str, ...]


def attacked(seed: int, ground: Ground, kind: str | None = None) -> Round:
    """Attack by ``seed``, run the commands and judge them."""
    chosen, commands = attack(seed, ground, kind)
    ends, faults = [], []
    ground.remember()
    for words in commands:
        ended = ground.ncukit(words, anew=chosen == "modules")
        ends.append((words, ended))
        faults += [f"{' '.join(words[:2])}: {fault}" for fault in ground.faults(words, ended)]
    return Round(chosen, tuple(ends), tuple(faults) + tuple(page_faults(ground)))
