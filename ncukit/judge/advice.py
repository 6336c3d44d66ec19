"""Which layer to look at next, and when to stop: a pure function of what is known of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ncukit.judge import layers
from ncukit.judge.layers import CEILING, Known, amdahl, at_ceiling, limiting
from ncukit.model import Diagnosis, Evidence
from ncukit.model.diagnosis import Advice, Bound, Layer
from ncukit.quantity import faster
from ncukit.trace.scope import AMD

# ---- The steps of advice, from the coarsest question to the finest; each answers or passes on

SMALL = 5.0
"""[%] of the region's time below which a saving is not worth an experiment: it drowns in the spread."""
NO_LINES = "counters by source line: --import-source on, and -lineinfo when compiling"
HOST = ("launch-bound", "synchronisation-bound", "input-bound", "allocator-bound", "transfer-bound")
"""Classes of a region whose cause is in the program that drives the GPU."""


def _failed(known: Known) -> Iterator[Advice]:
    """Measure again what failed: nothing can be said from it."""
    step = known.broken
    if step is not None and known.diagnosis is None and step.failure is not None:
        layer: Layer = "kernel" if step.name == "counters" else "timeline"
        hint = str(step.failure.get("hint") or "")
        yield Advice(
            "step-failed", False, layer, f"Mend the step {step.name} and go on with the run",
            f"{_begun(str(step.failure.get('message') or 'it failed'))} {_begun(hint)}".strip(),
            (layers.go_on(known), "ncukit doctor"),
            bound=layers.of_top(known),
        )  # fmt: skip
    if known.diagnosis is not None and known.diagnosis.verdict.cls == "failed":
        yield Advice(
            "measure-again", False, "kernel", "Measure the launch again",
            "The collection of its counters failed, so nothing is known about it.",
            (layers.collect(known),),
        )  # fmt: skip


def _host(known: Known) -> Iterator[Advice]:
    """Stay above the kernels where the GPU waits for the program."""
    found = known.timeline
    if found is None or found.region.cls not in (*HOST, "communication-bound"):
        return
    busy, region = known.busy, found.region
    host = region.cls in HOST
    said = f" {_kernel_words(known)}" if known.match is not None else ""
    if region.experiment is not None:
        said += f" First to try: {region.experiment.title[0].lower()}{region.experiment.title[1:]}."
    yield Advice(
        region.cls, False, "operations" if host else "timeline",
        "Look at the operations that the CPU issues" if host else "Look at the collectives of every rank",
        f"The region is {region.cls}: kernels run only {busy:.1f} % of its time, so no kernel is the "
        f"first thing to change.{said}",
        (layers.ops(known) if host else "ncukit ops FOLDER_OF_ALL_RANKS",),
        (Evidence("gpu_busy", busy, "%", "of the region some kernel runs"),),
        layers.of_region(known),
        "Go down to a kernel when kernels take most of the time.",
        bound_said=known.match is not None and bool(_kernel_words(known)),
    )  # fmt: skip


def _small(known: Known) -> Iterator[Advice]:
    """Stop with a kernel that takes too little of the region, and name the one that takes most."""
    share, saving = known.share, layers.of_kernel(known)
    if share is None or saving is None or saving.share >= SMALL or known.diagnosis is None:
        return
    if share >= SMALL and at_ceiling(known.diagnosis):
        return
    top = known.top
    other = top is not None and known.match is not None and top.name != known.match.kernel.name
    worth = other and top is not None and top.share >= SMALL
    because = f"{_kernel_words(known)} That is too little to matter."
    if worth and top is not None:
        because += f" {top.short} takes {top.share:.1f} %."
    yield Advice(
        "small-share", True, "kernel" if worth else None, "Stop with this kernel", because,
        (layers.profile(known),) if worth else (),
        (Evidence("region_share", share, "%", "of the region this kernel runs"),),
        saving, bound_said=True,
    )  # fmt: skip


