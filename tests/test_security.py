"""What docs/security.md promises: names are data everywhere, files have bounds, links do not lead out."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
import os
import re
import stat
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ncukit.errors import ReportError, ReportFormatError
from tests import hostile
from tests.conftest import CHECKOUT
from tests.hostile import NAME
from tests.mutations import originals
from tests.mutations.run import Ended, run
from tests.mutations.warm import warm
from tests.ncurep import Device, Launch, write_report

CSP = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
"""Controls, and marks that reorder or hide what follows."""
PAGES: dict[str, tuple[str, ...]] = {
    "report": ("report", "x.ncu-rep"),
    "csv": ("report", "x.csv"),
    "compare": ("compare", "x.ncu-rep", "y.ncu-rep"),
    "ops": ("ops", "x.json"),
    "ranks": ("ops", "ranks"),
    "timeline": ("timeline", "x.sqlite"),
    "torch-timeline": ("timeline", "x.json"),
    "run": ("report", "--run", "run"),
    "index": ("index", ".", "--workers", "1"),
    "model": ("roofline", "point", "--flops", "2e12", "--bytes", "1e12", "--peak", "2T", "--bandwidth", "3T"),
}  # fmt: skip
TOUCH = """() => {
  for (const e of document.querySelectorAll('details')) e.open = true;
  for (const e of document.querySelectorAll('main *')) {
    for (const type of ['mouseover', 'mouseenter', 'focusin'])
      e.dispatchEvent(new Event(type, {bubbles: true}));
    if (e.matches('button:not([data-save])')) e.click();
  }
}"""
"""Opens, points at and presses everything: tips and details are made only then."""
TEXTS: dict[str, tuple[str, ...]] = {
    "show": ("show", "x.ncu-rep"),
    "metrics": ("metrics", "x.ncu-rep"),
    "csv": ("show", "x.csv"),
    "compare": ("compare", "x.ncu-rep", "y.ncu-rep"),
    "markdown": ("compare", "x.ncu-rep", "y.ncu-rep", "--format", "markdown"),
    "github": ("compare", "x.ncu-rep", "y.ncu-rep", "--format", "github", "--fail-on", "dram_bytes > +1%"),
    "ops": ("ops", "x.json"),
    "ranks": ("ops", "ranks"),
    "timeline": ("timeline", "x.sqlite"),
    "advise": ("advise", "run"),
    "no such kernel": ("compare", "x.ncu-rep", "y.ncu-rep", "--kernel", NAME),
    "no such file": ("show", f"{NAME[:200]}.ncu-rep".replace("/", "")),
}  # fmt: skip
JSONS: dict[str, tuple[str, ...]] = {
    "metrics": ("metrics", "x.ncu-rep", "--json"),
    "raw": ("metrics", "x.ncu-rep", "--raw", "--json"),
    "show": ("show", "x.ncu-rep", "--json"),
    "compare": ("compare", "x.ncu-rep", "y.ncu-rep", "--json"),
    "ops": ("ops", "x.json", "--json"),
    "ranks": ("ops", "ranks", "--json"),
    "timeline": ("timeline", "x.sqlite", "--json"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of inputs, all of whose names are hostile, and the pages of them."""
    warm()
    place = tmp_path_factory.mktemp("hostile")
    (place / "ranks").mkdir()
    (place / "pages").mkdir()
    for name in ("x", "y"):
        hostile.report(place / f"{name}.ncu-rep")
    hostile.printed(place / "x.csv")
    hostile.torch_trace(place / "x.json")
    for rank in range(2):
        hostile.torch_trace(place / "ranks" / f"rank{rank}.json", rank)
    hostile.nsys_export(place / "x.sqlite")
    hostile.run_directory(place / "run")
    hostile.experiment(place / "experiment.json")
    for name, words in PAGES.items():
        done(run((*words, "-o", f"pages/{name}.html", "--force"), place))
    done(run(("experiment-page", "experiment.json"), place))
    (place / "page.html").rename(place / "pages" / "experiment.html")
    return place


def done(ended: Ended, codes: tuple[int, ...] = (0,)) -> Ended:
    """Return a run that ended as it must; where the result is a file, nothing need be on stdout."""
    assert ended.fault() in (None, "success without a result"), ended.err
    assert ended.code in codes, ended.err
    return ended


# ---- pages ----


