"""Which launches of two sides belong together: by name and grid, NVTX range or order, never by name alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence

from ncukit.compare.samples import shape
from ncukit.errors import UsageError
from ncukit.model.comparison import Sample, Unmatched
from ncukit.record import dataclass
from ncukit.tools.names import NamePattern

IN_ORDER = "order"
_EQUALS = re.compile(r"(?<![=!<>])=(?!=)")


@dataclass(frozen=True)
class Steering:
    """How ``--match`` steers: pairs of patterns or launch numbers, or the order alone."""

    pairs: tuple[tuple[str, str], ...] = ()
    in_order: bool = False

    @property
    def by_number(self) -> bool:
        """Whether a pair names launches by their numbers."""
        return any(word.isdecimal() for pair in self.pairs for word in pair)

    def within(self, others: Sequence[Sequence[Sample]]) -> list[Steering]:
        """Return the steering of each of several other sides: a pair counts where its launches are.

        Raises:
            UsageError: a pair names what no side has.
        """
        if len(others) == 1:
            return [self]
        found = [tuple(p for p in self.pairs if _meant(p[1], samples)) for samples in others]
        for pair in self.pairs:
            if not any(pair in pairs for pairs in found):
                _chosen(pair[1], [sample for samples in others for sample in samples], "other side")
        return [Steering(pairs, self.in_order) for pairs in found]

    @classmethod
    def of(cls, words: Sequence[str]) -> Steering:
        """Return the steering that the words "BASE=OTHER" and "order" ask for.

        Raises:
            UsageError: a word is neither.

        >>> Steering.of(["gemm_v1=gemm_v2", "3=5"]).pairs
        (('gemm_v1', 'gemm_v2'), ('3', '5'))
        """
        pairs = []
        for word in words:
            if word == IN_ORDER:
                continue
            base, equals, other = _split(word)
            if not equals or not base or not other:
                raise UsageError(
                    f"--match {word} says no pair",
                    "write BASE=OTHER, each a part of a kernel's name or a launch number, or the word order",
                )
            pairs.append((base, other))
        return cls(tuple(pairs), IN_ORDER in words)


@dataclass(frozen=True)
class Match:
    """Two samples and what they were matched by; ``asked`` where ``--match`` names them."""

    base: Sample
    other: Sample
    by: str
    asked: bool = False


@dataclass(frozen=True)
class _Pass:
    """One way to match what is left: launches with equal keys pair in order.

    A ``strict`` way needs as many on one side as on the other.
    """

    key: Callable[[Sample], Hashable]
    by: str
    strict: bool = True


_PASSES = (
    _Pass(
        lambda s: (s.kernel.demangled, shape(s.kernel), s.kernel.raw.nvtx), "name, grid and NVTX range", False
    ),
    _Pass(
        lambda s: (s.kernel.name, shape(s.kernel), s.kernel.raw.nvtx),
        "function, grid and NVTX range; the signatures differ", False,
    ),
    _Pass(lambda s: (s.kernel.demangled, shape(s.kernel)), "name, grid and order; the NVTX ranges differ"),
    _Pass(lambda s: (s.kernel.name, shape(s.kernel)), "function, grid and order; the NVTX ranges differ"),
    _Pass(lambda s: (s.kernel.demangled, s.kernel.raw.nvtx), "name, NVTX range and order; the grids differ"),
    _Pass(lambda s: (s.kernel.name, s.kernel.raw.nvtx), "function, NVTX range and order; the grids differ"),
    _Pass(lambda s: (s.kernel.name,), "function and order; grids and NVTX ranges differ"),
)  # fmt: skip


def match(
    base: Sequence[Sample], other: Sequence[Sample], steering: Steering | None = None
) -> tuple[list[Match], list[Unmatched], list[Unmatched]]:
    """Return the matches, in the order of the base, and what is left on either side, with the reason.

    Raises:
        UsageError: ``steering`` names a launch or a kernel that is not there.
    """
    steering = steering or Steering()
    found: list[Match] = []
    left, right = ({id(sample): sample for sample in samples} for samples in (base, other))

    def take(a: Sample, b: Sample, by: str, *, asked: bool = False) -> None:
        found.append(Match(a, b, by, asked))
        del left[id(a)], right[id(b)]

    for words in steering.pairs:
        some = [s for s in _chosen(words[0], base, "base") if id(s) in left]
        others = [s for s in _chosen(words[1], other, "other side") if id(s) in right]
        for a, b in zip(some, others, strict=False):
            take(a, b, f"--match {words[0]}={words[1]}", asked=True)
    if steering.in_order:
        for a, b in list(zip(left.values(), right.values(), strict=False)):
            take(a, b, "order alone, as --match order asks")
    else:
        for way in _PASSES:
            for a, b in _paired(list(left.values()), list(right.values()), way):
                take(a, b, way.by)
        if len(base) == len(other) == len(left) == len(right) == 1:
            take(base[0], other[0], "being the only kernel of each side; the names differ")
    position = {id(sample): n for n, sample in enumerate(base)}
    found.sort(key=lambda m: position[id(m.base)])
    rest_base, rest_other = list(left.values()), list(right.values())
    return (
        found,
        [Unmatched(sample, _why(sample, rest_other, other, "other side")) for sample in rest_base],
        [Unmatched(sample, _why(sample, rest_base, base, "base")) for sample in rest_other],
    )


def _paired(left: Sequence[Sample], right: Sequence[Sample], way: _Pass) -> list[tuple[Sample, Sample]]:
    groups: dict[Hashable, tuple[list[Sample], list[Sample]]] = {}
    for position, samples in enumerate((left, right)):
        for sample in samples:
            groups.setdefault(way.key(sample), ([], []))[position].append(sample)
    return [
        pair
        for some, others in groups.values()
        if len(some) == len(others) or not way.strict
        for pair in zip(some, others, strict=False)
    ]


def _why(sample: Sample, rest: Sequence[Sample], everything: Sequence[Sample], side: str) -> str:
    """Return why ``sample`` has no counterpart on ``side``."""
    name = sample.kernel.name
    if any(s.kernel.name == name for s in rest):
        return (
            f"launches of this name are left on the {side}, but neither grid, NVTX range nor their number "
            "agree; --match pairs them"
        )
    if any(s.kernel.name == name for s in everything):
        return f"all launches of this name on the {side} are matched"
    return f"no launch of this name on the {side}"


def _split(word: str) -> tuple[str, str, str]:
    """Return both sides of the first equals sign that is no operator of C++."""
    at = _EQUALS.search(word)
    return (word, "", "") if at is None else (word[: at.start()], "=", word[at.end() :])


def _chosen(word: str, everything: Sequence[Sample], side: str) -> list[Sample]:
    """Return the samples that a word of ``--match`` means."""
    found = _meant(word, everything)
    if not found:
        names = ", ".join(dict.fromkeys(sample.kernel.name for sample in everything))
        raise UsageError(f"--match: the {side} has no launch {word!r}", f"there is: {names}")
    return found


def _meant(word: str, everything: Sequence[Sample]) -> list[Sample]:
    if word.isdecimal():
        return [sample for sample in everything if int(word) in sample.launches]
    pattern = NamePattern(word)
    return [s for s in everything if pattern.matches(s.kernel.name, s.kernel.demangled)]
