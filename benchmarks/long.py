"""One report of 10,000 launches: time grows with their number, and stays near that of a bare ncu_report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.dataset import build
from benchmarks.measure import Cost, Row, measured, ratio
from benchmarks.readers import MANY, Setting, every_value, repeat, wanted_values
from benchmarks.speed import importing, metrics, report

TIME, MEMORY, GROWTH = 2.0, 1.3, 1.1
LAUNCHES = 10_000


def long(setting: Setting) -> Iterator[Row]:
    """Measure each command once: a run of it averages over thousands of launches."""
    source = setting.report(MANY) or setting.reports[-1]
    held = int(measured(wanted_values(source, setting.folder)).out)
    path = setting.folder / "long.ncu-rep"
    count = repeat(source, path, 300 if setting.quick else LAUNCHES, held)
    wanted, every = measured(wanted_values(path, setting.folder)), measured(every_value(path))
    printed, page = measured(metrics(path)), measured(report(path, setting.folder))
    built, done = build([path], setting.folder / "long", 2)
    assert int(wanted.out) == done["launches"] == count
    many = f"{count:,} launches"
    yield from against(f"metrics, {many}", printed, wanted, "the same by ncu_report")
    yield from against(f"report, {many}", page, every, "every value by ncu_report")
    yield from against(f"dataset build, {many}", built, wanted, "the same by ncu_report")
    if setting.ncu:
        named = f"metrics, {many}, beside ncu --import"
        beside = measured(importing(setting.ncu, path))
        yield ratio(named, printed.seconds, beside.seconds, "s", "ncu --import", 1.0)
        yield ratio(f"{named}: memory", printed.peak, beside.peak, "byte", "ncu --import")
    yield from growth(setting, "metrics", metrics(source), held, printed, count)


def against(what: str, ours: Cost, theirs: Cost, name: str) -> Iterator[Row]:
    """Yield time and memory beside a program that reads the same."""
    yield ratio(what, ours.seconds, theirs.seconds, "s", name, TIME)
    yield ratio(f"{what}: memory", ours.peak, theirs.peak, "byte", name, MEMORY)


def growth(
    setting: Setting, what: str, short: Sequence[str], held: int, long: Cost, count: int
) -> Iterator[Row]:
    """Yield the time of a launch among many against that among few; start-up is in both."""
    few = min(measured(short).seconds for _ in range(1 if setting.quick else 3)) / held
    each = long.seconds / count
    yield Row(
        f"{what}: time of a launch",
        f"{1000 * each:.2f} ms among {count:,}",
        f"{1000 * few:.2f} ms among {held}",
        f"{each / few:.2f} x",
        f"{GROWTH:g} x",
        each <= GROWTH * few,
    )
