"""docs/models.md: the reference of the analytic models, from their docstrings and signatures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ncukit.model.work import SUSPECTS, WorkModel
from ncukit.render.model.shown import explained, precision
from ncukit.roofline.models.against import ABOVE
from ncukit.roofline.models.estimate import EXAMPLES, MODELS, make, parameters
from scripts.pages.words import plain

HEAD = """\
# Analytic models

Generated from the docstrings of `ncukit.models` by `scripts/reference.py`; a test keeps it current.

A model says what a computation needs at least, from its shapes and data type: FLOPs by precision and
compulsory bytes.  `ncukit roofline MODEL` puts it under a roofline, `ncukit.models` gives it to Python and to
a workload (`ncukit.Case(run=..., model=ncukit.models.gemm(m, n, k, dtype="fp16"))`), whose report then
compares the two.

```sh
ncukit roofline                         # the models
ncukit roofline gemm --m 64 --n 32 --k 128 --dtype fp16 --peak 200e12 --bandwidth 3e12
ncukit roofline gemm --m 8192 --n 8192 --k 8192 --dtype bf16 --gpu h100-sxm
ncukit roofline softmax --rows 8192 --columns 4096 --report softmax.ncu-rep --launch 2 -o softmax.html
ncukit roofline point --flops 2e12 --bytes 1e12 --seconds 0.020 --peak 200e12 --bandwidth 3e12
```

## Conventions

- A multiply-add is 2 FLOP.  A sum of k products starts from zero: 2k FLOP; `--exact-sums` counts 2k - 1.
- Comparisons, conversions and special functions (exp, rsqrt) are no FLOPs; counters see the few operations
  that such a function compiles to.  Elementwise arithmetic on types narrower than FP32 is FP32 work.
- Bytes are compulsory: each input is read once, each output written once.  Caches are cold, and nothing that
  does not fit on the chip is modelled.  Types have their width in memory (TF32 is 4 bytes, FP4 half a byte);
  scales of block formats count where a model has `--scale-block`.
- Intensity is FLOPs over bytes, the ridge peak over bandwidth, the bound min(peak, intensity x bandwidth),
  the time floor the longer of FLOPs / peak and bytes / bandwidth (Williams, Waterman, Patterson: Roofline,
  CACM 52(4), 2009).  One `--peak` holds for all work together; peaks of a report or a data sheet go by
  precision, whose pipes overlap.
- Peaks come from `--peak` and `--bandwidth`, then from the report, then from the data sheet of `--gpu`, as a
  marked estimate.  What none of them knows leaves the bound unknown.

## When a time is too short

A time (`--seconds`, or the duration of the launch of `--report`) below the floor by more than 2 % is not
consistent.  The suspects:

{suspects}

## Beside a report

Measured over modelled, and what more than 1 can mean.  A launch of several that share the work may do less.

{above}

## Models
"""


def page() -> str:
    """Return the text of docs/models.md."""
    suspects = "\n".join(f"- `{name}`: {words}" for name, (_, words) in SUSPECTS.items())
    above = "\n".join(f"- `{name}`: {words}" for name, words in ABOVE.items())
    parts = [HEAD.format(suspects=suspects, above=above)]
    parts += ["\n" + "\n".join(_entry(name)) + "\n" for name in MODELS]
    return "".join(parts)


def _entry(name: str) -> Iterator[str]:
    """Yield the lines about one model."""
    what, *formula = explained(name)
    model = make(name, EXAMPLES[name])
    yield f"### `{name}`: {plain(what).rstrip('.')}"
    yield ""
    yield plain("  ".join(formula))
    yield ""
    yield "| parameter | meaning | default |"
    yield "| --- | --- | --- |"
    for p in parameters(name):
        default = "required" if p.required else "" if p.default is None else f"`{p.default}`"
        yield f"| `{p.name}` | {plain(p.meaning)} | {default} |"
    yield ""
    yield f"`{call(name)}`: {numbers(model)}."
    yield ""
    yield f"Counted: {plain('; '.join(model.notes))}."
    yield f"Left out: {plain('; '.join(model.assumptions))}."


def call(name: str) -> str:
    """Return the example of a model as Python."""
    return f"ncukit.models.{name}({', '.join(f'{k}={_literal(v)}' for k, v in EXAMPLES[name].items())})"


def numbers(model: WorkModel) -> str:
    """Return work, bytes and intensity of a model in full."""
    work = ", ".join(f"{flop:,.15g} FLOP ({precision(p)})" for p, flop in model.flop.items()) or "0 FLOP"
    return f"{work}, {model.bytes:,.15g} bytes, {model.intensity:.4g} FLOP/byte"


def _literal(value: Any) -> str:
    return (
        f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else repr(value)
    )