@pytest.mark.parametrize("name", [*PAGES, "experiment"])
def test_every_page_forbids_the_network_before_anything_else(name: str, folder: Path) -> None:
    head = (folder / "pages" / f"{name}.html").read_text(encoding="utf-8")[:1000]
    assert f'<meta http-equiv="Content-Security-Policy" content="{CSP}">' in head.replace("&#39;", "'")
    assert head.index("Content-Security-Policy") < min(
        head.find(t) % 10**9 for t in ("<script", "<style", "<link")
    )


@pytest.mark.parametrize(
    "template", sorted((CHECKOUT / "templates").glob("*.html")), ids=lambda path: path.name
)
def test_every_template_has_the_policy_of_the_base(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    assert "Content-Security-Policy" in text if template.name == "base.html" else "{% extends" in text[:400]
    assert not re.search(r"\|\s*safe\b|autoescape\s+false|javascript:", text)


def test_nothing_runs_in_a_browser_that_a_name_brings(folder: Path, browser: Any) -> None:
    context = browser.new_context()
    tab = context.new_page()
    asked: list[str] = []
    tab.on("dialog", lambda dialog: (asked.append("a dialog"), dialog.dismiss()))
    tab.on("request", lambda one: asked.append(one.url))
    for name in [*PAGES, "experiment"]:
        page = folder / "pages" / f"{name}.html"
        asked.clear()
        tab.goto(page.as_uri())
        tab.wait_for_load_state()
        tab.evaluate(TOUCH)
        assert tab.evaluate("typeof window.canary") == "undefined", name
        assert asked == [page.as_uri()], name
        assert tab.evaluate("document.querySelectorAll('img[src=x], script[src]').length") == 0, name
        links = tab.evaluate(
            "[...document.querySelectorAll('[href],[src]')].map(e => (e.href || e.src).toString())"
        )
        assert not [link for link in links if not link.startswith(("file:", "data:", "#"))], name
        outside = [link for link in links if link.startswith("file:") and "etc/passwd" in link.split("#")[0]]
        assert not outside, name
        assert "49" not in tab.title(), name
    context.close()


# ---- text, JSON, CSV, annotations, JUnit ----


@pytest.mark.parametrize("name", TEXTS)
def test_no_control_reaches_a_terminal(name: str, folder: Path) -> None:
    ended = run(TEXTS[name], folder)
    assert ended.fault() is None, ended.err
    for text in (ended.out, ended.err):
        assert not UNSEEN.findall(text)


@pytest.mark.parametrize("name", JSONS)
def test_json_holds_a_name_whole_and_is_json(name: str, folder: Path) -> None:
    text = done(run(JSONS[name], folder)).out
    assert "window.canary" in text or name == "ranks"  # which names no operator
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def test_a_workflow_command_cannot_be_smuggled_into_annotations(folder: Path) -> None:
    out = done(run(TEXTS["github"], folder), (0, 10)).out
    assert not [line for line in out.splitlines() if re.match(r"\s*::(?!error |warning |notice )", line)]


def test_junit_is_sound_xml(folder: Path) -> None:
    gate = ("--fail-on", "kernel_duration > +1%", "--fail-on", "dram_bytes > +1%")
    done(run(("compare", "x.ncu-rep", "y.ncu-rep", *gate, "-o", "gates.xml", "--force"), folder), (0, 10))
    assert ElementTree.parse(folder / "gates.xml").getroot().tag == "testsuites"


@pytest.mark.parametrize("more", [(), ("--raw",)], ids=["neutral", "raw"])
def test_no_cell_of_csv_is_a_formula(more: tuple[str, ...], folder: Path) -> None:
    out = done(run(("metrics", "x.ncu-rep", "--format", "csv", *more), folder)).out
    rows = list(csv.reader(io.StringIO(out)))
    assert any("window.canary" in cell for row in rows for cell in row)
    for row in rows:
        for cell in row:
            assert not cell.startswith(("=", "+", "@", "\t", "\r"))
            assert not cell.startswith("-") or float(cell) < 0


# ---- paths ----


def test_names_never_leave_the_dataset(folder: Path) -> None:
    done(run(("dataset", "build", "x.ncu-rep", "-o", "fleet/inner", "--workers", "1"), folder))
    beside = [path.name for path in (folder / "fleet").iterdir()]
    assert beside == ["inner"]
    made = [path for path in (folder / "fleet").rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" for path in made)
    for path in made:
        relative = str(path.relative_to(folder / "fleet" / "inner"))
        assert ".." not in Path(relative).parts
        assert not UNSEEN.search(relative)
        assert all(len(part.encode()) <= 255 for part in path.parts)


def test_a_run_directory_has_a_plain_name() -> None:
    from ncukit.run.directory import slug

    assert re.fullmatch(r"[A-Za-z0-9_.=-]{1,60}", slug(NAME))
    assert slug("../..") == "run"
    assert slug(".") == "run"


@pytest.fixture
def run_with_links(tmp_path: Path) -> Path:
    """A sound run directory, and a private folder beside it."""
    (folder := tmp_path / "run").mkdir()
    (tmp_path / "private").mkdir()
    (folder / "run.json").write_bytes(originals.records()[0])
    (folder / "timing.json").write_bytes(originals.timings()[0])
    (folder / "profile.ncu-rep").write_bytes(originals.COPY.read_bytes())
    return folder


@pytest.mark.parametrize("name", ["run.json", "timing.json", "profile.ncu-rep"])
@pytest.mark.parametrize(
    "words", [("report", "--run", "run", "-o", "p.html"), ("compare", "run", "run"), ("advise", "run")]
)
def test_a_link_in_a_run_directory_is_refused(
    name: str, words: tuple[str, ...], run_with_links: Path
) -> None:
    outside = run_with_links.parent / "private" / name
    (run_with_links / name).rename(outside)
    (run_with_links / name).symlink_to(outside)
    ended = done(run(words, run_with_links.parent), (4,))
    assert f"{name} is a link, which is not followed in a run directory" in ended.err


def test_a_link_inside_a_run_directory_is_refused_too(run_with_links: Path) -> None:
    (run_with_links / "kept.ncu-rep").hardlink_to(run_with_links / "profile.ncu-rep")
    (run_with_links / "profile.ncu-rep").unlink()
    (run_with_links / "profile.ncu-rep").symlink_to("kept.ncu-rep")
    ended = done(run(("report", "--run", "run", "-o", "p.html"), run_with_links.parent), (4,))
    assert "is a link, which is not followed in a run directory" in ended.err


def test_the_points_of_a_sweep_lie_inside_its_directory(run_with_links: Path) -> None:
    from ncukit.render.run.sweep import write_sweep_page

    point = {"params": {}, "directory": "../private", "status": "complete", "error": None}
    with pytest.raises(ReportFormatError, match="leads out of the run directory"):
        write_sweep_page(run_with_links, [point])


# ---- bounds ----


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    event = b'{"ph":"X","cat":"none","name":"x","ts":1,"dur":1},'
    parts = gzip.compress(b'{"traceEvents":['), gzip.compress(event * (1 << 15))  # members of one file
    (tmp_path / "bomb.json.gz").write_bytes(parts[0] + 64 * parts[1])
    ended = done(run(("ops", "bomb.json.gz"), tmp_path), (4,))
    assert ended.memory < 500_000_000
    assert "unpacks to" in ended.err


def test_a_zstd_bomb_is_refused_before_the_native_reader_sees_it(tmp_path: Path) -> None:
    import pyarrow as pa

    path = tmp_path / "bomb.ncu-repz"
    path.write_bytes(pa.compress(bytes(1 << 30), codec="zstd", asbytes=True))
    assert path.stat().st_size < 1 << 17
    ended = done(run(("metrics", "bomb.ncu-repz"), tmp_path), (4,))
    assert "unpacks to" in ended.err


# ---- the program itself ----


def _calls() -> Iterator[tuple[Path, ast.Call]]:
    for path in sorted((CHECKOUT / "ncukit").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield path, node


def test_no_shell_no_pickle_no_yaml_no_eval() -> None:
    forbidden = {
        *("eval", "os.system", "os.popen", "pickle.load", "pickle.loads", "marshal.load", "marshal.loads"),
        "bucket.load_bytecode",
        *(
            "yaml.load",
            "yaml.unsafe_load",
            "yaml.full_load",
            "tempfile.mktemp",
            "shelve.open",
            "subprocess.getoutput",
        ),
    }
    found = [
        f"{path.name}: {ast.unparse(call.func)}"
        for path, call in _calls()
        if ast.unparse(call.func) in forbidden
        or any(k.arg == "shell" and ast.unparse(k.value) != "False" for k in call.keywords)
    ]
    assert found == ["html.py: bucket.load_bytecode"]  # of the user alone


def test_only_the_workload_s_own_script_is_executed() -> None:
    found = {
        path.relative_to(CHECKOUT / "ncukit").parts[0]
        for path, call in _calls()
        if ast.unparse(call.func) in ("exec", "compile", "runpy.run_path", "runpy.run_module")
    }
    assert found <= {"workload", "record.py"}  # which makes ``__init__`` from names of fields


def test_temporary_copies_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ncukit.report.container import check, readable_files

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old = os.umask(0)
    try:
        path = tmp_path / "misnamed.ncu-rep"
        path.write_bytes(originals.COPY.read_bytes() + b"behind")
        with readable_files(check(path)) as (copy,):
            assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    finally:
        os.umask(old)


def test_embedded_sources_are_never_opened(tmp_path: Path) -> None:
    """A report names its sources by path; only the text inside it is shown."""
    secret = tmp_path / "secret.cu"
    secret.write_text("do not show this\n")
    write_report(
        tmp_path / "x.ncu-rep",
        [Launch(str(secret), metrics={"gpu__time_duration.sum": 1.0})],
        Device("A40", (8, 6)),
    )
    done(run(("report", "x.ncu-rep", "-o", "p.html"), tmp_path))
    assert "do not show this" not in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_an_error_about_a_file_of_secrets_does_not_quote_it(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"password": hunter2}')
    ended = done(run(("report", "--run", "run", "-o", "p.html"), tmp_path), (4,))
    assert "hunter2" not in ended.err


@pytest.mark.parametrize("make", [hostile.report, hostile.printed], ids=["report", "CSV"])
def test_the_library_shows_no_controls_either(make: Callable[[Path], Path], tmp_path: Path) -> None:
    import ncukit.api as api

    path = make(tmp_path / ("x.ncu-rep" if make is hostile.report else "x.csv"))
    try:
        names = [kernel.name for kernel in api.read(path).kernels()]
    except ReportError as error:
        names = [error.message]
    assert names
    assert not UNSEEN.search("".join(names))


AUDITED = '{"dependencies": [{"name": "a", "version": "1", "vulns": [%s]}]}'
SKIPPED = '{"dependencies": [{"name": "b", "skip_reason": "not found on the index"}%s]}'


@pytest.mark.parametrize(
    ("out", "code", "words"),
    [
        (AUDITED % "", 0, "1 packages, 0 known"),
        (AUDITED % '{"id": "CVE-1", "fix_versions": ["2"]}', 1, "a 1: CVE-1, fixed in 2"),
        ("", 0, "not run: its service cannot be reached (no route)"),
        (SKIPPED % "", 0, "not run: the index tells nothing of any of 1 packages"),
        (SKIPPED % ', {"name": "a", "version": "1", "vulns": []}', 0, "1 packages, 0 known"),
        (SKIPPED % ', {"name": "a", "version": "1", "vulns": []}', 0, "pip-audit: not checked: b\n"),
    ],
)
def test_an_audit_that_could_not_ask_says_that_it_did_not_run(
    out: str, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from scripts.audit import judge

    assert judge(out, "warning\nno route\n") == code
    assert words in capsys.readouterr().out


def test_the_schema_of_a_database_calls_no_functions(tmp_path: Path) -> None:
    import sqlite3

    from ncukit.trace.nsys_events import Database

    hostile.nsys_export(tmp_path / "x.sqlite")
    database = Database(tmp_path / "x.sqlite")
    assert list(database.query("PRAGMA trusted_schema")) == [(0,)]
    with pytest.raises(ReportFormatError):
        list(database.query("DELETE FROM StringIds"))
    database.close()
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as after:
        assert after.execute("SELECT count(*) FROM StringIds").fetchone()[0] > 0


def test_a_page_whose_name_is_a_link_to_a_folder_is_not_written_into_it(tmp_path: Path) -> None:
    hostile.report(tmp_path / "x.ncu-rep")
    (tmp_path / "mine").mkdir()
    (tmp_path / "page.html").symlink_to("mine")
    ended = done(run(("report", "x.ncu-rep", "-o", "page.html", "--force"), tmp_path), (2,))
    assert "cannot write page.html: it is a link to mine" in ended.err
    assert os.listdir(tmp_path / "mine") == []
    (tmp_path / "pages").symlink_to("mine")
    done(run(("report", "x.ncu-rep", "-o", "pages"), tmp_path))
    assert os.listdir(tmp_path / "mine") == ["x.html"]
