"""Traces: regions, operators, ranks, and how much of its GPUs a model uses."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import gmtime, strftime
from typing import TYPE_CHECKING, Any, Literal

from ncukit.api.reports import PathLike
from ncukit.errors import UsageError

if TYPE_CHECKING:
    from ncukit.model.ops import Ops, Ranks, TorchTrace, Utilisation
    from ncukit.model.trace import Timeline
    from ncukit.roofline.mfu import Attention, Mfu
    from ncukit.run.measure import Recorded
    from ncukit.run.options import ProfileOptions
    from ncukit.run.session import Listener


# ---- Traces: where the time of a program went


def timeline(path: PathLike, range: str | None = None) -> Timeline:
    """Return what the trace at ``path`` says about where the time went.

    It is one of nsys (.nsys-rep, .qdrep, .sqlite) or of torch's profiler (.json, .json.gz).  ``range`` looks
    only at what was launched inside the NVTX range, or torch's annotation, of that name.

    Raises:
        ReportError: the trace cannot be used, or nothing ran on a GPU in it.
        ToolError: a .nsys-rep cannot be exported: nsys is missing, too old, or failed.
        UsageError: there is no such range, or nothing was launched in it.

    >>> from ncukit.api import demo_traces
    >>> found = timeline(demo_traces()[0])
    >>> found.region.cls, len(found.kernels)
    ('transfer-bound', 3)
    """
    from ncukit.trace.files import open_any_trace
    from ncukit.trace.region import analyse

    return analyse(open_any_trace(path), range)


# ---- Operators of PyTorch programs: what they cost, what they launched, and ranks beside each other


def ops(
    target: PathLike | Sequence[str],
    *,
    kernel: str | None = None,
    params: Mapping[str, Any] | None = None,
    range: str | None = None,
    host: bool = False,
    calls: int | None = None,
    trace: PathLike | None = None,
    options: ProfileOptions | None = None,
    listener: Listener | None = None,
) -> Ops:
    """Return the operators of ``target``: a trace of torch's profiler, or a script that is run under it.

    Of a script ``kernel`` is the workload or function, ``params`` are its parameters, ``calls`` how often it
    runs, and ``trace`` where its trace goes (default: a new file in ``reports``).  ``range`` looks only at
    what began inside torch's annotation of that name.  ``host`` samples Python beside the GPU's gaps; of a
    trace it takes the stacks that the profiler recorded.

    Raises:
        ReportError: the trace cannot be used, or holds nothing.
        UsageError: the script has no such workload, a trace no such range, or ``host`` finds no stacks in it.
        ToolError: the script fails.

    >>> ops("missing.json.gz")
    Traceback (most recent call last):
    ncukit.errors.ReportNotFound: there is no file missing.json.gz
    """
    from ncukit.run.options import ProfileOptions
    from ncukit.trace.host_functions import from_stacks
    from ncukit.trace.operator_table import analyse_operators
    from ncukit.trace.operators import within
    from ncukit.trace.scope import whole
    from ncukit.trace.torch_events import read_torch

    words = [os.fspath(target)] if isinstance(target, str | os.PathLike) else list(target)
    if words and words[0].endswith(".py"):
        if range is not None:
            raise UsageError("a script runs its region alone: there is no range", "give --range with a trace")
        wanted = options or ProfileOptions()
        given = {name: (str(value),) for name, value in (params or {}).items()}
        wanted = replace(wanted, kernel=kernel or wanted.kernel, params={**wanted.params, **given})
        return _of_script(words, wanted, host, calls, trace, listener)
    if len(words) != 1:
        raise UsageError("give one trace, or a Python script", "ncukit ops TRACE.json.gz")
    if kernel is not None or params or calls is not None or trace is not None:
        raise UsageError(
            f"{words[0]} is a trace: nothing is run", "a workload and its parameters go with a .py file"
        )
    read = read_torch(words[0])
    if range is not None:
        read = within(read, range)
    found = analyse_operators(read)
    if not host:
        return found
    seen = from_stacks(read, whole(read.trace))
    if seen is None:
        raise UsageError(
            f"{words[0]} holds no Python stacks, so nothing says what the host did",
            "record with with_stack=True, or run the script: ncukit ops SCRIPT.py --kernel NAME --host",
        )
    return replace(found, host=seen)


def ranks(folder: PathLike | Sequence[PathLike], *, nccl_log: PathLike | None = None) -> Ranks:
    """Return what traces of several ranks say together: one file a rank, in a folder or as a list.

    ``nccl_log`` is what NCCL printed with ``NCCL_DEBUG=INFO``.

    Raises:
        ReportError: a trace cannot be used, or there are none.
        UsageError: two traces are of the same rank.
    """
    from ncukit.trace.files import rank_traces, read_nccl_log
    from ncukit.trace.rank_comparison import analyse_ranks

    log = None if nccl_log is None else read_nccl_log(nccl_log)
    return analyse_ranks(rank_traces(folder), log)


def _of_script(
    words: list[str],
    options: ProfileOptions,
    host: bool,
    calls: int | None,
    trace: PathLike | None,
    listener: Listener | None,
) -> Ops:
    from ncukit.run import measure as collect
    from ncukit.run.target import resolve
    from ncukit.trace.operator_table import against_torch, analyse_operators
    from ncukit.trace.torch_events import read_torch

    if len(options.points) > 1:
        raise UsageError("operators are of one run: no sweep", "give one value for each --param")
    if calls is not None and calls < 1:
        raise UsageError(f"{calls} calls run nothing", "give --calls 1 or more")
    point = options.points[0]
    target = resolve(words, options).at(point)
    kept = Path(trace) if trace is not None else new_trace(target.name)
    made = collect.record(target, options, kept, calls=calls, host=host, listener=listener)
    read = read_torch(kept)
    named = [word for name, value in point.items() for word in ("--param", f"{name}={value}")]
    program = [words[0], "--kernel", target.call or "", *named, *(["--", *words[1:]] if words[1:] else [])]
    found = analyse_operators(read, program)
    return replace(
        found,
        torch=str(made.result.get("torch") or "") or found.torch,
        checks=against_torch(found, made.result),
        host=_host(read, made) if host else None,
        utilisation=_seen(found, made) if host else found.utilisation,
        notes=(*found.notes, *_run_notes(made)),
    )


def _run_notes(made: Recorded) -> list[str]:
    from ncukit.render.words import plural

    calls = int(made.result.get("calls", 0))
    found = [f"the region ran {plural(calls, 'time')}, after warm-up", *made.notes]
    if made.settings:
        found.append("NCCL was set by " + ", ".join(f"{k}={v}" for k, v in made.settings.items()))
    return found


def _seen(found: Ops, made: Recorded) -> tuple[Utilisation, ...]:
    """Return how busy the GPUs were, with what NVML said of the one that the region used."""
    said = made.result.get("utilisation") or {}
    if len(found.utilisation) != 1:
        return found.utilisation
    reason = str(said.get("reason") or "the region was too short for a sample")
    samples = tuple(int(one) for one in said.get("samples") or ())
    return (replace(found.utilisation[0], seen=samples, unseen="" if samples else reason),)


def _host(read: TorchTrace, made: Recorded) -> Any:
    from ncukit.run.tools.nsys import RATE
    from ncukit.trace.host_functions import from_counts, from_samples
    from ncukit.trace.scope import whole

    if made.stays:
        return from_samples(whole(read.trace), made.stays, 1_000_000_000 // RATE)
    return from_counts(made.counts)


def new_trace(name: str) -> Path:
    """Return a file of its own in ``reports`` for the trace of ``name``, with the rank of this process."""
    from ncukit.run.directory import slug

    rank = f"-rank{own}" if (own := os.environ.get("RANK", "")).isdigit() else ""
    stem = f"{slug(name)}-ops{rank}-{strftime('%Y%m%dT%H%M%SZ', gmtime())}"
    found, n = Path("reports") / f"{stem}.json.gz", 1
    while found.exists():
        n += 1
        found = Path("reports") / f"{stem}-{n}.json.gz"
    return found


# ---- How much of what its GPUs could do a model uses


def mfu(
    params: float,
    tokens_per_second: float,
    gpu: str,
    *,
    gpus: int = 1,
    dtype: str = "bf16",
    mode: Literal["training", "inference"] = "training",
    attention: Attention | None = None,
    peak: float | None = None,
) -> Mfu:
    """Return the model FLOPs utilisation [%] of ``gpus`` GPUs called ``gpu`` (`ncukit mfu --list`).

    ``peak`` [FLOP/s] of one GPU replaces that of its data sheet.

    Raises:
        UsageError: a number is not positive, or the data type is none.

    >>> round(mfu(8e9, 64_000, "h100-sxm", gpus=8).percent, 1)
    38.8
    """
    from ncukit.errors import UsageError
    from ncukit.roofline import mfu as work
    from ncukit.roofline.models.terms import dtype_of, matrix_precision

    if peak is None:
        found = work.peak_of(gpu, dtype)
    elif peak > 0:
        found = work.Peak(peak, matrix_precision(dtype_of(dtype)), "given by the user", gpu)
    else:
        raise UsageError(f"the peak is {peak:g}", "give FLOP/s above 0, dense, of one GPU")
    return work.mfu(params, tokens_per_second, found, gpus=gpus, dtype=dtype, mode=mode, attention=attention)
