"""The models by name, and a model under peaks: given, of a report, or of a data sheet."""

from __future__ import annotations

import difflib
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from ncukit.errors import UsageError
from ncukit.model import Kernel, Value
from ncukit.model.work import Estimate, WorkModel
from ncukit.record import dataclass
from ncukit.roofline.models.against import compare, ratios
from ncukit.roofline.models.arrays import (
    all_reduce,
    elementwise,
    embedding,
    layer_norm,
    reduction,
    softmax,
    transpose,
    vector,
)
from ncukit.roofline.models.products import (
    attention,
    attention_scores,
    convolution,
    gemm,
    gemv,
    kv_cache_decode,
)
from ncukit.roofline.models.terms import point

if TYPE_CHECKING:
    from ncukit.metrics.catalog import Lookup


# ---- The models by name, and what each takes: for the command line and the documents

Model = Callable[..., WorkModel]

MODELS: Mapping[str, Model] = {
    model.__name__: model
    for model in (
        *(vector, elementwise, transpose, reduction, embedding, softmax, layer_norm, gemv, gemm, convolution),
        *(attention_scores, attention, kv_cache_decode, all_reduce, point),
    )
}
"""Every model, by the name of its function."""

EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "vector": {"n": 1_000_000, "dtype": "fp32"},
    "elementwise": {"n": 1_000_000, "operations": 4, "dtype": "bf16"},
    "transpose": {"m": 4096, "n": 4096, "dtype": "fp32"},
    "reduction": {"n": 1 << 24, "dtype": "fp32"},
    "embedding": {"lookups": 8192, "dim": 4096, "dtype": "bf16"},
    "softmax": {"rows": 8192, "columns": 4096, "dtype": "fp16"},
    "layer_norm": {"rows": 8192, "columns": 4096, "dtype": "bf16"},
    "gemv": {"m": 4096, "n": 4096, "dtype": "fp16"},
    "gemm": {"m": 64, "n": 32, "k": 128, "dtype": "fp16"},
    "convolution": {
        **{"batch": 32, "channels": 64, "height": 56, "width": 56, "filters": 64},
        **{"filter_height": 3, "filter_width": 3, "padding": 1, "dtype": "fp16"},
    },
    "attention_scores": {
        **{"batch": 1, "heads": 16, "queries": 1024, "keys": 1024, "head_dim": 64, "dtype": "fp16"},
    },
    "attention": {
        **{"batch": 4, "heads": 16, "queries": 2048, "keys": 2048, "head_dim": 128, "dtype": "fp16"},
        "causal": True,
    },
    "kv_cache_decode": {
        **{"batch": 8, "heads": 32, "kv_heads": 8, "context": 4096, "head_dim": 128, "dtype": "fp16"},
        "page_size": 16,
    },
    "all_reduce": {"n": 100_000_000, "ranks": 8, "dtype": "bf16"},
    "point": {"flops": 2e12, "bytes": 1e12},
}
"""One call of each model, for help and documents."""


SYNONYMS: Mapping[str, str] = {
    "vector": "copy scale add triad stream saxpy daxpy axpy",
    "reduction": "sum reduce mean",
    "embedding": "gather lookup",
    "layer_norm": "norm rmsnorm",
    "gemv": "matvec mv",
    "gemm": "matmul mm bmm linear addmm",
    "convolution": "conv conv2d",
    "attention": "sdpa flashattention mha",
    "kv_cache_decode": "decode kvdecode gqa mqa pagedattention",
    "all_reduce": "nccl",
}
"""What a model is called elsewhere: only to name it where there is no model of that name."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a model: its name, plain type (int, float, str, bool), meaning and default."""

    name: str
    type: type
    meaning: str
    required: bool
    default: Any = None


@functools.cache
def parameters(name: str) -> tuple[Parameter, ...]:
    """Return what the model called ``name`` takes.

    >>> [p.name for p in parameters("gemv") if p.required]
    ['m', 'n']
    """
    model = MODELS[name]
    hints = get_type_hints(model, include_extras=True)
    return tuple(_parameter(p, hints[p.name]) for p in inspect.signature(model).parameters.values())


def named(name: str) -> str:
    """Return the model that ``name`` means: case, hyphens and underscores do not matter.

    Raises:
        UsageError: there is none; the hint names the nearest.

    >>> named("KV-cache-decode"), named("layernorm")
    ('kv_cache_decode', 'layer_norm')
    """
    plain = {_plain(known): known for known in MODELS}
    if (found := plain.get(_plain(name))) is not None:
        return found
    same = [model for model, words in SYNONYMS.items() if _plain(name) in words.split()]
    near = same or [plain[key] for key in difflib.get_close_matches(_plain(name), plain, 2, 0.45)]
    first = f"did you mean {' or '.join(near)}? " if near else ""
    hint = f"{first}models: {', '.join(MODELS)}"
    raise UsageError(f"there is no model {name!r}", hint.replace("_", "-"))  # as the help writes them


