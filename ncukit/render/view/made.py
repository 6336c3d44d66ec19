"""How a report was made, in words: what its file says, what its command line means, what is unknown."""

from __future__ import annotations

from ncukit.model.kernel import Recorded

NOT_RECORDED = "Not recorded in the report"
CONTROL = "Clock control"
"""What the words about clocks begin with, in a box of facts."""
CLOCKS = {
    "base": "The SM clock was locked to base",
    "none": "Clocks were left alone, so they may move between passes",
    "boost": "Clocks were locked to boost",
}
CACHES = {
    "all": "All caches were flushed before every pass, so hit rates are those of a cold start",
    "none": "Caches were left as they were, so hit rates include what ran before",
}


def clocks(made: Recorded) -> str:
    """Return what is known about the control of clocks, and where that is known from."""
    default = "ncu’s default is base: the SM clock is locked"
    return _control(made, made.clock_control, "--clock-control", CLOCKS, default)


def caches(made: Recorded) -> str:
    """Return what is known about the control of caches, and where that is known from."""
    default = "ncu’s default flushes all caches before every pass"
    return _control(made, made.cache_control, "--cache-control", CACHES, default)


def _control(made: Recorded, value: str | None, option: str, words: dict[str, str], default: str) -> str:
    if value is None:
        return f"{NOT_RECORDED}; {default}."
    told = made.command is not None and option in made.command
    source = f"{option} of ncu’s command line" if told else "ncu’s default; its command line names none"
    return f"{value} ({source}). {words.get(value, 'What that means is not known to ncukit')}."


def versions(made: Recorded, version: str) -> str:
    """Return the versions of ncu, CUDA and driver that the report names; ``version`` is that of ncukit."""
    known = {"ncu": made.ncu, "CUDA": made.cuda, "driver": made.driver}
    have = [f"{name} {value}" for name, value in known.items() if value]
    lack = [name for name, value in known.items() if not value]
    words = f"{', '.join(have)}, from the report. " if have else ""
    words += f"{', '.join(lack)}: not recorded in the report. " if lack else ""
    return f"{words}Shown by ncukit {version}."
