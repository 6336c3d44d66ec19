"""The GPUs: what each is, its peaks and their source, and its three names: CUDA index, NVML index, UUID."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncukit.catalog import load
from ncukit.catalog.skus import find_sku
from ncukit.model.probe import Probed
from ncukit.tools.cuda import Driver, Gpu
from ncukit.tools.smi import Smi, SmiGpu

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
