"""Correctness before performance: of one case, and of both sides of an experiment."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncukit.run.workload import script

# ---- Correctness before performance: is the result what the reference says, as far as its data type allows?
#  Two numbers agree when they differ by at most ``tolerance x (|reference| + rms of the reference)``:
# elements that cancel to almost nothing carry the error of the whole sum.  Integers must be equal, also
# where a tolerance is declared.  NaN never passes; infinity only where the reference is infinite too.

TOLERANCES = (
    ("float8_e5m2", 0.25),
    ("float8", 0.13),
    ("bfloat16", 3e-2),
    ("float16", 5e-3),
    ("float32", 1e-4),
    ("complex64", 1e-4),
    ("float64", 1e-9),
    ("complex128", 1e-9),
    ("float", 1e-9),
    ("complex", 1e-9),
)
"""Relative tolerance by the name of the result's data type: about ten units in the last place, and for sums
of thousands of terms; other types (integers, bool) must be equal."""
CHUNK = 1 << 24
"""Elements compared at once: double copies of a whole matrix may not fit beside it."""


@dataclass(frozen=True)
class Comparison:
    """What the comparison said: ``error`` is the largest, in units of the tolerance (1 is the limit)."""

    passed: bool
    detail: str
    tolerance: float = 0.0
    error: float | None = None
    elements: int = 0


def compare(result: Any, reference: Any, tolerance: float | None = None) -> Comparison:
    """Return whether ``result`` is what ``reference`` says; tensors, arrays, numbers, and containers of them.

    >>> compare([1.0, 2.0], [1.0, 2.0]).passed, compare(float("nan"), float("nan")).passed
    (True, False)
    """
    if result is None and reference is not None:
        return Comparison(False, "run() returns None where reference() returns a result: let run() return it")
    worst = Comparison(True, "equal", 0.0, 0.0, 0)
    elements = 0
    try:
        for path, a, b in _leaves(result, reference, ""):
            found = _arrays(a, b, tolerance, path) if hasattr(a, "shape") else _numbers(a, b, tolerance, path)
            elements += found.elements
            if not found.passed:
                return found
            if (found.error or 0.0) >= (worst.error or 0.0):
                worst = found
    except _Different as error:
        return Comparison(False, str(error))
    return Comparison(True, worst.detail, worst.tolerance, worst.error, elements)


class _Different(Exception):
    pass


def tolerance_of(dtype: object) -> float:
    """Return the tolerance for a data type, 0 where values must be equal.

    >>> tolerance_of("torch.float16"), tolerance_of("int32")
    (0.005, 0.0)
    """
    name = str(dtype).removeprefix("torch.").lower()
    return next((value for start, value in TOLERANCES if name.startswith(start)), 0.0)


def _limit(dtype: object, tolerance: float | None) -> float:
    """Return the tolerance that holds: integers must be equal, whatever is declared."""
    own = tolerance_of(dtype)
    return tolerance if tolerance is not None and own else own


def _leaves(a: Any, b: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the pairs of tensors, arrays and numbers in two structures of one shape."""
    if isinstance(b, dict):
        if not isinstance(a, dict) or set(a) != set(b):
            raise _Different(f"the result{path} has other keys than the reference")
        for key in b:
            yield from _leaves(a[key], b[key], f"{path}[{key!r}]")
    elif isinstance(b, list | tuple) and not hasattr(a, "shape"):
        if not isinstance(a, list | tuple) or len(a) != len(b):
            raise _Different(f"the result{path} has another length than the reference")
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _leaves(x, y, f"{path}[{i}]")
    else:
        yield path, a, b


def _numbers(a: Any, b: Any, tolerance: float | None, path: str) -> Comparison:
    if not isinstance(a, int | float | complex) or not isinstance(b, int | float | complex):
        same = type(a) is type(b) and a == b
        return Comparison(same, f"the result{path} is {a!r:.80}, the reference {b!r:.80}", elements=1)
    limit = _limit(type(a).__name__, tolerance)
    if a != a or b != b:
        return Comparison(False, f"the result{path} is {a!r}, the reference {b!r}", limit, None, 1)
    if a == b or (abs(b) != math.inf and abs(a - b) <= limit * abs(b)):
        return Comparison(
            True,
            "equal within the tolerance" if limit else "equal",
            limit,
            None if a == b else abs(a - b) / limit,
            1,
        )
    return Comparison(False, f"the result{path} is {a!r}, the reference {b!r}", limit, None, 1)


