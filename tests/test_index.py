"""One page over a folder: every kernel of every report, one roofline a GPU, history, what cannot be used."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ncukit import cli, demo_reports
from ncukit.api import build_dataset, write_index
from ncukit.dataset.survey import survey
from ncukit.errors import ReportNotFound, UsageError
from ncukit.model.comparison import Measured, Origin, Survey, Unusable
from ncukit.model.run import Run, Timing
from ncukit.render import html
from ncukit.render.index.row import link
from ncukit.render.index.view import page_view
from ncukit.report.reader import created
from tests.builders import TARGET, kernel, raw_kernel
from tests.conftest import Tabs
from tests.diagnoses import HOSTILE
from tests.ncurep import Device, Launch, Session, write_report
from tests.test_html import Page

pytestmark = pytest.mark.usefixtures("in_this_process")

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
SAMPLES = {path.stem: path for path in demo_reports()}


def origin(name: str = "a.ncu-rep", days: int = 0, **fields: Any) -> Origin:
    return Origin(f"/runs/{name}", name, START + timedelta(days=days), **fields)


def measured(
    name: str = "gemm",
    *,
    source: Origin | None = None,
    gpu: str | None = "NVIDIA A40",
    duration: float = 1e-3,
    cls: str = "memory-bound",
    limiter: str | None = "dram",
    launches: int = 1,
    grid: str = "64 x 1 x 1",
    **neutral: Any,
) -> Measured:
    """Return a kernel with a place on the roofline."""
    values = {
        "gpu_name": gpu,
        "kernel_duration": duration,
        "flops_fp32": 1e9,
        "dram_bytes": 1e8,
        "peak_dram_bandwidth": 6e11,
        "peak_flop_rate_fp32": 3e13,
        "dram_throughput_pct": 91.0,
        **neutral,
    }
    made = kernel(raw=raw_kernel(name, demangled=f"{name}(int)"), **values)
    return Measured(
        source or origin(),
        made,
        gpu,
        cls,
        limiter,
        "high",
        grid,
        "256 x 1 x 1",
        launches,
        (duration,) * launches,
        {(cls, limiter): duration * launches},
    )


def view(*found: Measured, unusable: tuple[Unusable, ...] = ()) -> dict[str, Any]:
    return page_view(Survey("/runs", found, unusable, len(found)), Path("/runs/index.html"), generated="now")


def page(*found: Measured, unusable: tuple[Unusable, ...] = ()) -> tuple[str, Page]:
    text = html.page(view(*found, unusable=unusable), plotly="directory")
    return text, Page(text)


# The page


def test_rows_come_with_the_most_time_first_and_say_what_limits_them() -> None:
    found = view(
        measured("small", duration=1e-6),
        measured("big", duration=2e-3, launches=3, cls="compute-bound", limiter="tensor"),
    )
    big, small = found["table"]["rows"]
    assert (big["n"], big["name"], big["launches"]) == (1, "big", "3")
    assert (big["total"]["text"], big["median"]["text"]) == ("6.00\u202fms", "2.00\u202fms")
    assert (small["total"]["text"], small["total"]["sort"]) == ("1.00\u202fµs", 1e-6)
    assert (big["limit"], small["limit"]) == ("compute: tensor", "memory: dram")
    assert found["heading"] == "4 launches of 2 kernels in 1 report"


def test_the_share_of_time_that_each_limit_takes_is_weighted_by_time() -> None:
    limits = view(
        measured("a", duration=3e-3), measured("b", duration=1e-3, cls="compute-bound", limiter="fp32")
    )["limits"]
    assert [(row["limit"], row["bar"]) for row in limits["rows"]] == [
        ("memory: dram", 75.0),
        ("compute: fp32", 25.0),
    ]


def test_launches_of_one_kernel_that_are_limited_otherwise_are_counted() -> None:
    one = measured(launches=2)
    limits = {("memory-bound", "dram"): 2.0, ("latency-bound", "tail"): 1.0}
    mixed = Measured(**{**vars(one), "limits": limits})
    assert view(mixed)["table"]["rows"][0]["limit"] == "memory: dram, 1 other"


def test_what_is_not_known_is_said_never_zero() -> None:
    one = measured(dram_throughput_pct=None, achieved_occupancy_pct=50.0)
    other = measured("other", kernel_duration=None)
    unknown = Measured(**{**vars(other), "durations": (), "limits": {("undetermined", None): 0.0}})
    row, last = view(one, unknown)["table"]["rows"]
    assert [cell["text"] for cell in row["cells"]] == ["not given by the test", "50.0"]
    assert (last["total"]["text"], last["median"]["text"]) == ("not collected", "not collected")
    assert (last["total"]["sort"], last["roof"]) == ("", "")


def test_every_gpu_has_its_roofline_with_every_row_on_it() -> None:
    found = view(
        measured("a", duration=5e-3), measured("b"), measured("c", gpu="NVIDIA H100"), measured("d", gpu=None)
    )
    assert [roof["gpu"] for roof in found["roofs"]] == ["NVIDIA A40", "NVIDIA H100", "unknown GPU"]
    points = {
        id: sorted(n for trace in figure["data"] for ids in trace.get("ids", ()) for n in ids.split())
        for id, figure in found["figures"].items()
    }
    assert points == {"roof-0-flop": ["1", "2"], "roof-1-flop": ["3"], "roof-2-flop": ["4"]}


def test_rows_that_lie_on_one_point_are_all_named_by_it() -> None:
    found = view(*(measured(f"k{i}") for i in range(4)))
    (figure,) = found["figures"].values()
    assert [ids for trace in figure["data"] for ids in trace.get("ids", ())] == ["1 2 3 4"]


def test_work_that_is_counted_otherwise_has_its_own_axes() -> None:
    other = measured("int", flops_fp32=0, inst_executed=1e6, peak_inst_rate=1e12)
    (roof,) = view(measured(), other)["roofs"]
    assert [chart["work"] for chart in roof["charts"]] == ["FLOP/B", "inst/B"]


def test_the_first_gpu_with_a_point_is_open() -> None:
    found = view(measured(dram_bytes=None), measured("b", duration=1e-9, gpu="NVIDIA H100"))
    assert [(roof["gpu"], roof["open"]) for roof in found["roofs"]] == [
        ("NVIDIA A40", False),
        ("NVIDIA H100", True),
    ]


def test_rows_without_a_point_are_listed() -> None:
    (roof,) = view(measured(), measured("b", duration=1e-9, dram_bytes=None))["roofs"]
    assert roof["left"].endswith("not known: row 2.")


# History


def test_a_kernel_that_was_measured_again_has_a_history_with_revisions() -> None:
    old = origin("old/profile.ncu-rep", 0, revision="0123456789abcdef", recorded=True, clean=8e-4)
    new = origin("new/profile.ncu-rep", 2, revision="fedcba9876543210", recorded=True, modified=True)
    found = view(measured(source=new, duration=5e-4), measured(source=old, duration=1e-3))
    (history,) = found["histories"]
    first, second = history["rows"]
    assert (first["revision"], second["revision"]) == ("0123456789", "fedcba9876 + changes")
    assert (first["change"], second["change"]) == ("", "−50.0\u202f%")
    assert (first["clean"], second["clean"]) == ("800", "not measured")
    assert history["clean_unit"] == "µs"
    figure = found["figures"][history["id"]]
    assert figure["data"][0]["x"] == ["2026-01-01 12:00:00", "2026-01-03 12:00:00"]
    assert figure["data"][0]["marker"]["symbol"] == ["circle", "circle"]


def test_another_launch_size_is_not_compared() -> None:
    pair = measured(source=origin("a", 0)), measured(source=origin("b", 1), grid="128 x 1 x 1")
    (history,) = view(*pair)["histories"]
    assert history["rows"][1]["change"] == "other launch size"
    assert history["rows"][0]["revision"] == "not recorded"


@pytest.mark.parametrize(
    "other",
    [
        {"gpu": "NVIDIA H100"},
        {"name": "copy"},
        {"source": origin("b", 1, params={"n": 2048})},
        {"source": origin("b", 0)},
    ],
    ids=["another GPU", "another kernel", "other parameters", "the same time"],
)
def test_what_is_no_history(other: dict[str, Any]) -> None:
    second = measured(**{"source": origin("b", 1), **other})
    assert (
        view(measured(source=origin("a", 0, params={"n": 1024} if "params" in str(other) else {})), second)[
            "histories"
        ]
        == []
    )


# The file


EVERYTHING = (
    *(measured(f"k{i}", source=origin(f"{i}.ncu-rep", i, page=f"/runs/{i}.html")) for i in range(3)),
    measured("k0", source=origin("later.ncu-rep", 9)),
    measured("h", gpu="NVIDIA H100"),
)
BAD = (Unusable("bad.ncu-rep", "is truncated"), Unusable("run", "no counters: no driver", "/runs/run/r.html"))


def test_every_element_is_closed_every_link_has_its_target() -> None:
    _, found = page(*EVERYTHING, unusable=BAD)
    assert found.faults == []
    assert found.open == []
    assert [id for id, count in Counter(found.ids).items() if count > 1] == []
    inside = {v[1:] for tag, name, v in found.attributes if (tag, name) == ("a", "href") and v[0] == "#"}
    assert inside - set(found.ids) == set()


def test_reports_and_runs_lead_to_their_pages() -> None:
    _, found = page(*EVERYTHING, unusable=BAD)
    links = {v for tag, name, v in found.attributes if (tag, name) == ("a", "href") and v[0] != "#"}
    assert links == {"0.html", "1.html", "2.html", "run/r.html"}


def test_an_address_is_a_path_whatever_the_folder_is_called() -> None:
    assert (
        link("/runs/javascript:alert(1)/report.html", Path("/runs"))
        == "javascript%3Aalert%281%29/report.html"
    )
    assert link("/elsewhere/x.html", Path("/runs")) == "../elsewhere/x.html"


def test_a_name_is_text_never_markup() -> None:
    file = "".join(c for c in HOSTILE if not "\ud800" <= c <= "\udfff")  # no file is called like that
    hostile = origin(HOSTILE, 1, page=f"/runs/{file}.html", revision=HOSTILE)
    text, found = page(
        measured(HOSTILE, gpu=HOSTILE, source=hostile), measured(HOSTILE, gpu=HOSTILE),
        unusable=(Unusable(HOSTILE, HOSTILE),),
    )  # fmt: skip
    assert found.faults == []
    assert not [n for _, n, _ in found.attributes if n.startswith("on")]
    assert "<script>alert" not in text
    assert "<img" not in text


def test_nothing_is_loaded_from_anywhere() -> None:
    _, found = page(*EVERYTHING)
    assert [v for _, n, v in found.attributes if n == "src" and v != "plotly.min.js"] == []
    policies = [v for tag, _, v in found.attributes if tag == "meta" and v.startswith("default-src")]
    assert [policy.split(";")[0] for policy in policies] == ["default-src 'none'"]


def test_a_thousand_launches_stay_below_two_megabytes() -> None:
    many = [
        measured(f"kernel_{i}", source=origin(f"runs/{i:04}/profile.ncu-rep", i % 7), duration=1e-5 * (1 + i),
                 gpu=f"NVIDIA GPU {i % 8}", flops_fp32=1e7 * (i + 1), dram_bytes=1e6 * (1 + i * 7 % 91))
        for i in range(1000)
    ]  # fmt: skip
    text, _ = page(*many)
    assert len(text.encode()) < 2_000_000
    assert all(len(json.dumps(figure)) < 15_000 for figure in view(*many)["figures"].values())


def test_a_page_without_any_launch_says_so() -> None:
    text, found = page(unusable=BAD)
    assert found.faults == []
    assert "No launch was found." in text


# The folder


def report(path: Path, name: str = "gemm", days: int = 0, *, dated: bool = True) -> Path:
    """Write a report that was made after ``days`` and copied a day later; or one that does not say when."""
    path.parent.mkdir(parents=True, exist_ok=True)
    metrics = {"gpu__time_duration.sum": 1000.0 + days}  # no two runs leave the same bytes
    seconds = int((START + timedelta(days=days)).timestamp())
    session = Session(created=seconds if dated else 0)
    write_report(path, [Launch(f"{name}(int)", metrics=metrics)], Device("A40", (8, 6)), session)
    copied = seconds + 86400 if dated else seconds
    os.utime(path, (copied, copied))
    return path


def run_directory(path: Path, revision: str, days: int, *, counters: bool = True, **fields: Any) -> Path:
    """Write what a run leaves: its record, clean timing, page, and the report of ncu."""
    path.mkdir(parents=True)
    created = (START + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    target = {**TARGET, "params": {"n": 64}}
    git = {"revision": revision, "modified": False}
    record = Run(created, "0.1.0", target, {}, git=git, **{"status": "complete", **fields})
    (path / "run.json").write_text(json.dumps(record.as_dict()))
    timing = Timing("cuda-events", 10, 2e-6, 1e-8, 1.9e-6, 2.2e-6)
    (path / "timing.json").write_text(json.dumps(timing.as_dict()))
    (path / "report.html").write_text("a page")
    if counters:
        report(path / "profile.ncu-rep", days=days + 30)
    return path


def test_runs_reports_and_bad_files_are_all_found(tmp_path: Path) -> None:
    run_directory(tmp_path / "one", "abc", 0)
    run_directory(tmp_path / "two", "def", 1)
    report(tmp_path / "plain.ncu-rep", "copy", 5)
    (tmp_path / "plain.html").write_text("a page")
    (tmp_path / "bad.ncu-rep").write_text("no report\n" * 9)
    error = {"code": "no-driver", "message": "no driver", "hint": "install one"}
    run_directory(tmp_path / "three", "abc", 2, counters=False, status="failed", error=error)
    found = survey(tmp_path, workers=1)
    origins = {one.origin.name: one.origin for one in found.measured}
    assert origins.keys() == {"one/profile.ncu-rep", "two/profile.ncu-rep", "plain.ncu-rep"}
    one, plain = origins["one/profile.ncu-rep"], origins["plain.ncu-rep"]
    assert (one.revision, one.recorded, one.time, one.clean) == ("abc", True, START, 2e-6)
    assert (one.page, one.params) == (str(tmp_path / "one" / "report.html"), {"n": 64})
    assert (plain.revision, plain.recorded, plain.page) == (None, False, str(tmp_path / "plain.html"))
    assert plain.time == START + timedelta(days=5)
    bad, failed = found.unusable
    assert (bad.name, failed.name, failed.reason) == ("bad.ncu-rep", "three", "no counters: no driver")
    assert str(tmp_path) not in bad.reason
    assert failed.page == str(tmp_path / "three" / "report.html")
    (history,) = page_view(found, tmp_path / "index.html", generated="now")["histories"]
    assert [row["revision"] for row in history["rows"]] == ["abc", "def"]


def test_a_report_says_itself_when_it_was_made(tmp_path: Path) -> None:
    report(tmp_path / "said.ncu-rep", "said", 5)
    report(tmp_path / "unsaid.ncu-rep", "unsaid", 7, dated=False)
    found = survey(tmp_path, workers=1)
    said, unsaid = sorted((one.origin for one in found.measured), key=lambda origin: origin.name)
    assert (said.time, said.of_file) == (START + timedelta(days=5), False)  # not when it was copied
    assert (unsaid.time, unsaid.of_file) == (START + timedelta(days=7), True)
    shown = html.page(page_view(found, tmp_path / "index.html", generated="now"), plotly="directory")
    assert shown.count(" <small>file</small></td>") == 1


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("sm80-a100-80gb-pcie-ncu2024.1-01", "2024-11-01 14:41:57"),
        ("sm90-gh200-120gb-ncu2025.2-01", "2026-07-17 11:37:41"),
    ],
)
def test_the_time_is_that_of_ncus_session_page(name: str, made: str, shared: Path) -> None:
    assert f"{created(shared / 'reports' / 'ncu' / f'{name}.ncu-rep'):%Y-%m-%d %H:%M:%S}" == made


@pytest.mark.parametrize(
    "bytes_", [b"", b"NVR\0", b"NVR\0\2\0\0\0\x08\7", b"NVR\0\2\0\0\0\x08\7\5\0\0\0\x1a\xff\xff"]
)
def test_a_file_that_is_cut_off_says_no_time(bytes_: bytes, tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(bytes_)
    assert created(tmp_path / "cut") is None


def test_a_damaged_record_leaves_the_report_and_is_said(tmp_path: Path) -> None:
    run_directory(tmp_path / "one", "abc", 0)
    (tmp_path / "one" / "run.json").write_text("{")
    run_directory(tmp_path / "two", "abc", 0, counters=False)
    (tmp_path / "two" / "run.json").write_text("{")
    found = survey(tmp_path, workers=1)
    assert [one.origin.recorded for one in found.measured] == [False]
    assert "damaged" in found.unusable[0].reason


def test_copies_of_one_file_are_counted_once_and_said(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", "abc", 0)
    (tmp_path / "mailed").mkdir()
    for name in ("gemm.ncu-rep", "gemm-2.ncu-rep"):
        shutil.copy2(run / "profile.ncu-rep", tmp_path / "mailed" / name)
    report(tmp_path / "another.ncu-rep", days=3)
    build_dataset(tmp_path / "mailed", tmp_path / "fleet", workers=1)  # it holds two of the three
    found = survey(tmp_path, workers=1)
    origins = {one.origin.name: one.origin.copies for one in found.measured}
    copies = ("mailed/gemm-2.ncu-rep", "mailed/gemm.ncu-rep")
    assert origins == {"run/profile.ncu-rep": copies, "another.ncu-rep": ()}
    shown = page_view(found, tmp_path / "index.html", generated="now")
    assert shown["heading"] == "2 launches of 1 kernel in 2 reports"
    told = {row["report"]: row["copies"] for row in shown["table"]["rows"]}
    assert told == {"run/profile.ncu-rep": "3 copies of one file", "another.ncu-rep": ""}
    found_line = next(row for row in shown["provenance"] if row["name"] == "Found")
    assert "4 reports" in found_line["text"][0]["text"]
    assert "2 of the reports are copies of others" in found_line["text"][0]["text"]
    assert html.page(shown, plotly="directory").count("3 copies of one file") == 1


def test_reports_of_a_dataset_are_not_read_again(tmp_path: Path) -> None:
    first = report(tmp_path / "runs" / "a.ncu-rep", "a")
    build_dataset(tmp_path / "runs", tmp_path / "runs" / "fleet", workers=1)
    read: list[str] = []
    found = survey(tmp_path / "runs", progress=lambda *p: read.append(p[2]))
    assert (read, found.datasets, len(found.measured)) == ([], ("fleet",), 1)
    report(tmp_path / "runs" / "b.ncu-rep", "b")
    found = survey(tmp_path / "runs", workers=1, progress=lambda *p: read.append(p[2]))
    assert [Path(name).name for name in read] == ["b.ncu-rep"]
    assert {one.kernel.name for one in found.measured} == {"a", "b"}
    first.unlink()
    assert len(survey(tmp_path / "runs" / "fleet").measured) == 1


def test_a_dataset_of_another_version_is_said_not_shown(tmp_path: Path) -> None:
    build_dataset(report(tmp_path / "a.ncu-rep"), tmp_path / "fleet", workers=1)
    state = tmp_path / "fleet" / "_state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "fingerprint": "older"}))
    found = survey(tmp_path / "fleet")
    assert found.measured == ()
    assert "another version" in found.unusable[0].reason


def test_a_failed_launch_says_that_it_failed(tmp_path: Path) -> None:
    metrics = {"gpu__time_duration.sum": 5.0, "profiler__replayer_passes": 0}
    write_report(tmp_path / "a.ncu-rep", [Launch("k()", metrics=metrics)])
    (one,) = survey(tmp_path, workers=1).measured
    assert one.cls == "failed"
    assert (one.kernel.metrics["dram_throughput_pct"].reason or "").startswith("failed pass: ")


def test_synthetic_samples_are_marked(tmp_path: Path) -> None:
    shutil.copy(SAMPLES["several-launches"], tmp_path / "a.ncu-rep")
    found = page_view(survey(tmp_path, workers=1), tmp_path / "index.html", generated="now")
    assert "no GPU was measured" in found["synthetic"][0]["text"]


@pytest.mark.parametrize("what", ["nothing", "empty"])
def test_a_folder_without_anything_is_an_error(what: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReportNotFound):
        survey(tmp_path / what)


@pytest.mark.usefixtures("processes")
def test_the_page_is_written_into_the_folder_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path / "a.ncu-rep")
    arguments = ["ncukit", "index", str(tmp_path), "--plotlyjs", "directory", "-w", "1"]
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    assert capsys.readouterr().out == f"{tmp_path / 'index.html'}\n"
    assert Page((tmp_path / "index.html").read_text()).faults == []
    with pytest.raises(UsageError, match="exists already"):
        write_index(tmp_path)


# In a browser


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_choice_hides_rows_and_points(tabs: Tabs, tmp_path: Path) -> None:
    other = measured("z", duration=9e-3, cls="compute-bound", limiter="fp32", flops_fp32=9e11)
    html.write_page(tmp_path / "index.html", view(*EVERYTHING, other, unusable=BAD), plotly="directory")
    tab = tabs.open(tmp_path / "index.html")
    tab.wait_for_selector(".fig svg.main-svg")
    shown = "document.querySelector('.fig').data.filter(t => t.ids).flatMap(t => t.ids)"
    assert len(tab.evaluate(shown)) == 2
    tab.select_option('[data-pick="class"]', "compute-bound")
    for _ in range(100):
        if len(tab.evaluate(shown)) == 1:
            break
        tab.wait_for_timeout(50)
    assert tab.evaluate(shown) == ["1"]
    assert tab.inner_text("#picked") == "1 of 6"
    assert tab.locator("#measured tbody tr:visible").count() == 1
    tab.select_option('[data-pick="class"]', "")
    tab.select_option('[data-pick="gpu"]', "1")
    assert tab.locator("#measured tbody tr:visible").count() == 1
    assert tab.locator("[data-fold]:visible").count() == 1
    tab.select_option('[data-pick="gpu"]', "")
    tab.fill('[data-pick="name"]', "K0")
    assert tab.locator("#measured tbody tr:visible").count() == 2
    for width in (375, 640, 1020, 1181, 1600):
        tab.set_viewport_size({"width": width, "height": 768})
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
    assert tabs.leave() == []


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_table_fits_and_the_report_stands_beside_the_kernel(tabs: Tabs, tmp_path: Path) -> None:
    many = [
        measured(
            f"device_radix_sort_{i}",
            source=origin(f"sm75-gtx-1660-super-ncu2024.1-{i:02}.ncu-rep", i, page=f"/runs/{i}.html"),
            gpu="NVIDIA GeForce GTX 1660 SUPER",
            sm_throughput_pct=50.0,
            memory_throughput_pct=91.0,
            achieved_occupancy_pct=None if i % 2 else 60.0,
            flops_fp32=1e9 * (i + 1),
        )
        for i in range(40)
    ]
    html.write_page(tmp_path / "index.html", view(*many), plotly="directory")
    tab = tabs.open(tmp_path / "index.html")
    heads = [text.strip() for text in tab.locator("#measured thead th").all_inner_texts()]
    assert [head.split()[0] for head in heads[:4]] == ["Row", "Kernel", "Report", "GPU"]
    assert "Revision" not in " ".join(heads)  # no report has one
    box = "document.querySelector('#measured').parentElement"
    for width in (1280, 1920):
        tab.set_viewport_size({"width": width, "height": 800})
        assert tab.evaluate(f"{box}.scrollWidth <= {box}.clientWidth"), width
    tab.set_viewport_size({"width": 400, "height": 800})
    tab.evaluate(f"{box}.scrollIntoView()")
    assert tab.evaluate(f"{box}.getBoundingClientRect().bottom") <= 800  # its scrollbar is on the screen
    name = tab.locator("#measured tbody a").first.bounding_box()
    assert name is not None
    assert name["x"] + name["width"] <= 400
    assert tabs.leave() == []
