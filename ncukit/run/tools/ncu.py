"""Patterns for kernel names: what a user types, and what ncu takes."""

from __future__ import annotations

import functools
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
from ncukit.run.tools.process import Completed, run

Base = Literal["function", "demangled", "mangled"]

_META = re.compile(r"[.^$|()\[\]{}*+?\\]")


@dataclass(frozen=True)
class NamePattern:
    """A pattern for kernel names, as a user writes it.

    Plain text is a case-insensitive part of the function or the demangled name; ``regex:RE`` is a regular
    expression that is searched in either; text with ``*`` or ``?`` is a glob for the whole of either.

    Raises:
        UsageError: the pattern is empty, no regular expression, or a name that was cut off.

    >>> gemm = NamePattern("gemm")
    >>> gemm.matches("Kernel", "void cutlass::Kernel<cutlass::Gemm<(int)128>>(T1::Params)")
    True
    >>> gemm.ncu_filter()
    ('regex:(?i)gemm', 'demangled')
    """

    text: str

    def __post_init__(self) -> None:
        if not self.text.removeprefix("regex:").strip():
            raise UsageError("the kernel pattern is empty", "give a part of the kernel's name")
        cut = "…" in self.text or self.text.rstrip().endswith("...")
        if cut and not self.text.startswith("regex:"):
            raise UsageError(
                f"the kernel name {self.text!r} was cut off by the program that printed it",
                "give a part of the name without the dots, or the whole name from the timeline",
            )
        try:
            re.compile(self.regex)
        except re.error as error:
            raise UsageError(
                f"the kernel pattern {self.text!r} is no regular expression: {error}",
                "leave out regex: to search for the text as it is",
            ) from error

    @property
    def regex(self) -> str:
        """The pattern as a regular expression that Python and ncu read alike, to be searched in a name."""
        if self.text.startswith("regex:"):
            return self.text.removeprefix("regex:")
        if not re.search(r"[*?]", self.text):
            return f"(?i){escape(self.text)}"
        parts = re.split(r"([*?])", self.text)
        return f"(?i)^{''.join({'*': '.*', '?': '.'}.get(part) or escape(part) for part in parts)}$"

    def matches(self, function: str, demangled: str) -> bool:
        """Return whether a kernel with these names is meant."""
        return bool(re.search(self.regex, function) or re.search(self.regex, demangled))

    def ncu_filter(self) -> tuple[str, Base]:
        """Return ``--kernel-name`` and ``--kernel-name-base`` for ncu, which looks at one kind of name only.

        The demangled name contains the function's, so it serves; but what is anchored and has nothing of a
        demangled name in it can only mean the function's.

        >>> NamePattern("gemm_*").ncu_filter()
        ('regex:(?i)^gemm_.*$', 'function')
        """
        anchored = self.regex.removeprefix("(?i)").startswith("^")
        return f"regex:{self.regex}", "function" if anchored and not re.search(
            r"[(<: ]", self.text[6:]
        ) else "demangled"


_PLAIN = re.compile(r"[A-Za-z_]\w{0,120}")
_WHOLE = {"range": "--replay-mode app-range", "graph": "--graph-profiling graph"}


def same_again(function: str, index: int, workload: str = "kernel") -> str:
    """Return the ncu options that measure a result of a report once more.

    A name from a report enters a command only when it is a plain word.

    >>> same_again("copy", 3), same_again("operator<<", 3), same_again("", 0, "graph")
    ('--kernel-name copy --launch-count 1', '--launch-skip 3 --launch-count 1', '--graph-profiling graph')
    """
    if workload in _WHOLE:
        return _WHOLE[workload]
    which = f"--kernel-name {function}" if _PLAIN.fullmatch(function) else f"--launch-skip {index}"
    return f"{which} --launch-count 1"


def after_failure(function: str, index: int, workload: str = "kernel") -> str:
    """Return the ncu options that measure a failed result once more: it failed where ncu replays in place.

    >>> after_failure("copy", 3)
    '--set full --replay-mode application --kernel-name copy --launch-count 1'
    >>> after_failure("", 0, "range")
    '--set full --replay-mode app-range'
    """
    again = same_again(function, index, workload)
    return f"--set full {again if '--replay-mode' in again else f'--replay-mode application {again}'}"


def escape(text: str) -> str:
    """Return ``text`` as a regular expression that matches just it, in Python and in ncu.

    >>> escape("void f<(int)128>(T*)")
    'void f<\\\\(int\\\\)128>\\\\(T\\\\*\\\\)'
    """
    return _META.sub(r"\\\g<0>", text)


