"""Write kernels/README.md: what each sample workload shows, and what ncukit must find in it on a GPU.

    python scripts/kernels.py

A workload begins with its header: a title, the fields Shows, Parameters and Model, and ``EXPECT = {...}``:

    gpu_kernel  pattern of the GPU kernel to look at; absent: the longest of the region
    arguments   default size of a .cu program, by the name that the header gives it
    model       [name, arguments] of the analytic model of a .cu program at that size
    region      classes of the region, any of which the timeline must show
    verdict     "class" or "class:limiter", any of which the launch must get
    findings    rules that must find something; "a|b": one of them, whichever the counters allow
    absent      rules that must find nothing
    counted     what is counted / the model: range of "flop" and of "bytes"; None: it cannot be compared
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
FOLDER = CHECKOUT / "kernels"
TARGET = FOLDER / "README.md"
FIELDS = ("Shows", "Parameters", "Model")
HEAD = """\
# Sample workloads

Each file shows one thing.  Its header says which, with its parameters, its analytic model and what ncukit
must find on a GPU: one of the limits, and every rule.  `scripts/kernels.py` makes the table from headers.

`ncukit profile kernels/gemm.py --kernel gemm` measures one; the workload in a Python file has the name of
the file.  They run wherever torch does, on the CPU too; `gemm_triton.py` also needs Triton, whose
interpreter runs it where there is no GPU.

The `.cu` files are complete programs: `nvcc -O3 -lineinfo -arch=sm_90 gemm_naive.cu && ./a.out [SIZE]
[REPETITIONS]` compares a sample of the result with the CPU, and ends with 0 when it is right, 1 when it is
wrong, 2 when a CUDA call failed.  `program.cuh` is what they share.

| file | workload | shows | limit | rules |
| --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Header:
    """The header of one workload: its title, its fields by name, and what must be found."""

    path: Path
    title: str
    fields: Mapping[str, str]
    expect: Mapping[str, Any]


def workloads() -> list[Path]:
    """Return the workloads, by name."""
    return sorted(path for path in FOLDER.iterdir() if path.suffix in (".py", ".cu"))


def header(path: Path) -> Header:
    """Return the header of the workload at ``path``.

    Raises:
        ValueError: it has none, or lacks a field.
    """
    source = path.read_text(encoding="utf-8")
    text, expect = _python(source) if path.suffix == ".py" else _cuda(source)
    title, _, rest = text.partition("\n")
    found = re.findall(r"^(\w+): (.*(?:\n +.*)*)", rest, re.M)
    fields = {name: " ".join(value.split()) for name, value in found}
    if expect is None or (lacking := [name for name in FIELDS if name not in fields]):
        raise ValueError(f"{path.name} lacks {'EXPECT' if expect is None else ', '.join(lacking)}")
    return Header(path, title.rstrip("."), fields, ast.literal_eval(expect))


def _python(source: str) -> tuple[str, str | None]:
    tree = ast.parse(source)
    values = [
        ast.unparse(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXPECT"
    ]
    return ast.get_docstring(tree) or "", values[0] if values else None


def _cuda(source: str) -> tuple[str, str | None]:
    lines = source.split("\n\n")[0].splitlines()
    text = "\n".join(line.removeprefix("//").removeprefix(" ") for line in lines if line.startswith("//"))
    text, _, expect = text.partition("EXPECT = ")
    return text, expect or None


def table() -> str:
    """Return the whole page."""
    rows = []
    for path in workloads():
        head = header(path)
        limits = [*(f"region {name}" for name in head.expect.get("region", ())), *head.expect["verdict"]]
        rules = [name.replace("|", " or ") for name in head.expect["findings"]]
        shows = head.fields["Shows"].replace("``", "`")
        cells = (f"[{path.name}]({path.name})", head.title, shows, ", ".join(limits), ", ".join(rules))
        rows.append(f"| {' | '.join(cells)} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    TARGET.write_text(table(), encoding="utf-8")
