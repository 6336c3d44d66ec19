"""Damaged at random, a report is refused with exit code 4 or read: no traceback, no launch made of garbage.

Content has no checksum: a flipped bit inside a value cannot be seen.  Run a thousand by hand:

    python -m tests.test_mutations 1000
"""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ncukit.api as ncukit
from ncukit.errors import ReportError
from tests.conftest import CHECKOUT, shared_folder

SEEDS = 40
SMALL_REPORTS = (
    "sm120-rtx-5060-ti-ncu2025.2-01.ncu-rep",
    "sm75-gtx-1660-ti-ncu2022.4-01.ncu-rep",
    "sm75-rtx-2070-ncu2020.1-01.nsight-cuprof-report",
    "sm86-rtx-3070-ncu2022.3-03.ncu-rep",
)


def sound_reports() -> list[Path]:
    """Return small sound reports: the synthetic samples, and real ones where they are at hand."""
    real = [shared_folder() / "reports" / "ncu" / name for name in SMALL_REPORTS]
    return sorted((CHECKOUT / "reports" / "samples").glob("*.ncu-rep")) + [p for p in real if p.exists()]


def mutate(seed: int, data: bytes) -> bytes:
    """Return ``data`` with one kind of damage; the same seed does the same."""
    rng = random.Random(seed)
    size = len(data)
    at = rng.randrange(size)
    end = min(size, at + rng.randrange(1, 2000))
    damaged = bytearray(data)
    match seed % 8:
        case 0:
            return data[:at]
        case 1:
            damaged[at] ^= 1 << rng.randrange(8)
        case 2:
            for _ in range(rng.randrange(2, 200)):
                damaged[rng.randrange(size)] ^= 1 << rng.randrange(8)
        case 3:
            del damaged[at:end]
        case 4:
            damaged[at:at] = rng.randbytes(end - at)
        case 5:
            damaged[at:end] = bytes(end - at)
        case 6:
            damaged[at:at] = damaged[rng.randrange(size) :][: end - at]
        case 7:
            damaged[at : at + 8] = b"\xff" * len(damaged[at : at + 8])
    return bytes(damaged)


def outcome(path: Path) -> str:
    """Read ``path``; return the error's code or "read".  A launch of garbage fails an assertion."""
    failure = None
    try:
        kernels = list(ncukit.read(path).kernels())
    except ReportError as error:
        failure = error
    if failure:
        assert failure.exit_code == 4
        assert failure.message
        assert failure.hint
        return failure.code
    assert kernels
    for kernel in kernels:
        assert kernel.name or kernel.demangled
        assert len(kernel.raw.metrics) > 10
        json.dumps(kernel.demangled, ensure_ascii=False).encode()
    return "read"


@pytest.fixture(scope="module")
def originals() -> list[Path]:
    return sound_reports()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_mutated_report_is_refused_or_read(seed: int, originals: list[Path], tmp_path: Path) -> None:
    original = originals[seed % len(originals)]
    path = tmp_path / "mutated.ncu-rep"
    path.write_bytes(mutate(seed, original.read_bytes()))
    outcome(path)


@pytest.mark.parametrize("seed", range(1, 8))
def test_the_command_line_survives_mutated_reports(seed: int, originals: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "mutated.ncu-rep"
    path.write_bytes(mutate(seed, originals[0].read_bytes()))
    command = [sys.executable, "-m", "ncukit", "metrics", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 4), done.stderr
    assert "Traceback" not in done.stderr
    document = json.loads(done.stdout)
    assert ("kernels" in document) == (done.returncode == 0)


def results(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each result in ``data``, found by the reader's own walk."""
    from ncukit.read.blocks import _fields

    pos = 8 + int.from_bytes(data[4:8], "little")
    while pos < len(data):
        begin = pos + 4 + int.from_bytes(data[pos : pos + 4], "little")
        found, _ = _fields(data[pos + 4 : begin]) or ({}, False)
        pos = begin + found.get(5, 0)
        entry = 0
        while begin < pos:
            end = begin + 4 + int.from_bytes(data[begin : begin + 4], "little")
            if entry >= found.get(1, 0):
                yield begin + 4, end
            begin, entry = end, entry + 1


def test_a_result_whose_content_is_lost_is_named(originals: list[Path], tmp_path: Path) -> None:
    data = originals[0].read_bytes()
    begin, end = next(results(data))
    path = tmp_path / "x.ncu-rep"
    for content in (bytes(end - begin), b"\xff" * (end - begin)):
        path.write_bytes(data[:begin] + content + data[end:])
        with pytest.raises(ReportError, match=r"damaged inside|crashed"):
            list(ncukit.read(path).kernels())


def test_bytes_that_are_not_text_do_not_reach_a_page(shared: Path, tmp_path: Path) -> None:
    data = (shared / "reports" / "ncu" / "sm86-rtx-3070-ncu2022.3-03.ncu-rep").read_bytes()
    path = tmp_path / "latin1.ncu-rep"
    path.write_bytes(data.replace(b"VecAdd_kernel", b"VecAdd_k\xe4rnel"))
    for isolate in (True, False):
        (kernel,) = ncukit.read(path, isolate=isolate).kernels()
        assert kernel.demangled == "VecAdd_k\ufffdrnel"


def main(count: int) -> None:
    from collections import Counter
    from tempfile import TemporaryDirectory

    counts: Counter[str] = Counter()
    with TemporaryDirectory() as folder:
        path = Path(folder, "mutated.ncu-rep")
        originals = sound_reports()
        for seed in range(count):
            path.write_bytes(mutate(seed, originals[seed % len(originals)].read_bytes()))
            try:
                counts[outcome(path)] += 1
            except BaseException as error:
                counts[f"FAILED {type(error).__name__}"] += 1
                print(f"seed {seed}: {error!r}")
    for result, number in counts.most_common():
        print(f"{number:6} {result}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
