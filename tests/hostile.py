"""Everything that can hold a name, holding one that wants out: of a page, a path, a cell, a line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.mutations import originals
from tests.ncurep import Device, Launch, write_report
from tests.test_timeline_output import training
from tests.torch_builder import TorchBuilder

PAYLOAD = (
    "=cmd|'/c calc'!A1</script><script>window.canary=1</script><img src=x onerror=window.canary=1>"
    '<a href="javascript:window.canary=1">"\'`${window.canary=1}{{7*7}}{%raw%}&amp;<!--]]>'
    "../../../../etc/passwd\x1b[31m\x07\r\n\u202egnp.exe\u2066\u2028::error::\u200b"
)
NAME = PAYLOAD + "x" * (7_000 - len(PAYLOAD))
"""Seven thousand characters."""


def report(path: Path) -> Path:
    """Write a report whose launches, GPU and sections have such names."""
    metrics = {"gpu__time_duration.sum": 1000.0, "sm__throughput.avg.pct_of_peak_sustained_elapsed": 61.0}
    launches = [Launch(f"{NAME}{n}", metrics=dict(metrics)) for n in range(2)]
    write_report(path, launches, Device(NAME, (8, 6)))
    return path


def printed(path: Path) -> Path:
    """Write CSV of ncu with such names."""
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, quoting=csv.QUOTE_ALL)
        rows.writerow(["ID", "Process Name", "Kernel Name", "dram__bytes.sum"])
        rows.writerow(["", "", "", "Kbyte"])
        rows.writerow(["0", NAME, NAME, "78.9"])
    return path


def torch_trace(path: Path, rank: int | None = None) -> Path:
    """Write a trace of torch with such operators, kernels and ranges."""
    builder = TorchBuilder(rank=rank, world=None if rank is None else 2)
    builder.op(NAME, 0, 500)
    builder.launch(NAME, 10, 20, 100)
    builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 200, 300, 100, stream=20)
    builder.annotation(NAME, 0, 900)
    return builder.write(path)


def nsys_export(path: Path) -> Path:
    """Write an export of nsys with such kernels and ranges."""
    builder = training(3, NAME)
    builder.nvtx(NAME, 0, 3_000_000)
    return builder.write(path)


def run_directory(folder: Path) -> Path:
    """Write a run directory in whose record every free text is such a name."""
    folder.mkdir(parents=True)
    run = originals.run_record()
    failure = {"code": "busy", "message": NAME, "hint": NAME, "evidence": NAME}
    steps = tuple(replace(step, command=(NAME,), notes=(NAME,), failure=failure) for step in run.steps)
    hostile = replace(
        run,
        created=NAME,
        version=NAME,
        target={**run.target, "name": NAME, "meaning": NAME, "params": {NAME: NAME}, "source": NAME},
        options={**run.options, "kernel": NAME},
        tools={NAME: {"path": NAME, "version": NAME}},
        gpu={"name": NAME, "uuid": NAME, "compute_capability": NAME},
        driver={"kernel": NAME, "cuda": NAME, "problem": NAME},
        git={"revision": NAME, "modified": True},
        environment={"variables": {NAME: NAME}, "withheld": [NAME]},
        clock_control=NAME,
        cache_control=NAME,
        steps=steps,
        notes=(NAME,),
        error=failure,
    )
    (folder / "run.json").write_text(json.dumps(hostile.as_dict()))
    timing = replace(originals.timing_record(), params={NAME: NAME}, notes=(NAME,), frameworks={NAME: NAME})
    (folder / "timing.json").write_text(json.dumps(timing.as_dict()))
    report(folder / "profile.ncu-rep")
    return folder


def experiment(path: Path) -> Path:
    """Write the record of an experiment in which every free text is such a name."""
    data = json.loads(originals.experiments()[0])
    data["control"] |= {"name": NAME, "baseline": NAME, "variant": NAME}
    data |= {"hypothesis": NAME, "version": NAME, "notes": [NAME], "differences": [NAME]}
    data["conclusion"] |= {"claim": NAME, "text": NAME, "cautions": [NAME]}
    data["profiled"] |= {"state": "done", "detail": NAME, "runs": [NAME], "summary": NAME}
    path.write_text(json.dumps(data))
    return path
