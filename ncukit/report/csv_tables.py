"""Find the tables that ncu prints, as CSV or on a terminal, in whatever stands around them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# ---- Find ncu's CSV tables in a text, with whatever a program printed around and between the rows
#  ncu puts every cell in quotes and does not double the quotes inside kernel names; names may hold commas
# and newlines.  A file that a spreadsheet or a script saved again follows the usual CSV rules instead.

NAME, VALUE, DESCRIPTION = "Kernel Name", "Metric Value", "Rule Description"
LONG = ("Section Name", "Metric Name", "Metric Unit", VALUE)
_ID = re.compile(r"\d+(\.0)?")
_LONGEST_RECORD = 200
"""Lines after which a record that never ends is taken for something else."""


@dataclass
class Table:
    """A header with its rows; ``units`` by column, for a raw page; ``broken``: where a row was cut off."""

    columns: list[str]
    rows: list[dict[str, str]] = field(default_factory=list)
    units: dict[str, str] = field(default_factory=dict)
    broken: str | None = None

    @property
    def long(self) -> bool:
        """Whether each row is one metric (details page), not one launch (raw page)."""
        return VALUE in self.columns


def tables(lines: list[str]) -> list[Table]:
    """Return every table of launches in ``lines``, in order.

    >>> found = tables(['hello', '"ID","Kernel Name","sm__x.sum"', '"","","inst"', '"0","f<"a">","7"', 'bye'])
    >>> found[0].rows, found[0].units["sm__x.sum"]
    ([{'ID': '0', 'Kernel Name': 'f<"a">', 'sm__x.sum': '7'}], 'inst')
    """
    found: list[Table] = []
    start = 0
    while start < len(lines):
        columns, separator = header(lines[start])
        start += 1
        if columns:
            end = next((i for i in range(start, len(lines)) if header(lines[i])[0]), len(lines))
            table = Table(columns)
            rows = _quoted if separator == '","' else _usual
            for cells in rows(table, lines[start:end], separator, start):
                _add(table, cells)
            found.append(table)
            start = end
    return found


def header(line: str) -> tuple[list[str], str]:
    """Return columns and separator if ``line`` is the header of a table of launches, else ([], "")."""
    if NAME not in line:
        return [], ""
    line = line.strip().lstrip("\ufeff")
    if not line.startswith('"') and (at := line.find('"ID","')) > 0:  # behind what a program printed
        line = line[at:]
    for separator in ('","', ",", ";", "\t"):
        if len(separator) > 1:
            columns = line[1:-1].split(separator) if line.startswith('"') and line.endswith('"') else []
        else:
            columns = _split(line, separator)
        columns = [column.strip() for column in columns]
        metrics = set(LONG[1:]) <= set(columns) or any("__" in column for column in columns)
        if NAME in columns and "ID" in columns and metrics:
            return columns, separator
    return [], ""


def _split(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator))
    except csv.Error:  # a cell longer than Python's limit: not a name of a column
        return []


def _add(table: Table, cells: list[str]) -> None:
    row = dict(zip(table.columns, cells, strict=False))
    if _ID.fullmatch(row.get("ID", "").strip()):
        table.rows.append(row)
    elif not table.rows and not table.long and not row.get("ID") and not row.get(NAME):
        table.units = row


def _quoted(table: Table, lines: list[str], separator: str, first: int) -> Iterator[list[str]]:
    """Yield the rows in ncu's own form, where only ``","`` separates cells."""
    record: list[str] = []
    began = 0
    for number, line in enumerate(lines, first + 1):
        if not record and not line.startswith('"'):
            continue
        began = began if record else number
        record.append(line)
        if cells := _cells("\n".join(record), table.columns):
            yield cells
        elif cells := _cells(line, table.columns) if line.startswith('"') else []:
            _note_broken(table, record[:-1], began)
            yield cells
        elif len(record) < _LONGEST_RECORD:
            continue
        else:
            _note_broken(table, record, began)
        record = []
    _note_broken(table, record, began)


def _cells(text: str, columns: list[str]) -> list[str]:
    """Return the cells of a complete row, [] while it is incomplete.  A metric's row ends at its value."""
    text = text.rstrip()
    short = text.endswith('",') and VALUE in columns
    wanted = columns.index(VALUE) + 1 if short else len(columns)
    if len(text) < 2 or not text.startswith('"') or not text.removesuffix(",").endswith('"'):
        return []
    cells = text.removesuffix(",")[1:-1].split('","')
    surplus = len(cells) - wanted
    if surplus == 0 and _plausible(cells, columns):
        return cells
    for column in (NAME, DESCRIPTION) if surplus > 0 else ():
        if column in columns[:wanted]:
            at = columns.index(column)
            merged = [*cells[:at], '","'.join(cells[at : at + surplus + 1]), *cells[at + surplus + 1 :]]
            if _plausible(merged, columns):
                return merged
    return []


def _plausible(cells: list[str], columns: list[str]) -> bool:
    """Whether the columns that hold numbers hold numbers; a row of units has none of them."""
    numbers = {
        cells[columns.index(column)]
        for column in ("ID", "Process ID", "Context", "Stream", "Device")
        if column in columns
    }
    return numbers == {""} or all(_ID.fullmatch(number) for number in numbers)


def _usual(table: Table, lines: list[str], separator: str, first: int) -> Iterator[list[str]]:
    """Yield the rows of a file that follows the usual CSV rules."""
    reader = csv.reader((line + "\n" for line in lines), delimiter=separator)
    wanted = table.columns.index(VALUE) + 1 if table.long else len(table.columns)
    try:
        for cells in reader:
            if len(cells) >= wanted:
                yield cells
            elif len(cells) > 4 and _ID.fullmatch(
                dict(zip(table.columns, cells, strict=False)).get("ID", "")
            ):
                table.broken = f"line {first + reader.line_num} has {len(cells)} of {wanted} cells"
    except csv.Error as exc:
        table.broken = f"line {first + reader.line_num}: {exc}"


def _note_broken(table: Table, record: list[str], number: int) -> None:
    cells = record[0][1:].split('","') if record else []
    if len(cells) > 4 and _ID.fullmatch(dict(zip(table.columns, cells, strict=False)).get("ID", "")):
        table.broken = f"the row at line {number} is cut off"


# ---- Find the tables that ncu prints on a terminal (details page without ``--csv``), of any version

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


def printed_tables(lines: Iterable[str]) -> list[Table]:
    """Return the printed launches as one table of the details page, [] when there is none.

    >>> found = printed_tables([
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
