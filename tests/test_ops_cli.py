"""``ncukit ops`` from the outside: traces, scripts, folders of ranks; text, JSON, pages; what it refuses."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from ncukit import api
from ncukit.errors import ReportError, ToolError, UsageError
from ncukit.model.ops import Ops, Stay
from ncukit.render.ops.json import ops_data
from ncukit.run.measure import Recorded, record
from ncukit.run.options import ProfileOptions
from ncukit.run.target import resolve
from ncukit.run.tools import nsys
from ncukit.run.tools.process import Completed
from ncukit.schemas import text as schema_text
from ncukit.trace.files import read_counts, read_pyspy
from tests import command as commands
from tests.command import Done
from tests.conftest import no_shared, shared_folder
from tests.test_ranks import LOG, rank
from tests.torch_builder import FLAVOURS, TorchBuilder, training

HAVE_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAVE_TORCH, reason="torch is not installed")
TRACES = sorted((shared_folder() / "reports" / "torch").glob("*.json.gz"))
real = pytest.mark.parametrize("path", TRACES, ids=[p.name.split(".")[0] for p in TRACES])
if not TRACES:
    real = pytest.mark.parametrize("path", [pytest.param(None, marks=pytest.mark.skip(reason=no_shared()))])


Cli = Callable[..., Done]


@pytest.fixture
def ncukit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Run the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return commands.ncukit


def valid(text: str, name: str) -> Any:
    """Return the JSON, which its schema describes and which holds no NaN."""
    data = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    fault = best_match(Draft202012Validator(json.loads(schema_text(name))).iter_errors(data))
    assert fault is None, f"{fault.json_path}: {fault.message}"
    return data


# ---- traces ------------------------------------------------------------------------------------------


@real
def test_every_real_trace_gives_a_table_json_and_a_page(path: Path, ncukit: Cli, tmp_path: Path) -> None:
    done = ncukit("ops", path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80 or any("ncukit profile" in line for line in lines)
    assert "OPERATORS" in done.stdout
    data = valid(ncukit("ops", path, "--json").stdout, "ncukit.ops/1")
    totals = data["totals"]
    own = sum(round(o["device_self"] * 1e9) for o in data["operators"])
    assert own + round(totals["outside_operators"] * 1e9) == round(totals["device"] * 1e9)
    assert ncukit("ops", path, "-o", "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert data["operators"][0]["name"].split("::")[-1] in page
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_version_of_torch_gives_the_same_table(flavour: str, ncukit: Cli, tmp_path: Path) -> None:
    path = training(flavour).write(tmp_path / "t.json.gz")
    data = valid(ncukit("ops", path, "--json").stdout, "ncukit.ops/1")
    assert [(o["name"], round(o["device_total"] * 1e6), o["calls"]) for o in data["operators"][:3]] == [
        ("aten::addmm", 165, 3),
        ("aten::linear", 165, 3),
        ("aten::mm", 120, 3),
    ]
    assert data["operators"][0]["allocated"] is None  # not recorded is not nothing
    assert data["memory"] is None


def test_top_and_sort_choose_what_is_shown(ncukit: Cli, tmp_path: Path) -> None:
    path = training().write(tmp_path / "t.json")
    data = valid(ncukit("ops", path, "--json", "--top", "2", "--sort", "cpu").stdout, "ncukit.ops/1")
    node = "autograd::engine::evaluate_function: AddmmBackward0"
    assert [o["name"] for o in data["operators"]] == ["aten::item", node]
    assert data["operators_left_out"] == 5
    shown = ncukit("ops", path, "--top", "1").stdout
    assert "6 more: --top N" in shown
    assert "more: --top" not in ncukit("ops", path, "--top", "0").stdout


def test_what_cannot_be_asked_for_is_refused(ncukit: Cli, tmp_path: Path) -> None:
    path = training().write(tmp_path / "t.json")
    for arguments, message in (
        (("ops",), "nothing to look at"),
        (("ops", path, "--sort", "name"), "--sort name does not exist"),
        (("ops", path, "--kernel", "step"), "is a trace: nothing is run"),
        (("ops", path, "--nccl-log", "x"), "goes with a folder"),
        (("ops", path, path), "one trace"),
        (("ops", path, "--host"), "holds no Python stacks"),
        (("ops", path, "--range", "step"), "there is no annotation"),
        (("ops", "model.py", "--range", "step"), "a script runs its region alone"),
        (("ops", tmp_path, tmp_path), "one folder"),
        (("ops", tmp_path, "--top", "3"), "a folder of ranks: it has no table of operators"),
    ):
        done = ncukit(*arguments)
        assert done.returncode == 2, arguments
        assert message in done.stderr
        assert "hint:" in done.stderr


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"traceEvents": [{"ph"', b"\x1f\x8b\x08junk", b"[1, 2]", b"<a>"]
)
def test_a_file_that_is_no_trace_ends_with_4_and_a_reason(
    content: bytes, ncukit: Cli, tmp_path: Path
) -> None:
    (path := tmp_path / "t.json").write_bytes(content)
    done = ncukit("ops", path, "--json")
    assert done.returncode == 4
    assert json.loads(done.stdout)["error"]["exit_code"] == 4
    assert done.stderr.startswith("error: ")
    assert ncukit("ops", tmp_path / "none.json").returncode == 4


def test_nothing_is_overwritten_without_force(ncukit: Cli, tmp_path: Path) -> None:
    path = training().write(tmp_path / "t.json")
    assert ncukit("ops", path, "-o", "p.html").returncode == 0
    assert "exists already" in ncukit("ops", path, "-o", "p.html").stderr
    assert ncukit("ops", path, "-o", "p.html", "--force").returncode == 0


def test_names_from_a_trace_are_data(ncukit: Cli, tmp_path: Path) -> None:
    hostile = "</script><b>x\x1b[31m\u202e"
    b = training()
    op = b.op(hostile, 3000, 10, shapes=[[1]], types=[hostile])
    b.launch(hostile, 3001, 3005, 900, op=op)
    path = b.write(tmp_path / "t.json")
    assert "\x1b" not in ncukit("ops", path).stdout
    assert ncukit("ops", path, "-o", "p.html").returncode == 0
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "</script><b>" not in page
    assert "\x1b" not in page


def test_a_terminal_that_knows_only_ascii_gets_ascii(
    ncukit: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncukit.cli.ops.encoding", lambda: "ascii")
    assert ncukit("ops", training().write(tmp_path / "t.json")).stdout.isascii()


def test_stacks_in_a_trace_show_the_host(ncukit: Cli, tmp_path: Path) -> None:
    b = training()
    b.frame("model.py(1): run", 0, 2900)
    data = valid(ncukit("ops", b.write(tmp_path / "t.json"), "--host", "--json").stdout, "ncukit.ops/1")
    assert data["host"]["source"] == "torch"
    assert data["host"]["frames"][0]["name"] == "model.py(1): run"
    shown = ncukit("ops", tmp_path / "t.json", "--host").stdout
    assert "HOST  From torch" in shown


# ---- timeline ----------------------------------------------------------------------------------------


@real
def test_the_timeline_takes_torch_traces_too(path: Path, ncukit: Cli, tmp_path: Path) -> None:
    done = ncukit("timeline", path, "--json")
    if path.name.startswith("trace-02"):
        assert done.returncode == 4
        assert "no GPU kernel ran" in done.stderr
        assert "ncukit ops" in done.stderr
        return
    data = valid(done.stdout, "ncukit.timeline/1")
    assert data["source"]["format"] == "torch"
    assert ncukit("timeline", path, "-o", "t.html").returncode == 0
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "under torch’s profiler" in page or "under torch&#39;s profiler" in page


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_what_a_trace_does_not_say_of_a_launch_is_unknown_and_no_number(
    flavour: str, ncukit: Cli, tmp_path: Path
) -> None:
    """Torch's profiler sums static and dynamic shared memory, and ROCm's says no shape."""
    path = training(flavour).write(tmp_path / "t.json")
    shown = ncukit("timeline", path).stdout
    assert "×-1" not in shown
    assert "B shared memory" not in shown
    launch = valid(ncukit("timeline", path, "--json").stdout, "ncukit.timeline/1")["launch"]
    if flavour == "rocm":
        assert (launch, "rocprofv3" in shown) == (None, True)
    else:
        assert (launch["static_shared"], launch["dynamic_shared"]) == (None, None)


def test_an_annotation_of_torch_is_a_range_of_the_timeline(ncukit: Cli, tmp_path: Path) -> None:
    b = training()
    b.annotation("ProfilerStep#2", 1000, 900)
    path = b.write(tmp_path / "t.json")
    data = valid(ncukit("timeline", path, "--range", "ProfilerStep#2", "--json").stdout, "ncukit.timeline/1")
    assert sum(k["n"] for k in data["kernels"]) == 3


# ---- ranks -------------------------------------------------------------------------------------------


def test_a_folder_of_traces_says_who_is_late(ncukit: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    for i, b in enumerate([rank(0, latest=500), rank(1, compute=400, latest=500, offset=777)]):
        b.write(folder / f"r{i}.json.gz")
    (tmp_path / "nccl.txt").write_text(LOG)
    shown = ncukit("ops", folder, "--nccl-log", "nccl.txt").stdout
    assert "LATE  Rank 1 came last to 5 of 5 collectives" in shown
    assert "it computed longer" in " ".join(shown.split())
    assert "NCCL_P2P_DISABLE = 1 (log): GPUs of one machine" in shown
    assert max(map(len, shown.splitlines())) <= 80
    data = valid(ncukit("ops", folder, "--json").stdout, "ncukit.ranks/1")
    assert (data["late"][0]["rank"], data["late"][0]["why"]) == (1, "compute")
    assert data["ranks"][1]["clock"]["offset"] == pytest.approx(-777e-6)
    assert ncukit("ops", folder, "-o", "ranks.html").returncode == 0
    assert "it computed longer" in (tmp_path / "ranks.html").read_text(encoding="utf-8")
    assert isinstance(api.ranks(folder).late, tuple)


def test_ranks_without_collectives_say_so_in_every_form(ncukit: Cli, tmp_path: Path) -> None:
    for i in range(2):
        (b := TorchBuilder(rank=i)).op("x", 0, 10)
        b.launch("k()", 1, 2, 3)
        b.write(tmp_path / f"r{i}.json")
    assert "nothing can be said about who was late" in " ".join(ncukit("ops", tmp_path).stdout.split())
    assert valid(ncukit("ops", tmp_path, "--json").stdout, "ncukit.ranks/1")["missing"]


def test_one_rank_alone_does_not_say_for_whom_it_waited(ncukit: Cli, tmp_path: Path) -> None:
    rank(0, latest=500).write(tmp_path / "r0.json")
    data = valid(ncukit("ops", tmp_path, "--json").stdout, "ncukit.ranks/1")
    assert (data["ranks"][0]["waiting"], data["kinds"][0]["waited"]) == (None, None)
    assert ncukit("ops", tmp_path, "-o", "ranks.html").returncode == 0


# ---- a script ----------------------------------------------------------------------------------------

MODEL = """
import time
import torch, ncukit

