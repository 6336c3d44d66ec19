"""What ncu says while it works: which launch, how far, how many passes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ncukit.record import dataclass

# ==PROF== Profiling "k" - 0 (1/1): 0%....50%....100% - 40 passes; older ncu without "(1/1)", without "- 0".
_START = re.compile(
    r'==PROF== Profiling "(?P<name>.*?)"(?: - (?P<index>\d+))?(?: \((?P<nth>\d+)/(?P<of>\d+)\))?:(?P<rest>.*)'
)
_PERCENT = re.compile(r"(?<!\d)(0|50|100)%")
_PASSES = re.compile(r"- (\d+) pass(?:es)?\b")


@dataclass(frozen=True)
class Progress:
    """How far ncu is with one launch: ``percent`` of its passes, ``passes`` once it is done.

    ``nth`` of ``of`` counts launches from 1; both are None in versions of ncu that do not say.
    """

    name: str
    percent: int = 0
    passes: int | None = None
    nth: int | None = None
    of: int | None = None

    @property
    def done(self) -> bool:
        """Whether ncu is finished with the launch."""
        return self.passes is not None

    def __str__(self) -> str:
        return f'{self.percent} % of "{self.name}"'


def parse_progress(text: str) -> Progress | None:
    """Return the progress that a line, or what there is of it, tells; None for any other line.

    Output of the program or a warning may stand in the middle of the line.

    >>> parse_progress('==PROF== Profiling "k" - 0 (1/2): 0%....50%hello....100% - 40 passes')
    Progress(name='k', percent=100, passes=40, nth=1, of=2)
    >>> str(parse_progress('==PROF== Profiling "k": 0%....50%'))
    '50 % of "k"'
    """
    if (start := _START.search(text)) is None:
        return None
    rest = start["rest"]
    passes = _PASSES.search(rest)
    return Progress(
        name=start["name"],
        percent=100 if passes else max(map(int, _PERCENT.findall(rest)), default=0),
        passes=int(passes[1]) if passes else None,
        nth=int(start["nth"]) if start["nth"] else None,
        of=int(start["of"]) if start["of"] else None,
    )


def last_progress(lines: Sequence[str]) -> Progress | None:
    """Return where ncu was last, from all its output; passes may stand on a later line than the start."""
    for at in range(len(lines) - 1, -1, -1):
        if found := parse_progress(lines[at]):
            if found.done:
                return found
            return parse_progress(f"{lines[at]} {' '.join(lines[at + 1 :])}") or found
    return None