def make(name: str, arguments: Mapping[str, Any]) -> WorkModel:
    """Return the model ``name`` of ``arguments``.

    Raises:
        UsageError: an argument is missing, unknown, or makes no sense.

    >>> make("gemv", {"m": 2, "n": 3}).total_flop
    12
    """
    known = {p.name: p for p in parameters(name)}
    for given in arguments:
        if given not in known:
            near = difflib.get_close_matches(given, known, 1, 0.5)
            first = f"did you mean {near[0]}? " if near else ""
            raise UsageError(f"{name} has no parameter {given!r}", f"{first}it takes: {', '.join(known)}")
    if lacking := [p for p in known.values() if p.required and p.name not in arguments]:
        words = "; ".join(f"{p.name}: {p.meaning}" for p in lacking)
        raise UsageError(f"{name} needs {', '.join(p.name for p in lacking)}", words)
    return MODELS[name](**arguments)


def _parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    meaning = ""
    if get_origin(hint) is Annotated:
        hint, meaning = get_args(hint)
    plain = next((part for part in get_args(hint) if part is not type(None)), hint)
    required = parameter.default is inspect.Parameter.empty
    return Parameter(parameter.name, plain, meaning, required, None if required else parameter.default)


def _plain(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")


# ---- A model under peaks that were given, that a report holds, or that a data sheet states

GIVEN = "given"
"""Source of a peak that the user states."""


def estimate(
    model: WorkModel,
    *,
    peak: float | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
    gpu: str | None = None,
    kernel: Kernel | None = None,
    seconds: float | None = None,
    launches: int = 1,
) -> Estimate:
    """Return bound and time floor of ``model``, and whether ``seconds`` [s], else those of ``kernel``, fit.

    ``peak`` [FLOP/s], one for all work or by precision, and ``bandwidth`` [byte/s] come first, then the peaks
    that the report of ``kernel`` holds, then the data sheet of ``gpu``, a marked estimate.  A peak that none
    of them knows stays unknown, with the reason: no bound rather than a wrong one.  ``launches`` is how many
    launches share the modelled work.

    Raises:
        UsageError: a rate or the time is not positive.

    >>> from ncukit.roofline.models import gemm
    >>> found = estimate(gemm(64, 32, 128, "fp16"), peak=200e12, bandwidth=3e12)
    >>> f"{found.bound:.4g}", found.floor.side, round(found.ridge, 1)
    ('5.486e+13', 'memory-bound', 66.7)
    >>> estimate(gemm(64, 32, 128, "fp16"), gpu="H100").bound is None  # SXM, PCIe or NVL
    True
    """
    one = peak if peak is not None and not isinstance(peak, Mapping) else None
    given = peak if isinstance(peak, Mapping) else {} if one is None else {"all work": one}
    for name, value in {
        **{f"peak of {p}": v for p, v in given.items()},
        "bandwidth": bandwidth,
        "time": seconds,
    }.items():
        if value is not None and not 0 < value < math.inf:
            raise UsageError(f"the {name} is {value:g}", "give FLOP/s, byte/s and seconds above 0")
    found = None if gpu is None else _data_sheet(gpu)
    peaks = {p: _peak(p, given.get(p), kernel, found) for p in model.flop}
    if one is not None:
        peaks = dict.fromkeys(model.flop, Value("peak_flop_rate", one, "FLOP/s", "exact", (GIVEN,)))
    measured = kernel.number("kernel_duration") if kernel is not None else None
    return Estimate(
        model,
        peaks,
        _bandwidth(model.memory, bandwidth, kernel, found),
        seconds if seconds is not None else measured,
        ratios(model, kernel) if kernel is not None else (),
        compare(model, kernel, launches=launches) if kernel is not None else (),
    )


def _data_sheet(gpu: str) -> Lookup:
    from ncukit.metrics.catalog import find_sku

    return find_sku(gpu)


def _peak(precision: str, given: float | None, kernel: Kernel | None, found: Lookup | None) -> Value:
    id, unit = f"peak_flop_rate_{precision}", "OP/s" if "int" in precision else "FLOP/s"
    stated = found.sku.peak.get(precision) if found is not None and found.sku is not None else None
    return _first(id, unit, given, kernel, found, stated, f"peak rate of {precision}")


def _bandwidth(memory: str, given: float | None, kernel: Kernel | None, found: Lookup | None) -> Value:
    if memory == "link":
        return _first("link_bandwidth", "byte/s", given, None, None, None, "bandwidth of one link direction")
    stated = found.sku.dram_bandwidth if found is not None and found.sku is not None else None
    return _first("peak_dram_bandwidth", "byte/s", given, kernel, found, stated, "DRAM bandwidth")


def _first(
    id: str,
    unit: str,
    given: float | None,
    kernel: Kernel | None,
    found: Lookup | None,
    stated: float | None,
    what: str,
) -> Value:
    """Return the rate ``id`` from the first of those that know it, else why none does."""
    if given is not None:
        return Value(id, given, unit, "exact", (GIVEN,))
    reported = kernel.metrics.get(id) if kernel is not None else None
    if reported is not None and reported.number:
        return reported
    if stated is not None and found is not None and found.sku is not None:
        note = f"{found.sku.name}, dense, at boost clock" + (f"; {found.sku.note}" if found.sku.note else "")
        return Value(id, stated, unit, "estimate", (found.sku.source,), note)
    if found is not None:
        others = f": {', '.join(sku.id for sku in found.candidates)}" if found.candidates else ""
        reason = (
            f"{found.reason}{others}" if found.sku is None else f"the {found.sku.source} states no {what}"
        )
    elif reported is not None:
        reason = f"the report holds no {what} ({reported.reason or 'it is 0'})"
    else:
        reason = f"the {what} is not given"
    return Value(id, None, unit, reason=reason)
