"""The container check: what is sound passes, everything else is named, with the place."""

import gzip
import os
import shutil
import struct
import time
from pathlib import Path

import pytest

from ncukit.errors import ReportEmpty, ReportError, ReportFormatError, ReportNotFound
from ncukit.report import container
from ncukit.report.blocks import KNOWN_VERSION
from tests.conftest import each_report

ZSTD = b"\x28\xb5\x2f\xfd"


def sized(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def file_header(version: int = KNOWN_VERSION) -> bytes:
    return b"NVR\0" + sized(b"\x08" + varint(version))


def block(sources: int = 0, results: int = 0, entries: tuple[bytes, ...] = (), more: bytes = b"") -> bytes:
    """Return a block: NumSources, NumResults, an empty string table, PayloadSize, then the payload."""
    payload = b"".join(sized(entry) for entry in entries)
    header = b"\x08" + varint(sources) + b"\x10" + varint(results) + b"\x22\x00\x28" + varint(len(payload))
    return sized(header + more) + payload


SESSION = block()
LAUNCH = block(results=1, entries=(b"r" * 300,))
CODE = block(sources=1, entries=(b"s" * 200,))
REPORT = file_header() + SESSION + CODE + LAUNCH + LAUNCH + SESSION


@pytest.fixture
def write(tmp_path: Path):
    def write(data: bytes, name: str = "x.ncu-rep") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


def refused(path: Path) -> ReportError:
    with pytest.raises(ReportError) as caught:
        container.check(path)
    assert caught.value.exit_code == 4
    assert caught.value.hint
    assert str(path) in caught.value.message
    return caught.value


def test_a_sound_report_passes(write) -> None:
    found = container.check(write(REPORT))
    assert (found.kind, found.version, found.results, found.size) == ("ncu-rep", 7, 2, len(REPORT))
    assert (found.parts[0].blocks, found.parts[0].sources) == (5, 1)
    assert found.whole
    assert not found.warnings


@each_report()
def test_real_reports_pass_without_a_warning(report: Path) -> None:
    found = container.check(report)
    assert found.whole
    assert found.results
    assert not found.warnings


@each_report("ncu")
def test_the_check_is_quick(report: Path) -> None:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        container.check(report)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.010  # 1 ms for 164 blocks; the bound leaves room for a busy machine


def test_missing_files_folders_and_pipes_are_told_apart(tmp_path: Path, write) -> None:
    missing = refused(tmp_path / "nope.ncu-rep")
    assert isinstance(missing, ReportNotFound)
    assert "no file" in missing.message
    assert "folder" in refused(tmp_path).message
    os.mkfifo(tmp_path / "pipe")
    assert "pipe" in refused(tmp_path / "pipe").message
    (tmp_path / "link").symlink_to("gone.ncu-rep")
    assert "link to gone.ncu-rep" in refused(tmp_path / "link").message


def test_a_missing_suffix_is_suggested(tmp_path: Path, write) -> None:
    write(REPORT, "gemm.ncu-rep")
    assert "gemm.ncu-rep" in refused(tmp_path / "gemm").hint
    assert "gemm.ncu-rep" in refused(tmp_path).hint


def test_an_unreadable_file_is_not_missing(write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(REPORT)

    def denied(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    error = refused(path)
    assert isinstance(error, ReportNotFound)
    assert "permission denied" in error.message


def test_an_empty_file_and_a_report_without_results_are_empty(write) -> None:
    nothing = refused(write(b""))
    assert isinstance(nothing, ReportEmpty)
    assert "0 bytes" in nothing.message
    no_results = refused(write(file_header() + SESSION + CODE))
    assert isinstance(no_results, ReportEmpty)
    assert "without any result" in no_results.message


OTHER_FORMATS = {
    "LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    "gzip": gzip.compress(REPORT, mtime=0),
    "xz": b"\xfd7zXZ\0\0\4",
    "bzip2": b"BZh91AY&SY",
    "zip archive": b"PK\x03\x04\x14\0",
    "tar archive": b"report.ncu-rep".ljust(257, b"\0") + b"ustar\0",
    "Nsight Systems": b"NVIDIA Tegra Profiler Report" + bytes(80),
    "SQLite": b"SQLite format 3\0" + bytes(80),
    "ELF": b"\x7fELF\2\1\1",
    "PDF": b"%PDF-1.7\n",
    "HTML": b"\n<!DOCTYPE html><html><body>Sign in</body></html>",
    "JSON": b'{"message": "Not Found"}',
    "XML": b"<?xml version='1.0'?><Error/>",
    "CSV": b'"ID","Kernel Name","Metric Name","Metric Value"\n"0","k","Duration","1"\n',
    "terminal": b"==PROF== Connected to process 1 (/usr/bin/x)\nhello\n",
    "nvprof": b"==1== NVPROF is profiling\n==NVPROF== x\n",
    "text": b"Dear all,\nplease find the report attached.\n",
    "zero bytes": bytes(5000),
    "unknown format": bytes(range(128, 256)) * 4,
}


@pytest.mark.parametrize("word", OTHER_FORMATS)
def test_another_format_is_named(word: str, write) -> None:
    error = refused(write(OTHER_FORMATS[word]))
    assert isinstance(error, ReportFormatError)
    assert word in error.message
    assert "FILE" not in error.hint


def test_utf16_text_is_text(write) -> None:
    assert "CSV" in refused(write('"ID","Kernel Name"\r\n'.encode("utf-16"))).message


def test_a_report_cut_anywhere_is_truncated_unless_it_ends_with_a_block(write) -> None:
    without_result = [len(file_header() + SESSION), len(file_header() + SESSION + CODE)]
    with_result = [without_result[1] + len(LAUNCH), len(REPORT) - len(SESSION)]
    for size in range(1, len(REPORT)):
        path = write(REPORT[:size])
        if size in with_result:  # nothing in the format says that another block should follow
            assert container.check(path).whole
        elif size in without_result:
            assert isinstance(refused(path), ReportEmpty)
        else:
            error = refused(path)
            assert error.code == "report-truncated", error.message
            assert f"byte {size}" in error.message or f"{size} byte" in error.message


def test_the_place_of_the_cut_is_named(write) -> None:
    message = refused(write(REPORT[: -len(SESSION) - 10])).message
    assert "inside result 2, in block 4" in message
    assert "1 whole result before it" in message


def test_a_damaged_file_header_is_named(write) -> None:
    data = bytearray(REPORT)
    data[4] = 99
    error = refused(write(bytes(data)))
    assert error.code == "report-damaged"
    assert "file header" in error.message


def test_impossible_sizes_are_damage_not_a_cut(write) -> None:
    start = len(file_header() + SESSION + CODE)
    for damage, words in (
        (REPORT[:start] + b"\x07" + REPORT[start + 1 :], "is no block"),  # header size
        (REPORT.replace(b"r" * 300, b"r" * 299), "block 4"),  # an entry lost a byte
        (file_header() + block(results=2, entries=(b"r",)), "announces 2 entries and holds 1"),
        (file_header() + block(results=1, entries=(b"r", b"r")), "more than the 1 entries"),
        (file_header() + LAUNCH + b"\x0c\0\0\0" + b"\xff" * 12 + LAUNCH, "block 2"),
    ):
        error = refused(write(damage))
        assert error.code == "report-damaged", error.message
        assert words in error.message


def test_older_versions_are_refused_and_newer_ones_read_with_a_warning(write) -> None:
    assert "version 6" in refused(write(file_header(6) + LAUNCH)).message
    found = container.check(write(file_header(8) + LAUNCH))
    assert "version 8" in found.warnings[0]
    assert found.results == 1


def test_fields_of_a_later_version_are_ignored(write) -> None:
    later = block(results=1, entries=(b"r", b"new"), more=b"\x50\x01")
    assert container.check(write(file_header() + later)).results == 1


@pytest.mark.parametrize("behind", [bytes(4000), b"\0", b"\r\n", bytes(range(100, 200)), b"\0\0\0\0"])
def test_bytes_behind_a_whole_report_are_left_out_with_a_warning(behind: bytes, write) -> None:
    found = container.check(write(REPORT + behind))
    assert (found.sound_size, found.results) == (len(REPORT), 2)
    assert f"byte {len(REPORT)} on" in found.warnings[0]
    with container.readable_files(found) as (copy,):
        assert copy.read_bytes() == REPORT
    assert not copy.exists()


def test_reports_one_after_another_are_all_read(write) -> None:
    found = container.check(write(REPORT + REPORT))
    assert [part.offset for part in found.parts] == [0, len(REPORT)]
    assert found.results == 4
    assert "2 reports" in found.warnings[0]
    with container.readable_files(found) as copies:
        assert [copy.read_bytes() for copy in copies] == [REPORT, REPORT]


def test_a_broken_second_report_does_not_spoil_the_first(write) -> None:
    found = container.check(write(REPORT + REPORT[:-1]))
    assert found.results == 2
    assert "truncated" in found.warnings[0]


def test_a_whole_report_is_read_where_it_lies(write) -> None:
    path = write(REPORT)
    with container.readable_files(container.check(path)) as files:
        assert files == (path,)
    assert path.exists()


def frame(*blocks: bytes, checksum: bool = False) -> bytes:
    """Return a zstd frame of raw blocks."""
    body = b""
    for i, data in enumerate(blocks):
        body += (len(data) << 3 | (i == len(blocks) - 1)).to_bytes(3, "little") + data
    return ZSTD + bytes([0x04 if checksum else 0]) + b"\x58" + body + (b"\0\0\0\0" if checksum else b"")


def test_a_compressed_report_passes_whatever_its_name(write) -> None:
    data = frame(REPORT[:100], REPORT[100:], checksum=True)
    found = container.check(write(data, "x.ncu-repz"))
    assert (found.kind, found.results, found.whole) == ("ncu-repz", None, True)
    with container.readable_files(found) as files:
        assert files == (found.path,)
    with container.readable_files(container.check(write(data, "x.ncu-rep"))) as (copy,):
        assert copy.name.endswith(".ncu-repz")
        assert copy.read_bytes() == data


def test_an_uncompressed_report_named_repz_gets_a_name_that_the_reader_takes(write) -> None:
    with container.readable_files(container.check(write(REPORT, "x.ncu-repz"))) as (copy,):
        assert copy.name.endswith(".ncu-rep")


def test_a_compressed_report_cut_anywhere_is_truncated(write) -> None:
    data = frame(REPORT[:100], REPORT[100:], checksum=True)
    for size in range(len(ZSTD), len(data)):
        error = refused(write(data[:size]))
        assert error.code == "report-truncated"
        assert f"byte {size}" in error.message
    assert "several zstd frames" in refused(write(data + data)).message
    assert container.check(write(data + b"tail")).warnings


def test_the_native_reader_takes_what_the_check_hands_out(write, shared: Path, tmp_path: Path) -> None:
    ncu_report = pytest.importorskip("ncu_report")
    report = shared / "reports" / "ncu" / "sm86-rtx-3070-ncu2022.3-03.ncu-rep"
    data = report.read_bytes()
    files = [write(data, "x.ncu-repz"), write(data + bytes(9), "y.ncu-rep"), write(data * 2, "z.ncu-rep")]
    if zstd := shutil.which("zstd"):
        assert os.spawnl(os.P_WAIT, zstd, "zstd", "-q", str(report), "-o", str(tmp_path / "c.ncu-rep")) == 0
        files.append(tmp_path / "c.ncu-rep")
    for path in files:
        found = container.check(path)
        with container.readable_files(found) as copies:
            for copy in copies:
                context = ncu_report.load_report(str(copy))
                assert context.range_by_idx(0).action_by_idx(0).name() == "VecAdd_kernel"
