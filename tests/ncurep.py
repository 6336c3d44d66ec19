"""Write Nsight Compute reports (.ncu-rep) from nothing, for tests and for the synthetic samples.

NVIDIA documents the container in the Nsight Compute Customization Guide ("Report File Format", version 7):
the magic ``NVR\\0``, a size-prefixed FileHeader, then blocks.  Each block is a size-prefixed BlockHeader
followed by PayloadSize bytes of size-prefixed entries: NumSources SourceData, then NumResults ProfileResult.
Sizes are little-endian uint32, messages are protobuf 2.  The same input gives the same bytes.

Traps, all checked with ncu 2024.1 and ncu_report 2026.3: every block needs its Process (ncu crashes without
one); PayloadSize, NumSources and NumResults must be exact (ncu_report aborts the process otherwise); a NameId
indexes the string tables of all blocks, concatenated; units are not stored, readers look them up by the
metric's name and the result's device__attribute_implementation and _architecture; SASS needs the symbol index
of the kernel in the cubin, and source correlation the path that is in the cubin's line table.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.ncurep_format import M

Scalar = float | int | str

CHIPS = {
    (7, 0): 0x140,
    (7, 5): 0x162,
    (8, 0): 0x170,
    (8, 6): 0x172,
    (8, 9): 0x192,
    (9, 0): 0x180,
    (10, 0): 0x1A0,
}
"""Compute capability -> device__attribute_implementation (its upper bits: _architecture)."""

MESSAGE_KINDS = {"none": 0, "ok": 1, "warning": 2, "error": 3, "optimization": 4}
KINDS = ("kernel", "range", "graph")
"""Kinds of results, in the order in which a block holds them."""
SPEEDUP_KINDS = {"local": 1, "global": 2}


@dataclass(frozen=True)
class Instances:
    """A metric with one value for each correlation id (a PC, an opcode, a time stamp), and its total."""

    values: Mapping[int | str, Scalar]
    total: Scalar | None = None


@dataclass(frozen=True)
class Code:
    """Code of a kernel: a cubin, {path: text} of its sources, and the address of its first instruction."""

    cubin: bytes = b""
    files: Mapping[str, str] = field(default_factory=dict)
    address: int = 0x7F0000000000


@dataclass(frozen=True)
class Section:
    """A section that was collected: identifier, name, and header metrics {label: raw metric}."""

    identifier: str
    name: str
    header: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """One result of a rule; ``kind`` of its message: ok, warning, error or optimization."""

    identifier: str
    name: str
    section: str
    kind: str = "none"
    title: str = ""
    text: str = ""
    focus: tuple[tuple[str, float, str], ...] = ()
    speedup: tuple[str, float] | None = None
    """("local" or "global", estimate [%])."""


@dataclass(frozen=True)
class Launch:
    """One kernel launch; ``metrics`` go on top of the launch__ and device__ metrics that all have."""

    demangled: str
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (32, 1, 1)
    metrics: Mapping[str, Scalar | Instances | None] = field(default_factory=dict)
    mangled: str = ""
    function: str = ""
    context: int = 1
    stream: int = 7
    thread: int = 1
    ranges: tuple[str, ...] = ()
    """NVTX push/pop ranges, outermost first."""
    code: Code | None = None
    sections: tuple[Section, ...] = ()
    rules: tuple[Rule, ...] = ()
    workload: str = "kernel"
    """Or "range", "graph": several launches counted together, with metrics, sections and NVTX ranges only."""

    @property
    def names(self) -> tuple[str, str]:
        """(mangled, function) name; what was not given is taken from the demangled name."""
        head = self.demangled.split("(")[0].split("<")[0]
        function = self.function or head.split()[-1].split("::")[-1]
        return self.mangled or function, function


@dataclass(frozen=True)
class Device:
    """A GPU: name, compute capability, and further device attributes without their prefix."""

    name: str = "NVIDIA Test GPU"
    cc: tuple[int, int] = (9, 0)
    id: int = 0
    attributes: Mapping[str, Scalar] = field(default_factory=dict)

    def all_attributes(self) -> dict[str, Scalar]:
        """Return every device attribute by its full raw name."""
        chip = CHIPS.get(self.cc, 0)
        names: dict[str, Scalar] = {
            "display_name": self.name,
            "compute_capability_major": self.cc[0],
            "compute_capability_minor": self.cc[1],
            "device_index": self.id,
        }
        if chip:
            names |= {"architecture": chip & ~0xF, "implementation": chip, "chip": chip}
        return {f"device__attribute_{name}": value for name, value in (names | dict(self.attributes)).items()}


@dataclass(frozen=True)
class Session:
    """What the report says about the run that wrote it."""

    pid: int = 4242
    app: str = "fixture"
    hostname: str = "127.0.0.1"
    cmdline: str = "ncu fixture"
    created: int = 1700000000
    driver: str = "550.00"
    cuda: str = "12.4"
    version: int = 7


def write_report(
    path: str | Path,
    launches: Sequence[Launch],
    device: Device | None = None,
    session: Session | None = None,
) -> Path:
    """Write ``launches`` as one report to ``path`` and return it."""
    target = Path(path)
    target.write_bytes(report_bytes(launches, device, session))
    return target


def report_bytes(
    launches: Sequence[Launch], device: Device | None = None, session: Session | None = None
) -> bytes:
    """Return the bytes of a report: session data in the first block, sources and results in the second."""
    device, session = device or Device(), session or Session()
    names: dict[str, int] = {}
    codes = _codes(launches)
    sources = [_source(n, *code, device) for n, code in enumerate(codes, 1)]
    results = [
        _result(n, _reference(launch, codes), launch, device, session, names)
        for n, launch in enumerate(launches, 1)
    ]
    kinds = [KINDS.index(launch.workload) for launch in launches]
    ordered = [result for _, result in sorted(zip(kinds, results, strict=True), key=lambda pair: pair[0])]
    payload = b"".join(_sized(message) for message in (*sources, *ordered))
    process = M["Process"](ProcessID=session.pid, Hostname=session.hostname, ProcessName=session.app)
    head = M["Block"](
        NumSources=0, NumResults=0, SessionDetails=_session(device, session), PayloadSize=0, Process=process
    )
    body = M["Block"](
        NumSources=len(sources),
        NumResults=kinds.count(0),
        NumRangeResults=kinds.count(1) or None,
        NumGraphResults=kinds.count(2) or None,
        PayloadSize=len(payload),
        StringTable=M["Strings"](Strings=list(names)),
        Process=process,
    )
    return b"NVR\0" + _sized(M["File"](Version=session.version)) + _sized(head) + _sized(body) + payload


def _sized(message: Any) -> bytes:
    data: bytes = message.SerializeToString(deterministic=True)
    return struct.pack("<I", len(data)) + data


def _value(value: Scalar) -> Any:
    if isinstance(value, str):
        return M["Value"](StringValue=value)
    if isinstance(value, float):
        return M["Value"](DoubleValue=value)
    return M["Value"](Uint64Value=int(value))


def _dim3(xyz: tuple[int, int, int]) -> Any:
    return M["Dim3"](X=xyz[0], Y=xyz[1], Z=xyz[2])


def _always(launch: Launch, device: Device) -> dict[str, Scalar | Instances | None]:
    """Return the metrics that every result has: device attributes, and launch values (doubles, as in ncu)."""
    (gx, gy, gz), (bx, by, bz) = launch.grid, launch.block
    blocks, threads = gx * gy * gz, bx * by * bz
    if launch.workload != "kernel":
        return {**device.all_attributes(), "launch__context_id": float(launch.context)}
    values = {
        "grid_size": blocks,
        "block_size": threads,
        "thread_count": blocks * threads,
        "context_id": launch.context,
        "stream_id": launch.stream,
        "device_id": device.id,
    }
    values |= {f"grid_dim_{axis}": n for axis, n in zip("xyz", launch.grid, strict=True)}
    values |= {f"block_dim_{axis}": n for axis, n in zip("xyz", launch.block, strict=True)}
    return {**device.all_attributes(), **{f"launch__{name}": float(n) for name, n in values.items()}}


def _codes(launches: Sequence[Launch]) -> list[tuple[Code, str]]:
    """Return (code, mangled name) of the launches, each once: launches of one kernel share a source."""
    codes: list[tuple[Code, str]] = []
    for launch in launches:
        if launch.code and not _reference(launch, codes):
            codes.append((launch.code, launch.names[0]))
    return codes


def _reference(launch: Launch, codes: list[tuple[Code, str]]) -> int:
    """Return the number of the launch's source, from 1; 0 when it has none."""
    for n, (code, mangled) in enumerate(codes, 1):
        if launch.code is code and launch.names[0] == mangled:
            return n
    return 0


