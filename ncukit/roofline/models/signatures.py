"""The models by name, and what each takes: for the command line and the documents."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from ncukit.errors import UsageError
from ncukit.model.work import WorkModel
from ncukit.record import dataclass
from ncukit.roofline.models.arrays import elementwise, embedding, reduction, transpose, vector
from ncukit.roofline.models.attention import attention, attention_scores, kv_cache_decode
from ncukit.roofline.models.network import all_reduce
from ncukit.roofline.models.products import convolution, gemm, gemv
from ncukit.roofline.models.rows import layer_norm, softmax
from ncukit.roofline.models.stated import point

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
