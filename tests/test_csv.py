"""What ncu prints comes back as the launches of the report it was printed from."""

import csv as usual_csv
import io
import math
import re
import subprocess
from pathlib import Path

import pytest

import ncukit.api as ncukit
from ncukit.errors import ReportEmpty, ReportFormatError, ReportNotFound
from ncukit.media import visible
from ncukit.model import RawKernel
from ncukit.report import printed as csv
from tests.conftest import shared_folder

OLD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream",'
    '"Section Name","Metric Name","Metric Unit","Metric Value"'
)
NEW = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value",'
    '"Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"'
)
SOL, LAUNCH = "GPU Speed Of Light Throughput", "Launch Statistics"
RULE = 'The "kernel", so to say,\n is "small",","really".'


def new_row(
    section: str, label: str, unit: str, value: str, *, id: int = 0, name: str = "copy(float *)"
) -> str:
    return (
        f'"{id}","42","app","127.0.0.1","{name}","1","7","(256, 1, 1)","(64, 2, 1)","0","8.6",'
        f'"{section}","{label}","{unit}","{value}",'
    )


def long_text(*rows: str) -> str:
    return "\n".join([NEW, *rows, ""])


def wide_text(name: str = "k", **cells: tuple[str, str]) -> str:
    """Return a raw page with one launch; ``cells`` are (unit, value) by metric, with two underscores."""
    head = ["ID", "Process ID", "Kernel Name", "Context", "Stream", *cells]
    units = ["", "", "", "", "", *(unit for unit, _ in cells.values())]
    values = ["0", "42", name, "1", "7", *(value for _, value in cells.values())]
    return "\n".join('"' + '","'.join(line) + '"' for line in (head, units, values)) + "\n"


def read(text: str) -> list[RawKernel]:
    return csv.read_csv(io.StringIO(text), path="x.csv")


def metrics(text: str) -> dict[str, object]:
    (kernel,) = read(text)
    return dict(kernel.metrics)


def test_old_and_new_columns_give_the_same_metrics() -> None:
    old = '"0","42","app","127.0.0.1","copy(float *)","2020-Feb-12 11:28:17","1","7",'
    rows = [(SOL, "Duration", "usecond", "3.26"), (LAUNCH, "Registers Per Thread", "register/thread", "16")]
    from_old = metrics("\n".join([OLD, *(f'{old}"{s}","{n}","{u}","{v}"' for s, n, u, v in rows)]))
    from_new = metrics(long_text(*(new_row(*row) for row in rows)))
    assert from_old == {
        "gpu__time_duration.sum": 3260.0,
        "launch__registers_per_thread": 16,
        "launch__context_id": 1,
        "launch__stream_id": 7,
    }
    assert from_old.items() <= from_new.items()


def test_columns_in_another_order_read_the_same() -> None:
    rows = list(usual_csv.reader([OLD, OLD.replace("ID", "0").replace("Metric Value", "3,26")]))
    rows[1] = ["0", "42", "app", "host", "k", "", "1", "7", SOL, "Duration", "us", "3.26"]
    order = [11, 4, 10, 0, 9, 8, 1, 2, 3, 5, 6, 7]
    text = "\n".join('"' + '","'.join(row[i] for i in order) + '"' for row in rows)
    assert metrics(text)["gpu__time_duration.sum"] == 3260.0


def test_launch_and_device_come_from_the_columns_beside_the_metrics() -> None:
    (kernel,) = read(long_text(new_row(SOL, "Duration", "ns", "3264")))
    assert (
        kernel.metrics.items()
        >= {
            "launch__block_dim_x": 256,
            "launch__block_size": 256,
            "launch__grid_dim_y": 2,
            "launch__grid_size": 128,
            "launch__context_id": 1,
            "launch__stream_id": 7,
            "launch__device_id": 0,
            "device__attribute_compute_capability_major": 8,
            "device__attribute_compute_capability_minor": 6,
        }.items()
    )
    assert (kernel.function, kernel.demangled, kernel.origin) == ("copy", "copy(float *)", "csv")
    assert kernel.sections == ("SpeedOfLight",)


