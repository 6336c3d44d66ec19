"""``ncukit compare`` and ``ncukit baseline``: formats, files, gates and exit codes."""

from __future__ import annotations

import json
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from ncukit import demo_reports
from ncukit.cli.compare import FORMATS, SUFFIXES
from ncukit.comparison.gates import parse
from ncukit.comparison.options import load_settings
from tests import command as commands
from tests.command import Done
from tests.conftest import CHECKOUT, follows_its_schema
from tests.ncurep import Launch, write_report

SAMPLES = {path.stem: path for path in demo_reports()}
BASE, OTHER = SAMPLES["several-launches"], SAMPLES["copy-dram"]


Cli = Callable[..., Done]


@pytest.fixture
def ncukit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Run the command line in this process, in an empty repository."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return commands.ncukit


def test_the_terminal_is_the_default(ncukit: Cli) -> None:
    done = ncukit("compare", OTHER, OTHER)
    assert (done.returncode, done.stderr) == (0, "")
    assert "No change shown" in done.stdout


@pytest.mark.parametrize("format", [f for f in FORMATS if f != "html"])
def test_every_format_can_be_printed(format: str, ncukit: Cli) -> None:
    done = ncukit("compare", OTHER, OTHER, "--format", format, "--fail-on", "dram_bytes > +5%")
    assert (done.returncode, done.stderr) == (0, "")
    if format == "json":
        assert json.loads(done.stdout)["schema"] == "ncukit.comparison/1"
    if format == "junit":
        assert ET.fromstring(done.stdout).tag == "testsuites"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_can_be_written_by_its_ending(suffix: str, ncukit: Cli) -> None:
    done = ncukit("compare", OTHER, OTHER, "-o", f"out{suffix}")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"out{suffix}\n", "")
    assert Path(f"out{suffix}").stat().st_size > 100


def test_several_files_at_once_and_one_more_on_stdout(ncukit: Cli) -> None:
    done = ncukit("compare", OTHER, OTHER, "-o", "a.html", "-o", "a.md", "-o", "a.xml", "--json")
    assert json.loads(done.stdout)["failed"] is False
    assert done.stderr == "a.html\na.md\na.xml\n"
    assert {path.name for path in Path().glob("a.*")} == {"a.html", "a.md", "a.xml"}


def test_a_page_has_a_default_name(ncukit: Cli) -> None:
    assert ncukit("compare", OTHER, OTHER, "--format", "html").stdout == "compare.html\n"


def test_a_format_names_what_an_ending_does_not(ncukit: Cli) -> None:
    done = ncukit("compare", OTHER, OTHER, "--format", "markdown", "-o", "summary")
    assert (done.returncode, done.stdout) == (0, "summary\n")
    assert Path("summary").read_text(encoding="utf-8").startswith("### ncukit")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("{one} missing.ncu-rep", 4, "there is no such file, and no baseline"),
        ("{one} {one} --format xml", 2, "--format xml is not known"),
        ("{one} {one} -o out.pdf", 2, "its ending says no format"),
        ("{one} {one} --fail-on dram_byte>0", 2, "there is no metric 'dram_byte'"),
        ("{one} {one} --match nothing", 2, "--match nothing says no pair"),
        ("{one} {one} --match zzz=copy", 2, "the base has no launch 'zzz'"),
        ("{one} {one} --kernel nothing", 4, "holds no launch that was asked for"),
        ("{one} {one} --plotlyjs cloud", 2, "--plotlyjs cloud is not known"),
        ("{one} {one} --config missing.toml", 2, "missing.toml cannot be read"),
    ],
)
def test_what_makes_no_sense_is_said_in_two_lines(
    arguments: str, code: int, message: str, ncukit: Cli
) -> None:
    done = ncukit("compare", *arguments.format(one=OTHER).split())
    assert done.returncode == code
    lines = done.stderr.splitlines()
    assert message in lines[0]
    assert [line.split(":")[0] for line in lines] == ["error", "hint"]
    assert done.stdout == ""


def test_the_nearest_metrics_are_named(ncukit: Cli) -> None:
    done = ncukit("compare", OTHER, OTHER, "--fail-on", "dram_byte > +5%")
    assert "nearest: dram_bytes" in done.stderr


def test_an_existing_file_is_kept_and_nothing_is_read(ncukit: Cli) -> None:
    Path("a.html").touch()
    done = ncukit("compare", OTHER, OTHER, "-o", "a.html")
    assert (done.returncode, Path("a.html").stat().st_size) == (2, 0)
    assert ncukit("compare", OTHER, OTHER, "-o", "a.html", "--force").returncode == 0


# Gates


def test_a_gate_that_holds_ends_with_ten(ncukit: Cli) -> None:
    done = ncukit("compare", OTHER, OTHER, "--fail-on", "registers_per_thread > 1")
    assert done.returncode == 10
    assert done.stderr.startswith("error: a gate failed: registers_per_thread > 1: ")
    assert "tripped" in done.stdout