def _arrays(a: Any, b: Any, tolerance: float | None, path: str) -> Comparison:
    limit = _limit(a.dtype, tolerance)
    lib, a, b = _common(a, b)
    if tuple(a.shape) != tuple(b.shape):
        raise _Different(f"the result{path} has shape {tuple(a.shape)}, the reference {tuple(b.shape)}")
    shape, a, b = tuple(a.shape), a.reshape(-1), b.reshape(-1)
    count = math.prod(shape)
    wide = [_double(lib, b[i : i + CHUNK]) for i in range(0, min(count, CHUNK), CHUNK)]
    squares = finite = 0.0
    for i in range(0, count, CHUNK):
        part = lib.abs(wide[0] if i == 0 else _double(lib, b[i : i + CHUNK]))
        part = part[lib.isfinite(part)]
        squares += float((part * part).sum())
        finite += int(math.prod(part.shape))
    rms = math.sqrt(squares / finite) if finite else 0.0
    worst = 0.0
    for i in range(0, count, CHUNK):
        x, y = _double(lib, a[i : i + CHUNK]), _double(lib, b[i : i + CHUNK])
        wrong = lib.isnan(x) | lib.isnan(y)
        same = x == y
        allowed = limit * (lib.abs(y) + rms)
        difference = lib.abs(x - y)
        bad = wrong | ~(same | (lib.isfinite(y) & (difference <= allowed)))
        if bool(bad.any()):
            at = int(lib.argmax(bad.int() if lib.__name__ == "torch" else bad))
            place = _unravel(i + at, shape)
            text = f"element {place} of the result{path} is {_show(x[at])}, the reference says {_show(y[at])}"
            share = f"{int(bad.sum()):,} of {count:,} elements differ" if count <= CHUNK else "and maybe more"
            return Comparison(False, f"{text} ({share}; tolerance {limit:g})", limit, None, count)
        if limit:
            share_of = difference[~same & lib.isfinite(difference)]
            if math.prod(share_of.shape):
                part = allowed[~same & lib.isfinite(difference)]
                worst = max(worst, float((share_of / part).max()))
    return Comparison(True, f"{count:,} elements agree", limit, worst, count)


def _common(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return the library whose arrays both become, and both: torch where the result is a tensor."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(a, torch.Tensor):
        other = b.detach() if isinstance(b, torch.Tensor) else torch.as_tensor(_numpy(b))
        return torch, a.detach(), other.to(a.device)
    import numpy

    return numpy, _numpy(a), _numpy(b)


def _numpy(array: Any) -> Any:
    import numpy

    for method in ("get", "copy_to_host", "numpy"):  # CuPy, Numba, tensors
        if hasattr(array, method) and not isinstance(array, numpy.ndarray):
            if hasattr(array, "detach"):
                array = array.detach().cpu()
            return numpy.asarray(getattr(array, method)())
    return numpy.asarray(array)


def _double(lib: Any, part: Any) -> Any:
    if lib.__name__ == "torch":
        return part.to(lib.complex128 if part.is_complex() else lib.float64)
    return part.astype(lib.complex128 if part.dtype.kind == "c" else lib.float64)


def _show(value: Any) -> str:
    number = value.item()
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def _unravel(at: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    place = []
    for size in reversed(shape):
        place.append(at % size)
        at //= size
    return tuple(reversed(place))


# ---- Before an experiment: do both sides compute what they should?
# Both cases are made in one process, each after the same seeds: cases that draw their inputs get the same.

SEED = 0


def check(options: argparse.Namespace, result: dict[str, Any]) -> bool:
    """Compare each side with its reference, and a variant without one with the baseline.

    Returns whether nothing is wrong; ``result["correctness"]`` has an entry for each side.
    """
    module = script.load(Path(options.script))
    found: list[dict[str, Any]] = []
    result["correctness"] = found
    base: Any = None
    for side, call, given in (
        ("baseline", options.baseline, options.baseline_param),
        ("variant", options.call, options.param),
    ):
        seed()
        case, _, _ = script.make_case(module, call, script.parse_parameters(given))
        tolerance = options.tolerance if case.tolerance is None else case.tolerance
        value = case.run()
        if case.reference is not None:
            row = _row(side, "its reference", compare(value, case.reference(), tolerance))
        elif side == "baseline":
            row = _unchecked(side, "the case has no reference")
        elif options.call == options.baseline and options.param != options.baseline_param:
            row = _unchecked(side, "the case has no reference, and a parameter may change what is computed")
        elif value is None and base is None:
            row = _unchecked(side, "run() returns nothing, and the case has no reference")
        else:
            row = _row(side, "the baseline's result", compare(value, base, tolerance))
        found.append(row)
        if row["state"] == "failed":
            print(f"wrong result of the {side}: {row['detail']}", file=sys.stderr)
            return False
        base = value
    return True


def seed() -> None:
    """Seed what a case may draw its inputs from."""
    import random

    random.seed(SEED)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(SEED)
    for name, call in (("torch", "manual_seed"), ("cupy", "random.seed")):
        function: Any = sys.modules.get(name)
        for part in call.split("."):
            function = getattr(function, part, None)
        if function is not None:
            function(SEED)


def _row(side: str, against: str, comparison: Comparison) -> dict[str, Any]:
    return {
        "side": side,
        "state": "passed" if comparison.passed else "failed",
        "against": against,
        "detail": comparison.detail,
        "tolerance": comparison.tolerance,
        "error": comparison.error,
        "elements": comparison.elements,
    }


def _unchecked(side: str, why: str) -> dict[str, Any]:
    return {"side": side, "state": "not-checked", "against": "nothing", "detail": why}