def _result(
    n: int, source: int, launch: Launch, device: Device, session: Session, names: dict[str, int]
) -> Any:
    if launch.workload != "kernel":
        result = M["RangeResult"](
            ThreadID=launch.thread,
            APICallID=n,
            CreationTime=session.created,
            Api=0,
            ContextID=launch.context,
        )
        return _filled(result, launch, device, names)
    mangled, function = launch.names
    result = M["Result"](
        ThreadID=launch.thread,
        APICallID=n,
        ProgramHandle=1,
        KernelID=n,
        KernelMangledName=mangled,
        KernelFunctionName=function,
        KernelDemangledName=launch.demangled,
        WorkDimensions=3,
        GlobalWorkOffset=_dim3((0, 0, 0)),
        GridSize=_dim3(launch.grid),
        BlockSize=_dim3(launch.block),
        CreationTime=session.created,
        Api=0,
        ContextID=launch.context,
        StreamID=launch.stream,
        CollectionScope=1,
        ClockStatus=M["ClockStatus"](RequestedLock=1, ExecutedLocked=1),
    )
    result.Source.Reference = source
    _filled(result, launch, device, names)
    for rule in launch.rules:
        _rule(result.RuleResults.add(), rule)
    return result


def _filled(result: Any, launch: Launch, device: Device, names: dict[str, int]) -> Any:
    """Return ``result`` with its metrics, NVTX ranges and sections."""
    for name, value in {**_always(launch, device), **launch.metrics}.items():
        metric = result.MetricResults.add(NameId=names.setdefault(name, len(names)))
        if isinstance(value, Instances):
            for id, element in value.values.items():
                metric.MetricValueList.add(CorrelationId=_value(id), ElementValue=_value(element))
            value = value.total
        if value is not None:
            metric.MetricValue.CopyFrom(_value(value))
    if launch.ranges:
        result.Nvtx.Domains.add(Id=0, Name="<default domain>")
        result.Nvtx.DefaultDomain = 0
        stack = result.Nvtx.Threads.add(TID=launch.thread).PushPopDomains.add(Id=0)
        for name in launch.ranges:
            stack.Stack.add(Name=name)
    for order, section in enumerate(launch.sections):
        entry = result.Sections.add(Identifier=section.identifier, DisplayName=section.name, Order=order)
        for label, name in section.header.items():
            entry.Header.Metrics.add(Name=name, Label=label)
    return result


