"""The page as a file: escaping, policy, budgets, structure; without a browser."""

from __future__ import annotations

import errno
import json
import marshal
import os
import re
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ncukit import files
from ncukit.errors import UsageError
from ncukit.model import Diagnosis
from ncukit.render import html
from ncukit.render.view import page_view
from tests import diagnoses
from tests.diagnoses import FILE, HOSTILE, transpose

VOID = {"meta", "br", "input", "link", "img", "hr"}


class Page(HTMLParser):
    """A parsed page: elements, their attributes, text, and whether every element was closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.text: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._script: dict[str, str | None] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)
        self._script = dict(attrs) if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self.open[-1:] or 'nothing'}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self._script is not None and self.open[-1:] == ["script"]:
            self.scripts.append((self._script, data))
        elif self.open[-1:] != ["style"]:
            self.text.append(data)

    def island(self, id: str) -> Any:
        return json.loads(next(body for attrs, body in self.scripts if attrs.get("id") == id))


def rendered(*found: Diagnosis) -> str:
    """Return the page without the figure library."""
    file = replace(FILE, launches=len(found))
    return html.page(page_view(file, found, generated="2026-11-29 17:50 UTC"), plotly="directory")


@cache
def page(kind: str) -> tuple[str, Page]:
    made = {
        "launch": lambda: [transpose()],
        "fp64": lambda: [diagnoses.fp64()],
        "undetermined": lambda: [diagnoses.undetermined()],
        "failed": lambda: [diagnoses.failed()],
        "many": lambda: [*diagnoses.many(51), diagnoses.failed(51)],
        "lazy": lambda: diagnoses.many(300),
        "hostile": lambda: [transpose(name=HOSTILE, gpu_name=HOSTILE)],
        "hostile many": lambda: [transpose(i, HOSTILE + str(i % 2)) for i in range(4)],
        "hostile lazy": lambda: [transpose(i, HOSTILE) for i in range(200)],
    }[kind]()
    text = rendered(*made)
    return text, Page(text)


KINDS = (
    "launch",
    "fp64",
    "undetermined",
    "failed",
    "many",
    "lazy",
    "hostile",
    "hostile many",
    "hostile lazy",
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_element_is_closed_and_every_id_is_there_once(kind: str) -> None:
    found = page(kind)[1]
    assert found.faults == []
    assert found.open == []
    assert [id for id, count in Counter(found.ids).items() if count > 1] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_link_inside_the_page_has_its_target(kind: str) -> None:
    found = page(kind)[1]
    targets = {value[1:] for tag, name, value in found.attributes if (tag, name) == ("a", "href")}
    assert targets - set(found.ids) == set()
    controls = {
        id
        for _, name, value in found.attributes
        if name in ("aria-controls", "aria-labelledby")
        for id in value.split()
    }
    assert controls - set(found.ids) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_loaded_from_anywhere(kind: str) -> None:
    text, found = page(kind)
    loaded = [
        v for _, name, v in found.attributes if name in ("src", "href", "action", "data", "srcset", "poster")
    ]
    assert [v for v in loaded if not v.startswith("#") and v != "plotly.min.js"] == []
    assert not re.search(r"url\(|@import", text)
    assert not re.search(r"https?://", re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))


def policy(found: Page) -> str:
    return next(
        value for tag, name, value in found.attributes if tag == "meta" and value.startswith("default-src")
    )


def test_the_policy_forbids_the_network() -> None:
    text = html.page(page_view(FILE, [transpose()], generated=""), plotly="inline")
    expected = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
    assert policy(Page(text)) == expected
    assert policy(page("launch")[1]) == expected.replace(
        "script-src 'unsafe-inline'", "script-src 'unsafe-inline' 'self' file:"
    )


@pytest.mark.parametrize("kind", ["hostile", "hostile many", "hostile lazy"])
def test_a_name_is_text_never_markup(kind: str) -> None:
    text, found = page(kind)
    plain = page({"hostile": "launch", "hostile many": "many", "hostile lazy": "lazy"}[kind])[1]
    assert found.tags["script"] == plain.tags["script"] or not found.island("figures")
    assert found.tags["img"] == 0
    assert [name for _, name, _ in found.attributes if name.startswith("on")] == []
    assert "<img src=x" not in text
    assert "alert(1)</script>" not in text
    assert "alert(1)" in "".join(found.text)
    assert not [c for c in text if c in "\u202e\u2066\x00\x1b\u2028"]
    text.encode("utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_the_islands_are_json_and_hold_no_end_tag(kind: str) -> None:
    found = page(kind)[1]
    for id in ("tips", "figures", *(["rows"] if "lazy" in kind else [])):
        assert isinstance(found.island(id), dict)
    assert not [body for attrs, body in found.scripts if attrs.get("type") and "<" in body]


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_with_a_tooltip_has_its_evidence(kind: str) -> None:
    found = page(kind)[1]
    tips = found.island("tips")
    keys = {value for _, name, value in found.attributes if name == "data-t"}
    lost = [key for key in keys if key.partition("/")[2] not in tips["k"].get(key.partition("/")[0], {})]
    assert keys
    assert lost == []
    assert {key.partition("/")[2] for key in keys} <= set(tips["cat"])


def test_every_figure_has_its_table_and_a_text_alternative() -> None:
    for kind in ("launch", "fp64", "many", "lazy"):
        found = page(kind)[1]
        drawn = {value for _, name, value in found.attributes if name == "data-fig"}
        rows = {value.partition(":")[0] for _, name, value in found.attributes if name == "data-pt"}
        assert drawn == rows == set(found.island("figures"))
        assert [v for _, name, v in found.attributes if name == "aria-label" and v.startswith("Roofline")]


def test_a_row_of_points_finds_its_point_in_the_figure() -> None:
    for kind in ("launch", "fp64", "many"):
        found = page(kind)[1]
        figures = found.island("figures")
        for value in (v for _, name, v in found.attributes if name == "data-pt"):
            figure, _, key = value.partition(":")
            assert any(key in trace.get("customdata", ()) for trace in figures[figure]["data"]), value


def test_deep_links_exist() -> None:
    ids = set(page("launch")[1].ids)
    assert {"kernel-1", "kernel-1-roofline", "m-dram_bytes", "m-l2_read_hit_rate_pct"} <= ids
    assert {f"kernel-{n}" for n in range(1, 53)} <= set(page("many")[1].ids)


def test_ids_of_a_chosen_launch_carry_its_number() -> None:
    assert "kernel-3-roofline" in Page(rendered(transpose(2))).ids


def test_without_a_script_both_panels_of_stalls_show() -> None:
    text, found = page("launch")
    panels = re.findall(r'<div role="tabpanel"[^>]*>', text)
    assert len(panels) == 2
    assert not [p for p in panels if "hidden" in p]
    assert found.tags["table"] >= 6


def test_a_page_without_a_figure_does_not_carry_the_library() -> None:
    text = html.page(page_view(FILE, [diagnoses.failed()], generated=""), plotly="inline")
    assert len(text) < 300_000


# Budgets


def test_css_and_script_are_small() -> None:
    text = page("launch")[0]
    css = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)
    assert css
    assert script
    assert len(css[1].encode()) < 30_000
    assert len(script[1].encode()) < 14_000


@pytest.mark.parametrize(
    ("launches", "budget"),
    [(1, 300_000), (51, 300_000), (154, 300_000 + 103 * 4500), (1000, 2_000_000)],
    ids=["1", "51", "154", "c73-1000"],
)
def test_a_page_stays_small(launches: int, budget: int) -> None:
    assert len(rendered(*diagnoses.many(launches)).encode()) < budget


# Writing


def test_the_page_is_whole_or_not_there(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "report.html"
    view = page_view(FILE, [transpose()], generated="")
    assert html.write_page(target, view) == target
    assert target.read_text(encoding="utf-8").endswith("</html>")
    assert [p.name for p in target.parent.iterdir()] == ["report.html"]


def test_a_page_is_not_overwritten_without_force(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("mine")
    view = page_view(FILE, [transpose()], generated="")
    with pytest.raises(UsageError, match="exists already"):
        html.write_page(target, view)
    assert target.read_text() == "mine"
    html.write_page(target, view, force=True)
    assert "transposeCoalesced" in target.read_text(encoding="utf-8")


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        html.write_page(tmp_path / "file" / "report.html", page_view(FILE, [transpose()], generated=""))


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(UsageError, match="No space left"):
        html.write_page(tmp_path / "report.html", page_view(FILE, [transpose()], generated=""))
    assert list(tmp_path.iterdir()) == []


def test_a_page_can_be_read_by_others_as_far_as_the_umask_allows(tmp_path: Path) -> None:
    target = html.write_page(tmp_path / "r.html", page_view(FILE, [diagnoses.failed()], generated=""))
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~mask


def test_in_a_directory_the_library_lies_beside_the_pages_once(tmp_path: Path) -> None:
    view = page_view(FILE, [transpose()], generated="")
    html.write_page(tmp_path / "a.html", view, plotly="directory")
    html.write_page(tmp_path / "b.html", view, plotly="directory")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "b.html", "plotly.min.js"]
    assert '<script src="plotly.min.js">' in (tmp_path / "b.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("there", ["a file", "a link", "both names"])
def test_a_script_that_lies_beside_a_page_already_is_not_the_library(there: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.js").write_text("window.canary = 1")
    ours = tmp_path / f"plotly-{html._hash(html._plotly())[:16]}.min.js"
    if there == "a link":
        (tmp_path / "plotly.min.js").symlink_to("elsewhere.js")
    else:
        (tmp_path / "plotly.min.js").write_text("window.canary = 1")
    if there == "both names":
        ours.write_text("window.canary = 1")
    view = page_view(FILE, [transpose()], generated="")
    page = html.write_page(tmp_path / "a.html", view, plotly="directory")
    assert f'<script src="{ours.name}">' in page.read_text(encoding="utf-8")
    assert ours.read_bytes() == html._plotly().read_bytes()
    assert (tmp_path / "plotly.min.js").read_text() == "window.canary = 1"


def test_where_the_library_cannot_be_written_no_page_is_left_that_loads_another(tmp_path: Path) -> None:
    ours = f"plotly-{html._hash(html._plotly())[:16]}.min.js"
    for name in ("plotly.min.js", "elsewhere.js"):
        (tmp_path / name).write_text("window.canary = 1")
    (tmp_path / ours).symlink_to("elsewhere.js")
    with pytest.raises(UsageError, match="it is a link"):
        html.write_page(tmp_path / "a.html", page_view(FILE, [transpose()], generated=""), plotly="directory")
    assert not (tmp_path / "a.html").exists()


@pytest.mark.browser
def test_a_hostile_library_beside_a_page_does_not_run(tmp_path: Path, browser: Any) -> None:
    (tmp_path / "plotly.min.js").write_text("window.canary = 1")
    view = page_view(FILE, [transpose()], generated="")
    page = html.write_page(tmp_path / "a.html", view, plotly="directory")
    tab = browser.new_page()
    tab.goto(page.as_uri())
    assert tab.evaluate("[typeof window.canary, typeof window.Plotly]") == ["undefined", "object"]
    tab.close()


def test_the_library_inside_a_page_cannot_end_its_script() -> None:
    text = html.page(page_view(FILE, [transpose()], generated=""), plotly="inline")
    assert Page(text).tags["script"] == 6
    assert text.lower().count("</script") == 6


def test_a_name_cannot_take_the_place_of_the_library() -> None:
    name = "<!--plotly-->"  # what stands in the template for it
    text = html.page(page_view(FILE, [transpose(name=name)], generated=""), plotly="inline")
    assert name not in text
    page = Page(text)
    assert name in "".join(page.text)
    assert page.tags["script"] == 6
    assert [len(code) > 1_000_000 for _, code in page.scripts].count(True) == 1


def test_drawing_does_not_import_plotly() -> None:
    code = (
        "import sys\nfrom tests.test_html import *\n"
        "html.page(page_view(FILE, [transpose()], generated=''))\n"
        "sys.exit(bool({'plotly', 'pandas', 'ncu_report'} & set(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where compiled templates are kept, in a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    html._environment.cache_clear()
    yield tmp_path / "ncukit" / "templates"
    html._environment.cache_clear()


def test_compiled_templates_are_kept_in_the_cache_of_the_user(compiled: Path) -> None:
    first = rendered(transpose())
    kept = {path: path.stat().st_mtime_ns for path in compiled.glob("*.cache")}
    assert kept
    html._environment.cache_clear()
    assert rendered(transpose()) == first
    assert {path: path.stat().st_mtime_ns for path in compiled.iterdir()} == kept


def test_no_compiled_template_is_kept_where_python_must_not_keep_modules(
    compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    rendered(transpose())
    assert not compiled.exists()


def test_no_compiled_template_is_taken_from_a_folder_that_others_can_write(compiled: Path) -> None:
    compiled.mkdir(parents=True)
    compiled.chmod(0o777)
    rendered(transpose())
    assert not list(compiled.iterdir())


def test_no_compiled_template_is_taken_through_a_link(compiled: Path, tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir(mode=0o700)
    compiled.parent.mkdir()
    compiled.symlink_to(tmp_path / "clone")
    rendered(transpose())
    assert os.listdir(tmp_path / "clone") == []


def test_no_compiled_template_is_taken_where_another_user_leads_to_the_cache(
    compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled.mkdir(parents=True, mode=0o700)
    real, others = os.lstat, compiled.parent

    def lstat(path: Any, **options: Any) -> Any:
        found = real(path, **options)
        if os.fspath(path) != str(others):
            return found
        return os.stat_result((*found[:4], 4242, *found[5:10]))

    monkeypatch.setattr(os, "lstat", lstat)
    rendered(transpose())
    assert os.listdir(compiled) == []


@pytest.mark.parametrize("how", ["a link", "of another user"])
def test_a_compiled_template_that_is_not_the_user_s_is_made_again(
    how: str, compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = rendered(transpose())
    assert list(compiled.iterdir())
    loaded: list[object] = []
    real = marshal.load
    monkeypatch.setattr(marshal, "load", lambda file: (loaded.append(file), real(file))[1])
    (tmp_path / "other").mkdir()
    for path in list(compiled.iterdir()):
        if how == "a link":
            path.rename(tmp_path / "other" / path.name)
            path.symlink_to(tmp_path / "other" / path.name)
    monkeypatch.setattr(html._Compiled, "dump_bytecode", lambda *_: None)
    if how == "of another user":
        fstat = os.fstat

        def of_another(file: int) -> os.stat_result:
            found = fstat(file)
            regular = stat.S_ISREG(found.st_mode)
            return os.stat_result((*found[:4], 4242, *found[5:10])) if regular else found

        monkeypatch.setattr(os, "fstat", of_another)
    html._environment.cache_clear()
    assert rendered(transpose()) == first
    assert loaded == []


def test_a_cache_that_takes_nothing_does_not_stop_a_page(
    compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, *_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", path)

    monkeypatch.setattr(files.os, "open", full)
    assert "<html" in rendered(transpose())
    assert not list(compiled.iterdir())


@pytest.mark.parametrize(
    "damage", ["empty", "cut", "shortened", "no pickle", "another's", "another template's"]
)
def test_a_compiled_template_that_is_damaged_is_made_again(compiled: Path, damage: str) -> None:
    first = rendered(transpose())
    good = {path: path.read_bytes() for path in compiled.iterdir()}
    assert good
    for (path, content), other in zip(good.items(), reversed(good.values()), strict=True):
        path.write_bytes(
            {
                "empty": b"",
                "cut": content[:40],
                "shortened": content[:-1],
                "no pickle": content[:15] + b"\xff" + content[16:],
                "another's": marshal.dumps({"no": "code"}),
                "another template's": other,
            }[damage]
        )
    html._environment.cache_clear()
    assert rendered(transpose()) == first
    assert {path: path.read_bytes() for path in compiled.iterdir()} == good


def test_the_folds_of_a_small_file_hold_every_section_of_their_launch() -> None:
    small = Page(rendered(*diagnoses.many(2)))
    assert {f"kernel-{n}-{part}" for n in (1, 2) for part in ("roofline", "families", "stalls")} <= set(
        small.ids
    )
    assert {"kernel-1-roof", "kernel-2-roof"} <= set(small.island("figures"))
    assert "kernel-1-families" not in Page(rendered(*diagnoses.many(3))).ids
