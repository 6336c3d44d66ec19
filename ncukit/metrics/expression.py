"""The catalog's expression language, and which raw counters are kept by instruction or over time."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path

from ncukit.metrics import evaluation
from ncukit.metrics.evaluation import Evaluate
from ncukit.record import dataclass

# ---- Which raw counters are kept by instruction, and which over time (PM sampling)

DATA = Path(__file__).resolve().parent / "data"

STATES = "smsp__pcsamp_warps_issue_stalled_"
"""What the names of all sampled stall states begin with; the state follows."""

NOT_ISSUED = "_not_issued"
"""Ends the name of a state's samples that were taken in cycles in which the scheduler issued nothing."""

_PASS = re.compile(r"^(?:pmsampling:|(?:\w+\.)?Triage\w*\.)(?=[a-z])")
"""What stands before the name of a counter that was sampled over time."""


@dataclass(frozen=True)
class Sampled:
    """One series of PM sampling: any of ``names``, behind what names its pass."""

    id: str
    label: str
    unit: str
    names: tuple[str, ...]


@functools.cache
def by_pc() -> Mapping[str, tuple[str, ...]]:
    """Return, by column of a `ncukit.model.source.Cost`, the raw counters that may hold it, newest first."""
    found = json.loads((DATA / "by_pc.json").read_text(encoding="utf-8"))
    return {column: tuple(names) for column, names in found.items()}


@functools.cache
def sampled() -> tuple[Sampled, ...]:
    """Return the series of PM sampling that are known, in the order in which they are shown."""
    entries = json.loads((DATA / "series.json").read_text(encoding="utf-8"))
    return tuple(Sampled(e["id"], e["label"], e["unit"], tuple(e["names"])) for e in entries)


@functools.cache
def sampled_names() -> frozenset[str]:
    """Return every counter name that some series may have."""
    return frozenset(name for series in sampled() for name in series.names)


def sampled_counter(name: str) -> str | None:
    """Return the counter that raw metric ``name`` holds over time, or None for any other metric.

    >>> sampled_counter("pmsampling:sm__cycles_active.avg"), sampled_counter("sm__cycles_active.avg")
    ('sm__cycles_active.avg', None)
    >>> sampled_counter("FBSP.TriageSCG.dramc__throughput.avg.pct_of_peak_sustained_elapsed")[:17]
    'dramc__throughput'
    """
    found = _PASS.match(name)
    return name[found.end() :] if found else None


# ---- The catalog's expression language: parsed once into closures over one launch, never ``eval``
# ``{raw.metric}`` is a value of the report, ``@id`` another neutral metric, ``x?`` an operand that may be
# missing. The functions are listed in `FUNCTIONS`. Division by zero is undefined, not zero.

Choice = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
"""The terms of a sum: raw metrics and references that each needs."""


@dataclass(frozen=True)
class Expression:
    """A compiled expression and what it reads.

    ``raws`` must all be in the report, ``optional`` may be; ``refs`` are neutral metrics, of which ``needs``
    must have a value; of each of the ``choices`` one term must have a value; ``calls`` are (function,
    argument) pairs that read opcodes, SASS or the peak table; ``instanced`` are raw metrics whose instances
    must be there.
    """

    text: str
    evaluate: Evaluate
    raws: tuple[str, ...]
    optional: tuple[str, ...]
    refs: tuple[str, ...]
    needs: tuple[str, ...]
    choices: tuple[Choice, ...]
    calls: tuple[tuple[str, str], ...]
    instanced: tuple[str, ...]


OPCODES = "sass__inst_executed_per_opcode"
OPCODES_FULL = "sass__inst_executed_per_opcode_with_modifier_all"
THREADS_BY_PC = "thread_inst_executed_true"
CALLS = {
    "opmix": OPCODES,
    "opcount": OPCODES,
    "tensor_ops": OPCODES_FULL,
    "half_ops": THREADS_BY_PC,
    "table": "",
}
"""Functions that `Launch.call` answers, and the raw metric whose instances each reads."""

FUNCTIONS = ("opt", "sum_opt", "max", "min", "ceil", "round", "tail", "argmin", "inst", *CALLS)

_TOKEN = re.compile(
    r"\s*(?:(?P<raw>\{[^{}]+\})|(?P<ref>@\w+)|(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?)"
    r'|(?P<text>"[^"]*")|(?P<name>[A-Za-z_]\w*)|(?P<op>\*\*|[-+*/(),=?]))'
)
_ALONE = re.compile(r"\{[^{}]+\}")
_NAMED = re.compile(r"\{([^{}]+)\}")
_INSTANCED = re.compile(rf'\binst\("([^"]+)"|\b({"|".join(CALLS)})\(')
_MAY_MISS = re.compile(r"opt\(|\?")


def named(text: str) -> list[str]:
    """Return the raw metrics whose value ``text`` reads, without compiling it.

    >>> named("{a.sum}/opt({b.sum})")
    ['a.sum', 'b.sum']
    """
    return _NAMED.findall(text)


def instanced(text: str) -> list[str]:
    """Return the raw metrics whose instances ``text`` reads, without compiling it.

    >>> instanced('inst("sass__opcodes", "^HMMA") / {a.sum}')
    ['sass__opcodes']
    """
    found = (metric or CALLS[function] for metric, function in _INSTANCED.findall(text))
    return [metric for metric in found if metric]


def needs_every_name(text: str) -> bool:
    """Return whether nothing that ``text`` names may be missing.

    >>> needs_every_name("{a.sum}/{b.sum}"), needs_every_name("{a.sum}+opt({b.sum})")
    (True, False)
    """
    return _MAY_MISS.search(text) is None