def _ceiling(known: Known) -> Iterator[Advice]:
    """Stop with a launch whose unit is as full as units get, with work that it needs."""
    diagnosis = known.diagnosis
    if diagnosis is None or (full := at_ceiling(diagnosis)) is None:
        return
    most = full.unit.reach
    reach = f", and the best kernels reach {most:.0f} %" if full.percent < most < 100 else ""
    because = (
        f"{full.name} is {full.percent:.1f} % of peak{reach}: this launch is at its ceiling. Only less work "
        "gets it done sooner: fewer bytes or operations, a narrower type, fusion with its neighbours."
    )
    share = known.share
    yield Advice(
        "at-ceiling", True, "operations", "Stop tuning this launch", because,
        (layers.ops(known),) if known.timeline is not None or known.run is not None else (),
        (Evidence(full.metric, full.value, "%", f"of peak: {full.name}"),),
        None if share is None else Bound(amdahl(share), share, "this kernel"),
        missing=() if share is not None else ("a timeline: whether this kernel's time matters at all",),
    )  # fmt: skip


def _beyond(known: Known) -> Iterator[Advice]:
    """Stay above kernels that ncu cannot measure."""
    if known.on_amd and known.diagnosis is None:
        what, instead = AMD
        yield Advice(
            "not-nvidia", False, "operations", "Look at the operations: ncu cannot measure these kernels",
            f"{_begun(what)} {instead}", (layers.ops(known),),
        )  # fmt: skip


def _no_counters(known: Known) -> Iterator[Advice]:
    """Go from the timeline to the kernel that takes most of it."""
    found = known.timeline
    if found is None or known.diagnosis is not None:
        return
    top = known.top
    if top is None or not found.kernels:
        yield Advice(
            "no-kernel", True, "operations", "There is no kernel to look at",
            "No kernel that computes ran in the region: it works on the CPU, in copies or in collectives.",
            (layers.ops(known),), bound=layers.of_region(known),
        )  # fmt: skip
        return
    evidence = (Evidence("kernel_share", top.share, "%", f"of the region {top.short} runs"),)
    if found.region.cls == "undetermined" and known.busy < 50:
        yield Advice(
            "undetermined-region", False, "timeline", "Trace a steady region",
            _sentence(found.region.claim),
            (f"nsys profile -t cuda,nvtx,osrt --cuda-graph-trace=node -o again {layers.PROGRAM}",
             "ncukit timeline again.nsys-rep --range NAME"),
            evidence, missing=found.region.missing,
        )  # fmt: skip
        return
    if top.share < SMALL:
        yield Advice(
            "many-small", False, "operations", "Look at the operations: no kernel matters alone",
            f"{top.short} takes most, and that is {top.share:.1f} % of the region: without it the region "
            f"would be {faster(top.bound)}. Fusing many kernels can do more than tuning one.",
            (layers.ops(known),), evidence, Bound(top.bound, top.share, top.short), bound_said=True,
        )  # fmt: skip
        return
    yield Advice(
        "profile-top", False, "kernel", f"Measure {top.short}",
        f"Kernels run {known.busy:.1f} % of the region, and {top.short} {top.share:.1f} %: without it the "
        f"region would be {faster(top.bound)}.",
        (layers.profile(known),), evidence, Bound(top.bound, top.share, top.short),
        f"Stop when it is at its ceiling, or takes under {SMALL:.0f} %.", bound_said=True,
    )  # fmt: skip


def _undecided(known: Known) -> Iterator[Advice]:
    """Collect what the verdict lacks."""
    diagnosis = known.diagnosis
    if diagnosis is not None and diagnosis.verdict.cls == "undetermined":
        yield Advice(
            "collect", False, "kernel", "Collect what is missing to decide",
            "The report does not hold enough to say what limits the launch.",
            (layers.collect(known),), missing=diagnosis.verdict.missing,
            bound=layers.of_kernel(known),
        )  # fmt: skip


