"""Which category a sampled stall state belongs to."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from ncukit.catalog.counted import STATES
from ncukit.catalog.load import load

OTHER = "other"


def category(state: str) -> str:
    """Return the stall category of a raw sampling state; one that is not known is "other".

    >>> category("long_scoreboard"), category("unheard_of")
    ('memory_dependency', 'other')
    """
    return _categories().get(state, OTHER)


@functools.cache
def _categories() -> Mapping[str, str]:
    catalog = load()
    found: dict[str, str] = {}
    for name, entry in catalog.stalls.items():
        for neutral, raw in entry["states"].items():
            found[raw] = name
            for source in catalog.metrics[f"stall_samples_{neutral}"].sources:
                for counter in source.expression.raws:
                    if counter.startswith(STATES):
                        found[counter[len(STATES) :]] = name
    return found
