"""Patterns for kernel names: what a user types, and what ncu takes."""

from __future__ import annotations

import functools
import re
from typing import Literal

from ncukit.errors import UsageError
from ncukit.record import dataclass

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
