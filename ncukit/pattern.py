"""Regular expressions that are compiled when first used: a command uses few of those it loads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

__all__ = ["pattern"]

if TYPE_CHECKING:
    from re import compile as pattern
else:

    class pattern:
        """Return what `re.compile` does, but compiled at the first use.

        >>> numbers = pattern(r"\\d+")
        >>> numbers.findall("1 and 22"), numbers.pattern
        (['1', '22'], '\\\\d+')
        """

        def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
            self.pattern = pattern
            self.given = flags

        def __reduce__(self) -> tuple[Any, ...]:
            return type(self), (self.pattern, self.given)

        def __getattr__(self, name: str) -> Any:
            found = getattr(re.compile(self.pattern, self.given), name)
            setattr(self, name, found)  # asked for once
            return found