def _rule(entry: Any, rule: Rule) -> None:
    entry.Identifier, entry.DisplayName, entry.SectionIdentifier = rule.identifier, rule.name, rule.section
    if not rule.text:
        return
    item = entry.Body.Items.add()
    item.Message.CopyFrom(
        M["RuleMessage"](Message=rule.text, Type=MESSAGE_KINDS[rule.kind], Id=1, Name=rule.title)
    )
    for name, value, information in rule.focus:
        item.FocusMetrics.add(MessageId=1, MetricName=name, MetricValue=value, Severity=2, Info=information)
    if rule.speedup:
        kind, value = rule.speedup
        item.Speedup.CopyFrom(M["RuleSpeedup"](SpeedupType=SPEEDUP_KINDS[kind], Value=value))


def _source(n: int, code: Code, mangled: str, device: Device) -> Any:
    source = M["Source"](
        Reference=n,
        Binary=code.cubin,
        BinaryFlags=0,
        SassLevel=min(device.cc[0], 9),
        SMRevision=device.cc[0] << 16 | device.cc[1],
    )
    for name, text in code.files.items():
        source.SourceFiles.Files.add(FileName=name, Content=text)
    if code.cubin:
        source.RelocationData.Functions.add(
            SymbolName=mangled, Address=code.address, SymbolIndex=symbol(code.cubin, mangled).index
        )
    return source


@dataclass(frozen=True)
class Symbol:
    """A symbol of an ELF file: its index in the symbol table, and its size [byte]."""

    index: int
    size: int


def symbol(elf: bytes, name: str) -> Symbol:
    """Return ``name`` in the symbol table of a 64-bit little-endian ELF file, such as a cubin.

    Raises:
        KeyError: there is no such symbol.
    """
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count = struct.unpack_from("<HH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * size) for i in range(count)]
    for _, kind, _, _, offset, length, link, _, _, each in sections:
        if kind != 2:  # SHT_SYMTAB; `link` is its string table
            continue
        strings = sections[link][4]
        for i in range(length // each):
            label, _, _, _, _, bytes_ = struct.unpack_from("<IBBHQQ", elf, offset + i * each)
            at = strings + label
            if elf[at : elf.index(b"\0", at)] == name.encode():
                return Symbol(i, bytes_)
    raise KeyError(name)


def _session(device: Device, session: Session) -> Any:
    system = M["System"](OSName="Linux", Architecture="x86_64", Platform=2)
    message = M["Session"](
        ProcessID=session.pid,
        CreationTime=session.created,
        ProfilerCmdline=session.cmdline,
        HostSystemInfo=system,
        TargetSystemInfo=system,
    )
    info = message.DeviceAttributes.add(ID=device.id, Name=device.name)
    for name, value in device.all_attributes().items():
        info.Attributes.add(Name=name, Value=_value(value))
    for provider, version in (("CUDA Version", session.cuda), ("Display Driver Version", session.driver)):
        message.VersionInfo.add(Provider=provider, Version=version)
    return message
