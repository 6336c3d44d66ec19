"""Ceilings that were measured on a GPU, from the file of ``ncukit probe copy matmul -o FILE``.

They lie below the peaks of the counters and the data sheet, and show what good code reaches there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncukit.errors import ReportFormatError, UsageError
from ncukit.model import Roof, Roofline
from ncukit.model.probe import PROBE_SCHEMA
from ncukit.record import dataclass
from ncukit.schemas.documents import read_document


@dataclass(frozen=True)
class Measured:
    """Measured ceilings of the GPU called ``device``, from ``path``."""

    path: str
    device: str
    roofs: tuple[Roof, ...]

    def on(self, roofline: Roofline, gpu: str | None) -> Roofline:
        """Return ``roofline`` with these ceilings, or with the reason why they are not those of ``gpu``."""
        if gpu is not None and gpu != self.device:
            why = f"Measured ceilings are of {self.device}, and this launch ran on {gpu}: not drawn."
            return replace(roofline, missing=(*roofline.missing, why))
        return replace(roofline, measured=self.roofs)


def read_measured(path: str | Path) -> Measured:
    """Return the ceilings in the file of ``ncukit probe copy matmul -o FILE``.

    Raises:
        ReportNotFound: there is no such file.
        ReportFormatError: it is another file, or damaged.
        UsageError: it holds no ceiling of a GPU.
    """
    path = Path(path)
    again = "make it with: ncukit probe copy matmul -o FILE"
    data = read_document(path, PROBE_SCHEMA, again)
    try:
        done = [
            p["result"] for p in data["probes"] if p["state"] == "done" and p["name"] in ("copy", "matmul")
        ]
        gpus = [result for result in done if result["measured"] == "cuda"]
        roofs = tuple(roof for result in gpus for roof in _roofs(result))
        names = {str(result["device"]["name"]) for result in gpus}
    except (KeyError, TypeError, ValueError) as error:
        raise ReportFormatError(path, f"{path} is damaged: {error}", again) from error
    if not roofs:
        what = "those of a CPU only" if done else "no ceiling"
        raise UsageError(f"{path} holds {what}", "measure on the GPU of the report: ncukit probe copy matmul")
    if len(names) > 1:
        raise UsageError(f"{path} mixes ceilings of {' and '.join(sorted(names))}", again)
    return Measured(str(path), names.pop(), roofs)


def _roofs(result: Mapping[str, Any]) -> Iterator[Roof]:
    if "bandwidth" in result:
        note = "measured: a large copy, read and written, without a profiler"
        yield Roof("bandwidth", str(result["level"]), float(result["bandwidth"]), "exact", note)
    for precision, rate in result.get("rates", {}).items():
        note = "measured: a large square matrix product, without a profiler"
        yield Roof("compute", str(precision), float(rate), "exact", note)
