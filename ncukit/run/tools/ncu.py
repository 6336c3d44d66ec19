"""Nsight Compute: options to command line, questions about chips and metrics, what a run came to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ncukit.errors import ToolError, UsageError
from ncukit.record import dataclass
from ncukit.run.tools import gpus, locate
from ncukit.run.tools.capabilities import Probe, remembered
from ncukit.run.tools.failures import Context, Outcome, Stamp, classify, failure
from ncukit.run.tools.failures import judge as judge_output
from ncukit.run.tools.names import Base
from ncukit.run.tools.process import Completed, run

SUFFIX = ".ncu-rep"
MAGIC = b"NVR\0"

# Compute capability -> how the names of its chips begin in `ncu --list-chips`.
_CHIPS = {
    (7, 0): "gv100",
    (7, 5): "tu1",
    (8, 0): "ga100",
    (8, 6): "ga10",
    (8, 7): "ga10b",
    (8, 9): "ad10",
    (9, 0): "gh100",
    (10, 0): "gb100",
    (12, 0): "gb20",
}


@dataclass(frozen=True)
class NcuOptions:
    """What to measure, and how; every default of ncu that changed between versions is given explicitly.

    ``kernel`` is a name that must match whole, or ``regex:RE``; ``skip`` and ``count`` are counted among
    matching launches; ``nvtx_include`` holds range expressions, see ``names.nvtx_range``; ``extra`` goes
    before the target.
    """

    target: tuple[str, ...]
    output: Path
    set: str | None = None
    sections: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    kernel: str | None = None
    kernel_base: Base = "function"
    skip: int = 0
    count: int | None = None
    kill: bool = False
    nvtx_include: tuple[str, ...] = ()
    profile_from_start: bool = True
    replay_mode: Literal["kernel", "application", "range", "app-range"] = "kernel"
    clock_control: Literal["base", "none", "boost", "force-boost"] = "base"
    cache_control: Literal["all", "none"] = "all"
    graph_profiling: Literal["node", "graph"] = "node"
    target_processes: Literal["all", "application-only"] = "all"
    import_source: bool = True
    source_folders: tuple[str, ...] = ()
    rules: bool = True
    overwrite: bool = False
    verbose: bool = False
    extra: tuple[str, ...] = ()

    @property
    def report(self) -> Path:
        """The file that ncu writes: ``output`` with its suffix."""
        path = self.output
        return path if path.name.endswith(SUFFIX) else path.with_name(path.name + SUFFIX)


def argv(options: NcuOptions, ncu: Probe) -> tuple[str, ...]:
    """Return the command line for ``options``, with no option that this ncu does not have.

    Raises:
        UsageError: the options contradict each other or name no program.
        ToolError: something was asked for that this ncu cannot do (code ``option-unknown``).
    """
    _check(options)
    line = [str(ncu.path)]
    for option, values, needed in _table(options):
        if ncu.has(option):
            for value in values:
                line += [option] if value == "" else [option, value]
        elif values and needed:
            raise failure("option-unknown", tool="ncu", version=ncu.version, option=option).error()
    return (*line, *options.extra, *options.target)


def _table(o: NcuOptions) -> tuple[tuple[str, Sequence[str], bool], ...]:
    """Return (option, its values, whether it must exist); the value "" stands for none."""
    default = NcuOptions(o.target, o.output)
    count = [] if o.count is None else [str(o.count)]
    source = o.import_source and "range" not in o.replay_mode  # which ncu refuses for ranges
    folders = [",".join(o.source_folders)] if o.source_folders and source else []
    return (
        ("--config-file", ["off"], False),  # since 2023.1; a user's file changes sets, clocks, filters
        ("--target-processes", [o.target_processes], True),  # default changed in 2023.3
        ("--check-exit-code", ["yes"], False),
        ("--replay-mode", [o.replay_mode], o.replay_mode != default.replay_mode),
        ("--graph-profiling", [o.graph_profiling], o.graph_profiling != default.graph_profiling),
        ("--cache-control", [o.cache_control], True),
        ("--clock-control", [o.clock_control], True),  # default changed after 2025
        ("--pipeline-boost-state", ["stable"], False),  # since 2025
        ("--set", [o.set] if o.set else [], True),
        ("--section", o.sections, True),
        ("--metrics", [",".join(o.metrics)] if o.metrics else [], True),
        ("--apply-rules", ["yes" if o.rules else "no"], False),
        ("--import-source", ["yes" if source else "no"], False),
        ("--source-folders", folders, False),
        ("--rename-kernels", ["off"], False),  # since 2025: names in the report as in the binary
        ("--kernel-name-base", [o.kernel_base], True),
        ("--kernel-name", [o.kernel] if o.kernel else [], True),
        ("--launch-skip", [str(o.skip)], True),
        ("--launch-count", count, True),
        ("--kill", ["yes" if o.kill else "no"], o.kill),
        ("--nvtx", [""] if o.nvtx_include else [], True),
        ("--nvtx-include", o.nvtx_include, True),
        ("--profile-from-start", ["on" if o.profile_from_start else "off"], True),
        ("--verbose", [""] if o.verbose else [], False),
        ("--force-overwrite", [""] if o.overwrite else [], True),
        ("--export", [str(o.output).replace("%", "%%")], True),  # % begins a macro
    )


def _check(o: NcuOptions) -> None:
    if not o.target or o.target[0].startswith("-"):
        raise UsageError("there is no program to profile", "give it after the options, with its path")
    if o.count is not None and o.count < 1:
        raise UsageError(f"a launch count of {o.count} measures nothing", "give at least 1")
    if o.skip < 0:
        raise UsageError(f"{o.skip} launches cannot be skipped", "give 0 or more")
    if o.kill and o.count is None:
        raise UsageError("kill ends the program after the last launch, so it needs a count", "give a count")
    if o.kernel and "range" in o.replay_mode:
        raise UsageError("ncu profiles ranges whole: a kernel filter does not apply", "leave one of them out")
    if o.graph_profiling == "graph" and o.replay_mode != "kernel":
        raise UsageError("ncu profiles graphs only with kernel replay", "leave the replay mode out")


def context(options: NcuOptions, **known: Any) -> Context:
    """Return the context in which the output of a run is read; ``known`` are further fields of it."""
    return Context(
        **{
            "tool": "ncu",
            "place": gpus.place(),
            "kernel": options.kernel,
            "range": options.nvtx_include[0] if options.nvtx_include else None,
            "profiler_api": not options.profile_from_start,
            **known,
        }
    )


def facts(tool: Probe, *, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what advice needs to know: versions of ncu and driver, and other installs of ncu."""
    others = [str(i.path) for i in locate.installs("ncu", environ=environ) if i.path != tool.path]
    known = {"version": tool.version, "driver": gpus.driver_version(), "installs": ", ".join(others)}
    return {name: text for name, text in known.items() if text}


