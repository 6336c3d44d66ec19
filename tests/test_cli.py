"""The command line: results on stdout, words on stderr, an exit code for every kind of end."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from ncukit import __version__, cli, demo_reports, demo_traces
from ncukit.errors import NcukitError, ToolError
from ncukit.metrics import load
from tests import command as commands
from tests.command import Done

COMMANDS = sorted(typer.main.get_command(cli.application()).commands)  # type: ignore[attr-defined]
SAMPLES = {path.stem: path for path in demo_reports()}
ONE, MANY = SAMPLES["copy-dram"], SAMPLES["several-launches"]
CSV = '"ID","Kernel Name","sm__cycles_active.avg"\n"","","cycle"\n"0","k","123.4"\n'


Cli = Callable[..., Done]


@pytest.fixture
def ncukit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Run the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return commands.ncukit


@pytest.fixture
def bad(tmp_path: Path) -> Callable[[str], Path]:
    """Return a file that cannot be used, by what is wrong with it."""
    contents = {
        "empty": b"",
        "text": b"hello, this is no report\n" * 40,
        "gzip": b"\x1f\x8b" + bytes(60),
        "half": ONE.read_bytes()[: ONE.stat().st_size // 2],
    }

    def make(wrong: str) -> Path:
        path = tmp_path / f"{wrong}.ncu-rep"
        if wrong in contents:
            path.write_bytes(contents[wrong])
        return path

    return make


# Help


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, ncukit: Cli) -> None:
    done = ncukit(command, "--help")
    assert done.returncode == 0
    assert any(line.strip().startswith(f"ncukit {command}") for line in done.stdout.splitlines())
    assert done == ncukit(command, "-h")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_and_argument_is_described(command: str) -> None:
    parameters = typer.main.get_command(cli.application()).commands[command].params  # type: ignore[attr-defined]
    assert [p.name for p in parameters if not getattr(p, "help", None)] == []


def test_without_arguments_the_help_is_shown(ncukit: Cli) -> None:
    done = ncukit()
    shown = done.stdout + done.stderr
    assert all(f"\n  {command} " in shown for command in COMMANDS)


def test_the_version_is_printed(ncukit: Cli) -> None:
    assert ncukit("--version") == Done(0, f"ncukit {__version__}\n", "")


# Exit codes and errors


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("catalog dram_bytes", 0),
        ("schema", 0),
        ("frobnicate", 2),
        ("metrics", 2),
        ("metrics --frobnicate {one}", 2),
        ("metrics {one} --format xml", 2),
        ("metrics {one} --format parquet", 2),
        ("metrics {one} --metric no_such_metric", 2),
        ("metrics {one} --launch 2", 2),
        ("metrics {one} --launch 0", 2),
        ("metrics {one} --kernel no_such_kernel", 2),
        ("show {one} --kernel no_such_kernel", 2),
        ("report {one} --plotlyjs cloud", 2),
        ("catalog no_such_metric", 2),
        ("schema no_such_schema", 2),
        ("timeline {one} --nsys /nowhere/nsys", 4),
        ("metrics missing.ncu-rep", 4),
        ("show missing.ncu-rep", 4),
        ("report missing.ncu-rep", 4),
        ("timeline missing.sqlite", 4),
    ],
)
def test_exit_codes(arguments: str, code: int, ncukit: Cli) -> None:
    done = ncukit(*arguments.format(one=ONE).split())
    assert done.returncode == code
    assert bool(done.stderr) == bool(code)
    assert bool(done.stdout) != bool(code)


ERRORS = {"a tool fails": (ToolError("ncu", "do"), 3), "anything else": (NcukitError("what", "do"), 1)}


@pytest.mark.parametrize("kind", ERRORS)
def test_exit_codes_of_errors_that_this_machine_does_not_make(
    kind: str, ncukit: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, code = ERRORS[kind]

    def fail() -> None:
        raise error

    monkeypatch.setattr("ncukit.api.demo_reports", fail)
    assert ncukit("demo") == Done(code, "", f"error: {error.message}\nhint: do\n")


def test_an_error_inside_ncukit_is_two_lines_as_well(ncukit: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncukit.api.demo_reports", lambda: 1 / 0)
    done = ncukit("demo")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: internal error: ZeroDivisionError: division by zero",
        "hint: run again with --debug and report it",
    ]


def test_an_interruption_ends_with_130(ncukit: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ncukit.api.demo_reports", interrupt)
    assert ncukit("demo") == Done(130, "", "error: interrupted\n")


@pytest.mark.parametrize("wrong", ["missing", "empty", "text", "gzip", "half"])
@pytest.mark.parametrize("command", ["metrics", "show", "report"])
def test_an_error_is_two_lines_on_stderr(
    command: str, wrong: str, ncukit: Cli, bad: Callable[[str], Path]
) -> None:
    file = bad(wrong)
    done = ncukit(command, file)
    assert done.returncode == 4
    assert done.stdout == ""
    error, hint = done.stderr.splitlines()
    assert error.startswith("error: ")
    assert str(file) in error
    assert hint.startswith("hint: ")


CODES = {
    "missing": "report-not-found",
    "empty": "report-empty",
    "text": "report-format",
    "gzip": "report-format",
    "half": "report-truncated",
}


@pytest.mark.parametrize("command", ["metrics", "show"])
@pytest.mark.parametrize("wrong", CODES)
def test_in_json_mode_errors_are_json_with_a_stable_code(
    wrong: str, command: str, ncukit: Cli, bad: Callable[[str], Path]
) -> None:
    file = bad(wrong)
    done = ncukit(command, file, "--json")
    (document,) = done.documents
    assert done.returncode == 4
    assert document["file"] == str(file)
    error = document["error"]
    assert isinstance(error, dict)
    assert error["code"] == CODES[wrong]
    assert error["exit_code"] == 4
    assert f"error: {error['message']}\nhint: {error['hint']}\n" == done.stderr


def test_a_wrong_use_is_json_too(ncukit: Cli) -> None:
    done = ncukit("metrics", ONE, "--json", "--metric", "dram_byte")
    (document,) = done.documents
    assert done.returncode == 2
    assert document["error"] == {
        "code": "usage",
        "message": "there is no metric 'dram_byte'",
        "hint": "nearest: dram_bytes, dram_read_bytes, dram_write_bytes; `ncukit catalog` lists all",
        "exit_code": 2,
    }


WRONG_USES = {
    "an unknown option": (("show", "--bogus"), "No such option: --bogus", "ncukit show --help"),
    "an unknown command": (("shwo",), "Did you mean 'show'?", "ncukit --help"),
    "an unknown command of a group": (("dataset", "nothing"), "No such command", "ncukit dataset --help"),
    "nothing to work on": (("metrics",), "Missing argument 'FILE...'", "ncukit metrics --help"),
    "a word for a number": (("show", "--launch", "x", "a"), "'x' is not a valid int", "ncukit show --help"),
}


@pytest.mark.parametrize("kind", WRONG_USES)
def test_a_command_that_cannot_be_understood_is_two_lines_and_json(kind: str, ncukit: Cli) -> None:
    words, message, hint = WRONG_USES[kind]
    done = ncukit(*words)
    assert (done.returncode, done.stdout) == (2, "")
    first, second = done.stderr.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert second == f"hint: {hint} says what there is"
    error = ncukit(*words, "--json").documents[0]["error"]
    assert isinstance(error, dict)
    assert (error["code"], error["exit_code"]) == ("usage", 2)


@pytest.mark.parametrize("words", [(), ("dataset",)])
def test_a_command_alone_shows_its_help(words: tuple[str, ...], ncukit: Cli) -> None:
    done = ncukit(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: ncukit")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [("show",), ("show", "--json"), ("metrics", "--format", "csv")])
def test_a_full_disk_behind_stdout_is_said(words: tuple[str, ...], without_code: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ncukit", *words, without_code / ONE.name],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "error: cannot read or write: No space left on device",
        "hint: free some space there, or choose another place",
    ]


@pytest.mark.parametrize(
    "words", [("show", ONE), ("metrics", ONE, "--json"), ("show", "--help"), ("catalog",)]
)
def test_a_reader_that_goes_away_is_no_error_of_ncukit(
    words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(io.StringIO):
        """Stdout in front of `head -1`, when head has ended."""

        def write(self, text: str) -> int:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    dropped: list[bool] = []
    monkeypatch.setattr(cli.output, "drop_stdout", lambda: dropped.append(True))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ncukit", *map(str, words)])
    monkeypatch.setattr(sys, "stdout", Gone())
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert (end.value.code, said.getvalue()) == (141, "")
    assert dropped


def test_what_an_encoding_lacks_is_escaped(tmp_path: Path, without_code: Path) -> None:
    place = tmp_path / "größe.html"
    done = subprocess.run(
        [sys.executable, "-m", "ncukit", "report", without_code / ONE.name, "-o", place],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert place.exists()
    assert done.stdout.decode().strip().endswith(r"gr\xf6\xdfe.html")


def test_debug_adds_the_traceback(ncukit: Cli) -> None:
    for words, code in ((("show", "missing.ncu-rep"), 4), (("show", "--nope"), 2)):
        done, more = ncukit(*words), ncukit(*words, "--debug")
        assert done.returncode == more.returncode == code
        assert more.stderr.startswith("Traceback")
        assert more.stderr.endswith(done.stderr)
        assert len(done.stderr.splitlines()) == 2


# Several files


def test_several_files_are_one_json_object_a_line(ncukit: Cli) -> None:
    done = ncukit("metrics", ONE, MANY, "--json")
    assert done.returncode == 0
    assert [document["file"] for document in done.documents] == [str(ONE), str(MANY)]


def test_a_report_named_twice_has_one_page(ncukit: Cli, tmp_path: Path) -> None:
    done = ncukit("report", ONE, ONE, "-o", f"{tmp_path}/pages/")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)


@pytest.mark.parametrize("command", ["metrics", "show"])
def test_a_bad_file_becomes_an_error_object_and_the_rest_go_on(
    command: str, ncukit: Cli, bad: Callable[[str], Path]
) -> None:
    done = ncukit(command, bad("empty"), ONE, bad("missing"), ONE, "--json")
    assert done.returncode == 4
    assert ["kernels" in document for document in done.documents] == [False, True, False, True]
    assert len(done.stderr.splitlines()) == 4


def test_a_file_that_breaks_in_the_middle_prints_its_error_alone(
    ncukit: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ncukit import api
    from ncukit.errors import ReaderCrashed

    kernels = api.Report.kernels

    def break_after_two(report: api.Report, **options: bool) -> object:
        for number, kernel in enumerate(kernels(report, **options)):
            if number == 2:
                raise ReaderCrashed(report.path, "the reader crashed", "copy it again")
            yield kernel

    monkeypatch.setattr(api.Report, "kernels", break_after_two)
    done = ncukit("metrics", MANY, ONE, "--json")
    assert done.returncode == 4
    assert [set(document) for document in done.documents] == [
        {"schema", "file", "error"},
        {"schema", "file", "kernels"},
    ]


def test_pages_of_several_reports_go_into_a_folder(
    ncukit: Cli, tmp_path: Path, bad: Callable[[str], Path]
) -> None:
    done = ncukit("report", ONE, bad("empty"), MANY, "-o", "pages")
    assert done.returncode == 4
    assert done.stdout == "pages/copy-dram.html\npages/several-launches.html\n"
    assert all((tmp_path / page).stat().st_size > 100_000 for page in done.stdout.split())


def test_csv_of_several_reports_has_one_header(ncukit: Cli) -> None:
    done = ncukit("metrics", "missing.ncu-rep", ONE, MANY, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert done.returncode == 4
    assert len(rows) == (1 + 4) * len(load().metrics)
    assert {row["file"] for row in rows} == {str(ONE), str(MANY)}
    assert done.stdout.count(done.stdout.splitlines()[0]) == 1


# What is chosen


def launches(done: Done) -> list[tuple[object, object]]:
    """Return index and name of every launch of the first document."""
    kernels = done.documents[0]["kernels"]
    assert isinstance(kernels, list)
    return [(kernel["index"], kernel["name"]) for kernel in kernels]


@pytest.mark.parametrize("command", ["metrics", "show"])
def test_launches_are_chosen_by_number_from_1(command: str, ncukit: Cli) -> None:
    every = launches(ncukit(command, MANY, "--json"))
    assert [index for index, _ in every] == list(range(len(every)))
    assert launches(ncukit(command, MANY, "--json", "--launch", 2)) == [every[1]]
    assert launches(ncukit(command, MANY, "--json", "-l", 3, "-l", 1)) == [every[0], every[2]]


def test_kernels_are_chosen_by_a_part_of_their_name_whatever_its_case(ncukit: Cli) -> None:
    name = str(launches(ncukit("metrics", MANY, "--json"))[1][1])
    assert launches(ncukit("metrics", MANY, "--json", "--kernel", name[1:-1].upper())) == [(1, name)]


def test_a_launch_that_does_not_exist_names_those_that_do(ncukit: Cli) -> None:
    done = ncukit("metrics", MANY, "--launch", 9)
    assert done.stderr == "error: there is no launch 9\nhint: the report holds launches 1 to 4\n"


def test_a_kernel_that_does_not_exist_names_those_that_do(ncukit: Cli) -> None:
    done = ncukit("metrics", ONE, "--kernel", "gemm")
    name = launches(ncukit("metrics", ONE, "--json"))[0][1]
    assert str(name) in done.stderr


def test_only_the_chosen_metrics_are_printed(ncukit: Cli) -> None:
    done = ncukit("metrics", ONE, "--json", "-m", "kernel_duration", "-m", "dram_bytes")
    (kernel,) = done.documents[0]["kernels"]  # type: ignore[misc]
    assert list(kernel["metrics"]) == ["kernel_duration", "dram_bytes"]
    table = ncukit("metrics", ONE, "-m", "dram_bytes").stdout
    assert "dram_bytes" in table
    assert "kernel_duration" not in table


def test_native_metrics_on_demand(ncukit: Cli) -> None:
    done = ncukit("metrics", ONE, "--raw", "--json", "--metric", "gpu__time_duration.sum")
    (kernel,) = done.documents[0]["kernels"]  # type: ignore[misc]
    assert list(kernel["metrics"]) == ["gpu__time_duration.sum"]
    assert "gpu__time_duration.sum" in ncukit("metrics", ONE, "--raw").stdout
    assert launches(ncukit("metrics", MANY, "--raw", "--json", "--launch", 2))[0][0] == 1


@pytest.mark.parametrize(("id", "near"), [("dram_byte", "dram_bytes"), ("kernel_durtion", "kernel_duration")])
def test_an_unknown_metric_names_the_nearest(id: str, near: str, ncukit: Cli) -> None:
    for command in (["metrics", ONE, "--metric", id], ["catalog", id]):
        done = ncukit(*command)
        assert done.returncode == 2
        assert f"there is no metric '{id}'" in done.stderr
        assert near in done.stderr.splitlines()[1]


# Where it comes from and where it goes


def test_a_dash_reads_the_csv_of_ncu_from_a_pipe(ncukit: Cli) -> None:
    done = ncukit("metrics", "-", "--json", "-m", "sm_active_cycles", stdin=CSV)
    (kernel,) = done.documents[0]["kernels"]  # type: ignore[misc]
    assert done.returncode == 0
    assert kernel["name"] == "k"
    assert kernel["metrics"]["sm_active_cycles"]["value"] == 123.4


def test_a_pipe_without_csv_is_an_input_that_cannot_be_used(ncukit: Cli) -> None:
    done = ncukit("metrics", "-", stdin="no table\n")
    assert done.returncode == 4
    assert "<stdin>" in done.stderr


def test_warnings_never_mix_with_results(ncukit: Cli, tmp_path: Path) -> None:
    path = tmp_path / "longer.ncu-rep"
    path.write_bytes(ONE.read_bytes() + b"garbage after the report" * 10)
    done = ncukit("metrics", path, "--json")
    assert done.returncode == 0
    assert len(done.documents) == 1
    assert done.stderr.startswith("warning: ")


def test_a_page_is_named_after_its_report(ncukit: Cli, tmp_path: Path) -> None:
    assert ncukit("report", ONE).stdout == "copy-dram.html\n"
    assert (tmp_path / "copy-dram.html").read_text(encoding="utf-8").startswith("<!")


def test_a_page_goes_where_it_is_told(ncukit: Cli, tmp_path: Path) -> None:
    assert ncukit("report", ONE, "-o", "deep/page.html").stdout == "deep/page.html\n"
    assert ncukit("report", ONE, "-o", "folder/").stdout == "folder/copy-dram.html\n"
    assert ncukit("report", ONE, "--output", tmp_path).stdout == f"{tmp_path}/copy-dram.html\n"


def test_nothing_is_overwritten_without_force(ncukit: Cli, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("mine")
    done = ncukit("report", ONE, "-o", page)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert page.read_text() == "mine"
    assert ncukit("report", ONE, "-o", page, "--force").returncode == 0
    assert page.read_text(encoding="utf-8") != "mine"


def test_the_library_beside_many_pages_is_written_once(ncukit: Cli, tmp_path: Path) -> None:
    assert ncukit("report", ONE, MANY, "-o", "pages/", "--plotlyjs", "directory").returncode == 0
    (library,) = (tmp_path / "pages").glob("*.js")
    assert "plotly" in library.name


def test_parquet_is_written_to_a_file(ncukit: Cli, tmp_path: Path) -> None:
    import pandas

    assert ncukit("metrics", ONE, MANY, "--format", "parquet", "-o", "all.parquet").stdout == "all.parquet\n"
    frame = pandas.read_parquet(tmp_path / "all.parquet")
    assert set(frame["file"]) == {str(ONE), str(MANY)}


def test_the_demo_shows_one_sample_and_writes_a_page_of_each(ncukit: Cli, tmp_path: Path) -> None:
    done = ncukit("demo")
    assert done.returncode == 0
    assert "shared" in done.stdout
    assert "synthetic" in done.stderr
    pages = {path.stem for path in (tmp_path / "reports" / "demo").glob("*.html")}
    assert pages == set(SAMPLES)


# Whole processes


def start(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "ncukit", *map(str, arguments)]
    return subprocess.Popen(argv, stderr=subprocess.PIPE, **options)  # type: ignore[call-overload,no-any-return]


def test_the_module_is_the_command() -> None:
    script = Path(sys.executable).with_name("ncukit")
    outputs = [
        subprocess.run([*argv, "catalog", "dram_bytes"], capture_output=True, check=True).stdout
        for argv in ([sys.executable, "-m", "ncukit"], [str(script)])
    ]
    assert outputs[0] == outputs[1] != b""


@pytest.mark.parametrize("form", [["--json"], ["--format", "csv"], ["--raw", "--format", "csv"]])
def test_a_reader_that_goes_away_ends_us_quietly(form: list[str]) -> None:
    with start("metrics", *[MANY] * 3, *form, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode not in (0, 2, 3, 4)


@pytest.mark.parametrize(
    ("variables", "colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colour_on_a_terminal_only_and_not_when_it_is_unwanted(
    variables: dict[str, str], colored: bool, without_code: Path
) -> None:
    environment = (
        {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm-256color"} | variables
    )
    ours, theirs = pty.openpty()
    seen = b""
    with start("show", without_code / ONE.name, stdout=theirs, env=environment) as process:
        os.close(theirs)
        try:
            while piece := os.read(ours, 1 << 16):
                seen += piece
        except OSError:  # Linux says so when the other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0
    assert b"dram" in seen
    assert (b"\x1b[" in seen) == colored


def test_no_colour_through_a_pipe(without_code: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm-256color"}
    with start("show", without_code / ONE.name, stdout=subprocess.PIPE, env=environment) as process:
        out, _ = process.communicate()
    assert b"\x1b" not in out


def test_a_terminal_that_knows_only_ascii_gets_ascii() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    with start("show", ONE, stdout=subprocess.PIPE, env=environment) as process:
        out, err = process.communicate()
    assert process.returncode == 0, err.decode()
    assert out.isascii()


def test_printed_commands_name_files_by_where_they_lie(ncukit: Cli, tmp_path: Path) -> None:
    folder, away = tmp_path / "runs of today", ONE.parent
    folder.mkdir()
    (trace,) = demo_traces()
    for path in (ONE, MANY, trace):
        (folder / path.name).write_bytes(path.read_bytes())
    one, many, traced = (Path(folder.name, path.name) for path in (ONE, MANY, trace))
    said = {
        "show": ncukit("show", one, "--verbose"),
        "show of several": ncukit("show", tmp_path / many, "--verbose"),
        "show beside a trace": ncukit("show", many, "--timeline", traced),
        "show of another place": ncukit("show", ONE),
        "advise": ncukit("advise", many),
        "advise beside a trace": ncukit("advise", many, "--timeline", traced),
        "timeline": ncukit("timeline", traced),
    }
    to_be_made = {"after.ncu-rep", "run.nsys-rep", "after.nsys-rep"}
    for what, done in said.items():
        assert done.returncode == 0, done.stderr
        commands = re.findall(r"^ *(?:run +)?(ncukit .*)", done.stdout.replace("\\\n", " "), re.MULTILINE)
        named = [
            word
            for command in commands
            for word in shlex.split(re.split(r"  +(?=[a-z])", command)[0])
            if word.endswith((".ncu-rep", ".sqlite")) and word not in to_be_made
        ]
        assert named or what in ("advise beside a trace", "timeline"), what
        assert [word for word in named if not Path(word).is_file()] == [], what
        place = str(away) if what == "show of another place" else folder.name
        assert all(str(Path(word).parent) == place for word in named), what


def test_a_folder_in_place_of_a_report_names_the_reports_in_it(ncukit: Cli, tmp_path: Path) -> None:
    (tmp_path / "my runs").mkdir()
    (tmp_path / "my runs" / "gemm.ncu-rep").touch()
    done = ncukit("show", "my runs")
    assert done.returncode == 4
    assert "hint: Name a report in it: 'my runs/gemm.ncu-rep'" in done.stderr


TORCH = b'{\n  "schemaVersion": 1,\n  "deviceProperties": [],\n  "traceEvents": []\n}'
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        ("show x/t.json.gz", "x/t.json.gz is a packed trace of torch's profiler", "ncukit ops x/t.json.gz;"),
        ("show x/t.json", "x/t.json is a trace of torch's profiler", "ncukit ops x/t.json;"),
        ("show x/other.json", "JSON text", ""),
        ("ops x/k.ncu-rep", "but a report of Nsight Compute (ncu)", "ncukit show x/k.ncu-rep"),
        ("ops x/t.nsys-rep", "but a report of Nsight Systems", "ncukit timeline x/t.nsys-rep;"),
        ("ops x/text", "but text of no known format", "profile.export_chrome_trace()"),
        ("show x/lfs.ncu-rep", "a git LFS pointer", "git -C x lfs pull --include=lfs.ncu-rep"),
        ("timeline x/lfs.nsys-rep", "a git LFS pointer", "git -C x lfs pull --include=lfs.nsys-rep"),
    ],
)
def test_a_file_for_another_command_is_sent_there(
    words: str, said: str, hint: str, ncukit: Cli, tmp_path: Path
) -> None:
    contents = {
        "t.json": TORCH,
        "other.json": b'{"schemaVersion": 2, "mediaType": "application/json", "layers": []}',
        "t.json.gz": gzip.compress(TORCH),
        "k.ncu-rep": ONE.read_bytes(),
        "t.nsys-rep": b"NVIDIA Tegra Profiler Report" + bytes(80),
        "text": b"Dear all,\nplease find the report attached.\n",
        "lfs.ncu-rep": POINTER,
        "lfs.nsys-rep": POINTER,
    }
    (tmp_path / "x").mkdir()
    name = words.split("/")[1]
    (tmp_path / "x" / name).write_bytes(contents[name])
    done = ncukit(*words.split())
    assert (done.returncode, done.stdout) == (4, "")
    error, advice = done.stderr.splitlines()
    assert said in error
    assert hint in advice


@pytest.mark.parametrize(
    "command", ["show", "report", "metrics", "timeline", "ops", "advise", "index", "dataset build -o d"]
)
def test_an_address_is_no_file(command: str, ncukit: Cli) -> None:
    done = ncukit(*command.split(), "https://a.example/x.ncu-rep")
    assert done.returncode == 4
    assert done.stderr.splitlines() == [
        "error: https://a.example/x.ncu-rep is an address, not a file",
        "hint: Download it first, and give the file.",
    ]


def test_an_address_of_a_local_file_is_a_path(ncukit: Cli) -> None:
    done = ncukit("show", "file:///tmp/nowhere/x.ncu-rep")
    assert done.stderr.splitlines() == [
        "error: file:///tmp/nowhere/x.ncu-rep is an address, not a file",
        "hint: Give its path: /tmp/nowhere/x.ncu-rep",
    ]


def test_several_reports_do_not_become_one_page(ncukit: Cli, tmp_path: Path) -> None:
    done = ncukit("report", ONE, MANY, "-o", "one.html")
    assert done.returncode == 2
    assert done.stderr.startswith("error: 2 reports make 2 pages, and one.html is one\n")
    assert not (tmp_path / "one.html").exists()
