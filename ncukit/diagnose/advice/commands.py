"""The commands that advice names; words in capitals stand for what is not known."""

from __future__ import annotations

import shlex

from ncukit import media
from ncukit.diagnose.advice.known import Known
from ncukit.diagnose.gpus import runs_torch
from ncukit.tools.names import after_failure, same_again

PROGRAM = "./your_program"


def profile(known: Known) -> str:
    """Return the command that measures the launch that the trace chose."""
    source = _source(known)
    if source and known.choice is not None:
        return (
            f"ncukit profile {source}{_call(known)} --gpu-kernel {media.argument(known.choice.launch.short)}"
        )
    if known.choice is None:
        return f"ncukit timeline {word(known.trace, 'TRACE')}"
    chosen = shlex.join(known.choice.selection)
    return f"ncu --set full --import-source on {chosen} -o profile {PROGRAM}"


def ops(known: Known) -> str:
    """Return the command that shows the operations of the framework."""
    source = _source(known)
    if source.removesuffix("'").endswith(".py"):
        return f"ncukit ops {source}{_call(known)}"
    if known.timeline is not None and known.timeline.file.format == "torch":
        return f"ncukit ops {word(known.trace, 'TRACE')}"
    found = known.timeline
    if found is not None and not known.on_amd and not runs_torch(kernel.name for kernel in found.kernels):
        return f"ncukit timeline {word(known.trace, 'TRACE')}"
    return "ncukit ops MODEL.py --kernel STEP"


def trace(known: Known) -> tuple[str, ...]:
    """Return the commands that trace the program and ask again."""
    record = f"nsys profile -t cuda,nvtx,osrt -o run {PROGRAM}"
    if not known.report:
        return record, "ncukit advise run.nsys-rep"
    return record, f"ncukit advise {word(known.report, 'REPORT')} --timeline run.nsys-rep"


def collect(known: Known) -> str:
    """Return the command that measures the launch again, with everything."""
    source, which = _source(known), ""
    if source:
        return f"ncukit profile {source}{_call(known)} --preset full"
    if known.diagnosis is not None:
        kernel = known.diagnosis.kernel
        result = (kernel.name, kernel.index, kernel.raw.workload)
        if kernel.failed:
            return f"ncu {after_failure(*result)} -o again {PROGRAM}"
        which = f" {same_again(*result)}"
    return f"ncu --set full --import-source on{which} -o again {PROGRAM}"


def go_on(known: Known) -> str:
    """Return the command that goes on with the run; the program of a stranger's run is to be given."""
    command = f"ncukit profile --resume {word(known.directory, 'RUNDIR')}"
    return command if known.own else f"{command} -- PROGRAM"


def trial(known: Known) -> str:
    """Return the command that holds one change against what there is."""
    return f"ncukit experiment {_source(known) or 'MY_KERNEL.py'} --baseline OLD --variant NEW"


def page(known: Known) -> str:
    """Return the command that shows the launch with its source lines."""
    if known.directory:
        return f"ncukit report --run {word(known.directory, 'RUNDIR')} --open"
    one = known.diagnosis if known.launches > 1 else None
    chosen = "" if one is None else f" --launch {one.kernel.index + 1}"
    return f"ncukit report {word(known.report, 'REPORT')}{chosen} --open"


def word(text: str, placeholder: str) -> str:
    """Return ``text`` for a shell, ``placeholder`` where it is not known or cannot be pasted."""
    return media.word(text, placeholder) if text else placeholder


def _source(known: Known) -> str:
    """Return the file of the run's target for a shell; empty where there is none."""
    return media.word(known.source, "PROGRAM.py") if known.source else ""


def _call(known: Known) -> str:
    """Return the option that names what the run called of its file; empty where it ran as it is."""
    call = None if known.run is None else known.run.target.get("call")
    return f" --kernel {media.argument(str(call))}" if call else ""