def load():
    return sum(i * i for i in range(20_000))

@ncukit.workload(batch=8)
def step(batch):
    layer, x = torch.nn.Linear(16, 4), torch.randn(batch, 16)
    def run():
        load()
        return layer(x).sum().backward()
    return ncukit.Case(run=run)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.py"
    path.write_text(MODEL)
    return path


@pytest.fixture(scope="module")
def counted(model: Path) -> Ops:
    """The operators of the script; the trace is kept beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NCCL_ALGO", "Ring")
        return api.ops(
            model, kernel="step", params={"batch": 64}, calls=3, trace=model.with_name("kept.json.gz")
        )


@needs_torch
def test_a_script_is_run_and_its_operators_are_those_that_torch_counts(counted: Ops, model: Path) -> None:
    by_name = {o.name: o for o in counted.operators}
    assert by_name["aten::addmm"].shapes == "4, 64x16, 16x4"
    assert by_name["aten::addmm"].calls == 3
    assert counted.sorted_by == "cpu"
    assert counted.torch
    assert len(counted.checks) == 1
    assert "self_cpu_time_total" in counted.checks[0]
    assert "agrees with" in counted.checks[0]
    assert counted.recorded["memory"]
    assert counted.memory[0].device == -1
    kept = model.with_name("kept.json.gz")
    assert json.loads(gzip.decompress(kept.read_bytes()))["nccl_environment"] == {"NCCL_ALGO": "Ring"}
    assert "NCCL was set by NCCL_ALGO=Ring" in counted.notes
    valid(json.dumps(ops_data(counted)), "ncukit.ops/1")


@needs_torch
def test_where_py_spy_is_missing_cprofile_counts_and_that_is_said(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nsys, "find_pyspy", lambda environ: None)
    kept = model.with_name("counted.json.gz")
    counted = api.ops(model, kernel="step", calls=3, trace=kept, host=True)
    assert counted.host is not None
    assert counted.host.source == "cProfile"
    assert {f.gap for f in counted.host.frames} == {None}
    assert any(f.name == "load (model.py)" for f in counted.host.frames)
    assert any("py-spy is not installed" in note for note in counted.notes)


@needs_torch
def test_py_spy_samples_the_region(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nsys, "RATE", 100)  # at 500 the imports alone may take half a minute
    if nsys.find_pyspy(os.environ) is None:
        pytest.skip("py-spy is not installed (pip install ncukit[host])")
    found = api.ops(model, kernel="step", calls=60, trace=model.with_name("spied.json.gz"), host=True)
    assert found.host is not None
    if found.host.source == "cProfile":
        pytest.skip(next(note for note in found.notes if "py-spy" in note))
    names = {f.name for f in found.host.frames}
    assert any(name.startswith("load") and "model.py" in name for name in names)
    assert not any("ncukit_region" in name for name in names)
    assert found.checks == ()  # torch's own sums take it too long for a run that is sampled


def test_a_script_that_fails_ends_with_3_and_its_own_words(ncukit: Cli, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text('def step():\n    raise ValueError("no such layer")\n')
    done = ncukit("ops", "broken.py", "--kernel", "step", "-q")
    assert done.returncode == 3
    assert "ValueError: no such layer" in done.stderr
    assert "hint: run the script alone first" in done.stderr


def test_a_script_needs_a_workload_and_no_sweep(tmp_path: Path) -> None:
    (path := tmp_path / "plain.py").write_text("print('hello')\n")
    with pytest.raises(UsageError, match="workload or a function"):
        api.ops(path)
    options = ProfileOptions()
    with pytest.raises(UsageError, match="workload or a function"):
        record(resolve([str(path)], options), options, tmp_path / "t.json.gz")
    (model := tmp_path / "m.py").write_text(
        "import ncukit\n@ncukit.workload(n=1)\ndef f(n):\n    return None\n"
    )
    with pytest.raises(UsageError, match="no sweep"):
        api.ops(model, kernel="f", options=ProfileOptions(params={"n": ("1", "2")}))


def test_a_script_without_torch_has_no_operators(tmp_path: Path) -> None:
    (path := tmp_path / "m.py").write_text("def f():\n    return 1\n")
    with pytest.raises(ToolError, match="does not import torch"):
        api.ops(path, kernel="f", trace=tmp_path / "t.json.gz")


@pytest.fixture
def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Replace the measured child by one that ran on a GPU; what was asked of it is listed."""
    asked: list[dict[str, Any]] = []

    def stand_in(target: Any, options: Any, trace: Path, **how: Any) -> Recorded:
        asked.append({"target": target, "trace": trace, **how})
        b = training()
        b.annotation("ncukit", 0, 2500)
        stays = (Stay(0, 1_000_000, ("run (m.py)",)), Stay(1_000_000, 2_500_000, ("load (m.py)",)))
        own = {"aten::mm": [3, 150.0, 150.0, 120.0, 120.0]}
        said = {"torch": "2.13.0", "calls": 3, "own": own, "utilisation": {"samples": [37, 41]}}
        trace.parent.mkdir(parents=True, exist_ok=True)
        return Recorded(b.write(trace), said, {"NCCL_ALGO": "Ring"}, stays if how["host"] else ())

    monkeypatch.setattr("ncukit.run.measure.record", stand_in)
    return asked


