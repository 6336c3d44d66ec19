"""What ncu prints, as launches: numbers and units of any locale, CSV and details pages of any version."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from ncukit.errors import ReportEmpty, ReportFormatError, ReportNotFound
from ncukit.media import visible
from ncukit.model import Instance, RawKernel, RawValue, RuleResult
from ncukit.report import container, csv_tables
from ncukit.report.blocks import Labels
from ncukit.report.csv_tables import DESCRIPTION, NAME, VALUE, Table, header, tables

# ---- Numbers and units as ncu prints them: any scale, any locale, back in the base units of a report

_MISSING = {"", "n/a", "no data", "none", "-"}
_NOT_A_NUMBER = {"nan": math.nan, "-nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_PLAIN = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_POINT = re.compile(r"[-+]?\d{1,3}([,\u00a0\u202f'’ ]\d{3})+(\.\d+)?")
_COMMA = re.compile(r"[-+]?(\d+|\d{1,3}([.\u00a0\u202f'’ ]\d{3})+)(,\d+)?")
# Only with a decimal comma, and only with a decimal point: a group of three digits can be either.
_ONLY_COMMA = re.compile(r"[-+]?(0|\d+(\.\d{3})+|\d{4,}),\d+|[-+]?\d+,(\d{1,2}|\d{4,})")
_ONLY_POINT = re.compile(r"[-+]?(0|\d+(,\d{3})+|\d{4,})\.\d+|[-+]?\d+\.(\d{1,2}|\d{4,})")
_INSTANCES = re.compile(r"([^()]*?) ?\((.+)\)", re.DOTALL)
_OFFSET = re.compile(r" \(\+\d+\)$")

_SECONDS = {
    **dict.fromkeys(("ns", "nsecond"), Decimal("1e-9")),
    **dict.fromkeys(("us", "usecond"), Decimal("1e-6")),
    **dict.fromkeys(("ms", "msecond"), Decimal("1e-3")),
    **dict.fromkeys(("s", "second"), Decimal(1)),
    **dict.fromkeys(("min", "minute"), Decimal(60)),
    **dict.fromkeys(("h", "hour"), Decimal(3600)),
}
_SCALED = re.compile(r"([KMGTPE])(byte|bit|hz)", re.IGNORECASE)
_SCALES = {letter: Decimal(1000) ** (power + 1) for power, letter in enumerate("KMGTPE")}


@lru_cache(maxsize=1024)
def base_unit(unit: str) -> tuple[Decimal, str]:
    """Return the factor to the base unit, and the base unit as ``ncu_report`` spells it.

    Times become ns, rates 1/s, frequencies hz; ncu's K, M, G are powers of 1000, of bytes too.

    >>> base_unit("Gbyte/second"), base_unit("usecond"), base_unit("cycle/nsecond")
    ((Decimal('1E+9'), 'byte/s'), (Decimal('1E+3'), 'ns'), (Decimal('1E+9'), 'hz'))
    """
    above, slash, below = unit.strip().partition("/")
    factor, numerator = _part(above, Decimal("1e9"), "ns")
    if not slash:
        return factor, numerator
    divisor, denominator = _part(below, Decimal(1), "s")
    if denominator != "s":  # ncu prints 4225 %/byte as 4.225 %/Kbyte
        divisor = 1 / divisor
    base = f"{numerator}/{denominator}"
    return (factor / divisor).normalize(), "hz" if base == "cycle/s" else base


def _part(unit: str, per_second: Decimal, time_unit: str) -> tuple[Decimal, str]:
    if unit in _SECONDS:
        return (_SECONDS[unit] * per_second).normalize(), time_unit
    if scaled := _SCALED.fullmatch(unit):
        return _SCALES[scaled[1].upper()], scaled[2].lower()
    return Decimal(1), unit.lower() if unit.lower() == "hz" else unit


def decimal_comma(texts: Iterable[str]) -> bool | None:
    """Return whether the numbers among ``texts`` have a decimal comma, or None when some do and some do not.

    >>> decimal_comma(["1.234,5", "12"]), decimal_comma(["1,234", "12.5"]), decimal_comma(["1,5", "1.5"])
    (True, False, None)
    """
    comma = point = False
    for text in texts:
        comma = comma or ("," in text and _ONLY_COMMA.fullmatch(text) is not None)
        point = point or ("." in text and _ONLY_POINT.fullmatch(text) is not None)
    return None if comma and point else comma


def printed_value(text: str, comma: bool = False) -> RawValue | None:
    """Return a printed value as int, float or text, None when ncu printed that there is none; NaN stays NaN.

    >>> printed_value("4,398"), printed_value("3,26", comma=True), printed_value("n/a")
    (4398, 3.26, None)
    """
    text = text.strip()
    number = _number(text, comma)
    if number is not None:
        return number
    low = text.lower().removeprefix("(!)").strip()
    if low in _MISSING:
        return None
    return _NOT_A_NUMBER.get(low, text)


def scaled(number: float, factor: Decimal) -> float:
    """Return ``number`` times ``factor``, rounded once.

    >>> scaled(3.264, Decimal(1000))
    3264.0
    """
    if factor == 1 or not math.isfinite(number):
        return number
    return float(Decimal(repr(number)) * factor)


def instances(text: str, comma: bool = False) -> tuple[RawValue | None, tuple[Instance, ...]] | None:
    """Return total and instances of ``text`` where ncu printed both, else None.

    Without correlation ids there are no instances to return, only the total.

    >>> instances("12 (LDG: 8; STG: 4)"), instances("2.5 (1; 4)"), instances("a (b)")
    ((12, (('LDG', 8), ('STG', 4))), (2.5, ()), None)
    """
    found = _INSTANCES.fullmatch(text.strip())
    if found is None:
        return None
    total = printed_value(found[1], comma)
    rows: list[Instance] = []
    numbers = True
    for item in found[2].split("; "):
        id, _, printed = item.rpartition(": ")
        number = printed_value(printed, comma)
        numbers = numbers and isinstance(number, int | float)
        if id and number is not None:
            rows.append((_correlation_id(id), number))
    if isinstance(total, str) or not (numbers or total is not None):
        return None
    return total, tuple(rows)


def _correlation_id(text: str) -> int | str:
    text = _OFFSET.sub("", text)
    if text.startswith("0x"):
        return int(text, 16)
    return int(text) if text.isdigit() else text


def _number(text: str, comma: bool) -> int | float | None:
    if not comma and not _PLAIN.fullmatch(text):
        if not _POINT.fullmatch(text):
            return None
        text = re.sub(r"[^\d.+-]", "", text)
    elif comma:
        if not _COMMA.fullmatch(text):
            return None
        text = re.sub(r"[^\d,+-]", "", text).replace(",", ".")
    return int(text) if text.lstrip("+-").isdigit() else float(text)


# ---- Read what ncu prints, of any version: CSV of the raw page (a row a launch) or of the details page (a
# row a
#
# metric), and the details page as it comes on a terminal.
#
# Columns are found by their header. Values come back in the base units of a report and under raw metric
# names, so that the same catalog evaluates them; a label of the details page that stands for no known
# metric stays under ``section: label``.

_NAME_IT = "Name the report's file instead of piping it."
_HINT = "Print it from the report: ncu --import REPORT.ncu-rep --page raw --csv --print-units base"
_CSV_IDENTITY = {"ID", "Process ID", "Process Name", "Host Name", NAME, "Kernel Time", "Context", "Stream"}
_LAUNCH_COLUMNS = {"Block Size", "Grid Size", "Device", "CC", "Section Name", "Body Item Label"}
_NUMBERS = (
    ("Context", "launch__context_id"),
    ("Stream", "launch__stream_id"),
    ("Device", "launch__device_id"),
    ("Device", "device__attribute_device_index"),
)
_RULE_KINDS = {"OPT": "optimization", "WRN": "warning", "ERR": "error", "INF": "ok"}
# ncu prints 0 as "0", and what is too small for two decimals so; of a percentage that says enough.
_ROUNDED_AWAY = re.compile(r"-?0[.,]00")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""What no name has; line breaks and tabs stand between the words of long ones."""
_ESCAPED = re.compile(r"\\x[0-9a-f]{2}")
_LAST_NAME = re.compile(r"(operator ?(?:\(\)|[^\w\s()]{1,3})|~?\w+)$")
_NVTX = re.compile(r'"+[^":]*:([^":]*):')
# What ncu prints that is CSV or text but no table of launches -> why it cannot be used.
_OTHER_PAGES = (
    ('"invocations"', "a summary over several launches (ncu --print-summary): no single launch is in it"),
    ('"address","source"', "ncu's source page: it has no metrics of a launch"),
    ('"launch attribute"', "ncu's session page: it has no metrics of a launch"),
)
_NOTHING_PROFILED = ("no kernels were profiled", "no results are found", "no ranges were profiled")


