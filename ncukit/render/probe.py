"""What probes found: as JSON (schema ``ncukit.probe/1``) and as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ncukit import quantity
from ncukit.files import write_text
from ncukit.media import dumps
from ncukit.model.experiment import PROBE_SCHEMA, Probed
from ncukit.render.text.terminal import Terminal, columns
from ncukit.render.words import PRECISIONS, plural

Lines = list[str]
MEMORY = {
    "allocated": "allocated",
    "reserved": "reserved",
    "split": "reserved, inside used blocks",
    "peak": "peak allocated",
}
"""What is shown of the allocator at a boundary."""


def probe_json(found: Sequence[Probed]) -> str:
    """Return the JSON of several probes."""
    data = {"schema": PROBE_SCHEMA, "probes": [one.as_dict() for one in found]}
    return dumps(data)


def write_probe(path: Path, found: Sequence[Probed], *, force: bool = False) -> Path:
    """Write the JSON of several probes, whole or not at all, and return where.

    Raises:
        UsageError: the file exists and ``force`` is not given, or cannot be written.
    """
    return write_text(path, probe_json(found) + "\n", force=force)


def probe_text(
    found: Sequence[Probed], *, color: bool = False, encoding: str = "utf-8", width: int = 80
) -> str:
    """Return what a terminal of ``width`` columns shows of the probes.  No newline at the end."""
    t = Terminal(width, encoding, color)
    blocks = [_block(t, one) for one in found]
    return t.page(line for n, block in enumerate(blocks) for line in (["", *block] if n else block))


def _block(t: Terminal, one: Probed) -> Lines:
    name = one.name.upper()
    if one.state == "done":
        lines = PARTS[one.name](t, t.tree(one.result))
        lines[0] = f"{name}  {lines[0]}"
    else:
        word = "unavailable" if one.state == "unavailable" else "failed"
        lines = t.wrap(t.text(one.reason), first=f"{name}  {word}: ", indent="  ")
        lines += t.wrap(t.text(one.hint), first="  hint: ", indent="  ") if one.hint else []
    return lines + [line for note in one.notes for line in t.wrap(t.text(note), first="  ! ", indent="    ")]


def _device(t: Terminal, result: Mapping[str, Any]) -> Lines:
    visible = result["visible_devices"]
    head = plural(len(result["gpus"]), "GPU")
    lines = [head + ("" if visible is None else f", CUDA_VISIBLE_DEVICES={visible}")]
    for g in result["gpus"]:
        nvml = "unknown" if g["nvml_index"] is None else g["nvml_index"]
        lines += t.row(f"  CUDA {g['cuda_index']} = NVML {nvml}", g["name"], g["uuid"], gap=2)
        state = {True: "on", False: "off", None: "unknown"}
        memory = quantity.short(g["memory"], "byte", capacity=True)
        facts = f"compute capability {g['compute_capability']}, {g['sms']} SMs, {memory}"
        clocks = g["clocks"]
        rows = [
            f"{facts}, ECC {state[g['ecc']]}, MIG {state[g['mig']]}",
            f"SM clock {_hertz(clocks['sm'])}, at most {_hertz(clocks['sm_max'])}; "
            f"memory {_hertz(clocks['memory'])}, at most {_hertz(clocks['memory_max'])}",
            _peaks(g["peaks"]),
            _sheet(g["data_sheet"]),
        ]
        lines += [line for row in rows for line in t.wrap(row, first="    ", indent="      ")]
    for g in result["hidden"]:
        lines += t.wrap(
            f"not visible: NVML {g['nvml_index']}, {g['name']}, {g['uuid']}", first="  ", indent="    "
        )
    return lines


def _peaks(peaks: Mapping[str, Any]) -> str:
    if not peaks["rates"]:
        return f"peak unknown: {peaks['reason']}"
    said = [
        f"{PRECISIONS.get(name, (name, ''))[0]} {quantity.short(rate, 'FLOP/s')}"
        for name, rate in peaks["rates"].items()
    ]
    ground = f" ({peaks['ground']})" if peaks["ground"] else ""
    return f"peak, estimated from the table by capability: {', '.join(said)}; dense{ground}"


def _sheet(sheet: Mapping[str, Any]) -> str:
    if sheet["sku"] is None:
        near = f"; nearest: {', '.join(sheet['candidates'])}" if sheet["candidates"] else ""
        return f"data sheet unknown: {sheet['reason']}{near}"
    return f"data sheet {sheet['sku']}: {sheet['source']}"


def _dtype(t: Terminal, result: Mapping[str, Any]) -> Lines:
    shape = result["shape"]
    capabilities = list(result["types"][0]["tensor_cores"])
    lines = [
        f"shape {'x'.join(map(str, shape))}, {result['elements']:,} elements"
        if shape
        else plural(len(result["types"]), "type")
    ]
    heads = [
        "type",
        "bytes each",
        *(["footprint"] if shape else []),
        *(f"tensor cores {c}" for c in capabilities),
    ]
    words = {True: "yes", False: "no", None: "unknown"}
    rows = [heads]
    for one in result["types"]:
        size = [quantity.short(one["footprint"], "byte", capacity=True)] if shape else []
        rows.append(
            [
                one["dtype"],
                f"{one['bytes_per_element']:g}",
                *size,
                *(words[one["tensor_cores"][c]] for c in capabilities),
            ]
        )
    lines += columns(rows, "<>" + ">" * (len(heads) - 2))
    return lines + (
        t.wrap(f"tensor cores: {result['source']}", first="  ", indent="    ") if result["source"] else []
    )


def _allocator(t: Terminal, result: Mapping[str, Any]) -> Lines:
    lines = [f"{result['steps']} steps after {result['warm_up']} of warm-up, allocator {result['backend']}"]
    rows = [["", "first boundary", "last boundary"]]
    for key, name in MEMORY.items():
        cells = [quantity.short(result[when][key], "byte", capacity=True) for when in ("first", "last")]
        rows.append([name, *cells])
    rows.append(["segments", *(f"{result[when]['segments']:,}" for when in ("first", "last"))])
    lines += columns(rows, "<>>")
    for said in result["judgement"]["says"]:
        lines += t.wrap(said, first="  - ", indent="    ")
    return lines + ([f"  snapshot: {Path(result['snapshot']).name}"] if result["snapshot"] else [])


def _breaks(t: Terminal, result: Mapping[str, Any]) -> Lines:
    found = result["breaks"]
    lines = [f"{plural(len(found), 'break')}, {plural(result['graphs'], 'graph')} (torch {result['torch']})"]
    for one in found:
        place = f"{Path(one['file']).name}:{one['line']}" if one["file"] else "unknown place"
        lines += t.wrap(f"{place}  {one['text']}", first="  ", indent="    ")
        lines += t.wrap(one["reason"], first="    ", indent="    ")
        lines += t.wrap(one["rewrite"], first="    try: ", indent="      ")
    return lines


def _copy(t: Terminal, result: Mapping[str, Any]) -> Lines:
    lines = [
        _measured(result),
        f"  {quantity.short(result['bandwidth'], 'byte/s')} read and written together",
    ]
    rows = [
        [
            quantity.short(row["bytes"], "byte", capacity=True),
            quantity.short(row["bandwidth"], "byte/s"),
            *_times(row),
        ]
        for row in result["sizes"]
    ]
    return lines + columns([["copied", "rate", "median", "quartiles apart"], *rows], ">>>>")


def _matmul(t: Terminal, result: Mapping[str, Any]) -> Lines:
    rows = [
        [row["dtype"], f"{row['n']:,}", quantity.short(row["rate"], "FLOP/s"), *_times(row)]
        for row in result["products"]
    ]
    return [_measured(result), *columns([["type", "n", "rate", "median", "quartiles apart"], *rows], "<>>>>")]


def _measured(result: Mapping[str, Any]) -> str:
    what = "GPU" if result["measured"] == "cuda" else "CPU, not a GPU"
    return f"{what}: {result['device']['name']} (torch {result['torch']}, no profiler)"


def _times(row: Mapping[str, Any]) -> list[str]:
    return [quantity.short(row["median"], "s"), quantity.short(row["iqr"], "s")]


def _hertz(value: float | None) -> str:
    return "unknown" if value is None else quantity.short(value, "hz")


PARTS: Mapping[str, Callable[[Terminal, Mapping[str, Any]], Lines]] = {
    "device": _device,
    "dtype": _dtype,
    "allocator": _allocator,
    "graph-breaks": _breaks,
    "copy": _copy,
    "matmul": _matmul,
}
"""What is shown of each probe; the first line follows its name."""
