"""Patterns for kernel names: what a user types, and what ncu takes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ncukit.errors import UsageError

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


def escape(text: str) -> str:
    """Return ``text`` as a regular expression that matches just it, in Python and in ncu.

    >>> escape("void f<(int)128>(T*)")
    'void f<\\\\(int\\\\)128>\\\\(T\\\\*\\\\)'
    """
    return _META.sub(r"\\\g<0>", text)


def nvtx_range(name: str, *, push_pop: bool = False, domain: str | None = None) -> str:
    """Return the ``--nvtx-include`` expression for one range; start/end ranges unless ``push_pop``.

    >>> nvtx_range("step[0]"), nvtx_range("step", push_pop=True), nvtx_range("step", domain="lib")
    ('step\\\\[0\\\\]', 'step/', 'lib@step')
    """

    parts = [re.sub(r"[@,\[\]/*+\\]", r"\\\g<0>", text) for text in (domain, name) if text]
    return "@".join(parts) + ("/" if push_pop else "")
