"""Find the tables that ncu prints on a terminal (details page without ``--csv``), of any version."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ncukit.read.table import LONG, NAME, Table

_LAUNCH = re.compile(
    r"  (?P<name>\S.*?)"
    r"(?: (?P<grid>\(\d+, \d+, \d+\))x(?P<block>\(\d+, \d+, \d+\)))?"
    r"(?:, \d{4}-\w+-\d+ [\d:]+)?, Context (?P<context>\d+), Stream (?P<stream>\d+)"
    r"(?:, Device (?P<device>\d+), CC (?P<cc>[\d.]+))?"
)
_PROCESS = re.compile(r"\[(\d+)\] \S+@\S+")
_SECTION = re.compile(r" +Section: (\S.*)")
_RULER = re.compile(r" +(-{5,}) (-{5,}) (-{5,})")
_IDENTITY = ["ID", "Process ID", NAME, "Context", "Stream", "Block Size", "Grid Size", "Device", "CC"]


def tables(lines: Iterable[str]) -> list[Table]:
    """Return the printed launches as one table of the details page, [] when there is none.

    >>> found = tables([
    ...     "  copy(float *) (64, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.6",
    ...     "    Section: GPU Speed Of Light Throughput",
    ...     "    ----------- ----------- ------------",
    ...     "    Duration             us         3.26",
    ... ])
    >>> [found[0].rows[0][column] for column in ("Kernel Name", "Metric Name", "Metric Unit", "Metric Value")]
    ['copy(float *)', 'Duration', 'us', '3.26']
    """
    table = Table([*_IDENTITY, *LONG])
    process, section, launch = "", "", dict[str, str]()
    widths: list[slice] = []
    count = 0
    for line in lines:
        if found := _PROCESS.fullmatch(line):
            process = found[1]
        elif found := _LAUNCH.fullmatch(line.rstrip()):
            name, grid, block, context, stream, device, cc = (text or "" for text in found.groups())
            values = [str(count), process, name, context, stream, block, grid, device, cc]
            launch, section, widths, count = dict(zip(_IDENTITY, values, strict=True)), "", [], count + 1
        elif found := _SECTION.fullmatch(line.rstrip()):
            section, widths = found[1], []
        elif found := _RULER.fullmatch(line.rstrip()):
            widths = [slice(*found.span(column)) for column in (1, 2, 3)]
        elif widths and launch and line.strip():
            label, unit, value = (line.rstrip("\n")[width].strip() for width in widths)
            if label and value and label != "Metric Name":
                cells = (section, label, unit, value)
                table.rows.append(launch | dict(zip(LONG, cells, strict=True)))
        else:
            widths = []
    return [table] if table.rows else []
