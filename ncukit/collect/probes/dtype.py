"""Data types: bytes per element, footprint of a shape, and what the tensor cores multiply."""

from __future__ import annotations

import math
from typing import Any

from ncukit.catalog.tensor_cores import tensor_cores
from ncukit.collect.probes import ProbeOptions
from ncukit.errors import UsageError
from ncukit.model.probe import Probed
from ncukit.roofline.models.dtypes import BITS, dtype_of
from ncukit.tools.cuda import Driver


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
