"""Single questions about this machine, each answered or told why not."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from ncukit.errors import ReportError, UsageError
from ncukit.metrics import load
from ncukit.metrics.catalog import find_sku, tensor_cores
from ncukit.model.experiment import Probed
from ncukit.record import dataclass
from ncukit.roofline.models.terms import BITS, dtype_of
from ncukit.run.tools.cuda import Driver, Gpu
from ncukit.run.tools.gpus import Smi, SmiGpu
from ncukit.run.tools.locate import child_environment
from ncukit.run.tools.process import Completed, run
from ncukit.schemas.check import read_json

# ---- The GPUs: what each is, its peaks and their source, and its three names: CUDA index, NVML index, UUID

ORDER = "CUDA_DEVICE_ORDER"
VISIBLE = "CUDA_VISIBLE_DEVICES"


def device(driver: Driver, smi: Smi, environ: Mapping[str, str]) -> Probed:
    """Return every GPU that the program would see, and those of NVML that it would not."""
    if driver.code is None or driver.code not in (0, 100):
        said = driver.problem or f"cuInit says {driver.name}"
        return Probed("device", "unavailable", reason=said, hint="ncukit doctor says how to mend it")
    by_uuid = {gpu.uuid: gpu for gpu in smi.gpus}
    seen = [_gpu(gpu, by_uuid.get(gpu.uuid)) for gpu in driver.gpus]
    hidden = [g for g in smi.gpus if g.uuid not in {gpu.uuid for gpu in driver.gpus}]
    result = {
        "driver_cuda": driver.version,
        "driver": smi.driver,
        "visible_devices": environ.get(VISIBLE),
        "device_order": environ.get(ORDER),
        "gpus": seen,
        "hidden": [{"nvml_index": g.index, "uuid": g.uuid, "name": g.name} for g in hidden],
    }
    if not seen:
        why = f"{VISIBLE} is {environ[VISIBLE]!r}" if VISIBLE in environ else "the driver shows none"
        return Probed("device", "unavailable", result, f"no GPU: {why}", "ncukit doctor says more")
    return Probed("device", "done", result, notes=_notes(result, smi))


def _gpu(gpu: Gpu, known: SmiGpu | None) -> dict[str, Any]:
    clock = known.sm_clock_max if known else None
    return {
        "cuda_index": gpu.index,
        "nvml_index": known.index if known else None,
        "uuid": gpu.uuid,
        "bus": known.bus if known else None,
        "name": gpu.name,
        "compute_capability": f"{gpu.cc[0]}.{gpu.cc[1]}",
        "sms": gpu.sms,
        "memory": gpu.memory,
        "ecc": known.ecc if known else None,
        "mig": True if " MIG " in gpu.name else known.mig if known else None,
        "clocks": {
            "sm": known.sm_clock if known else None,
            "sm_max": clock,
            "memory": known.memory_clock if known else None,
            "memory_max": known.memory_clock_max if known else None,
        },
        "peaks": peaks(gpu, clock),
        "data_sheet": _sheet(gpu.name),
    }


def peaks(gpu: Gpu, clock: float | None) -> dict[str, Any]:
    """Return the dense peaks of ``gpu`` [FLOP/s] at SM clock ``clock`` [Hz], from the table by capability."""
    catalog, cc = load(), gpu.cc[0] * 10 + gpu.cc[1]
    row = catalog.peaks.get(cc)
    if row is None:
        return {
            "rates": {},
            "reason": f"no row for compute capability {gpu.cc[0]}.{gpu.cc[1]}",
            "ground": None,
        }
    ground = catalog.peak_grounds.get(cc)
    if clock is None:
        return {"rates": {}, "reason": "the highest SM clock is not known", "ground": ground}
    rates = {
        precision: each * gpu.sms * clock
        for precision, each in row.items()
        if each and precision != "l2_bytes_per_slice"
    }
    return {"rates": rates, "clock": clock, "quality": "estimate", "reason": None, "ground": ground}


def _sheet(name: str) -> dict[str, Any]:
    found = find_sku(name)
    if found.sku is None:
        near = [sku.id for sku in found.candidates]
        return {"sku": None, "reason": found.reason, "candidates": near}
    return {"sku": found.sku.id, "peak": dict(found.sku.peak), "source": found.sku.source}


def _notes(result: Mapping[str, Any], smi: Smi) -> tuple[str, ...]:
    notes, gpus = [], result["gpus"]
    if smi.problem:
        notes.append(f"NVML index, clocks, ECC and MIG are not known: {smi.problem}")
    if any(g["nvml_index"] not in (None, g["cuda_index"]) for g in gpus):
        notes.append(
            "CUDA and NVML count differently here: nvidia-smi -i takes the NVML index, cuda:N that of CUDA; "
            f"the UUID is the same for both ({VISIBLE}=GPU-...)"
        )
    if len(gpus) > 1 and result["device_order"] != "PCI_BUS_ID":
        notes.append(f"without {ORDER}=PCI_BUS_ID CUDA counts the fastest GPU first")
    if any(" MIG " in g["name"] for g in gpus):
        notes.append("a MIG slice: SMs and memory are those of the slice, clocks and ECC those of the GPU")
    if any(g["mig"] and " MIG " not in g["name"] for g in gpus):
        notes.append("MIG is enabled: a process sees one slice only, whose UUID `nvidia-smi -L` prints")
    return tuple(notes)


# ---- Probes: single questions about this machine, each answered or told why not
# ``device`` and ``dtype`` ask the driver and tables; the others run with torch in a child process.

NAMES = ("device", "dtype", "allocator", "graph-breaks", "copy", "matmul")


@dataclass(frozen=True)
class ProbeOptions:
    """What probes are about; ``compute_capability`` ("9.0") asks about a GPU that is not here.

    ``script`` and ``call`` name a workload for "allocator" and "graph-breaks", ``params`` its parameters;
    ``steps`` are those between which memory is compared; ``snapshot`` is where memory_snapshot() goes.
    """

    shape: tuple[int, ...] | None = None
    dtypes: tuple[str, ...] = ()
    compute_capability: str | None = None
    script: Path | None = None
    call: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    steps: int = 20
    snapshot: Path | None = None
    python: str = sys.executable
    timeout: float = 600.0


# ---- Probes that need torch, each in a child process: a broken CUDA or torch takes only its own answer along

CHILD = Path(__file__).resolve().parent / "workload" / "probing.py"


def in_child(name: str, options: ProbeOptions) -> Probed:
    """Return what the probe ``name`` found in a process of its own; never raises for what happens there.

    Raises:
        ToolError: the interpreter cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="ncukit-") as folder:
        result = Path(folder) / "probe.json"
        argv = [options.python, str(CHILD), name, "--result", str(result), "--steps", str(options.steps)]
        if options.script is not None:
            argv += ["--script", str(options.script), "--call", str(options.call)]
        argv += [word for key, value in options.params.items() for word in ("--param", f"{key}={value}")]
        if options.snapshot is not None:
            argv += ["--snapshot", str(options.snapshot.absolute())]
        done = run(argv, env=child_environment(os.environ).variables, timeout=options.timeout)
        try:
            data = read_json(result)
        except ReportError:
            return Probed(name, "failed", reason=_ended(done, options), hint=_HINT)
    known = {key: data[key] for key in ("state", "result", "reason", "hint") if key in data}
    return Probed(name, **known, notes=tuple(data.get("notes", ())))