def test_a_gate_on_what_is_unknown_trips_unless_it_is_allowed(ncukit: Cli) -> None:
    arguments = ("compare", OTHER, OTHER, "--fail-on", "c2c_receive_bytes > +5%")
    done = ncukit(*arguments)
    assert done.returncode == 10
    assert "cannot be decided: both: " in done.stderr
    assert ncukit(*arguments, "--allow-unknown").returncode == 0


def test_a_comparison_of_nothing_is_no_success(ncukit: Cli, tmp_path: Path) -> None:
    metrics = {"gpu__time_duration.sum": 1000.0}
    sides = []
    for name in ("add", "copy"):  # two kernels each: one alone would pair with the other side's only one
        file = write_report(
            tmp_path / f"{name}.ncu-rep", [Launch(f"{name}{n}(int)", metrics=metrics) for n in "12"]
        )
        sides.append(file)
    done = ncukit("compare", *sides, "-o", "a.html")
    assert (done.returncode, Path("a.html").exists()) == (1, True)
    assert done.stderr.startswith("error: nothing was compared of copy.ncu-rep against add.ncu-rep: ")
    assert ncukit("compare", sides[0], sides[0], sides[1]).returncode == 1
    assert json.loads(ncukit("compare", *sides, "--json").stdout)["failed"] is False
    assert ncukit("compare", *sides, "--match", "order").returncode == 0
    gate = ("--fail-on", "kernel_duration > +5%")
    assert ncukit("compare", *sides, *gate).returncode == 10
    assert ncukit("compare", *sides, *gate, "--allow-unknown").returncode == 0


def test_a_failed_gate_still_writes_everything(ncukit: Cli) -> None:
    done = ncukit("compare", OTHER, OTHER, "--fail-on", "sm_count > 1", "-o", "a.html", "-o", "a.xml")
    assert done.returncode == 10
    assert (Path("a.html").exists(), Path("a.xml").exists()) == (True, True)


def test_gates_of_the_project_count_as_well(ncukit: Cli) -> None:
    Path("ncukit.toml").write_text("[compare]\nfail_on = ['sm_count > 1']\n", encoding="utf-8")
    assert ncukit("compare", OTHER, OTHER).returncode == 10
    Path("other.toml").write_text("[compare]\n", encoding="utf-8")
    assert ncukit("compare", OTHER, OTHER, "--config", "other.toml").returncode == 0


def test_the_command_line_overrides_what_the_project_allows(ncukit: Cli) -> None:
    text = "[compare]\nallow_unknown = true\nfail_on = ['c2c_receive_bytes > +1%']\n"
    Path("ncukit.toml").write_text(text, encoding="utf-8")
    assert ncukit("compare", OTHER, OTHER).returncode == 0
    assert ncukit("compare", OTHER, OTHER, "--no-allow-unknown").returncode == 10


def test_in_json_mode_an_error_is_json(ncukit: Cli) -> None:
    done = ncukit("compare", OTHER, "missing.ncu-rep", "--json")
    assert json.loads(done.stdout)["error"]["code"] == "report-not-found"


def test_several_others_each_have_their_pairs(ncukit: Cli) -> None:
    done = ncukit("compare", BASE, OTHER, BASE, "--match", "1=1", "--json")
    data = json.loads(done.stdout)
    assert [other["side"]["label"] for other in data["others"]] == [OTHER.name, BASE.name]
    assert [len(other["pairs"]) for other in data["others"]] == [1, 4]


def test_two_launches_of_one_report_are_compared_alone(ncukit: Cli) -> None:
    """The others would be compared with themselves, and the sum over all pairs mean nothing."""
    (against,) = json.loads(ncukit("compare", BASE, BASE, "--match", "1=4", "--json").stdout)["others"]
    assert [pair["matched"] for pair in against["pairs"]] == ["--match 1=4"]
    assert (against["totals"], against["unmatched"]) == ([], {"base": [], "other": []})
    (whole,) = json.loads(ncukit("compare", BASE, BASE, "--json").stdout)["others"]
    assert len(whole["pairs"]) == 4


def test_two_repeats_of_one_report_can_be_compared_with_each_other(ncukit: Cli, tmp_path: Path) -> None:
    times = (1000.0, 1500.0, 1000.0)
    launches = [
        Launch("gemm(int)", metrics={"gpu__time_duration.sum": time, "smsp__inst_executed.sum": 100.0})
        for time in times
    ]
    report = write_report(tmp_path / "gemm.ncu-rep", launches)
    (against,) = json.loads(ncukit("compare", report, report, "--match", "1=2", "--json").stdout)["others"]
    (pair,) = against["pairs"]
    assert (pair["base"]["launches"], pair["other"]["launches"]) == ([1], [2])
    assert pair["rows"]["kernel_duration"]["change"] == pytest.approx(50)


# Baselines