def test_the_trace_is_kept_beside_the_page_and_the_command_is_whole(
    on_a_gpu: list[dict[str, Any]], model: Path, ncukit: Cli, tmp_path: Path
) -> None:
    words = ("ops", model, "-k", "step", "-p", "batch=9", "-o", "out/page.html", "--host", "-q")
    done = ncukit(*words, "--json", "--", "--lr", "1e-3")
    assert done.returncode == 0, done.stderr
    data = valid(done.stdout, "ncukit.ops/1")
    assert data["trace"] == "out/page.json.gz"
    assert (tmp_path / "out" / "page.json.gz").is_file()
    assert (tmp_path / "out" / "page.html").is_file()
    own = f"{model} --kernel step --param batch=9 -- --lr 1e-3"
    assert data["profile_next"]["command"] == f"ncukit profile --gpu-kernel 'regex:^gemm$' {own}"
    assert data["host"]["source"] == "py-spy"
    assert data["host"]["gap_time"] == 0  # all gaps are shorter than two samples
    assert data["utilisation"][0]["nvidia_smi"]["mean"] == 39
    assert any("self_device_time_total, 120 µs, agrees with" in text for text in data["checks"])
    assert any("NCCL_ALGO=Ring" in note for note in data["notes"])
    assert on_a_gpu[0]["host"] is True
    assert on_a_gpu[0]["target"].params == {"batch": "9"}
    again = ncukit(*words)
    assert (again.returncode, "exists already" in again.stderr) == (2, True)