_ANONYMOUS = re.compile(r"\(anonymous namespace\)|<unnamed>|\{anonymous\}")
_SPELLING = (
    (_ANONYMOUS, "(anonymousnamespace)"),
    (re.compile(r"\bconst\b"), ""),  # before the type, or after it
    (re.compile(r"\s+"), ""),
    (re.compile(r"\((?:unsigned)?(?:int|long|longlong|short|char|bool)\)(?=-?\w)"), ""),
    (re.compile(r"(?<=[<,])true(?=[,>])"), "1"),
    (re.compile(r"(?<=[<,])false(?=[,>])"), "0"),
    (re.compile(r"(?<=\d)(?:ul|ull|u|l|ll)(?=[,>])"), ""),
)
"""What the demanglers of ncu and nsys, of their versions, and of torch write differently."""
_TOKENS = re.compile(rf"{_ANONYMOUS.pattern}|\w+|::|\S")
_ONLY_THERE = re.compile(r"\bconst\b|[{\[]|\((?!anonymous namespace\))")
"""From here on, in arguments of a template, spellings differ too much for a pattern."""


@functools.lru_cache(maxsize=65536)
def spelled(name: str) -> str:
    """Return a demangled name so that the spellings of ncu, nsys and torch are equal.

    >>> spelled("void f<(int)4, true>(const int *)") == spelled("void f<4, 1>(int const*)")
    True
    """
    for spelling, text in _SPELLING:
        name = spelling.sub(text, name)
    return name


def qualified(demangled: str) -> str:
    """Return a demangled name without return type and parameters.

    Those of a template are not comparable: ncu and nsys write ``T2`` where torch writes the type.

    >>> qualified("std::enable_if<!(false), void>::type lib::f<4, A<char*> >(A<char*>)")
    'lib::f<4, A<char*> >'
    """
    text, depth, begin = _ANONYMOUS.sub("<unnamed>", demangled), 0, 0
    for i, character in enumerate(text):
        if not depth and character == "(":
            return text[begin:i].strip()
        if not depth and character == " ":
            begin = i + 1
        depth += (character in "<([{") - (character in ">)]}" and text[i - 1] != "-")
    return text[begin:].strip()


@functools.lru_cache(maxsize=1024)  # a trace repeats few names, of thousands of characters, many times
def function_of(demangled: str) -> str:
    """Return the name of a kernel without return type, namespaces, templates and parameters.

    >>> function_of("std::enable_if<!(false), void>::type lib::(anonymous namespace)::f<A<int> >(int)")
    'f'
    """
    plain, depth = "", 0
    for character in _ANONYMOUS.sub("", qualified(demangled)):
        depth += character == "<"
        plain += "" if depth else character
        depth -= character == ">"
    return plain.strip().split("::")[-1] or demangled


def any_spelling(demangled: str) -> str:
    """Return a regular expression, for Python and ncu, that finds this kernel however its name is spelled.

    >>> pattern = any_spelling("void lib::f<4, A<char*, 3ul> >(int, A<char*, 3ul>)")
    >>> bool(re.search(pattern, "void lib::f<(int)4, A<char *, (unsigned long)3>>(int, T2)"))
    True
    """
    text = qualified(demangled).replace("<unnamed>", "(anonymous namespace)")
    cut = _ONLY_THERE.search(text)
    tokens = _TOKENS.findall(re.sub(r"[^<,]*$", "", text[: cut.start()]) if cut else text)
    end = ".*" if cut else r" *(\(.*)?$"
    return f"^(.* )?{' *'.join(map(_token, tokens))}{end}"


def _token(text: str) -> str:
    if _ANONYMOUS.fullmatch(text):
        return r"(<unnamed>|\(anonymous namespace\))"
    if text in ("true", "false"):
        return rf"({text}|(\(bool\))?{int(text == 'true')})"
    if number := re.fullmatch(r"(\d+)(?:ul|ull|u|l|ll)?", text):
        return rf"(\([a-z ]+\))?{number[1]}(u|l)*"
    return escape(text)


def nvtx_range(name: str, *, push_pop: bool = False, domain: str | None = None) -> str:
    """Return the ``--nvtx-include`` expression for one range; start/end ranges unless ``push_pop``.

    >>> nvtx_range("step[0]"), nvtx_range("step", push_pop=True), nvtx_range("step", domain="lib")
    ('step\\\\[0\\\\]', 'step/', 'lib@step')
    """

    parts = [re.sub(r"[@,\[\]/*+\\]", r"\\\g<0>", text) for text in (domain, name) if text]
    return "@".join(parts) + ("/" if push_pop else "")


# ---- Nsight Compute: options to command line, questions about chips and metrics, what a run came to

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
