"""The JSON of ranks: schema ``ncukit.ranks/1``; times in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ncukit.media import dumps
from ncukit.model.ops import Collective, Ranks, RankTime

SCHEMA = "ncukit.ranks/1"


def ranks_text(ranks: Ranks) -> str:
    """Return the JSON of ranks on one line."""
    return dumps(ranks_data(ranks))


def ranks_data(ranks: Ranks) -> dict[str, Any]:
    """Return ranks as JSON data."""
    return {
        "schema": SCHEMA,
        "folder": ranks.folder,
        "world_size": ranks.world_size,
        "reference": ranks.reference,
        "ranks": [_rank(one, ranks) for one in ranks.ranks],
        "late": [
            {
                "rank": one.rank,
                "times": one.times,
                "collectives": one.n,
                "late": _s(one.late),
                "caused_waiting": _s(one.caused),
                "why": one.why,
                "excess": _each(one.excess),
            }
            for one in ranks.late
        ],
        "kinds": [
            {
                "name": kind.name,
                "group": kind.group,
                "ranks": kind.ranks,
                "n": kind.n,
                "matched": kind.matched,
                "median": _s(kind.median),
                "transfer": _s(kind.transfer),
                "waited": _s(kind.waited),
            }
            for kind in ranks.kinds
        ],
        "collectives": [_collective(one) for one in ranks.collectives],
        "settings": [asdict(setting) for setting in ranks.settings],
        "transports": dict(ranks.transports),
        "missing": list(ranks.missing),
        "notes": list(ranks.notes),
    }


def _s(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9


def _each(times: Mapping[Any, int]) -> dict[str, float | None]:
    return {str(name): _s(value) for name, value in times.items()}


def _rank(one: RankTime, ranks: Ranks) -> dict[str, Any]:
    clock = next(c for c in ranks.clocks if c.rank == one.rank)
    return {
        "rank": one.rank,
        "file": one.file,
        "gpu": one.gpu,
        "span": _s(one.span),
        "compute": _s(one.compute),
        "communication": _s(one.communication),
        "hidden": _s(one.hidden),
        "exposed": _s(one.exposed),
        "copy": _s(one.copy),
        "empty": _s(one.empty),
        "waiting": _s(one.waiting),
        "clock": {
            "offset": _s(clock.offset),
            "spread": _s(clock.spread) if clock.n else None,
            "collectives": clock.n,
        },
    }


def _collective(one: Collective) -> dict[str, Any]:
    return {
        "name": one.name,
        "group": one.group,
        "number": one.number,
        "bytes": one.bytes,
        "last": one.last,
        "late": _s(one.late),
        "waited": _s(one.waited),
        "transfer": _s(one.transfer),
        "why": one.why,
        "excess": _each(one.excess),
        "arrivals": [
            {"rank": a.rank, "start": _s(a.start), "end": _s(a.end), "wait": _s(a.wait)} for a in one.arrivals
        ],
    }
