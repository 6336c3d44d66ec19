"""The net under the outputs: it shows what differs between two revisions, and never nothing by mistake."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.outputs import __main__ as net
from scripts.outputs import run
from scripts.outputs.cases import ALL, CHOSEN, NAMED, Case, cases, kind, subjects
from scripts.outputs.compare import differences
from scripts.outputs.run import Output
from tests.conftest import CHECKOUT, no_shared, shared_folder

PROGRAM = """\
import sys
import time
from pathlib import Path

def main():
    words = sys.argv[1:]
    print("version 1" if words == ["--version"] else "the kernel waits for memory")
    if "-o" in words:
        page = time.strftime("<!doctype html><p>%Y</p>", time.gmtime())
        Path(words[words.index("-o") + 1]).write_text(page)
"""

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not on PATH")
Shown = Callable[..., tuple[int, str, str]]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a program of a few lines in place of ncukit, one sample, and one commit."""
    folder = tmp_path / "checkout"
    for name, text in (
        ("ncukit/__init__.py", ""),
        ("ncukit/__main__.py", PROGRAM),
        ("reports/samples/gemm-tensor.ncu-rep", "a report"),
        (".gitignore", "build/\n__pycache__/\n"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git = ("git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=n@example.org")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], check=True)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("NCUKIT_SHARED", str(tmp_path / "none"))
    monkeypatch.setattr(net, "CHECKOUT", folder)
    return folder


@pytest.fixture
def shown(checkout: Path, capfd: pytest.CaptureFixture[str]) -> Shown:
    """Run the net in `checkout`, on few cases; return its exit code and what it printed."""

    def compare(
        *words: str, only: str = "^samples.*ncukit (show -v|report) .*80 utf-8"
    ) -> tuple[int, str, str]:
        code = net.main([*(words or ("HEAD",)), "--only", only])
        return code, *capfd.readouterr()

    return compare


def change(checkout: Path, old: str, new: str) -> None:
    path = checkout / "ncukit" / "__main__.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_revision_and_its_own_tree_show_nothing(shown: Shown) -> None:
    code, out, _ = shown()
    assert code == 0
    assert "0 differ, in 0 ways" in out


def test_a_changed_word_is_shown_once_with_its_command_lines(checkout: Path, shown: Shown) -> None:
    change(checkout, "memory", "latency")
    code, out, _ = shown()
    assert code == 1
    assert out.count("-the kernel waits for memory\n+the kernel waits for latency") == 1
    assert "ncukit show -v gemm-tensor.ncu-rep [80 utf-8]" in out
    assert "ncukit report gemm-tensor.ncu-rep -o page.html [80 utf-8]" in out


def test_the_page_stderr_and_the_exit_code_are_compared(checkout: Path, shown: Shown) -> None:
    change(checkout, "<p>%Y", "<p>year %Y")
    with (checkout / "ncukit" / "__main__.py").open("a") as program:
        program.write("    if len(words) > 1:\n        print('oh', file=sys.stderr)\n        sys.exit(3)\n")
    code, out, _ = shown(only="^samples.*ncukit report .*80 utf-8")
    assert code == 1
    assert "== exit code, 1 times" in out
    assert "-0\n+3" in out
    assert "== stderr, 1 times" in out
    assert "-<p>2026</p>\n+<p>year 2026</p>" in out


def test_a_new_file_of_the_working_tree_runs_too(checkout: Path, shown: Shown) -> None:
    (checkout / "ncukit" / "place.py").write_text("WORD = 'latency'\n")
    change(checkout, "import time\n", "import time\nfrom ncukit.place import WORD\n")
    change(checkout, '"the kernel waits for memory"', '"the kernel waits for " + WORD')
    assert "+the kernel waits for latency" in shown()[1]


def test_two_revisions_are_compared_whatever_lies_in_the_working_tree(checkout: Path, shown: Shown) -> None:
    change(checkout, "memory", "latency")
    assert shown("HEAD", "HEAD")[0] == 0


