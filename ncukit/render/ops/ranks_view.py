"""Ranks beside each other as one plain view: every word and number that the page and the terminal show."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from ncukit import quantity
from ncukit.model.ops import Collective, LateRank, Ranks, RankTime
from ncukit.render.cells import plain
from ncukit.render.line import Line, bold, line
from ncukit.render.timeline.ending import ended
from ncukit.render.timeline.figures import Figures
from ncukit.render.view.provenance import this_page
from ncukit.render.words import listed, plural, shorten

WORST = 20
"""Collectives that are shown, those that made the others wait longest."""
CAUSES = {
    "compute": "it computed longer",
    "copy": "it copied longer",
    "host": "its GPU had nothing to do: the host launched late",
}
NOT_A_BENCHMARK = (
    "Times are from runs under torch's profiler. A collective's own time contains waiting for the last rank: "
    "it is no measure of the network."
)


def page_view(ranks: Ranks, *, generated: str = "", command: str = "") -> dict[str, Any]:
    """Return the view of ``ranks``."""
    figures = Figures()
    name = PurePath(ranks.folder).name or "ranks"
    worst = sorted((c for c in ranks.collectives if c.waited), key=lambda c: -c.waited)
    view = {
        "kind": "ranks",
        "title": f"Ranks of {name}, ncukit",
        "brand": "ranks",
        "heading": {
            "name": PurePath(ranks.folder).name or "ranks",
            "range": plural(len(ranks.ranks), "rank"),
        },
        "facts": _facts(ranks),
        "late": [_late(i, one, figures) for i, one in enumerate(ranks.late)],
        "nobody": _nobody(ranks),
        "ranks": [_rank(one, ranks, figures) for one in ranks.ranks],
        "kinds": [
            {
                "name": kind.name,
                "group": shorten(kind.group, 40),
                "ranks": f"{kind.ranks:,}",
                "n": f"{kind.n:,}",
                "matched": f"{kind.matched:,}",
                "median": figures.time(f"c{i}m", kind.median, "Of one on one rank, waiting included"),
                "transfer": plain(quantity.MISSING)
                if kind.transfer is None
                else figures.time(f"c{i}t", kind.transfer, "Median time from the last start to the last end"),
                "waited": plain(quantity.MISSING)
                if kind.waited is None
                else figures.time(f"c{i}w", kind.waited, "Sum over ranks, until the last had come"),
            }
            for i, kind in enumerate(ranks.kinds)
        ],
        "worst": [_collective(i, one, figures) for i, one in enumerate(worst[:WORST])],
        "more": max(0, len(worst) - WORST),
        "settings": [
            {"name": s.name, "value": shorten(s.value, 80), "source": s.source, "note": s.note}
            for s in ranks.settings
        ],
        "transports": ", ".join(f"{name} ({n:,})" for name, n in sorted(ranks.transports.items())),
        "missing": [line(text) for text in ranks.missing],
        "notes": [line(text) for text in ranks.notes],
        "provenance": _provenance(ranks, generated, command),
        "footer": NOT_A_BENCHMARK,
    }
    return ended(view, CONTENTS, figures)


CONTENTS: tuple[tuple[str, str, str | None], ...] = (
    ("late", "Who is late", None),
    ("ranks", "Where the time went", None),
    ("kinds", "Collectives", "kinds"),
    ("settings", "NCCL", None),
    ("provenance", "Provenance", None),
)


def _facts(ranks: Ranks) -> list[dict[str, Any]]:
    gpus = sorted({one.gpu for one in ranks.ranks if one.gpu})
    of = f" of {ranks.world_size:,}" if ranks.world_size else ""
    rows = [
        ("ranks", "Ranks", line(f"{len(ranks.ranks):,}{of}")),
        ("gpu", "GPU", line("; ".join(gpus) or "not described")),
        ("collectives", "Collectives", line(f"{len(ranks.collectives):,} seen by several ranks")),
        (
            "clocks",
            "Clocks",
            line("set by collective ends" if ranks.aligned and len(ranks.ranks) > 1 else "not set"),
        ),
    ]
    return [{"id": id, "name": name, "text": text} for id, name, text in rows]


def _nobody(ranks: Ranks) -> Line:
    if ranks.late or ranks.missing:
        return []
    return line("No rank is shown to be late: differences stay within what the clocks allow to say.")


def _late(i: int, one: LateRank, figures: Figures) -> dict[str, Any]:
    why = CAUSES[one.why] if one.why else ""
    return {
        "rank": f"rank {one.rank}",
        "said": line(
            bold(f"Rank {one.rank}"),
            f" came last to {one.times:,} of {plural(one.n, 'collective')}, in all ",
            figures.time(f"l{i}", one.late, "Sum over these: after the median of the other ranks"),
            " late, and made others wait ",
            figures.time(f"l{i}w", one.caused, "Sum over ranks and collectives"),
            f": {why}." if why else ".",
        ),
        "excess": [
            {
                "name": cause,
                "cell": figures.time(f"l{i}{cause}", value, "More than the median of the others"),
                "hot": cause == one.why,
            }
            for cause, value in one.excess.items()
        ],
    }


def _rank(one: RankTime, ranks: Ranks, figures: Figures) -> dict[str, Any]:
    key = f"r{one.rank}"
    clock = next(c for c in ranks.clocks if c.rank == one.rank)
    cells = {
        "span": (one.span, "From its first work to its last"),
        "compute": (one.compute, "Union of kernels that compute"),
        "communication": (one.communication, "Union of kernels of collectives, waiting included"),
        "exposed": (one.exposed, "Communication while nothing computed"),
        "copying": (one.copy, "Only copies"),
        "empty": (one.empty, "Nothing ran"),
    }
    return {
        "rank": f"{one.rank}",
        **{name: figures.time(f"{key}{name}", value, meaning) for name, (value, meaning) in cells.items()},
        "hidden": figures.share(
            f"{key}hidden", one.hidden, one.communication, "Communication beside compute"
        ),
        "waiting": plain(quantity.MISSING)
        if one.waiting is None
        else figures.time(f"{key}waiting", one.waiting, "In collectives whose last rank had not come"),
        "offset": plain("not set")
        if clock.offset is None
        else figures.of(f"{key}off", clock.offset / 1e9, "s", "Added to its times"),
        "spread": plain(quantity.MISSING)
        if not clock.n
        else figures.time(f"{key}spread", clock.spread, f"Nine of ten of {clock.n:,} ends agree within"),
        "order": one.rank,
        "order_exposed": one.exposed,
        "order_waiting": -1 if one.waiting is None else one.waiting,
    }


def _collective(i: int, one: Collective, figures: Figures) -> dict[str, Any]:
    key = f"i{i}"
    size = figures.of(f"{key}b", one.bytes, "byte", "Message of one rank") if one.bytes is not None else None
    return {
        "name": f"{one.name} {one.number}",
        "group": shorten(one.group, 40),
        "bytes": size,
        "last": f"rank {one.last}",
        "late": figures.time(f"{key}l", one.late, "After the median of the other ranks"),
        "waited": figures.time(f"{key}w", one.waited, "Sum over ranks"),
        "transfer": figures.time(f"{key}t", one.transfer, "From the last start to the last end"),
        "why": CAUSES[one.why] if one.why else "not shown",
    }


def _provenance(ranks: Ranks, generated: str, command: str) -> list[dict[str, Any]]:
    names = [PurePath(one.file).name for one in ranks.ranks]
    shown = listed(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    rows = [
        ("Traces", line(shown)),
        ("Reference", line(f"clock of rank {ranks.reference}")),
        ("Times", line(NOT_A_BENCHMARK)),
    ]
    return [*({"name": name, "text": text} for name, text in rows), this_page(command, generated)]
