"""The kinds of input: sound originals, how they are damaged, the commands that read them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutations import originals
from tests.mutations.damage import damaged_bytes, damaged_json, damaged_text

PAGE = ("-o", "page.html", "--force")
Command = tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """One kind of input, at ``name`` in the working folder; ``commands`` are tried in turn."""

    name: str
    originals: Callable[[], list[bytes]]
    damage: Callable[[int, bytes], bytes]
    commands: tuple[Command, ...]
    beside: dict[str, Callable[[], bytes]] = field(default_factory=dict)
    """Sound files that the commands need as well, by name."""

    def case(self, seed: int) -> tuple[bytes, Command]:
        """Return the damaged bytes and the command of ``seed``."""
        sound = self.originals()
        return self.damage(seed, sound[seed % len(sound)]), self.commands[seed // 8 % len(self.commands)]

    def place(self, folder: Path, data: bytes) -> None:
        """Write ``data``, and what belongs beside it, into ``folder``."""
        for name, content in {**self.beside, self.name: lambda: data}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content())


def _gzip(seed: int, data: bytes) -> bytes:
    """Damage the compressed bytes, or what they hold: a sound stream of damaged content."""
    if seed % 2:
        return damaged_bytes(seed // 2, data)
    return gzip.compress(damaged_json(seed // 2, gzip.decompress(data)), 1, mtime=0)


def _zstd(seed: int, data: bytes) -> bytes:
    """Damage the compressed bytes, or what they hold: a sound frame of damaged content."""
    if seed % 2:
        return damaged_bytes(seed // 2, data)
    sound = originals.synthetic()
    return _frame(damaged_bytes(seed // 2, sound[seed // 2 % len(sound)]))


def _frame(data: bytes, block: int = 1 << 17) -> bytes:
    """Return ``data`` as a zstd frame of blocks that are stored as they are (RFC 8878, 3.1.1)."""
    head = b"\x28\xb5\x2f\xfd" + bytes([0b10_1_0_0_0_00]) + len(data).to_bytes(4, "little")
    blocks = [data[at : at + block] for at in range(0, len(data), block)] or [b""]
    last = len(blocks) - 1
    return head + b"".join(
        ((len(part) << 3) | (number == last)).to_bytes(3, "little") + part
        for number, part in enumerate(blocks)
    )


def _sample() -> bytes:
    return originals.COPY.read_bytes()


def _rank(number: int) -> Callable[[], bytes]:
    def trace() -> bytes:
        import tempfile

        from tests.test_ranks import rank

        with tempfile.TemporaryDirectory() as folder:
            return rank(number, world=2).write(Path(folder, "rank.json")).read_bytes()

    return trace


def _ranks() -> list[bytes]:
    return [_rank(1)()]


KINDS = {
    "report": Kind(
        "x.ncu-rep",
        originals.reports,
        damaged_bytes,
        (("metrics", "x.ncu-rep", "--json"), ("show", "x.ncu-rep"), ("report", "x.ncu-rep", *PAGE)),
    ),
    "synthetic report": Kind(
        "x.ncu-rep",
        originals.synthetic,
        damaged_bytes,
        (("show", "x.ncu-rep"), ("compare", "x.ncu-rep", "sound.ncu-rep"), ("metrics", "x.ncu-rep", "--raw")),
        {"sound.ncu-rep": _sample},
    ),
    "compressed report": Kind(
        "x.ncu-repz",
        originals.compressed,
        _zstd,
        (("metrics", "x.ncu-repz", "--json"), ("show", "x.ncu-repz"), ("report", "x.ncu-repz", *PAGE)),
    ),
    "nsys export": Kind(
        "x.sqlite",
        originals.exports,
        damaged_bytes,
        (("timeline", "x.sqlite"), ("timeline", "x.sqlite", "--json"), ("timeline", "x.sqlite", *PAGE)),
    ),
    "torch trace": Kind(
        "x.json",
        originals.torch_traces,
        damaged_json,
        (("ops", "x.json"), ("ops", "x.json", "--json"), ("ops", "x.json", *PAGE), ("timeline", "x.json")),
    ),
    "gzip torch trace": Kind(
        "x.json.gz",
        originals.gzipped,
        _gzip,
        (("ops", "x.json.gz"), ("ops", "x.json.gz", "--json"), ("timeline", "x.json.gz", *PAGE)),
    ),
    "rank trace": Kind(
        "ranks/rank1.json",
        _ranks,
        damaged_json,
        (("ops", "ranks"), ("ops", "ranks", "--json"), ("ops", "ranks", *PAGE)),
        {"ranks/rank0.json": _rank(0)},
    ),
    "NCCL log": Kind(
        "nccl.txt",
        lambda: [originals.NCCL],
        damaged_text,
        (
            ("ops", "ranks", "--nccl-log", "nccl.txt"),
            ("ops", "ranks", "--nccl-log", "nccl.txt", "--json"),
            ("ops", "ranks", "--nccl-log", "nccl.txt", *PAGE),
        ),
        {"ranks/rank0.json": _rank(0), "ranks/rank1.json": _rank(1)},
    ),
    "CSV": Kind(
        "x.csv",
        originals.printed,
        damaged_text,
        (("metrics", "x.csv", "--json"), ("show", "x.csv"), ("report", "x.csv", *PAGE)),
    ),
    "run.json": Kind(
        "run/run.json",
        originals.records,
        damaged_json,
        (
            ("report", "--run", "run", *PAGE),
            ("advise", "run"),
            ("compare", "run", "sound.ncu-rep"),
        ),
        {
            "run/profile.ncu-rep": _sample,
            "run/timing.json": lambda: originals.timings()[0],
            "sound.ncu-rep": _sample,
        },
    ),
    "timing.json": Kind(
        "run/timing.json",
        originals.timings,
        damaged_json,
        (
            ("report", "--run", "run", *PAGE),
            ("advise", "run"),
            ("compare", "run", "sound.ncu-rep"),
        ),
        {
            "run/profile.ncu-rep": _sample,
            "run/run.json": lambda: originals.records()[0],
            "sound.ncu-rep": _sample,
        },
    ),
    "experiment.json": Kind(
        "experiment.json", originals.experiments, damaged_json, (("experiment-page", "experiment.json"),)
    ),
    "baseline": Kind(
        ".ncukit/baselines/main.json",
        originals.baselines,
        damaged_json,
        (("compare", "main", "sound.ncu-rep"), ("baseline", "show", "main"), ("baseline", "list")),
        {"sound.ncu-rep": _sample},
    ),
    "measured ceilings": Kind(
        "c.json",
        originals.ceilings,
        damaged_json,
        (
            ("show", "sound.ncu-rep", "--measured-ceilings", "c.json"),
            ("report", "sound.ncu-rep", "--measured-ceilings", "c.json", *PAGE),
        ),
        {"sound.ncu-rep": _sample},
    ),
    "ncukit.toml": Kind(
        "ncukit.toml",
        lambda: [originals.SETTINGS],
        damaged_text,
        (("compare", "sound.ncu-rep", "sound.ncu-rep"), ("baseline", "show", "main", "--json")),
        {"sound.ncu-rep": _sample, "baselines/main.json": lambda: originals.baselines()[0]},
    ),
    "report in a folder": Kind(
        "in/x.ncu-rep",
        originals.synthetic,
        damaged_bytes,
        (
            ("dataset", "build", "in", "-o", "out", "--workers", "1", "--json"),
            ("index", "in", "--workers", "1", *PAGE),
        ),
        {"in/sound.ncu-rep": _sample},
    ),
}
