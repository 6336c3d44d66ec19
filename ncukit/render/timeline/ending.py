"""How the view of a page about a trace ends: what every page needs, and the contents of what it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ncukit.media import cleaned
from ncukit.render.timeline.figures import Figures


def ended(
    view: dict[str, Any], contents: Iterable[tuple[str, str, str | None]], figures: Figures
) -> dict[str, Any]:
    """Return ``view`` as the templates want it.

    ``contents`` are the sections (anchor, name, the key of the view without which it is left out).

    >>> ended({"late": [], "kinds": [1]}, [("a", "A", None), ("b", "B", "late")], Figures())["contents"]
    [{'to': 'a', 'text': 'A'}]
    """
    found = [{"to": id, "text": text} for id, text, key in contents if key is None or view.get(key)]
    common: dict[str, Any] = {"synthetic": [], "warnings": [], "figures": {}}
    result: dict[str, Any] = cleaned(common | view | {"contents": found, "tips": figures.tips.as_dict()})
    return result