_HINT = "run `python -c 'import torch; torch.cuda.init()'` to see whether torch and CUDA work at all"


def _ended(done: Completed, options: ProbeOptions) -> str:
    if done.timed_out:
        return f"no answer within {options.timeout:.0f} s"
    how = done.signal or f"exit code {done.returncode}"
    said = done.tail(1).strip()
    return f"the process ended with {how}" + (f": {said}" if said else "")


# ---- Data types: bytes per element, footprint of a shape, and what the tensor cores multiply


def dtype(options: ProbeOptions, driver: Driver) -> Probed:
    """Return width, footprint and tensor-core support of the types that were asked for (none: of all).

    Raises:
        UsageError: there is no such type, or the compute capability is none.
    """
    chosen = [dtype_of(name) for name in options.dtypes] or list(BITS)
    elements = None if options.shape is None else math.prod(options.shape)
    capabilities = _capabilities(options, driver)
    types: list[dict[str, Any]] = []
    for name in dict.fromkeys(chosen):
        bits = BITS[name]
        types.append(
            {
                "dtype": name,
                "bits": bits,
                "bytes_per_element": bits / 8,
                "footprint": None if elements is None else math.ceil(elements * bits / 8),
                "tensor_cores": {cc: _supported(name, number) for cc, number in capabilities.items()},
            }
        )
    known = [tensor_cores(number) for number in capabilities.values()]
    notes = [
        f"{t.compute_capability / 10:.1f}: {note}"
        for t in known
        if t is not None
        for note in (t.note, *(t.of_type.get(name, "") for name in dict.fromkeys(chosen)))
        if note
    ]
    if options.shape is not None and any(BITS[name] < 8 for name in chosen):
        notes.append("types below 8 bits are packed; scales of block-scaled formats come on top")
    if "tf32" in chosen:
        notes.append("TF32 is how FP32 data is multiplied: in memory it takes 4 bytes")
    if not capabilities:
        notes.append("tensor cores: no GPU is here; ask for one with --cc 9.0")
    result = {
        "shape": None if options.shape is None else list(options.shape),
        "elements": elements,
        "types": types,
        "source": next((t.source for t in known if t is not None), None),
    }
    return Probed("dtype", "done", result, notes=tuple(notes))


def _capabilities(options: ProbeOptions, driver: Driver) -> dict[str, int]:
    if options.compute_capability is None:
        return {f"{gpu.cc[0]}.{gpu.cc[1]}": gpu.cc[0] * 10 + gpu.cc[1] for gpu in driver.gpus}
    text = options.compute_capability
    major, dot, minor = text.partition(".")
    if not (major.isdigit() and dot and minor.isdigit() and len(minor) == 1):
        raise UsageError(f"{text!r} is no compute capability", "write it as --cc 9.0")
    return {text: int(major) * 10 + int(minor)}


def _supported(name: str, number: int) -> bool | None:
    """Return whether the tensor cores multiply ``name``, None where that is not known."""
    found = tensor_cores(number)
    return None if found is None else name in found.types
