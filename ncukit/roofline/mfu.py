"""Model FLOPs utilisation: the arithmetic that a model needs, against what its GPUs could do.

Chowdhery et al., PaLM (2022), appendix B: only the operations of the model itself count, once.  Recomputed
activations, optimiser and padding are not work of the model; with them it would be the hardware utilisation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from ncukit.errors import UsageError
from ncukit.metrics.catalog import Sku, find_sku
from ncukit.record import dataclass
from ncukit.roofline.models.terms import dtype_of, matrix_precision

Mode = Literal["training", "inference"]
PER_PARAMETER: Mapping[Mode, int] = {"training": 6, "inference": 2}
"""FLOP per parameter and token: a multiply-add forward, twice that backward."""
PER_KEY: Mapping[Mode, int] = {"training": 12, "inference": 4}
"""FLOP per token, key, layer and hidden unit: Q K^T and P V, each a multiply-add."""


@dataclass(frozen=True)
class Attention:
    """Shape of the attention that parameters do not count; ``hidden`` is heads times head size."""

    layers: int
    hidden: int
    sequence: int
    causal: bool = False
    """Count only the keys up to each token; published figures usually count all of them."""

    def flop(self, mode: Mode) -> float:
        """Return the work of one token, averaged over the sequence [FLOP]."""
        keys = (self.sequence + 1) / 2 if self.causal else self.sequence
        return PER_KEY[mode] * self.layers * self.hidden * keys


@dataclass(frozen=True)
class Peak:
    """What the GPUs could do: ``per_gpu`` [FLOP/s] dense; None with the reason and what could be meant."""

    per_gpu: float | None
    precision: str
    source: str = ""
    name: str = ""
    sku: Sku | None = None
    reason: str = ""
    candidates: tuple[Sku, ...] = ()


@dataclass(frozen=True)
class Mfu:
    """Utilisation and where it comes from; rates are FLOP/s of all GPUs together.

    ``percent`` is None where the peak is unknown; above 100 something is wrong, and ``suspects`` say what.
    """

    mode: Mode
    params: float
    tokens_per_second: float
    gpus: int
    dtype: str
    peak: Peak
    flop_parameters: float
    """Work of the parameters, a token [FLOP]."""
    flop_attention: float
    """Work of the attention, a token [FLOP]; 0 where its shape was not given."""
    achieved: float
    percent: float | None
    attention: Attention | None = None
    suspects: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def consistent(self) -> bool | None:
        """Whether the utilisation is possible at all; None where it is unknown."""
        return None if self.percent is None else self.percent <= 100


def peak_of(gpu: str, dtype: str) -> Peak:
    """Return the dense peak of the product ``gpu`` for matrix products of ``dtype``.

    Raises:
        UsageError: there is no such data type.

    >>> peak_of("h100-sxm", "bf16").per_gpu, peak_of("H100", "bf16").reason
    (989400000000000, 'H100 may mean 3 products')
    """
    precision = matrix_precision(dtype_of(dtype))
    found = find_sku(gpu)
    same = {sku.peak.get(precision) for sku in found.candidates}
    if found.ambiguous and len(same) == 1 and None not in same:
        ids = ", ".join(sku.id for sku in found.candidates)
        return Peak(same.pop(), precision, f"{found.candidates[0].source}; the same for {ids}", gpu)
    if found.sku is None:
        return Peak(None, precision, name=gpu, reason=found.reason, candidates=found.candidates)
    sku = found.sku
    if precision not in sku.peak:
        reason = f"the data sheet of {sku.name} states no {dtype_of(dtype).upper()} rate of matrix products"
        return Peak(None, precision, sku.source, sku.name, sku, reason)
    return Peak(sku.peak[precision], precision, sku.source, sku.name, sku)


def mfu(
    params: float,
    tokens_per_second: float,
    peak: Peak,
    *,
    gpus: int = 1,
    dtype: str = "bf16",
    mode: Mode = "training",
    attention: Attention | None = None,
) -> Mfu:
    """Return the model FLOPs utilisation of ``gpus`` GPUs that process ``tokens_per_second`` together.

    ``params`` are those that a token uses: of a mixture of experts the active ones.

    Raises:
        UsageError: a number is not positive, or not finite.

    >>> found = mfu(8e9, 64_000, peak_of("h100-sxm", "bf16"), gpus=8)
    >>> round(found.percent, 1)
    38.8
    """
    given = {"params": params, "tokens per second": tokens_per_second, "gpus": gpus}
    if attention is not None:
        given |= {"layers": attention.layers, "hidden": attention.hidden, "sequence": attention.sequence}
    for name, value in given.items():
        if not math.isfinite(value) or value <= 0:
            raise UsageError(f"{name} is {value:g}", "give a number above 0")
    dense, keys = PER_PARAMETER[mode] * params, 0.0 if attention is None else attention.flop(mode)
    achieved = (dense + keys) * tokens_per_second
    percent = None if peak.per_gpu is None else 100 * achieved / (gpus * peak.per_gpu)
    found = Mfu(
        mode,
        params,
        tokens_per_second,
        gpus,
        dtype_of(dtype),
        peak,
        dense,
        keys,
        achieved,
        percent,
        attention,
    )
    return _judged(found)


def _judged(found: Mfu) -> Mfu:
    from dataclasses import replace

    notes = ["dense peak at boost clock; recomputed activations are not counted as work"]
    if found.attention is None:
        notes.append("attention is not counted: give layers, hidden and sequence length to count it")
    if found.mode == "inference":
        notes.append("decoding is usually limited by memory bandwidth: a low utilisation is then no fault")
    if found.dtype == "fp32":
        notes.append("FP32 on the ordinary pipes; where TF32 is allowed, give dtype tf32")
    if found.peak.sku is not None and found.peak.sku.note:
        notes.append(found.peak.sku.note)
    return replace(found, notes=tuple(notes), suspects=_suspects(found) if found.consistent is False else ())


def _suspects(found: Mfu) -> tuple[str, ...]:
    """Return what could make a utilisation above 100 %, the likeliest first."""
    percent = found.percent or 0
    suspects = []
    if found.gpus == 1:
        suspects.append("tokens per second of several GPUs against the peak of one: give the number of GPUs")
    else:
        suspects.append("tokens per second that do not belong to these GPUs, or to this many")
    if found.mode == "training":
        suspects.append("inference counted as training, which is three times the work")
    suspects.append("all parameters of a mixture of experts instead of the active ones")
    if percent <= 250:
        suspects.append(f"a data type narrower than {found.dtype}, or another GPU, than was given")
    suspects.append("work that is not synchronised when the time is read, so that the time is too short")
    return tuple(suspects)
