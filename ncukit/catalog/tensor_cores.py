"""Which types the tensor cores of a compute capability multiply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field

from ncukit.catalog.load import DATA
from ncukit.record import dataclass


@dataclass(frozen=True)
class TensorCores:
    """Input types of the tensor cores of ``compute_capability`` (x 10), and where that is from.

    ``note`` is about all of them, ``of_type`` about a type each.
    """

    compute_capability: int
    types: tuple[str, ...]
    source: str
    note: str = ""
    of_type: Mapping[str, str] = field(default_factory=dict)


def tensor_cores(compute_capability: int) -> TensorCores | None:
    """Return what the tensor cores of ``compute_capability`` (x 10) multiply; None where it is not known.

    Capabilities below 7.0 have no tensor cores, which is known.

    >>> "fp8" in tensor_cores(89).types, "fp8" in tensor_cores(80).types, tensor_cores(61).types
    (True, False, ())
    """
    data = json.loads((DATA / "tensor_cores.json").read_text(encoding="utf-8"))
    if compute_capability < 70:
        return TensorCores(compute_capability, (), data["source"], "tensor cores came with 7.0")
    found = data["types"].get(str(compute_capability))
    if found is None:
        return None
    types, notes = tuple(found["types"]), found.get("of_type", {})
    return TensorCores(compute_capability, types, data["source"], found.get("note", ""), notes)