NOISE = [
    "==PROF== Connected to process 42 (/bin/app)",
    "hello",
    "ID, name",
    '"quoted"',
    "0,1,2",
    "",
    "done, 7",
]


def test_noise_around_and_between_the_rows_is_left_out() -> None:
    rows = [new_row(SOL, "Duration", "ns", "3264"), new_row(LAUNCH, "Grid Size", "", "128")]
    warning = "==WARNING== Found outstanding GPU clock reset, trying to revert...Success."
    text = "\n".join(
        [*NOISE, NEW, *NOISE, rows[0], *NOISE, warning, rows[1], *NOISE, "==PROF== Disconnected"]
    )
    assert read(text) == read(long_text(*rows))


def test_a_header_after_an_unfinished_line_is_found() -> None:
    text = "working..." + long_text(new_row(SOL, "Duration", "ns", "3264"))
    assert metrics(text)["gpu__time_duration.sum"] == 3264


def test_two_runs_in_one_file_are_counted_through() -> None:
    one = long_text(new_row(SOL, "Duration", "ns", "1"), new_row(SOL, "Duration", "ns", "2", id=1))
    kernels = read(one + "==PROF== Disconnected\n" + one)
    assert [kernel.index for kernel in kernels] == [0, 1, 2, 3]
    assert [kernel.metrics["gpu__time_duration.sum"] for kernel in kernels] == [1, 2, 1, 2]


def test_the_units_row_of_the_raw_page_is_not_a_launch() -> None:
    text = '"ID","Kernel Name","sm__cycles_active.avg"\n"","","cycle"\n"0","k","123.4"\n'
    (kernel,) = read(text)
    assert kernel.metrics == {"sm__cycles_active.avg": 123.4}
    assert kernel.units == {"sm__cycles_active.avg": "cycle"}


@pytest.mark.parametrize(
    "name",
    [
        'f<"literal">(int)',
        "void f<int, float>(std::pair<int, int>, const char *)",
        "lambda at line 3\n  second line(int)",
        'g<"a","b">(int)',
        "k(T1, T2)::[lambda(int) (instance 1)]",
    ],
)
def test_kernel_names_keep_their_quotes_commas_and_newlines(name: str) -> None:
    wide = read(wide_text(name, sm__cycles_active=("cycle", "5")) + "bye\n")
    details = read(long_text(new_row(SOL, "Duration", "ns", "5", name=name)))
    assert [kernel.demangled for kernel in wide + details] == [name, name]
    assert wide[0].metrics["sm__cycles_active"] == 5