def compile_expression(text: str) -> Expression:
    """Compile ``text``.

    Raises:
        ValueError: it is not in the language; the message shows where.

    >>> class L:
    ...     raw, instances = {"a.sum": 6, "b.sum": 4}, {}
    >>> compile_expression("{a.sum}/{b.sum}*100").evaluate(L())
    150.0
    """
    if _ALONE.fullmatch(text):  # half of the catalog, and quicker
        name = text[1:-1]
        return Expression(text, evaluation.raw(name), (name,), (), (), (), (), (), ())
    parser = _Parser(text)
    evaluate = parser.expression()
    if parser.kind:
        raise ValueError(f"unexpected {parser.token!r} in {text!r}")
    raws, optional, refs, needs, instanced = (
        tuple(dict.fromkeys(parser.reads[key])) for key in ("raw", "optional", "ref", "needed", "instanced")
    )
    calls = tuple(dict.fromkeys(parser.calls))
    choices = tuple(parser.choices)
    return Expression(text, evaluate, raws, optional, refs, needs, choices, calls, instanced)


class _Parser:
    """Recursive descent over one expression; builds closures and notes what they read."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text.rstrip(), 0
        self.kind, self.token = "", ""
        kinds = ("raw", "optional", "ref", "needed", "instanced")
        self.reads: dict[str, list[str]] = {kind: [] for kind in kinds}
        self.calls: list[tuple[str, str]] = []
        self.choices: list[Choice] = []
        self.advance()

    def advance(self) -> None:
        if self.position >= len(self.text):
            self.kind = self.token = ""
            return
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            raise ValueError(f"cannot read {self.text[self.position :]!r} in {self.text!r}")
        self.position = match.end()
        self.kind = match.lastgroup or ""
        self.token = match.group(self.kind)

    def next(self) -> str:
        token = self.token
        self.advance()
        return token

    def take(self, token: str) -> bool:
        if self.kind == "op" and self.token == token:
            self.advance()
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise ValueError(f"expected {token!r}, found {self.token!r} in {self.text!r}")

    def expression(self) -> Evaluate:
        left = self.term()
        while self.kind == "op" and self.token in ("+", "-"):
            sign = self.next()
            combine = evaluation.add if sign == "+" else evaluation.subtract
            left = combine(left, self.term())
        return left

    def term(self) -> Evaluate:
        left = self.power()
        while self.kind == "op" and self.token in ("*", "/"):
            operator = self.next()
            start = self.position - len(self.token)
            right = self.power()
            end = self.position - len(self.token) if self.kind else len(self.text)
            left = (
                evaluation.multiply(left, right)
                if operator == "*"
                else evaluation.divide(left, right, self.text[start:end])
            )
        return left

    def power(self) -> Evaluate:
        base = self.factor()
        return evaluation.power(base, self.power()) if self.take("**") else base

    def factor(self) -> Evaluate:
        if self.take("-"):
            return evaluation.negate(self.factor())
        if self.take("("):
            inner = self.expression()
            self.expect(")")
            return inner
        kind, token = self.kind, self.next()
        if kind == "number":
            return evaluation.constant(int(token) if token.isdigit() else float(token))
        if kind == "raw":
            return self.operand(token[1:-1])
        if kind == "ref":
            self.reads["ref"].append(token[1:])
            self.reads["needed"].append(token[1:])
            return evaluation.reference(token[1:])
        if kind == "name" and token in FUNCTIONS:
            return self.function(token)
        raise ValueError(f"unexpected {token!r} in {self.text!r}")

    def operand(self, name: str) -> Evaluate:
        self.reads["raw"].append(name)
        return evaluation.raw(name)

    def function(self, name: str) -> Evaluate:
        self.expect("(")
        if name in ("opt", "sum_opt"):
            return self.optional_sum(name == "opt")
        if name == "argmin":
            return self.argmin()
        if name == "inst" or name in CALLS:
            return self.call(name)
        arguments = [self.expression()]
        while self.take(","):
            arguments.append(self.expression())
        self.expect(")")
        return evaluation.arithmetic(name, arguments)

    def optional_sum(self, zero: bool) -> Evaluate:
        outside = self.reads["raw"], self.reads["needed"]
        raws, needed, terms = [], [], []
        while True:
            self.reads["raw"], self.reads["needed"] = [], []
            terms.append(self.expression())
            raws.append(tuple(self.reads["raw"]))
            needed.append(tuple(self.reads["needed"]))
            if not self.take(","):
                break
        self.expect(")")
        self.reads["optional"] += [name for names in raws for name in names]
        self.reads["raw"], self.reads["needed"] = outside
        if not zero:
            self.choices.append(tuple(zip(raws, needed, strict=True)))
        return evaluation.sum_present(terms, zero)

    def argmin(self) -> Evaluate:
        choices: list[tuple[str, Evaluate, bool]] = []
        while True:
            label = self.next()
            self.expect("=")
            value = self.factor()
            may_miss = self.take("?")
            if may_miss:
                self.reads["optional"].append(self.reads["raw"].pop())  # an operand that may miss is raw
            choices.append((label, value, may_miss))
            if not self.take(","):
                break
        self.expect(")")
        return evaluation.argmin(choices)

    def call(self, name: str) -> Evaluate:
        arguments: list[str] = []
        while self.kind == "text":
            arguments.append(self.token[1:-1])
            self.advance()
            self.take(",")
        self.expect(")")
        if name == "inst":
            metric, pattern = arguments
            self.reads["instanced"].append(metric)
            return evaluation.instances(metric, pattern)
        if CALLS[name]:
            self.reads["instanced"].append(CALLS[name])
        argument = arguments[0] if arguments else ""
        self.calls.append((name, argument))
        return lambda launch: launch.call(name, argument)
