"""Which kernel of the operators deserves ncu, and the command that profiles it."""

from __future__ import annotations

from collections.abc import Sequence

from ncukit.diagnose.timeline import Request, choose_launch, describe
from ncukit.diagnose.timeline.scope import Scope
from ncukit.errors import UsageError
from ncukit.media import argument
from ncukit.model.ops import Deserving, Operator
from ncukit.model.timeline import Timeline
from ncukit.quantity import faster

WORTH = 5.0
"""[%] of the region: less is not worth a kernel's profile before the rest was looked at."""
LITTLE = "; look at the timeline first (`ncukit timeline`)"
ANY_PROGRAM = ("--", "python", "YOUR_SCRIPT.py")
"""What stands for the program, of which a trace does not tell the command."""


def deserving(scope: Scope, found: Sequence[Operator], program: Sequence[str] = ()) -> Deserving:
    """Return the kernel that deserves ncu; ``program`` are the words after ``ncukit profile``.

    A trace that was made elsewhere does not hold them: then the command has a place for them.
    """
    if not len(scope.trace.kernels):
        return Deserving(why_not="no kernel ran on a GPU in this trace: ncu has nothing to measure")
    timeline = describe(scope)
    try:
        chosen = choose_launch(scope, Request(), timeline)
    except UsageError as error:
        return Deserving(why_not=f"{error.message}. {error.hint}")
    name = chosen.launch.name
    every = sum(kernel.launches.total for kernel in timeline.kernels)
    share = next((100 * k.launches.total / every for k in timeline.kernels if k.name == name and every), None)
    launchers = sorted(
        ((use.total, operator.name) for operator in found for use in operator.kernels if use.name == name),
        reverse=True,
    )
    options = dict(zip(chosen.selection[::2], chosen.selection[1::2], strict=True))
    words = ["ncukit", "profile", "--gpu-kernel", options["--kernel-name"], *(program or ANY_PROGRAM)]
    return Deserving(
        kernel=name,
        short=chosen.launch.short,
        operator=launchers[0][1] if launchers else "",
        share=share,
        command=" ".join(argument(each) for each in words),
        reasons=(*chosen.reasons, *_worth(timeline, name), *(f"caution: {text}" for text in chosen.cautions)),
        others=chosen.runners_up,
    )


def _worth(timeline: Timeline, name: str) -> list[str]:
    """Return what the region could gain from the kernel at most, and where to look if that is little."""
    kernel = next((k for k in timeline.kernels if k.name == name), None)
    if kernel is None or kernel.bound is None:
        return []
    share = f"it takes {kernel.share:.1f} % of the region"
    said = f"{share}: without it the region would be {faster(kernel.bound)}"
    return [said + (LITTLE if kernel.share < WORTH else "")]