def judge(done: Completed, options: NcuOptions, before: Stamp | None, **known: Any) -> Outcome:
    """Return what a run came to; ``before`` is ``output.stamp(options.report)`` from before it."""
    return judge_output(done, options.report, before, context(options, **known), MAGIC)


def list_chips(ncu: Probe, *, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the chips that this ncu knows, as it names them: "ga100", "gh100"."""
    chips = remembered(
        ("ncu", ncu.path, ncu.version, "chips"),
        lambda: re.findall(r"\b[a-z]{2}\d[0-9a-z]{2,}\b", _ask(ncu, ["--list-chips"], environ).stdout),
        environ=environ,
    )
    return tuple(chips)


def query_metrics(ncu: Probe, chip: str, *, environ: Mapping[str, str] | None = None) -> frozenset[str]:
    """Return the base names of all metrics that ``chip`` has, without suffix: "dram__bytes".

    Raises:
        ToolError: this ncu does not know the chip (code ``unsupported-gpu``), or did not answer.
    """
    names = remembered(
        ("ncu", ncu.path, ncu.version, f"metrics {chip}"),
        lambda: _first_column(_ask(ncu, ["--query-metrics", "--chips", chip], environ), r"\w+__\w+"),
        environ=environ,
    )
    return frozenset(names)


def list_sections(ncu: Probe, *, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the identifiers of all sections that this ncu has."""
    names = remembered(
        ("ncu", ncu.path, ncu.version, "sections"),
        lambda: _first_column(_ask(ncu, ["--list-sections"], environ), r"(?!Identifier)[A-Z]\w+"),
        environ=environ,
    )
    return tuple(names)


def supports(chips: Sequence[str], cc: tuple[int, int]) -> bool | None:
    """Return whether an ncu that knows ``chips`` can profile compute capability ``cc``; None where unknown.

    >>> supports(["ga100", "gh100"], (9, 0)), supports(["gh100"], (6, 1)), supports(["gh100"], (10, 0))
    (True, False, False)
    """
    if cc < (7, 0):
        return False
    return any(chip.startswith(_CHIPS[cc]) for chip in chips) if cc in _CHIPS else None


def chip_of(chips: Sequence[str], cc: tuple[int, int]) -> str | None:
    """Return a chip of compute capability ``cc`` among those that this ncu knows; None where unknown.

    Chips of one compute capability have the same metrics.

    >>> chip_of(["ga100", "ga102", "gh100"], (8, 6)), chip_of(["gh100"], (12, 0))
    ('ga102', None)
    """
    prefix = _CHIPS.get(cc)
    others = {name for other, name in _CHIPS.items() if other != cc and prefix and name.startswith(prefix)}
    return next((c for c in chips if prefix and c.startswith(prefix) and c not in others), None)


def _ask(ncu: Probe, question: list[str], environ: Mapping[str, str] | None) -> Completed:
    off = ["--config-file", "off"] if ncu.has("--config-file") else []
    done = run([ncu.path, *off, *question], env=environ, timeout=60, keep=16 << 20)
    if done.returncode == 0 and not done.timed_out:
        return done
    if cause := classify(done, Context(tool="ncu", place=gpus.place())):
        raise cause.error()
    raise ToolError(f"ncu {' '.join(question)} failed: {done.tail(1)}", "try it by hand", code="tool-failed")


def _first_column(done: Completed, name: str) -> list[str]:
    return re.findall(rf"^({name})\s", done.stdout, re.MULTILINE)