@pytest.mark.parametrize(
    ("unit", "printed", "base", "value"),
    [
        ("msecond", "4.789792", "ns", 4789792),
        ("us", "3.26", "ns", 3260),
        ("second", "1.5", "ns", 1.5e9),
        ("nsecond", "17", "ns", 17),
        ("Kbyte", "8.19", "byte", 8190),
        ("Mbyte/second", "973.18", "byte/s", 973.18e6),
        ("Gbyte/s", "2", "byte/s", 2e9),
        ("Tbyte/second", "1.25", "byte/s", 1.25e12),
        ("byte/block", "1024", "byte/block", 1024),
        ("Kbyte/block", "1.024", "byte/block", 1024),
        ("cycle/nsecond", "1.344720", "hz", 1344720000),
        ("cycle/usecond", "706.67", "hz", 706670000),
        ("Ghz", "1.13", "hz", 1.13e9),
        ("Mhz", "795.3", "hz", 795.3e6),
        ("sector/msecond", "12", "sector/s", 12000),
        ("/nsecond", "3", "/s", 3e9),
        ("%", "30.52", "%", 30.52),
        ("inst/cycle", "0.97", "inst/cycle", 0.97),
        ("", "0.71", "", 0.71),
    ],
)
def test_scaled_units_become_base_units(unit: str, printed: str, base: str, value: float) -> None:
    (kernel,) = read(wide_text(x__y=(unit, printed)))
    assert kernel.metrics["x__y"] == value
    assert kernel.units["x__y"] == base


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("4398", 4398),
        ("18446744073709551615", 2**64 - 1),
        ("1,234", 1234),
        ("1,234,567.89", 1234567.89),
        ("12.5e3", 12500.0),
        ("-2", -2),
        ("0.000000", 0.0),
        ("0", 0),
        ("CachePreferNone", "CachePreferNone"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_numbers_with_a_decimal_point(printed: str, value: object) -> None:
    found = metrics(wide_text(x__y=("", printed), other__z=("", "0.25")))["x__y"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("printed", "value"), [("1.234", 1234), ("1.234,5", 1234.5), ("0,123", 0.123), ("7", 7), ("3,26", 3.26)]
)
def test_numbers_with_a_decimal_comma(printed: str, value: object) -> None:
    assert metrics(wide_text(x__y=("", printed), other__z=("%", "99,5")))["x__y"] == value


def test_decimal_commas_and_points_in_one_file_are_refused() -> None:
    with pytest.raises(ReportFormatError, match="mixes decimal commas and decimal points"):
        read(wide_text(x__y=("", "1,5"), other__z=("", "2.5")))


@pytest.mark.parametrize("printed", ["", "n/a", "N/A", "(!) n/a", "no data"])
def test_a_value_that_ncu_did_not_have_is_missing_not_zero(printed: str) -> None:
    assert "x__y" not in metrics(wide_text(x__y=("", printed)))


def test_what_was_rounded_to_nothing_is_missing_but_for_percentages() -> None:
    found = metrics(wide_text(x__waves=("", "0.00"), y__y=("%", "0.00"), z__z=("byte", "0")))
    assert "x__waves" not in found
    assert (found["y__y"], found["z__z"]) == (0, 0)


def test_a_failed_launch_has_no_size() -> None:
    row = (
        new_row(SOL, "Duration", "ns", "nan")
        .replace("(256, 1, 1)", "(0, 0, 0)")
        .replace("(64, 2, 1)", "(0, 0, 0)")
    )
    found = metrics(long_text(row))
    assert found["launch__grid_size"] == 0
    assert "launch__block_dim_x" not in found


def test_a_nan_stays_a_nan_as_in_a_report() -> None:
    found = metrics(wide_text(a__a=("", "nan"), b__b=("", "(!) nan"), c__c=("", "-inf")))
    assert math.isnan(found["a__a"])  # type: ignore[arg-type]
    assert math.isnan(found["b__b"])  # type: ignore[arg-type]
    assert found["c__c"] == -math.inf


def test_instances_are_told_from_their_total() -> None:
    (kernel,) = read(
        wide_text(
            sass__inst_executed_per_opcode=("", "12 (LDG: 8; STG: 4)"),
            inst_executed=("inst", "7 (0x10: 3; 0x20: 4)"),
            pmsampling__x=("Kbyte", "(1757 (+0): 9.36; 1758 (+1): 10)"),
            values__only=("", "9 (4; 5)"),
        )
    )
    assert kernel.metrics["sass__inst_executed_per_opcode"] == 12
    assert kernel.instances["sass__inst_executed_per_opcode"] == (("LDG", 8), ("STG", 4))
    assert kernel.instances["inst_executed"] == ((0x10, 3), (0x20, 4))
    assert kernel.instances["pmsampling__x"] == ((1757, 9360.0), (1758, 10000.0))
    assert "pmsampling__x" not in kernel.metrics
    assert kernel.metrics["values__only"] == 9


def test_labels_mean_what_their_section_says() -> None:
    found = metrics(
        long_text(
            new_row(SOL, "Memory Throughput", "%", "30.52"),
            new_row("Memory Workload Analysis", "Memory Throughput", "Gbyte/second", "31.49"),
            new_row("Command line profiler metrics", "sm__cycles_active.avg", "cycle", "9"),
            new_row("My Section", "Mystery", "%", "5"),
        )
    )
    assert found["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"] == 30.52
    assert found["dram__bytes.sum.per_second"] == 31.49e9
    assert found["sm__cycles_active.avg"] == 9
    assert found["My Section: Mystery"] == 5


def test_printed_metric_names_win_over_labels() -> None:
    label = "Elapsed Cycles (gpc__cycles_elapsed.max)"
    found = metrics(
        long_text(new_row(SOL, label, "cycle", "9"), new_row(SOL, "sm__throughput.avg", "%", "2"))
    )
    assert found["gpc__cycles_elapsed.max"] == 9
    assert found["sm__throughput.avg"] == 2


def test_pascal_has_the_names_of_its_time() -> None:
    row = new_row("GPU Speed Of Light", "SOL SM", "%", "7")
    assert metrics(long_text(row))["sm__throughput.avg.pct_of_peak_sustained_elapsed"] == 7
    assert metrics(long_text(row.replace('"8.6"', '"6.1"')))["sm__sol_pct"] == 7


def test_a_label_that_changed_its_meaning_is_told_by_its_neighbours_or_left_alone() -> None:
    busy = new_row("Compute Workload Analysis", "SM Busy", "%", "28")
    old = new_row("Memory Workload Analysis", "Mem Busy", "%", "41")
    new = new_row("Memory Workload Analysis", "L2 Persisting Size", "Mbyte", "4")
    name = "sm__instruction_throughput.avg.pct_of_peak_sustained_"
    assert metrics(long_text(busy, old))[name + "active"] == 28
    assert metrics(long_text(busy, old, new))[name + "elapsed"] == 28
    assert metrics(long_text(busy))["Compute Workload Analysis: SM Busy"] == 28


def test_rules_come_along_with_their_speedup() -> None:
    rule = new_row("SpeedOfLight", "", "", "") + f'"SOLBottleneck","OPT","{RULE}","local","16.86"'
    (kernel,) = read(
        long_text(new_row(SOL, "Duration", "ns", "3264"), rule, new_row(LAUNCH, "Threads", "", "8"))
    )
    (found,) = kernel.rules
    assert (found.id, found.section, found.speedup, found.speedup_kind) == (
        "SOLBottleneck",
        "SpeedOfLight",
        16.86,
        "local",
    )
    assert found.messages == (("optimization", "", RULE),)
    assert kernel.metrics["launch__thread_count"] == 8


def test_a_file_that_a_spreadsheet_saved_again_reads_the_same() -> None:
    rows = [["ID", "Kernel Name", "CC", "a__a.sum", "b__b.pct"], ["", "", "", "Kbyte", "%"]]
    rows += [["0", 'f<"x">, (int)\n2', "8.6", "1,5", "99,25"]]
    for delimiter in ";\t":
        text = io.StringIO()
        usual_csv.writer(text, delimiter=delimiter).writerows(rows)
        (kernel,) = read(text.getvalue())
        assert kernel.demangled == 'f<"x">, (int)\n2'
        assert (kernel.metrics["a__a.sum"], kernel.metrics["b__b.pct"]) == (1500, 99.25)


def test_the_terminal_page_reads_like_the_details_page() -> None:
    text = f"""==PROF== Connected to process 42 (/bin/app)
[42] app@127.0.0.1
  copy(float *, int) (64, 2, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.6
    Section: {SOL}
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    Elapsed Cycles                cycle        4,398
    Duration                         us         3.26
    Memory Throughput                 %      (!) nan
    ----------------------- ----------- ------------

    OPT   This kernel grid is too small to fill the available resources on this device, resulting in only 0.2
          full waves across all SMs.
"""
    (kernel,) = read(text)
    assert (kernel.function, kernel.demangled) == ("copy", "copy(float *, int)")
    assert kernel.metrics["gpc__cycles_elapsed.max"] == 4398
    assert kernel.metrics["gpu__time_duration.sum"] == 3260
    assert kernel.metrics["launch__grid_size"] == 128
    assert math.isnan(kernel.metrics["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"])  # type: ignore[arg-type]


def test_utf16_files_of_windows_shells_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(wide_text(x__y=("", "5")).replace("\n", "\r\n").encode("utf-16"))
    assert csv.looks_like_csv(path)
    assert csv.read_csv(path)[0].metrics["x__y"] == 5


REFUSED = {
    "time,value\n1,2\n": "not ncu's CSV",
    '{"a": 1}\n': "JSON text",
    '"ID","Kernel Name"\n': "without any metric",
    '"Kernel Name","Invocations","Metric Name","Minimum","Maximum"\n"k","2","Duration","1","2"\n': "summary",
    '"Address","Source","# Samples"\n"0x0","MOV","2"\n': "source page",
    '"Launch Attribute","Value"\n"Profiler Command Line","x"\n': "session page",
    NEW + "\n": "no launch",
    "==PROF== Connected to process 1\n==WARNING== No kernels were profiled.\n": "profiled nothing",
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n": "ERR_NVGPUCTRPERM",
    "  \n": "blank",
    "NVR\0\2\0\0\0\x08\7": "is a report (.ncu-rep), not text",
    '"Time (%)","Total Time (ns)","Instances"\n"100","5","1"\n': "nsys stats",
}


@pytest.mark.parametrize("text", REFUSED)
def test_other_text_is_refused_by_name(text: str) -> None:
    with pytest.raises((ReportFormatError, ReportEmpty), match=re.escape(REFUSED[text])) as caught:
        read(text)
    assert caught.value.exit_code == 4
    assert caught.value.hint
    assert "x.csv" in caught.value.message


def test_a_cut_off_file_is_refused_not_half_read() -> None:
    whole = long_text(new_row(SOL, "Duration", "ns", "3264"), new_row(SOL, "SM Frequency", "Ghz", "1.13"))
    with pytest.raises(ReportFormatError, match="truncated: the row at line 3"):
        read(whole[:-12])
    with pytest.raises(ReportFormatError, match="truncated: line 3 has 5 of 6 cells"):
        read("ID,Process ID,Kernel Name,a__a,b__b,c__c\n0,42,k,1,2,3\n1,42,k,1,2\n")


def test_missing_and_empty_files(tmp_path: Path) -> None:
    with pytest.raises(ReportNotFound, match="cannot be read"):
        csv.read_csv(tmp_path / "no.csv")
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(ReportEmpty, match="0 bytes"):
        csv.read_csv(tmp_path / "empty.csv")


def test_a_binary_pipe_is_refused() -> None:
    stream = io.TextIOWrapper(io.BytesIO(b"NVR\0\2\0\0\0\x08\7\xff\xfe"), encoding="utf-8")
    with pytest.raises(ReportFormatError, match="- is not text"):
        csv.read_csv(stream, path="-")


def test_only_what_ncu_printed_looks_like_it(tmp_path: Path) -> None:
    for name, data, expected in (
        ("a.log", long_text(new_row(SOL, "Duration", "ns", "1")).encode(), True),
        ("b.csv", b"time,value\n", True),
        ("c.txt", b"time,value\n", False),
        ("d.ncu-rep", b'"ID","Kernel Name"\n', False),
        ("e.ncu-rep", b"NVR\0\2\0\0\0\x08\7", False),
        ("f.csv", b"NVR\0\2\0\0\0\x08\7", False),
    ):
        (tmp_path / name).write_bytes(data)
        assert csv.looks_like_csv(tmp_path / name) is expected, name
    assert not csv.looks_like_csv(tmp_path / "missing")


def test_real_raw_page(shared: Path) -> None:
    (kernel,) = csv.read_csv(shared / "reports" / "csv" / "ncu-output-01.csv")
    assert kernel.function == "Kernel2"
    assert kernel.metrics["device__attribute_display_name"] == "NVIDIA B200"
    assert kernel.metrics["gpu__time_duration.sum"] == pytest.approx(49950, rel=0.1)
    assert len(kernel.metrics) > 500


def test_real_details_page(shared: Path) -> None:
    (kernel,) = csv.read_csv(shared / "reports" / "csv" / "ncu-output-02.csv")
    assert kernel.metrics["gpu__time_duration.sum"] == 49950
    assert kernel.metrics["gpc__cycles_elapsed.avg.per_second"] == 1.13e9
    assert kernel.metrics["launch__shared_mem_per_block_dynamic"] == 34820
    assert not [name for name in kernel.metrics if ": " in name]
    assert "LaunchStats" in kernel.sections
    assert {rule.id for rule in kernel.rules} >= {"SOLBottleneck"}


def test_real_terminal_page(shared: Path) -> None:
    path = shared / "reports" / "csv" / "ncu-output-03.txt"
    assert csv.looks_like_csv(path)
    kernels = csv.read_csv(path)
    assert len(kernels) == 10
    assert kernels[0].function == "distribution_elementwise_grid_stride_kernel"
    assert kernels[0].metrics["gpu__time_duration.sum"] == 777950
    assert not [name for kernel in kernels for name in kernel.metrics if ": " in name]


# Reports of many versions and GPUs that the installed ncu can print; ncu prints 2**64 and more as 0.
PRINTED = [
    "sm61-gtx-1080-ncu2020.1-01.nsight-cuprof-report",
    "sm70-v100-sxm2-16gb-ncu2023.3-01.ncu-rep",
    "sm75-t4-ncu2025.1-01.ncu-rep",
    "sm80-a100-pcie-40gb-ncu2022.4-01.ncu-rep",
    "sm80-a100-pcie-40gb-ncu2020.3-02.ncu-rep",
    "sm86-rtx-3070-ncu2022.3-02.ncu-rep",
    "sm89-rtx-4060-ncu2024.3-01.ncu-rep",
    "sm90-h800-ncu2023.3-01.ncu-rep",
]
# Infinite in one launch; ncu then scales the column to NaN in all of them.
INFINITE = "lts__average_gcomp_input_sector_success_rate.pct"
PAGES = {
    "raw": ["--page", "raw", "--csv"],
    "raw-base": ["--page", "raw", "--csv", "--print-units", "base"],
    "details": ["--page", "details", "--csv"],
    "details-base": ["--page", "details", "--csv", "--print-units", "base"],
    "details-all": ["--page", "details", "--csv", "--print-details", "all"],
    "terminal": ["--page", "details"],
}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("report", PRINTED, ids=lambda name: name.partition("-ncu")[0])
def test_printed_pages_agree_with_the_report(report: str, page: str, ncu: Path, tmp_path: Path) -> None:
    ncu_report = pytest.importorskip("ncu_report")
    path = shared_folder() / "reports" / "ncu" / report
    if not path.exists():
        pytest.skip(f"no {path}")
    run = subprocess.run([ncu, "--import", path, *PAGES[page]], capture_output=True, check=True)
    (tmp_path / "page.txt").write_bytes(run.stdout)
    kernels = csv.read_csv(tmp_path / "page.txt")
    actions = [action for span in ncu_report.load_report(str(path)) for action in span]
    assert [kernel.function for kernel in kernels] == [action.name() for action in actions]
    compared = 0
    for kernel, action in zip(kernels, actions, strict=True):
        for name, value in kernel.metrics.items():
            metric = action.metric_by_name(name)
            if metric is None or (expected := metric.value()) is None:
                # Facts of the launch beside the metrics, and labels without a known metric.
                assert re.match(r"launch__|device__|.*: ", name), name
                continue
            if (page, name) == ("raw", INFINITE):
                continue
            compared += 1
            if isinstance(expected, str):
                assert value == expected, name
            elif page == "raw" and math.isnan(expected) and value == 0:
                continue  # so ncu prints it where it scales units; with base units it prints nan
            elif page == "raw" and kernel.units.get(name):  # six decimals, one scale a column
                assert same(value, expected, 1e-6 * largest(name, kernels)), (name, value, expected)
            else:  # two decimals
                assert same(value, expected, 0.0051 * max(1, abs(expected))), (name, value, expected)
    assert compared > 30


@pytest.mark.parametrize(
    "report", ["sm75-gtx-1660-super-ncu2024.1-01", "sm86-a10g-ncu2023.1-03", "sm90-h800-ncu2023.3-01"]
)
def test_a_details_page_says_nothing_surely_that_the_report_denies(
    report: str, shared: Path, ncu: Path, tmp_path: Path
) -> None:
    path = shared / "reports" / "ncu" / f"{report}.ncu-rep"
    run = subprocess.run([ncu, "--import", path, *PAGES["details"]], capture_output=True, check=True)
    (tmp_path / "details.csv").write_bytes(run.stdout)
    whole, printed = (
        [found.verdict for found in ncukit.read(file).diagnoses()]
        for file in (path, tmp_path / "details.csv")
    )
    for one, other in zip(whole, printed, strict=True):
        if other.confidence == "high":
            assert (one.cls, one.limiter) == (other.cls, other.limiter)
        if one.limiter == "lsu-issue":
            assert other.limiter == "lsu-issue"
            assert other.confidence != "high"
            assert other.missing


@pytest.mark.parametrize(
    "report", ["sm80-a100-pcie-40gb-ncu2021.2-04", "sm86-a10g-ncu2023.1-02", "sm86-rtx-3070-ncu2022.3-03"]
)
def test_the_catalog_gives_the_same_metrics(report: str, shared: Path, ncu: Path, tmp_path: Path) -> None:
    path = shared / "reports" / "ncu" / f"{report}.ncu-rep"
    run = subprocess.run([ncu, "--import", path, *PAGES["raw-base"]], capture_output=True, check=True)
    (tmp_path / "raw.csv").write_bytes(run.stdout)
    from_report = list(ncukit.read(path).kernels())
    printed = list(ncukit.read(tmp_path / "raw.csv").kernels())
    assert len(from_report) == len(printed)
    for one, other in zip(from_report, printed, strict=True):
        assert (one.name, one.gpu, one.compute_capability) == (
            other.name,
            other.gpu,
            other.compute_capability,
        )
        for id, value in one.metrics.items():
            read = other.metrics[id].value
            if isinstance(value.value, int | float) and isinstance(read, int | float):
                assert math.isclose(value.value, read, rel_tol=2e-3, abs_tol=0.011), id
            else:
                assert value.value == read, id


def same(value: object, expected: float, tolerance: float) -> bool:
    assert isinstance(value, int | float)
    if not math.isfinite(expected):
        return str(value).lstrip("-") == str(expected).lstrip("-")
    return abs(value - expected) <= tolerance or (abs(expected) >= 2**64 and value == 0)


def largest(name: str, kernels: list[RawKernel]) -> float:
    values = [kernel.metrics.get(name, 0) for kernel in kernels]
    return max(1.0, *(abs(value) for value in values if isinstance(value, int | float) and value == value))


@pytest.mark.parametrize(
    ("demangled", "function"),
    [
        ("\x01\x02\x03(int)", "\\x01\\x02\\x03"),
        ("\x1b[31mred(int)", "\\x1b[31mred"),
        ("a\x01b<int>(int)", "a\\x01b"),
        ("ns::copy<int>(int)", "copy"),
    ],
)
def test_a_name_with_controls_is_whole_and_escaped(demangled: str, function: str):
    assert csv.function_name(visible(demangled)) == function
