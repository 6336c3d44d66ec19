"""Show on a real GPU that ncukit works: run everything once, hold it against what is expected, bring it home.

    python scripts/gpu_acceptance.py --budget 240 -o acceptance.tar.gz

The machine needs Python, torch and ncu; nvcc for the ``.cu`` workloads; no network, and of ncukit's own needs
only what ``import typer, jinja2, ncu_report, plotly`` finds.  No settings are touched: clocks are not locked
(``--clock-control none``), nothing is run as another user.  Where nsys is absent torch's profiler stands in.
The most telling steps come first; what the budget does not hold is listed as not run.  Ends with 0 when every
expectation was met or could not be measured here, 1 otherwise.  Whatever ends it (also SIGTERM), the archive
holds what there is; paths and the names of machine and user are taken out of it.
"""

from __future__ import annotations

import argparse
import platform
import signal
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from scripts.acceptance.carry import carry  # noqa: E402
from scripts.acceptance.outcome import Row  # noqa: E402
from scripts.acceptance.plan import plan  # noqa: E402
from scripts.acceptance.scrub import Scrub  # noqa: E402
from scripts.acceptance.table import archive, markdown  # noqa: E402


def main(arguments: list[str] | None = None) -> int:
    """Carry out the run and return the exit code; whatever ends it, what is there goes into the archive."""
    options = _options().parse_args(arguments)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = options.keep or Path(tempfile.mkdtemp(prefix="ncukit-acceptance-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    target = options.output.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    steps = plan(options.kernels.resolve(), arch=options.arch)
    if options.only:
        steps = [step for step in steps if any(part in step.name for part in options.only)]
    rows: list[Row] = []
    try:
        for row in carry(steps, folder, options.budget):
            rows.append(row)
            _tell(row)
    finally:
        signal.signal(signal.SIGTERM, before)
        about = f"ncukit acceptance: Python {platform.python_version()}, {platform.machine()}, {_gpu(rows)}."
        scrub = Scrub.here(folder, CHECKOUT)
        taken = archive(target, folder, rows, about, scrub=scrub)
        print(scrub.text(markdown(rows, about)), flush=True)
        print(f"{options.output}: {target.stat().st_size} bytes, {len(taken)} files", file=sys.stderr)
    return 0 if rows and all(row.state in ("met", "not measured", "not run") for row in rows) else 1


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--budget", type=float, default=240, metavar="SECONDS", help="time for all steps")
    parser.add_argument("-o", "--output", type=Path, default=Path("acceptance.tar.gz"), help="the archive")
    parser.add_argument("--kernels", type=Path, default=CHECKOUT / "kernels", help="folder of workloads")
    parser.add_argument("--arch", default="native", help="for .cu files: native, sm_90, ...")
    parser.add_argument("--keep", type=Path, help="folder for everything that is written")
    parser.add_argument("--only", action="append", metavar="PART", help="only steps with this in their name")
    return parser


def _tell(row: Row) -> None:
    print(f"{row.state:>12}  {row.seconds:6.1f} s  {row.name}  {row.note}", file=sys.stderr, flush=True)


def _gpu(rows: list[Row]) -> str:
    from scripts.acceptance.outcome import Outcome

    for row in rows:
        try:
            run = Outcome((), None, 0, folder=row.folder).file("run.json")
        except ValueError:
            continue
        if run.get("gpu"):
            driver = run.get("driver") or {}
            return f"{run['gpu'].get('name')}, driver {driver.get('kernel')}, CUDA {driver.get('cuda')}"
    return "no GPU was seen"


if __name__ == "__main__":
    sys.exit(main())
