"""Every broken report ends with exit code 4 and its own reason, or is read where its data is whole."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ncukit.api as ncukit
from ncukit.errors import ReportError
from tests.conftest import each_report, shared_folder

pytestmark = pytest.mark.usefixtures("reader_of_users")

# What is wrong with each file -> words of the message; None: its launches are whole, with this many of them.
REASONS: dict[str, str] = {
    "csv_text": "is CSV text, not a report",
    "damaged_header": "file header, 99 bytes by its size, cannot be read",
    "empty": "is empty (0 bytes)",
    "gzipped": "is gzip-compressed",
    "header8": "is cut off after 8 bytes, inside its file header",
    "lfs_pointer": "is a git LFS pointer, not the report itself",
    "magic_only": "is cut off after 4 bytes",
    "nsys_renamed": "is a report of Nsight Systems",
    "random": "is of an unknown format",
    "truncated_half": "is truncated: it ends at byte 24000, inside result 1",
    "truncated_minus100": "is truncated: it ends at byte 48071, inside the header of block 11",
}
WHOLE = {"bitflip": 1, "concatenated": 2, "trailing_garbage": 1}
WARNINGS = {
    "bitflip": (),
    "concatenated": ("it holds 2 reports one after another",),
    "trailing_garbage": ("from byte 48171 on, 5000 bytes follow",),
}


def test_every_broken_file_is_in_the_table(shared: Path) -> None:
    names = {path.stem for path in (shared / "reports" / "broken").iterdir()}
    assert names == REASONS.keys() | WHOLE.keys()


@pytest.mark.parametrize("name", REASONS)
@pytest.mark.parametrize("isolate", [True, False])
def test_the_library_names_what_is_wrong(name: str, isolate: bool, shared: Path) -> None:
    report = shared / "reports" / "broken" / f"{name}.ncu-rep"
    with pytest.raises(ReportError) as caught:
        list(ncukit.read(report, isolate=isolate).kernels())
    assert REASONS[report.stem] in caught.value.message
    assert str(report) in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code == 4
    assert caught.value.code != "reader-crashed"


def test_each_reason_is_its_own() -> None:
    assert len(set(REASONS.values())) == len(REASONS)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("isolate", [True, False])
def test_whole_data_is_read_as_from_the_sound_file(name: str, isolate: bool, shared: Path) -> None:
    reports = shared / "reports"
    sound = list(ncukit.read(reports / "ncu" / "sm86-rtx-3070-ncu2022.3-03.ncu-rep").kernels())
    report = ncukit.read(reports / "broken" / f"{name}.ncu-rep", isolate=isolate)
    kernels = list(report.kernels())
    assert [kernel.index for kernel in kernels] == list(range(WHOLE[name]))
    for kernel in kernels:
        assert kernel.demangled == "VecAdd_kernel"
        if name != "bitflip":  # two bytes of its content differ
            assert {id: v.value for id, v in kernel.metrics.items()} == {
                id: v.value for id, v in sound[0].metrics.items()
            }
    assert len(report.warnings) == len(WARNINGS[name])
    for warning, words in zip(report.warnings, WARNINGS[name], strict=True):
        assert words in warning


def run(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ncukit", "metrics", *map(str, files), "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@each_report("broken")
def test_the_command_line_ends_with_exit_code_4_or_the_data(report: Path) -> None:
    done = run(report)
    assert "Traceback" not in done.stderr
    (document,) = (json.loads(line) for line in done.stdout.splitlines())
    if report.stem in WHOLE:
        assert done.returncode == 0
        assert len(document["kernels"]) == WHOLE[report.stem]
        assert done.stderr.count("warning:") == len(WARNINGS[report.stem])
    else:
        assert done.returncode == 4
        assert REASONS[report.stem] in document["error"]["message"]
        error, hint = done.stderr.splitlines()
        assert error.startswith("error: ")
        assert REASONS[report.stem] in error
        assert hint.startswith("hint: ")


def test_a_bad_file_among_good_ones_does_not_stop_the_rest(shared: Path) -> None:
    reports = shared / "reports"
    good = reports / "ncu" / "sm86-rtx-3070-ncu2022.3-03.ncu-rep"
    done = run(good, reports / "broken" / "random.ncu-rep", Path("missing.ncu-rep"), good)
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 4
    assert ["kernels" in document for document in documents] == [True, False, False, True]
    assert [d["error"]["code"] for d in documents if "error" in d] == ["report-format", "report-not-found"]


def test_what_a_broken_file_is_called_is_data(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m\n.ncu-rep"
    path.write_bytes(b"")
    done = run(path)
    assert done.returncode == 4
    assert len(done.stderr.splitlines()) == 2
    assert "\x1b" not in done.stderr


def test_a_compressed_report_is_read(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    good = shared_folder() / "reports" / "ncu" / "sm86-rtx-3070-ncu2022.3-03.ncu-rep"
    if not good.exists():
        pytest.skip(f"no {good}")
    data = pyarrow.compress(good.read_bytes(), codec="zstd", asbytes=True)
    for name in ("x.ncu-repz", "misnamed.ncu-rep"):
        (tmp_path / name).write_bytes(data)
        (kernel,) = ncukit.read(tmp_path / name).kernels()
        assert kernel.name == "VecAdd_kernel"
    (tmp_path / "cut.ncu-repz").write_bytes(data[: len(data) // 2])
    with pytest.raises(ReportError, match=r"compressed report .* is truncated"):
        ncukit.read(tmp_path / "cut.ncu-repz")
    (tmp_path / "other.ncu-repz").write_bytes(pyarrow.compress(b"hello", codec="zstd", asbytes=True))
    with pytest.raises(ReportError, match="the reader found 0 of its results"):
        list(ncukit.read(tmp_path / "other.ncu-repz").kernels())