def _unknown_share(known: Known) -> Iterator[Advice]:
    """Ask the timeline whether this kernel is worth it, before its source is changed."""
    diagnosis = known.diagnosis
    if diagnosis is None or known.share is not None:
        return
    if known.timeline is not None:
        yield Advice(
            "not-in-trace", False, "timeline", "Trace the program that launches this kernel",
            "The trace does not hold this launch: what share of the program it takes is unknown.",
            layers.trace(known), missing=("the launch in the trace",),
        )  # fmt: skip
        return
    yield Advice(
        "share-unknown", False, "timeline", "See whether this kernel's time matters",
        "This report tells how the launch runs, not how much of the program's time it takes: under "
        f"{SMALL:.0f} % the best change would make the program {faster(amdahl(SMALL))}.",
        layers.trace(known),
        missing=("a timeline: the kernel's share of the region",),
    )  # fmt: skip


def _source(known: Known) -> Iterator[Advice]:
    """Go from the kernel to its lines, with what they could gain at most."""
    diagnosis = known.diagnosis
    if diagnosis is None:
        return
    bound, words = layers.of_kernel(known), _kernel_words(known)
    place = next((f for f in diagnosis.findings if f.places or f.source), None)
    if place is not None:
        where = place.source or (place.places[0].source if place.places else None)
        yield Advice(
            "source-line", False, "source", f"Look at {where}" if where else "Look at the instructions",
            f"{words} {_sentence(place.title)}".strip(),
            (layers.page(known),),
            bound=bound, until=_until(diagnosis), bound_said=bool(words),
        )  # fmt: skip
        return
    lined = _lined(diagnosis)
    yield Advice(
        "kernel-experiment", False, "kernel", _title(diagnosis), f"{words} {_experiment(diagnosis)}".strip(),
        (layers.trial(known) if lined else layers.collect(known),), bound=bound,
        until=_until(diagnosis), missing=() if lined else (NO_LINES,), bound_said=bool(words),
    )  # fmt: skip


def _start(known: Known) -> Iterator[Advice]:
    """Begin at the top where nothing is known of the GPU."""
    yield Advice(
        "start", False, "operations", "Begin with the operations of the program",
        "Nothing is known yet about work on a GPU: a trace shows whether there is any, and where time goes.",
        (layers.ops(known), *layers.trace(known)[:1]),
    )  # fmt: skip


STEPS: tuple[Callable[[Known], Iterator[Advice]], ...] = (
    _failed,
    _host,
    _small,
    _ceiling,
    _beyond,
    _no_counters,
    _undecided,
    _unknown_share,
    _source,
    _start,
)
"""From the coarsest question to the finest; each answers or passes on."""


def _kernel_words(known: Known) -> str:
    bound, share = layers.of_kernel(known), known.share
    if bound is None or share is None:
        return ""
    how = "without it" if bound.share == share else "at its ceiling"
    return f"The kernel takes {share:.1f} % of the region: {how} the region would be {faster(bound.factor)}."


def _title(diagnosis: Diagnosis) -> str:
    experiment = diagnosis.verdict.experiment
    return "Collect source counters and lines" if experiment is None else experiment.title


def _experiment(diagnosis: Diagnosis) -> str:
    experiment = diagnosis.verdict.experiment
    return "" if experiment is None else _sentence(experiment.why)


def _lined(diagnosis: Diagnosis) -> bool:
    code = diagnosis.kernel.raw.code
    return code is not None and any(code.lines)


def _until(diagnosis: Diagnosis) -> str:
    full = limiting(diagnosis)
    if full is None:
        return (
            "Stop when DRAM or an arithmetic pipe is full, or the kernel takes under "
            f"{SMALL:.0f} % of the region."
        )
    ceiling = CEILING * full.unit.reach / 100
    return f"Stop at {ceiling:.0f} % of the peak of {full.unit.label}; now {full.percent:.1f} %."


def _begun(text: str) -> str:
    """Return a message as a sentence; those of errors begin small."""
    return text[:1].upper() + _sentence(text)[1:]


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text[-1] in ".!?" else f"{text}."


# ---- Which layer to look at next, and when to stop: a pure function of what is known of a run
# From above: framework operation -> CPU/GPU timeline -> one kernel -> source line. Going down pays only
# while the layer above says that the time is there (Amdahl, AFIPS 1967), and ends where a kernel reached
# its ceiling.


def advise(known: Known) -> Advice:
    """Return where to look next; the first step that applies decides.

    >>> advise(Known()).id
    'start'
    """
    return next(advice for step in STEPS for advice in step(known))
