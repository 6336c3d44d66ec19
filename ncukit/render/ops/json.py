"""The JSON of ``ncukit ops``: schema ``ncukit.ops/1``; times in seconds, shares in percent."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ncukit.media import dumps
from ncukit.model.ops import DeviceMemory, Host, Operator, Ops, Spike, Utilisation

SCHEMA = "ncukit.ops/1"


def ops_text(ops: Ops, *, top: int | None = None, kept: str | None = None) -> str:
    """Return the JSON of operators on one line; ``top`` of them (None: all)."""
    return dumps(ops_data(ops, top=top, kept=kept))


def ops_data(ops: Ops, *, top: int | None = None, kept: str | None = None) -> dict[str, Any]:
    """Return operators as JSON data; ``kept`` is where the trace of a run was left."""
    a, shown = ops.attribution, ops.operators[:top]
    return {
        "schema": SCHEMA,
        "file": ops.file.path,
        "trace": kept,
        "torch": ops.torch,
        "gpus": list(ops.gpus),
        "recorded": dict(ops.recorded),
        "span": _s(ops.span) if ops.operators else None,
        "sorted_by": ops.sorted_by,
        "operators": [_operator(o, ops.recorded.get("memory", False)) for o in shown],
        "operators_left_out": len(ops.operators) - len(shown),
        "totals": {
            "cpu_self": _s(ops.cpu_self),
            "device": _s(a.work),
            "by_call": _s(a.by_call),
            "by_external_id": _s(a.by_id),
            "outside_operators": _s(a.outside),
            "pieces": a.n,
            "pieces_outside_operators": a.n_outside,
            "pieces_without_call": a.without_call,
        },
        "utilisation": [_utilisation(u) for u in ops.utilisation],
        "memory": [_memory(m) for m in ops.memory] if ops.recorded.get("memory") else None,
        "profile_next": {
            "kernel": ops.deserving.kernel or None,
            "function": ops.deserving.short or None,
            "operator": ops.deserving.operator or None,
            "share": ops.deserving.share,
            "command": ops.deserving.command or None,
            "reasons": list(ops.deserving.reasons),
            "others": [asdict(c) | {"total": _s(c.total)} for c in ops.deserving.others],
            "why_not": ops.deserving.why_not or None,
        },
        "host": None if ops.host is None else _host(ops.host),
        "checks": list(ops.checks),
        "notes": list(ops.notes),
    }


def _s(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9


def _operator(o: Operator, memory: bool) -> dict[str, Any]:
    return {
        "name": o.name,
        "shapes": o.shapes or None,
        "dtypes": o.types or None,
        "calls": o.calls,
        "cpu_total": _s(o.cpu_total),
        "cpu_self": _s(o.cpu_self),
        "device_total": _s(o.device_total),
        "device_self": _s(o.device_self),
        "kernels": [{"name": k.name, "function": k.short, "n": k.n, "total": _s(k.total)} for k in o.kernels],
        "kernel_launches": o.kernel_launches,
        "copies": {"n": o.copies, "bytes": o.copy_bytes, "total": _s(o.copy_time)},
        "memsets": o.memsets,
        "waits": {"n": o.wait_calls, "total": _s(o.waits)},
        "allocated": o.allocated if memory else None,
        "freed": o.freed if memory else None,
    }


def _utilisation(u: Utilisation) -> dict[str, Any]:
    return {
        "device": u.device,
        "span": _s(u.span),
        "busy": u.busy,
        "gaps": {"n": u.gaps, "total": _s(u.gap_time), "longest": _s(u.longest_gap)},
        "sampled": {"window": _s(u.window), "low": u.low, "high": u.high},
        "nvidia_smi": {
            "samples": len(u.seen),
            "mean": sum(u.seen) / len(u.seen) if u.seen else None,
            "low": min(u.seen, default=None),
            "high": max(u.seen, default=None),
            "why_not": u.unseen or None,
        },
        "estimated_occupancy": u.occupancy,
    }


def _memory(m: DeviceMemory) -> dict[str, Any]:
    return {
        "device": None if m.device < 0 else m.device,
        "events": m.events,
        "peak_allocated": m.peak_allocated,
        "peak_reserved": m.peak_reserved,
        "peak_at": _s(m.peak_at),
        "peak_operator": m.peak_operator,
        "first_allocated": m.first_allocated,
        "last_allocated": m.last_allocated,
        "growths": m.growths,
        "spikes": [_spike(s) for s in m.spikes],
    }


def _spike(s: Spike) -> dict[str, Any]:
    return {
        "at": _s(s.at),
        "operator": s.operator,
        "bytes": s.bytes,
        "allocated": s.allocated if s.allocated >= 0 else None,
        "reserved": s.reserved if s.reserved >= 0 and s.device >= 0 else None,
        "grew": s.grew,
    }


def _host(host: Host) -> dict[str, Any]:
    return {
        "source": host.source,
        "span": _s(host.span),
        "interval": _s(host.interval),
        "gap_time": _s(host.gap_time),
        "covered": _s(host.covered),
        "frames": [
            {
                "name": f.name,
                "self": _s(f.self_time),
                "total": _s(f.total),
                "gap": _s(f.gap),
                "samples": f.samples,
            }
            for f in host.frames
        ],
        "notes": list(host.notes),
    }