def test_what_a_revision_left_is_run_once(
    checkout: Path, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown()
    ran: list[Case] = []
    chunk = run._chunk
    monkeypatch.setattr(run, "_chunk", lambda few, where: ran.extend(few) or chunk(few, where))
    assert shown()[0] == 0
    assert len(ran) == 2  # those of the working tree


def test_an_input_that_changed_is_run_again(checkout: Path, shown: Shown) -> None:
    change(checkout, '"the kernel waits for memory"', "Path(words[-1]).read_text()")
    git = ("git", "-C", str(checkout), "-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run([*git, "commit", "-qam", "print the report"], check=True)
    shown(only="^samples.*ncukit show -v .*80 utf-8")
    (checkout / "reports" / "samples" / "gemm-tensor.ncu-rep").write_text("another")
    change(checkout, "Path(words[-1])", "'-' + Path(words[-1])")
    assert "-another\n+-another" in shown(only="^samples.*ncukit show -v .*80 utf-8")[1]


def test_a_command_that_raises_ends_as_it_does_for_a_user(checkout: Path, shown: Shown) -> None:
    change(checkout, '"the kernel waits for memory"', "1 // 0")
    code, out, _ = shown()
    assert code == 1
    assert "+ZeroDivisionError" in out
    assert "2 with a traceback" in out


@pytest.mark.parametrize(
    "fault", ["raise ImportError('no reader')\n", "def main():\n    raise SystemExit(1)\n", "main = print\n"]
)
def test_a_program_that_works_on_neither_side_is_no_sameness(
    checkout: Path, shown: Shown, fault: str
) -> None:
    (checkout / "ncukit" / "__main__.py").write_text(fault)
    git = ("git", "-C", str(checkout), "-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run([*git, "commit", "-qam", "broken"], check=True)
    code, out, err = shown()
    assert code == 2
    assert "ncukit --version does not work here" in err
    assert not out


def test_a_worker_that_ends_without_answers_is_an_error(checkout: Path, shown: Shown) -> None:
    (checkout / "ncukit" / "__init__.py").write_text("import os\nos._exit(0)\n")
    code, _, err = shown()
    assert code == 2
    assert "a worker gave no answer to samples/gemm-tensor.ncu-rep" in err


def test_the_ncukit_that_is_installed_does_not_run_instead(checkout: Path, shown: Shown) -> None:
    shutil.rmtree(checkout / "ncukit")
    code, _, err = shown()
    assert code == 2
    assert "should run, but" in err or "No module named 'ncukit'" in err


@pytest.mark.parametrize("words", [("HEAD", "--only", "no such case"), ("no-such-revision",), ()])
def test_nothing_to_compare_is_an_error(
    checkout: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert net.main(words) == 2
    assert "error: " in capfd.readouterr().err


def test_the_same_cases_must_have_run_on_both_sides() -> None:
    with pytest.raises(run.NetError):
        differences({Case("a", ("show",)): Output(0, {})}, {})


@pytest.mark.parametrize(
    ("part", "before", "after", "hunk"),
    [
        ("stdout", b'{"a": 1, "b": 2}\n', b'{"a": 1, "b": 3}\n', ('-"b": 2', '+"b": 3')),
        ("stdout", b'{"a": 1}\n', b'{"a":1}\n', ('-{"a": 1}', '+{"a":1}')),
        ("file page.html", b"<p>a</p><p>b</p>", b"<p>a</p><p>c</p>", ("-<p>b</p>", "+<p>c</p>")),
        ("file t.json.gz", gzip.compress(b"[1]", mtime=0), gzip.compress(b"[2]", mtime=0), ("-1", "+2")),
        ("stdout", b"a\n", b"a", ("-(2 bytes)", "+(1 bytes) with the same content")),
    ],
)
def test_a_difference_is_shown_where_it_is(
    part: str, before: bytes, after: bytes, hunk: tuple[str, ...]
) -> None:
    case = Case("a", ("show",))
    (group,) = differences({case: Output(0, {part: before})}, {case: Output(0, {part: after})})
    assert group.hunk == hunk
    assert hunk[1] in group.text()


def test_a_long_line_is_cut_to_where_it_differs() -> None:
    before, after = (f"{'a' * 900}{end}{'b' * 900}".encode() for end in ("old", "new"))
    case = Case("a", ("show",))
    (group,) = differences({case: Output(0, {"stdout": before})}, {case: Output(0, {"stdout": after})})
    assert "aoldb" in group.text()
    assert "anewb" in group.text()
    assert len(group.text()) < 700


@pytest.mark.skipif(not (shared_folder() / "reports").is_dir(), reason=no_shared())
def test_every_kind_of_file_is_among_the_named_ones() -> None:
    found = subjects(CHECKOUT / "reports" / "samples", shared_folder())
    assert found.keys() >= CHOSEN
    assert {kind(found[name]) for name in CHOSEN} == set(NAMED)


def test_a_file_that_one_side_writes_is_a_difference() -> None:
    case = Case("a", ("report",))
    (group,) = differences({case: Output(0, {})}, {case: Output(0, {"file page.html": b"page"})})
    assert group.hunk == ("-(nothing written)", "+(4 bytes written)")


def test_every_case_has_a_title_of_its_own() -> None:
    found = list(cases(CHECKOUT / "reports" / "samples", shared_folder()))
    assert len({case.title for case in found}) == len(found)
    assert {case.terminal for case in found} == set(ALL)


def test_every_sample_runs(tmp_path: Path) -> None:
    found = subjects(CHECKOUT / "reports" / "samples", tmp_path)
    samples = {path.name for path in (CHECKOUT / "reports" / "samples").iterdir()} - {"README.md"}
    assert {name.removeprefix("samples/") for name in found} == samples


def test_the_real_program_prints_in_the_net_what_it_prints_to_a_user(tmp_path: Path) -> None:
    from tests.command import ncukit

    where = run.Place(tmp_path)
    for name in ("inputs", "home", "tmp"):
        (tmp_path / name).mkdir()
    for name in ("ncukit", "templates", "reports/samples"):
        shutil.copytree(CHECKOUT / name, where.tree / name)
    case = Case("no file", ("catalog", "--json", "dram_bytes"))
    out = run.outputs([case], where, jobs=1)[case]
    assert (out.code, out.parts["stderr"]) == (0, b"")
    assert json.loads(out.parts["stdout"]) == ncukit("catalog", "--json", "dram_bytes").json
