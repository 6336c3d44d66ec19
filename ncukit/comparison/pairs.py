"""Which launches of two sides belong together, repeats of one measurement taken as one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from ncukit.comparison.comparable import spread_of
from ncukit.errors import UsageError
from ncukit.judge import diagnose
from ncukit.model import Diagnosis, Kernel
from ncukit.model.comparison import Sample, Unmatched
from ncukit.record import dataclass
from ncukit.run.tools.names import NamePattern

# ---- Launches of one side as samples: repeats of one measurement become one, the rest stay apart

SAME_WORK = 0.01
"""Share by which the warp instructions of repeats may differ."""
WORK = "inst_executed"
_SHAPE = (
    *("grid_dim_x", "grid_dim_y", "grid_dim_z", "block_dim_x", "block_dim_y", "block_dim_z"),
    *("grid_size", "block_size"),
)


def shape(kernel: Kernel) -> tuple[float | None, ...]:
    """Return grid and block of a launch."""
    return tuple(kernel.number(id) for id in _SHAPE)


def samples(
    files: Sequence[Sequence[Kernel]],
    *,
    apart: bool = False,
    judge: Callable[[Kernel], Diagnosis] = diagnose,
) -> tuple[Sample, ...]:
    """Return the launches of one side, in order, repeats together.

    ``files`` holds the launches of each report of the side: one report, or reports of one program that was
    profiled several times.  Launches of one name, shape, NVTX range, registers and shared memory are repeats
    when they do the same work, or when what they do is not known.  If they do different work, the n-th of one
    file is a repeat of the n-th of another.  With ``apart`` launches of one file are never repeats.
    """
    groups: dict[Hashable, list[list[Kernel]]] = {}
    for number, kernels in enumerate(files):
        for kernel in kernels:
            rows = groups.setdefault(_key(kernel), [[] for _ in files])
            rows[number].append(kernel)
    found: list[list[Kernel]] = []
    for rows in groups.values():
        everything = [kernel for row in rows for kernel in row]
        if not apart and everything[0].failed is None and same_work(everything) is not False:
            found.append(everything)
        elif len({len(row) for row in rows if row}) == 1:
            found += [list(column) for column in zip(*(row for row in rows if row), strict=True)]
        else:
            found += [[kernel] for kernel in everything]
    made = [_sample(kernels, judge) for kernels in found]
    return tuple(sorted(made, key=lambda sample: sample.launches[0]))


def told_apart(samples: Sequence[Sample]) -> list[str]:
    """Return a name for each sample that tells it from the others: function, grid and block, launch number.

    More than the function is added only where it is needed.
    """
    names = [sample.kernel.name for sample in samples]
    shaped = [f"{name}{_shaped(sample.kernel)}" for name, sample in zip(names, samples, strict=True)]
    numbered = [f"{long}, launch {s.launches[0]}" for long, s in zip(shaped, samples, strict=True)]
    once, enough = Counter(names), Counter(shaped)
    return [
        name if once[name] == 1 else long if enough[long] == 1 else longest
        for name, long, longest in zip(names, shaped, numbered, strict=True)
    ]


def _shaped(kernel: Kernel) -> str:
    sizes = [kernel.number(id) for id in ("grid_size", "block_size")]
    if None in sizes:
        return ""
    blocks, threads = (f"{size or 0:,.0f}" for size in sizes)
    return f", {blocks} x {threads}"


def same_work(kernels: Sequence[Kernel]) -> bool | None:
    """Return whether all launches executed as many instructions; None where that is not known."""
    work = [kernel.number(WORK) for kernel in kernels]
    known = [n for n in work if n is not None]
    if len(known) < len(work):
        return None
    return max(known) - min(known) <= SAME_WORK * max(known)


def _key(kernel: Kernel) -> Hashable:
    return (
        kernel.demangled or kernel.name,
        shape(kernel),
        kernel.raw.nvtx,
        kernel.number("registers_per_thread"),
        kernel.number("shared_mem_allocated"),
        kernel.gpu,
        kernel.failed,
    )


def _sample(kernels: Sequence[Kernel], judge: Callable[[Kernel], Diagnosis]) -> Sample:
    ordered = sorted(kernels, key=lambda kernel: kernel.number("kernel_duration") or 0.0)
    median = ordered[(len(ordered) - 1) // 2]
    return Sample(
        judge(median),
        tuple(kernel.index + 1 for kernel in kernels),
        spread_of(kernels),
        len(kernels),
        same_work(kernels) if len(kernels) > 1 else None,
    )


# ---- Which launches of two sides belong together: by name and grid, NVTX range or order, never by name
# alone

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
    for position, side in enumerate((left, right)):
        for sample in side:
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