def test_a_baseline_is_set_listed_shown_and_compared(ncukit: Cli) -> None:
    done = ncukit("baseline", "set", "main", BASE)
    path = Path(".ncukit/baselines/main.json").resolve()
    assert (done.returncode, done.stdout) == (0, f"{path}\n")
    listed = ncukit("baseline", "list")
    assert listed.stdout.startswith(f"main  4 kernels  {BASE.name} (sha256 ")
    assert follows_its_schema(ncukit("baseline", "list", "--json").stdout)["baselines"][0]["name"] == "main"
    shown = ncukit("baseline", "show", "main")
    assert "dram_bytes" in shown.stdout
    assert json.loads(ncukit("baseline", "show", "main", "--json").stdout)["schema"] == "ncukit.baseline/1"
    compared = ncukit("compare", "main", BASE, "--fail-on", "kernel_duration > 1.0x")
    assert (compared.returncode, compared.stderr) == (0, "")
    assert "baseline:main" in compared.stdout


def test_repeats_of_a_baseline_pair_with_those_of_a_report_also_in_order(ncukit: Cli, tmp_path: Path) -> None:
    """A baseline holds them as one kernel: those of the report are one as well, not one and a rest."""
    metrics = {"gpu__time_duration.sum": 1000.0, "dram__bytes.sum": 1e6, "smsp__inst_executed.sum": 100.0}
    report = write_report(
        tmp_path / "gemm.ncu-rep",
        [Launch(f"{name}(int)", metrics=metrics) for name in ("gemm", "gemm", "copy")],
    )
    ncukit("baseline", "set", "main", report)
    arguments = ("compare", "main", report, "--match", "order", "--fail-on", "dram_bytes > +5%")
    done = ncukit(*arguments, "--json")
    (against,) = json.loads(done.stdout)["others"]
    assert done.returncode == 0
    assert [pair["base"]["launches"] for pair in against["pairs"]] == [[1, 2], [3]]
    assert [pair["other"]["launches"] for pair in against["pairs"]] == [[1, 2], [3]]
    assert against["unmatched"] == {"base": [], "other": []}


def test_a_baseline_is_found_from_a_folder_inside_the_repository(
    ncukit: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    ncukit("baseline", "set", "main", OTHER)
    Path("src").mkdir()
    monkeypatch.chdir("src")
    assert ncukit("compare", "main", OTHER).returncode == 0
    assert ncukit("compare", "baseline:main", OTHER).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("baseline set", 2, "a baseline needs a name and a report"),
        ("baseline set main", 2, "a baseline needs a name and a report"),
        ("baseline set ../x {one}", 2, "is no name for a baseline"),
        ("baseline set main missing.ncu-rep", 4, "there is no such file"),
        ("baseline show", 2, "which baseline?"),
        ("baseline show nothing", 4, "there is no baseline 'nothing'"),
        ("baseline drop main", 2, "baseline drop is not known"),
    ],
)
def test_what_a_baseline_is_not(arguments: str, code: int, message: str, ncukit: Cli) -> None:
    done = ncukit(*arguments.format(one=OTHER).split())
    assert done.returncode == code
    assert message in done.stderr


def test_no_baseline_is_said_on_stderr(ncukit: Cli) -> None:
    done = ncukit("baseline", "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no baseline in" in done.stderr


def test_a_baseline_of_one_kernel_holds_no_other(ncukit: Cli) -> None:
    ncukit("baseline", "set", "copy", BASE, "--kernel", "copy", "--folder", "perf")
    data = json.loads(Path("perf/copy.json").read_text(encoding="utf-8"))
    assert [kernel["name"] for kernel in data["kernels"]] == ["copy"]


# What the documents say


def test_the_workflow_in_the_documents_runs(ncukit: Cli) -> None:
    """Its command, on a baseline and a report of these names, writes what its other steps use."""
    jobs = yaml.safe_load((CHECKOUT / "docs" / "compare-workflow.yml").read_text(encoding="utf-8"))["jobs"]
    steps = jobs["compare"]["steps"]
    (command,) = [step["run"] for step in steps if "ncukit compare" in step.get("run", "")]
    ncukit("baseline", "set", "main", OTHER)
    Path("new.ncu-rep").write_bytes(OTHER.read_bytes())
    done = ncukit(*shlex.split(command)[1:])
    assert (done.returncode, done.stdout) == (0, "::notice title=ncukit compare::0 gates of 2 failed\n")
    for name in ("compare.html", "compare.md", "gates.xml"):
        assert Path(name).exists()
        assert any(name in str(step) for step in steps)


def test_the_settings_in_the_documents_are_settings(tmp_path: Path) -> None:
    text = (CHECKOUT / "docs" / "compare.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    (tmp_path / "ncukit.toml").write_text(block, encoding="utf-8")
    assert [gate.kernel for gate in load_settings(tmp_path).gates] == [None, None, "gemm*"]


def test_the_gates_in_the_documents_are_gates() -> None:
    text = (CHECKOUT / "docs" / "compare.md").read_text(encoding="utf-8")
    gates = re.findall(r"`([a-z_]+ [<>]=? [^`]+)`", text)
    assert len(gates) >= 6
    for gate in gates:
        parse(gate)
