"""Write the sample reports and the sample trace:  python -m tests.make_samples [FOLDER]

The same sources give the same bytes, on every machine: the model has no randomness, and the compiled kernels
are committed beside it.  ``reports/samples`` is the default folder.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from tests.ncurep import Code, Launch, Session, report_bytes
from tests.synthetic import rules, trace
from tests.synthetic.compile import CODE, source_path
from tests.synthetic.counters import metrics
from tests.synthetic.description import Kernel
from tests.synthetic.kernels import SAMPLES, Sample
from tests.synthetic.model import Model
from tests.synthetic.source import CODE_ADDRESS

TRACED = "gemm-tensor"
"""The sample that has a trace."""
SAMPLES_FOLDER = Path(__file__).resolve().parents[1] / "reports" / "samples"


def launch(kernel: Kernel, codes: dict[str, Code]) -> Launch:
    """Return what a report holds of ``kernel``; ``codes`` keeps code that launches share."""
    model = Model(kernel)
    if kernel.mangled not in codes:
        text = (CODE / f"{kernel.file}.cu").read_text()
        cubin = (CODE / f"{kernel.file}.cubin").read_bytes()
        codes[kernel.mangled] = Code(cubin, {source_path(kernel.file): text}, CODE_ADDRESS)
    return Launch(
        kernel.demangled,
        kernel.grid,
        kernel.block,
        metrics(model),
        mangled=kernel.mangled,
        ranges=kernel.ranges,
        code=codes[kernel.mangled],
        sections=rules.sections(),
        rules=rules.results(model),
    )


def sample_bytes(sample: Sample, *, code: bool = True) -> bytes:
    """Return the report of ``sample``; without ``code`` its launches have no SASS and no source text."""
    codes: dict[str, Code] = {}
    launches = [launch(kernel, codes) for kernel in sample.launches]
    if not code:
        launches = [replace(launch, code=None) for launch in launches]
    session = Session(app=sample.name, cmdline=f"synthetic: {sample.about}")
    return report_bytes(launches, sample.launches[0].gpu.device, session)


def main(folder: Path = SAMPLES_FOLDER, *, code: bool = True) -> None:
    """Write every sample into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for sample in SAMPLES:
        (folder / f"{sample.name}.ncu-rep").write_bytes(sample_bytes(sample, code=code))
    trace.write(folder / f"{TRACED}.sqlite")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
