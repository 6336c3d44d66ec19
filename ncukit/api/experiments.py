"""Experiments: one control changed, everything else fixed."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import gmtime, strftime
from typing import TYPE_CHECKING, Any

from ncukit.api.reports import PathLike
from ncukit.errors import NcukitError, ReportError, UsageError
from ncukit.model.experiment import (
    EXPERIMENT_SCHEMA,
    SIDES,
    ExperimentRecord,
    Prediction,
    Repetition,
)

if TYPE_CHECKING:
    from ncukit.run.bench import Bench, ExperimentOptions, Sides
    from ncukit.run.session import Listener

RECORD, PAGE = "experiment.json", "experiment.html"


class WrongResult(NcukitError):
    """A side computes something else than it should; ``record`` says what was compared."""

    code = "wrong-result"

    def __init__(self, record: ExperimentRecord) -> None:
        assert record.conclusion is not None
        super().__init__(
            f"{record.conclusion.claim.removesuffix('.')}: {record.conclusion.text}",
            "correct it first; a result whose case declares no tolerance gets that of its data type",
        )
        self.record = record


def experiment(
    target: PathLike | Sequence[str],
    *,
    baseline: str | None = None,
    variant: str | None = None,
    options: ExperimentOptions | None = None,
    output: PathLike | None = None,
    listener: Listener | None = None,
) -> ExperimentRecord:
    """Compare two workloads of a script, or two values of one parameter, in fresh interleaved processes.

    The sides are the workloads ``baseline`` and ``variant``; with ``options.control`` (NAME=A,B) two values
    of a parameter of the workload ``baseline``.  With ``options.command`` ``target`` is a command with ``{}``
    where the sides differ, and its JSON output holds the numbers.  Results are checked first; a verdict needs
    a difference beyond the run-to-run variation (`ncukit.judge.effect`); a profiled pair comes
    last, as diagnosis only.  Record and page lie in ``output`` (None: a new folder in ``reports``).

    Raises:
        WrongResult: a side is wrong; nothing was timed.
        UsageError: the sides are none, or more than one thing differs.
        ReportError: the script cannot be read.
        ToolError: a side fails.
    """
    import tempfile

    from ncukit.api.runs import profile_pair
    from ncukit.judge.conclusion import conclude, wrong
    from ncukit.judge.effect import effect
    from ncukit.run.bench import Bench, ExperimentOptions, repetitions
    from ncukit.run.directory import RunDirectory
    from ncukit.run.session import Silent

    wanted, heard = options or ExperimentOptions(), listener or Silent()
    sides = _sides(target, baseline, variant, wanted)
    _check_predictions(wanted.predictions)
    with tempfile.TemporaryDirectory(prefix="ncukit-") as scratch:
        bench = Bench(wanted, Path(scratch), heard)
        record = _begun(sides, bench)
        directory = RunDirectory.create(None if output is None else Path(output), _name(record))
        try:
            record = replace(record, directory=str(directory.path))
            heard.started("check", ())
            record = replace(record, correctness=sides.check(bench))
            if any(one.state == "failed" for one in record.correctness):
                record = replace(record, conclusion=wrong(record.correctness))
                _keep(directory, record)
                raise WrongResult(record)
            heard.started("repetitions", ())
            found = repetitions(sides, bench, heard.note)
            record = replace(record, repetitions=found, **_watched_conditions(record, found))
            values = {
                goal: [[r.values[goal.metric] for r in sorted(record.side(s), key=_pair)] for s in SIDES]
                for goal in sides.goals
            }
            record = replace(record, effects=tuple(effect(goal, *both) for goal, both in values.items()))
            profiled, observed = profile_pair(sides, wanted, directory.path, heard)
            record = replace(record, profiled=profiled, observed=observed)
            record = replace(
                record,
                conclusion=conclude(
                    record.control, record.effects, observed, record.correctness, _cautions(record)
                ),
            )
            _keep(directory, record)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(*stop.args) from None  # an experiment does not go on, nor does its pair
        finally:
            directory.close()
    return record


def write_experiment(
    record: ExperimentRecord, output: PathLike, *, force: bool = False, command: str = ""
) -> Path:
    """Write the page of an experiment and return where.

    Raises:
        UsageError: the output exists and ``force`` is not given.
    """
    from ncukit.render.experiment.html import write_experiment as write

    return write(Path(output), record, force=force, command=command)


def read_experiment(path: PathLike) -> ExperimentRecord:
    """Return the record of the experiment in the folder, or the file, ``path``.

    Raises:
        ReportError: there is none, or it is damaged.
    """
    from ncukit.run.directory import inside
    from ncukit.schemas.check import read_document

    found = Path(path).is_dir()
    file = inside(Path(path), RECORD) if found else Path(path)
    record = ExperimentRecord.from_dict(
        read_document(file, EXPERIMENT_SCHEMA, "experiment again", found=found)
    )
    for number, one in enumerate(record.repetitions):
        if missing := {goal.metric for goal in record.goals} - one.values.keys():
            what = f"repetitions[{number}].values has no {min(missing)}"
            raise ReportError(file, f"{file} is damaged: {what}", "experiment again", code="report-damaged")
    return record


def _sides(
    target: PathLike | Sequence[str], baseline: str | None, variant: str | None, options: ExperimentOptions
) -> Sides:
    from ncukit.run.bench import Commands, control_of
    from ncukit.run.experiment_workloads import Workloads

    words = [os.fspath(target)] if isinstance(target, str | os.PathLike) else list(target)
    control = control_of(baseline, variant, options)
    if options.command:
        if len(words) != 1:
            raise UsageError("a command is one text", "quote it: --end-to-end 'python serve.py --engine {}'")
        return Commands(words[0], control, options)
    return Workloads(words, control, options, baseline if control.kind == "parameter" else None)


def _check_predictions(predictions: Sequence[Prediction]) -> None:
    from ncukit.judge.effect import UNITS
    from ncukit.metrics import load

    known = [*UNITS, *load().metrics]
    for one in predictions:
        if one.metric not in known:
            from difflib import get_close_matches

            near = ", ".join(get_close_matches(one.metric, known, 3, 0.4)) or "none"
            raise UsageError(
                f"there is no metric {one.metric!r} to watch",
                f"nearest: {near}; a trace has {', '.join(UNITS)}; `ncukit catalog` lists those of a launch",
            )


def _begun(sides: Sides, bench: Bench) -> ExperimentRecord:
    from ncukit import __version__
    from ncukit.run import target as identity
    from ncukit.run.tools import cuda

    options, driver = bench.options, cuda.driver(bench.child.variables)
    shared = sides.conditions()
    source = shared.get("source")
    conditions: dict[str, Any] = {
        **shared,
        "repeats": options.repeats,
        "samples": options.samples,
        "order": "A B, B A, alternating, each in a fresh process",
        "gpu": identity.gpu_data(driver),
        "driver": identity.driver_data(driver),
        "git": identity.git_data(Path(source) if source else None, bench.child.variables),
        "environment": identity.environment_data(bench.child),
        "cpus": os.cpu_count(),
        "load": list(os.getloadavg()),
    }
    return ExperimentRecord(
        created=strftime("%Y-%m-%dT%H:%M:%SZ", gmtime()),
        version=__version__,
        hypothesis=options.hypothesis,
        control=sides.control,
        predictions=options.predictions,
        conditions=conditions,
        goals=sides.goals,
    )


def _name(record: ExperimentRecord) -> str:
    control = record.control
    return f"experiment-{control.name}-{Path(control.baseline).name}-{Path(control.variant).name}"[:80]


def _pair(one: Repetition) -> int:
    return one.pair


def _watched_conditions(record: ExperimentRecord, found: Sequence[Repetition]) -> dict[str, Any]:
    """Return the conditions that only running tells, and what differed besides the control."""
    seen: dict[str, dict[str, set[str]]] = {}
    first: dict[str, Any] = {}
    for one in found:
        for name, value in one.reported.items():
            if name in ("iqr", "settled"):
                continue
            seen.setdefault(name, {}).setdefault(one.side, set()).add(json.dumps(value, sort_keys=True))
            first.setdefault(name, value)
    same, differences = {}, []
    for name, by_side in seen.items():
        if name == record.control.name:
            continue
        values = [by_side.get(side, set()) for side in SIDES]
        if values[0] == values[1] and len(values[0]) == 1:
            same[name] = first[name]
        elif all(len(value) <= 1 for value in values):
            words = " and ".join("/".join(sorted(value)) or "nothing" for value in values)
            differences.append(f"{name}: {words}")
    return {"conditions": {**record.conditions, "observed": same}, "differences": tuple(differences)}


def _cautions(record: ExperimentRecord) -> list[str]:
    from ncukit.judge.conclusion import cautions

    return cautions(record)


def _keep(directory: Any, record: ExperimentRecord) -> None:
    """Write record and page into the experiment's folder, each whole."""
    from ncukit.render.experiment.html import experiment_page
    from ncukit.render.experiment.json import experiment_text

    directory.write(RECORD, experiment_text(record, indent=1) + "\n")
    directory.write(PAGE, experiment_page(record))