def test_without_a_page_the_trace_goes_to_reports(
    on_a_gpu: list[dict[str, Any]],
    model: Path,
    ncukit: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RANK", "3")
    for _ in range(2):
        shown = ncukit("ops", model, "-k", "step", "-q").stdout
    kept = sorted((tmp_path / "reports").iterdir())
    assert len(kept) == 2
    assert kept[1].name in shown or kept[0].name in shown
    assert all(path.name.startswith("step-ops-rank3-") and path.name.endswith(".json.gz") for path in kept)


# ---- samples of the host -----------------------------------------------------------------------------


def event(phase: str, name: str, at: int, thread: int = 1, file: str = "/x/site-packages/a/b.py") -> Any:
    args = {"filename": file, "line": 3}
    return {"args": args, "cat": "py-spy", "name": name, "ph": phase, "pid": 1, "tid": thread, "ts": at}


def test_samples_are_taken_from_inside_the_region_only(tmp_path: Path) -> None:
    events = [
        event("B", "<module>", 0),
        event("B", "other", 0, thread=2),
        event("B", "ncukit_region", 10),
        event("B", "run", 10),
        event("B", "load", 20),
        event("E", "load", 50),
        event("E", "run", 60),
        event("E", "ncukit_region", 60),
        event("E", "other", 70, thread=2),
        event("E", "<module>", 80),
    ]
    (path := tmp_path / "s.json").write_text(json.dumps(events))
    assert [(s.start, s.end, s.stack) for s in read_pyspy(path)] == [
        (10_000, 20_000, ("run (a/b.py)",)),
        (20_000, 50_000, ("run (a/b.py)", "load (a/b.py)")),
        (50_000, 60_000, ("run (a/b.py)",)),
    ]


def test_samples_that_never_saw_the_region_are_refused(tmp_path: Path) -> None:
    (path := tmp_path / "s.json").write_text(json.dumps([event("B", "main", 0), event("E", "main", 9)]))
    with pytest.raises(ReportError, match="no sample of the region"):
        read_pyspy(path)
    path.write_text('[{"cat": "py-spy", "ph": "B"}]')
    with pytest.raises(ReportError, match="no trace of py-spy"):
        read_pyspy(path)
    with pytest.raises(ReportError, match="no counts of cProfile"):
        read_counts(path)


@pytest.mark.parametrize(
    ("stderr", "there", "why"),
    [
        ("py-spy> Wrote chrome trace. Samples: 26 Errors: 0", True, ""),
        (
            "Error: Permission Denied: Try running again with elevated permissions",
            False,
            "ptrace is not permitted",
        ),
        ("py-spy> Wrote chrome trace. Samples: 0 Errors: 3", True, "took no sample"),
        ("Error: Failed to find python version from target process", False, "Failed to find python version"),
    ],
)
def test_why_py_spy_took_no_sample_is_said(stderr: str, there: bool, why: str, tmp_path: Path) -> None:
    output = tmp_path / "s.json"
    if there:
        output.write_text("[]")
    said = nsys.refused(Completed(("py-spy",), 1, lines=(("stderr", stderr),)), output)
    assert why in said
    assert bool(said) == bool(why)


def test_py_spy_is_found_where_it_is_named(tmp_path: Path) -> None:
    (tool := tmp_path / "py-spy").write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert nsys.find_pyspy({nsys.VARIABLE: str(tool)}) == tool
    assert nsys.find_pyspy({nsys.VARIABLE: str(tmp_path / "none")}) is None
    assert nsys.find_pyspy({"PATH": str(tmp_path)}) == tool
