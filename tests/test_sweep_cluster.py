"""Points of a sweep on the workers of a cluster: one at a time on each GPU; killed workers lose nothing."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from ncukit import cluster
from ncukit.api import datasets
from ncukit.errors import NcukitError
from ncukit.run import directory
from ncukit.run.directory import turn
from ncukit.run.options import ProfileOptions
from ncukit.run.sweep import Point, Reached, done_before
from ncukit.run.target import Target
from ncukit.run.tools.failures import Failure
from tests.runs import WORKLOAD, Lab, Outcome, furnished, gemm

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask, when workers are killed

TIMES = """
import atexit, os, pathlib, time
at = next(word for word in open("/proc/self/cmdline").read().split("\\0") if word.startswith("n="))
def log(what):
    with open(os.environ["RUNS"] + ".times", "a") as file:
        file.write(f"{time.time()} {what} {at} {os.getpid()}\\n")
log("begin")
atexit.register(log, "end")
bodies = open(os.environ["RUNS"] + ".times").read().count(f"begin {at} ")
hold = pathlib.Path(os.environ["RUNS"] + ".hold")
while hold.exists() and at == "n=16" and bodies == 3:     # in the child that ncu measures
    time.sleep(0.02)
"""
"""Says when each execution of the script begins and ends; waits in the third of n=16 on request."""


PROFILE = ("profile", "work.py", "--kernel", "gemm", "--repeat", "3", "--param", "n=8,16,24")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, stands: Path) -> Iterator[Lab]:
    """A lab whose environment the workers of the cluster inherit."""
    pytest.importorskip("distributed", reason="dask[distributed] is not installed")
    with pytest.MonkeyPatch.context() as patch:
        made = furnished(tmp_path_factory.mktemp("lab"), patch, stands)
        made.launches(gemm())
        made.script(TIMES + WORKLOAD)
        yield made


@pytest.fixture(scope="module")
def workers(lab: Lab) -> Iterator[Any]:
    """Two workers that declare one GPU each; the stand-in for the driver shows both the same one."""
    import distributed

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, protocol="tcp", resources={"GPU": 1}
    ) as made:
        yield made


@pytest.fixture
def sweep(lab: Lab, workers: Any) -> Callable[..., Outcome]:
    """Profile three points on the cluster."""
    for file in lab.folder.glob("runs*"):
        if file.is_file():
            file.unlink()

    def profile(*words: str) -> Outcome:
        own = PROFILE if "-o" in words else ("profile",)
        return lab(*own, *words, "--dask", workers.scheduler_address)

    return profile


@pytest.fixture(scope="module")
def done(lab: Lab, workers: Any) -> Path:
    """A sweep in which all goes well, and what it executed; tests only look at it, or copy it."""
    ran = lab(*PROFILE, "--dask", workers.scheduler_address, "-o", "runs_of/whole")
    assert ran.code == 0, ran.err
    (lab.folder / "runs.times").rename(lab.folder / "whole.times")
    (lab.folder / "whole.err").write_text(ran.err)
    return lab.folder / "runs_of" / "whole"


@pytest.fixture
def begun(done: Path) -> Path:
    """A copy of it, to go on with."""
    number = len(list(done.parent.iterdir()))
    return Path(shutil.copytree(done, done.with_name(f"copy-{number}")))


def record(folder: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(folder) / "run.json").read_text())
    return found


def executions(lab: Lab, name: str = "runs.times") -> list[tuple[float, str, str, str]]:
    """Return time, what, point and process of each beginning and end of the script."""
    lines = (lab.folder / name).read_text().splitlines()
    return sorted((float(t), what, at, pid) for t, what, at, pid in map(str.split, lines))


def test_each_point_is_a_run_in_the_folder_of_the_sweep(done: Path) -> None:
    found = record(done)
    assert found["status"] == "complete"
    assert [point["params"] for point in found["points"]] == [{"n": "8"}, {"n": "16"}, {"n": "24"}]
    for point in found["points"]:
        own = record(done / point["directory"])
        assert (own["status"], own["isolation"]["verdict"]) == ("complete", "proven")
        assert own["target"]["params"] == point["params"]
    page = (done / "report.html").read_text()
    assert all(f"[n={n}]" in page for n in (8, 16, 24))


def test_what_is_reached_is_told_with_the_machine(done: Path, lab: Lab) -> None:
    said = (lab.folder / "whole.err").read_text()
    assert [f"note: {n} of 3: n=" in said for n in (1, 2, 3)] == [True] * 3
    assert f" on {socket.gethostname()}: complete" in said


def test_two_workers_on_one_gpu_take_turns(done: Path, lab: Lab) -> None:
    order = [at for _, what, at, _ in executions(lab, "whole.times") if what == "begin"]
    assert len(order) == 9  # timing, nsys and ncu of each point
    assert len([1 for a, b in itertools.pairwise(order) if a != b]) == 2, order


def test_a_worker_that_is_killed_midway_loses_nothing(
    sweep: Callable[..., Outcome], lab: Lab, workers: Any
) -> None:
    hold = lab.folder / "runs.hold"
    hold.touch()

    def kill() -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            file = lab.folder / "runs.times"
            if file.exists() and file.read_text().count("begin n=16 ") == 3:
                break
            time.sleep(0.05)
        owner = next(int(p) for p in ancestors(waiting(lab)) if int(p) in pids(workers))
        os.kill(owner, signal.SIGKILL)
        hold.unlink()

    killer = threading.Thread(target=kill)
    killer.start()
    ran = sweep("-o", "runs_of/killed")
    killer.join()
    assert ran.code == 0, ran.err
    found = record("runs_of/killed")
    assert [point["status"] for point in found["points"]] == ["complete"] * 3
    steps = {step["name"]: step for step in record("runs_of/killed/n=16")["steps"]}
    assert steps["counters"]["attempts"] == 2
    assert (steps["timing"]["attempts"], steps["timeline"]["attempts"]) == (1, 1)  # gained before, and kept
    begun = [at for _, what, at, _ in executions(lab) if what == "begin"]
    assert (begun.count("n=8"), begun.count("n=16"), begun.count("n=24")) == (3, 4, 3)


def waiting(lab: Lab) -> int:
    """Return the process that waits in the script."""
    return int([pid for _, what, at, pid in executions(lab) if (what, at) == ("begin", "n=16")][-1])


def ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        yield pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def pids(workers: Any) -> set[int]:
    return {worker.pid for worker in workers.workers.values()}


def test_resuming_measures_only_the_points_that_are_not_complete(
    sweep: Callable[..., Outcome], lab: Lab, begun: Path
) -> None:
    (begun / "n=24" / "profile.ncu-rep").unlink()
    before = {n: record(begun / f"n={n}") for n in (8, 16)}
    ran = sweep("--resume", str(begun))
    assert ran.code == 0, ran.err
    assert {at for _, _, at, _ in executions(lab)} == {"n=24"}
    assert {n: record(begun / f"n={n}") for n in (8, 16)} == before
    assert [point["status"] for point in record(begun)["points"]] == ["complete"] * 3


def test_a_point_that_was_begun_on_another_gpu_begins_anew(
    sweep: Callable[..., Outcome], begun: Path
) -> None:
    there = record(begun / "n=8")
    there |= {"status": "incomplete", "gpu": {**there["gpu"], "uuid": "GPU-another"}}
    (begun / "n=8" / "run.json").write_text(json.dumps(there))
    ran = sweep("--resume", str(begun))
    assert ran.code == 0, ran.err
    assert record(begun / "n=8")["gpu"]["uuid"] != "GPU-another"
    assert record(begun / "n=8-before-1")["gpu"]["uuid"] == "GPU-another"


def test_every_point_that_fails_is_named_and_the_others_are_kept(
    sweep: Callable[..., Outcome], lab: Lab, begun: Path
) -> None:
    for n in (8, 24):
        (begun / f"n={n}" / "profile.ncu-rep").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "carry_job", fail)
        ran = sweep("--resume", str(begun))
    assert ran.code == 5  # n=16 is a report
    assert "error: n=8: it would not" in ran.err
    assert "note: n=24: it would not" in ran.err
    assert [point["status"] for point in record(begun)["points"]] == ["failed", "complete", "failed"]


def fail(job: datasets.Job) -> Reached:
    return Reached.failed(job.point, Failure("x", "x", "it would not", "try"))


def test_the_plan_says_where_points_run_and_runs_none(lab: Lab) -> None:
    words = ("work.py", "--kernel", "gemm", "--param", "n=8,16", "--dask", "tcp://head:8786", "--dry-run")
    ran = lab("profile", *words)
    assert ran.code == 0, ran.err
    assert (
        "# each point on a worker of tcp://head:8786 that declares a GPU, one at a time on each GPU"
        in ran.out
    )
    assert ran.out.count("--param n=8 ") == ran.out.count("--param n=16 ") >= 2


def test_a_cluster_is_for_several_points(lab: Lab) -> None:
    ran = lab("profile", "work.py", "--kernel", "gemm", "--dask", "tcp://127.0.0.1:9")
    assert ran.code == 2
    assert "a cluster measures the points of a sweep" in ran.err


def test_without_a_worker_that_declares_a_gpu_the_error_says_how_to_start_one(workers: Any) -> None:
    with pytest.raises(NcukitError, match="no worker declares a QPU") as caught:
        list(cluster.run(abs, [-1], workers.scheduler_address, lambda *_: 0, resource="QPU"))
    assert caught.value.hint.endswith("--resources QPU=1 --nthreads 1")


def test_a_cluster_that_loses_its_last_worker_does_not_wait_for_ever(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([True, True, False, False])
    monkeypatch.setattr(cluster, "PATIENCE", 0.1)
    monkeypatch.setattr(cluster, "_able", lambda *_: next(answers))
    with pytest.raises(NcukitError, match="no worker is left of those that declare a QPU"):
        list(cluster.run(abs, [-1], workers.scheduler_address, lambda *_: 0, resource="QPU"))


def test_a_scheduler_that_goes_away_is_an_error_of_two_lines(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import distributed

    def wait(*_: Any, **__: Any) -> None:
        raise CancelledError("scheduler-connection-lost")

    monkeypatch.setattr(distributed, "wait", wait)
    with pytest.raises(NcukitError, match=r"the Dask scheduler at tcp://.* went away"):
        list(cluster.run(abs, [-1], workers.scheduler_address, lambda *_: 0))


def job(folder: Path, **changes: Any) -> datasets.Job:
    target = Target("workload", "gemm", "", Path("work.py").absolute(), call="gemm")
    return datasets.Job(Point({"n": "8"}, folder / "n=8"), target, ProfileOptions(), folder, **changes)


def test_a_machine_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    found = datasets.carry_job(job(tmp_path / "elsewhere"))
    assert found.failure is not None
    assert (found.status, found.failure.code) == ("failed", "not-shared")
    assert not (tmp_path / "elsewhere").exists()


def test_a_job_that_takes_its_workers_with_it_is_a_failure_of_its_point_alone(tmp_path: Path) -> None:
    found = datasets.lost(job(tmp_path), "with it several Dask workers")
    assert found.failure is not None
    assert (found.evidence, found.failure.code) == (False, "worker-lost")


def test_a_turn_on_a_gpu_waits_for_the_one_before(lab: Lab) -> None:
    order = []

    def second() -> None:
        with turn():
            order.append("second")

    with turn():
        other = threading.Thread(target=second)
        other.start()
        other.join(0.5)
        order.append("first")
    other.join()
    assert order == ["first", "second"]


def test_a_complete_run_whose_files_changed_is_not_done(begun: Path) -> None:
    point = Point({"n": "8"}, begun / "n=8")
    assert done_before(point) is not None
    (point.folder / directory.TIMING).write_text("{}")
    assert done_before(point) is None