def looks_like_csv(path: str | Path) -> bool:
    """Whether ``path`` is text for `read_csv`: it holds what ncu prints, or is named ``.csv``."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(container.HEAD)
            if not container.is_text(head):
                return False
            if Path(path).suffix.lower() == ".csv":
                return True
            data = head + file.read()
    except OSError:
        return False
    lines = _lines(_decode(data))
    return any(header(line)[0] for line in lines) or bool(csv_tables.printed_tables(lines))


def read_csv(source: str | Path | TextIO, *, path: str | Path | None = None) -> list[RawKernel]:
    """Return every launch in the CSV of ``source``; ``path`` is what messages call it.

    Raises:
        ReportNotFound: the file cannot be opened.
        ReportEmpty: ncu printed no launch.
        ReportFormatError: the text is not a table of launches that ncu printed, or it is cut off.
    """
    text, name = _read(source, path)
    lines = _lines(text)
    found = tables(lines) or csv_tables.printed_tables(lines)
    if not found:
        raise _refused(name, text, lines)
    for table in found:
        if table.broken:
            message = f"{name} is truncated: {table.broken}"
            raise ReportFormatError(name, message, _HINT, code="report-truncated")
    kernels: list[RawKernel] = []
    for table in found:
        comma = decimal_comma(_texts(table))
        if comma is None:
            message = f"{name} mixes decimal commas and decimal points, so its numbers cannot be told"
            raise ReportFormatError(name, message, _HINT)
        kernels += (_long if table.long else _wide)(table, comma, len(kernels))
    if not kernels:
        raise ReportEmpty(name, f"{name} has ncu's header but no launch", _HINT)
    return kernels


def function_name(demangled: str) -> str:
    """Return the function of a demangled kernel name, without return type, scope, arguments and parameters.

    Names that ncu shortened can have a bracket too many; then the first name before a bracket is taken.  One
    with escaped controls in it stays whole.

    >>> function_name("void ns::copy<float, (int)4>(const float *, float *)"), function_name("k")
    ('copy', 'k')
    >>> function_name("void unnamed>::fill<float, void f<lambda() (instance 1)]>(int)>(long)")
    'fill'
    """
    name = _without(_without(demangled.strip(), "(", ")"), "<", ">")
    if _ESCAPED.search(name):  # words in it are parts of a name that is none
        return name
    match = _LAST_NAME.search(name) if name.count("<") == name.count(">") else None
    match = match or re.search(r"(\w+) ?[<(]", demangled)
    return match[1] if match else demangled


def _without(name: str, left: str, right: str) -> str:
    """Remove the bracketed tail of ``name``."""
    if not name.endswith(right):
        return name
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] == right) - (name[at] == left)
        if depth == 0:
            return name[:at].rstrip()
    return name


def _wide(table: Table, comma: bool, first: int) -> list[RawKernel]:
    kernels: list[RawKernel] = []
    skip = _CSV_IDENTITY | _LAUNCH_COLUMNS
    names = [column for column in table.columns if column not in skip and ":Push/Pop_" not in column]
    names = [name for name in names if name and ":Start/Stop_" not in name]
    for row in table.rows:
        launch = _Launch(row, comma)
        for name in names:
            launch.add(name, row[name], table.units.get(name, ""))
        kernels.append(launch.kernel(first + len(kernels)))
    return kernels


def _long(table: Table, comma: bool, first: int) -> list[RawKernel]:
    launches: dict[tuple[str, str, str], _Launch] = {}
    rows: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for row in table.rows:
        key = (row.get("Process ID", ""), row["ID"], row[NAME])
        launches.setdefault(key, _Launch(row, comma))
        rows.setdefault(key, []).append(row)
    for key, launch in launches.items():
        names = Labels(rows[key])
        for row in rows[key]:
            section = row.get("Section Name", "")
            if row.get("Rule Name"):
                launch.add_rule(row)
            elif row["Metric Name"]:
                launch.sections[names.identifier(section)] = None
                launch.add(names.metric(row), row[VALUE], row["Metric Unit"])
    return [launch.kernel(first + number) for number, launch in enumerate(launches.values())]


class _Launch:
    """Collects what the rows of one launch say."""

    def __init__(self, row: dict[str, str], comma: bool) -> None:
        self.row, self.comma = row, comma
        self.metrics: dict[str, RawValue] = {}
        self.units: dict[str, str] = {}
        self.instances: dict[str, tuple[Instance, ...]] = {}
        self.sections: dict[str, None] = {}
        self.rules: list[RuleResult] = []

    def add(self, name: str, text: str, unit: str) -> None:
        percent = unit == "%" or ".pct" in name
        if name in self.metrics or (not percent and _ROUNDED_AWAY.fullmatch(text)):
            return
        factor, base = base_unit(unit)
        both = instances(text, self.comma)
        value = both[0] if both else printed_value(text, self.comma)
        if both and both[1]:
            self.instances[name] = tuple(
                (id, scaled(number, factor) if not isinstance(number, str) else number)
                for id, number in both[1]
            )
        if value is not None:
            self.metrics[name] = value if isinstance(value, str) else scaled(value, factor)
            self.units[name] = base

    def add_rule(self, row: dict[str, str]) -> None:
        kind = row.get("Estimated Speedup Type", "")
        speedup = printed_value(row.get("Estimated Speedup", ""), self.comma)
        known = kind in ("global", "local") and isinstance(speedup, int | float)
        message = (_RULE_KINDS.get(row.get("Rule Type", ""), "none"), "", row.get(DESCRIPTION, ""))
        self.rules.append(
            RuleResult(
                id=row["Rule Name"],
                name=row["Rule Name"],
                section=row.get("Section Name", ""),
                messages=(message,),
                speedup=float(speedup) if known else None,  # type: ignore[arg-type]
                speedup_kind=kind if known else None,  # type: ignore[arg-type]
            )
        )

    def kernel(self, index: int) -> RawKernel:
        self._add_launch()
        given = self.row[NAME].strip()
        name = visible(given) if _CONTROL.search(given) else given
        return RawKernel(
            index,
            function_name(name),
            name,
            name if name.startswith("_Z") else "",
            origin="csv",
            metrics=self.metrics,
            units=self.units,
            instances=self.instances,
            sections=tuple(self.sections),
            rules=tuple(self.rules),
            nvtx=tuple(
                range
                for column, text in self.row.items()
                if "_Range:" in column
                for range in _NVTX.findall(text)
            ),
        )

    def _add_launch(self) -> None:
        """Add what the columns beside the metrics say of launch and device."""
        for column, name in _NUMBERS:
            if isinstance(number := printed_value(self.row.get(column, "")), int):
                self.metrics.setdefault(name, number)
        for column, name in (("Block Size", "block"), ("Grid Size", "grid")):
            sizes = [int(size) for size in re.findall(r"\d+", self.row.get(column, ""))]
            if len(sizes) == 3:
                for axis, size in zip("xyz", sizes, strict=True):
                    if size:  # zeros: the launch failed, its size is not known
                        self.metrics.setdefault(f"launch__{name}_dim_{axis}", size)
                self.metrics.setdefault(f"launch__{name}_size", sizes[0] * sizes[1] * sizes[2])
        major, _, minor = self.row.get("CC", "").partition(".")
        if major.isdigit() and minor.isdigit():
            self.metrics.setdefault("device__attribute_compute_capability_major", int(major))
            self.metrics.setdefault("device__attribute_compute_capability_minor", int(minor))


def _texts(table: Table) -> Iterable[str]:
    if table.long:
        return (row[VALUE].strip() for row in table.rows)
    skip = _CSV_IDENTITY | _LAUNCH_COLUMNS
    return (cell.strip() for row in table.rows for column, cell in row.items() if column not in skip)


def _read(source: str | Path | TextIO, path: str | Path | None) -> tuple[str, str]:
    if not isinstance(source, str | Path):
        name = str(path or getattr(source, "name", "-"))
        try:
            return source.read(), name
        except UnicodeDecodeError as exc:
            message = f"{name} is not text, so not ncu's CSV"
            raise ReportFormatError(name, message, _NAME_IT) from exc
    name = str(path or source)
    try:
        data = Path(source).read_bytes()
    except OSError as exc:
        raise ReportNotFound(name, f"{name} cannot be read: {exc.strerror}", "Check the path.") from exc
    if not data:
        raise ReportEmpty(name, f"{name} is empty (0 bytes)", _HINT)
    return _decode(data), name


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _decode(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def _refused(name: str, text: str, lines: list[str]) -> ReportFormatError | ReportEmpty:
    """Return the error that says what ``text`` is instead of a table of launches."""
    if text.startswith("NVR\0"):
        return ReportFormatError(name, f"{name} is a report (.ncu-rep), not text", _NAME_IT)
    low = text[: 1 << 20].lower()
    errors = [line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")]
    if errors:
        return ReportEmpty(
            name, f"{name} has no launch; ncu says: {errors[0]}", "Solve that, and profile again."
        )
    if any(words in low for words in _NOTHING_PROFILED):
        return ReportEmpty(name, f"{name} has no launch; ncu says that it profiled nothing", _HINT)
    for words, what in _OTHER_PAGES:
        if words in low:
            return ReportFormatError(name, f"{name} is {what}", _HINT)
    if any(NAME in line and '"ID"' in line for line in lines):
        return ReportFormatError(name, f"{name} is a table of launches without any metric", _HINT)
    if not text.strip():
        return ReportEmpty(name, f"{name} is blank", _HINT)
    found = container.identify(text[: container.HEAD].encode(errors="replace"))
    return ReportFormatError(name, f"{name} is not ncu's CSV: it is {found.what}", _HINT)
