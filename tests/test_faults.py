"""Full disks, folders that cannot be written, odd names, no home: said in two lines, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ncukit.errors import UsageError
from ncukit.files import beside, write_text
from tests.mutations.run import Ended, run
from tests.mutations.warm import warm
from tests.runs import RUN, WORKLOAD, Lab, furnished, wait_for, whole


@pytest.fixture(scope="session")
def one(without_code: Path) -> Path:
    """A report of one launch."""
    return without_code / "copy-dram.ncu-rep"


def ncukit(folder: Path, *words: object, **environ: str | None) -> subprocess.CompletedProcess[str]:
    """Run the command line in ``folder``; a variable that is None is taken away."""
    env = {**os.environ, **{k: v for k, v in environ.items() if v is not None}}
    for name in (name for name, value in environ.items() if value is None):
        env.pop(name, None)
    command = [sys.executable, "-m", "ncukit", *map(str, words)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def said(stderr: str) -> list[str]:
    """Return the lines of an error: what happened, what to do."""
    lines = [line for line in stderr.splitlines() if line.startswith(("error: ", "hint: "))]
    assert [line.partition(":")[0] for line in lines] == ["error", "hint"], stderr
    assert "internal error" not in lines[0]
    return lines


# ---- a full disk


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 20 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if not mounted(folder, "-t", "tmpfs", "-o", "size=20k", "tmpfs"):
        pytest.skip("no small disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


WRITES = {
    "report": "report {samples}/copy-dram.ncu-rep",
    "compare": "compare {samples}/copy-dram.ncu-rep {samples}/copy-dram.ncu-rep -o page.html",
    "timeline": "timeline {samples}/gemm-tensor.sqlite -o page.html",
    "dataset": "dataset build {samples} -o fleet --workers 1",
    "roofline": "roofline gemv --m 64 --n 64 --gpu h100-sxm -o page.html",
    "demo": "demo",
    "index": "index {samples} -o page.html --workers 1",
    "parquet": "metrics {samples}/copy-dram.ncu-rep --format parquet -o page.parquet",
    "baseline": "baseline set main {samples}/copy-dram.ncu-rep",
}
KEEPS = {"dataset": {"fleet/_lock", "fleet/_state.json"}}
"""What is left of those that go on where they stopped."""


@pytest.fixture
def written(tmp_path: Path, without_code: Path) -> Callable[[str, Path], Ended]:
    """Run one of the commands in a folder, in a fork of this process."""
    warm()

    def run_in(command: str, folder: Path) -> Ended:
        words = [word.format(samples=without_code) for word in WRITES[command].split()]
        return run(words, tmp_path, lambda: os.chdir(folder))

    return run_in


@pytest.mark.parametrize("command", WRITES)
def test_a_full_disk_leaves_no_half_file(
    command: str, small: Path, written: Callable[[str, Path], Ended]
) -> None:
    ended = written(command, small)
    assert ended.code == 2, ended.err
    error, hint = said(ended.err)
    assert "No space left on device" in error or "Disk quota" in error
    assert "another place" in hint
    assert {str(path.relative_to(small)) for path in whole(small)} == KEEPS.get(command, set())


def test_what_is_there_survives_a_failed_overwrite(small: Path, one: Path) -> None:
    page = small / "page.html"
    page.write_text("older")
    done = ncukit(small, "report", one, "-o", page, "--force")
    assert said(done.stderr)
    assert page.read_text() == "older"
    assert list(small.iterdir()) == [page]


# ---- folders and names


@pytest.fixture
def fixed(tmp_path: Path) -> Iterator[Path]:
    """A folder that nobody may write to, root neither."""
    folder = tmp_path / "fixed"
    folder.mkdir()
    if not mounted(folder, "--bind", folder):
        pytest.skip("no folder can be mounted here")
    if not mounted(folder, "-o", "remount,ro,bind"):
        subprocess.run(["umount", "-l", str(folder)], check=True)
        pytest.skip("no folder can be mounted read-only here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def mounted(folder: Path, *words: object) -> bool:
    """Mount ``folder``; return whether that worked."""
    command = ["mount", *map(str, words), str(folder)]
    return (
        bool(shutil.which("mount"))
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


@pytest.mark.parametrize("command", WRITES)
def test_a_folder_that_cannot_be_written_is_named(
    command: str, fixed: Path, written: Callable[[str, Path], Ended]
) -> None:
    ended = written(command, fixed)
    assert ended.code == 2
    error, hint = said(ended.err)
    assert "Read-only file system" in error
    assert "with -o" in hint or "with --folder" in hint
    assert list(fixed.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path, one: Path) -> None:
    tmp_path.chmod(0o500)
    done = ncukit(tmp_path, "report", one)
    tmp_path.chmod(0o700)
    assert "Permission denied" in said(done.stderr)[0]


def test_a_place_below_a_file_is_named(tmp_path: Path, one: Path) -> None:
    (tmp_path / "file").touch()
    done = ncukit(tmp_path, "report", one, "-o", "file/page.html")
    assert said(done.stderr)[0].startswith("error: cannot write file/page.html: ")


ODD = ("mit Leerzeichen ü 核 \u202e", "-o", "a'\"$(x);&|", "x" * 247)


@pytest.mark.parametrize("stem", ODD)
def test_odd_names_of_files_are_names(stem: str, tmp_path: Path, one: Path) -> None:
    name, page = f"{stem}.ncu-rep", tmp_path / f"{stem}.html"
    shutil.copy(one, tmp_path / name)
    assert ncukit(tmp_path, "show", "--", name).returncode == 0
    done = ncukit(tmp_path, "report", "--", name)
    assert done.returncode == 0, done.stderr
    assert page.exists()
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / name, page])


def test_a_name_that_is_no_text_is_a_name(tmp_path: Path, one: Path) -> None:
    """Linux takes any bytes; the native library and JSON want UTF-8."""
    name = os.fsdecode(b"\xff\xfe.ncu-rep")
    shutil.copy(one, tmp_path / name)
    assert ncukit(tmp_path, "show", name).returncode == 0
    assert ncukit(tmp_path, "report", name).returncode == 0
    assert json.loads(ncukit(tmp_path, "metrics", name, "--json").stdout)["file"] == name
    done = ncukit(tmp_path, "dataset", "build", ".", "-o", "fleet")
    assert done.returncode == 4
    assert r"hint: \xff\xfe.ncu-rep is skipped: its name is not UTF-8" in done.stderr
    done = ncukit(tmp_path, "dataset", "build", name, "-o", "fleet")
    assert done.returncode == 2
    assert r"the name b'\xff\xfe.ncu-rep' is no UTF-8" in said(done.stderr)[0]


def test_a_pipe_is_not_waited_for(tmp_path: Path, one: Path) -> None:
    for name in ("x.ncu-rep", "x.json", "x.nsys-rep"):
        os.mkfifo(tmp_path / name)
    commands = [(verb, "x.ncu-rep") for verb in ("show", "report", "metrics", "advise")]
    commands += [(verb, "x.json") for verb in ("timeline", "ops", "advise")]
    for words in (*commands, ("timeline", "x.nsys-rep"), ("show", one, "--timeline", "x.json")):
        done = ncukit(tmp_path, *words)
        assert (done.returncode, "is a pipe or device" in said(done.stderr)[0]) == (4, True), words
    shutil.copy(one, tmp_path / "sound.ncu-rep")
    done = ncukit(tmp_path, "dataset", "build", ".", "-o", "fleet")
    assert (done.returncode, "1 cannot be used" in done.stdout) == (4, True)
    assert ncukit(tmp_path, "index", ".").returncode == 0


def test_a_name_of_255_bytes_can_be_written(tmp_path: Path, one: Path) -> None:
    page = tmp_path / ("b" * 250 + ".html")
    assert ncukit(tmp_path, "report", one, "-o", page.name).returncode == 0
    assert page.exists()
    assert "File name too long" in said(ncukit(tmp_path, "report", one, "-o", "b" * 251 + ".html").stderr)[0]


# ---- surroundings


@pytest.mark.parametrize("home", [None, "/proc/nonexistent", "/dev/null"])
def test_no_home_is_needed(home: str | None, tmp_path: Path, one: Path) -> None:
    bare = {"HOME": home, "XDG_CACHE_HOME": None, "XDG_CONFIG_HOME": None}
    bare |= {f"NCUKIT_{name}": "/bin/true" for name in ("NCU", "NSYS", "NVCC")}  # the real ones take 1 s
    for words in (("show", one), ("doctor", "--json"), ("timeline", one.with_name("gemm-tensor.sqlite"))):
        done = ncukit(tmp_path, *words, **bare)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr


def test_a_full_folder_for_temporary_files_is_said(small: Path, tmp_path: Path) -> None:
    """JSON waits there until the last launch was read; the result itself would have had room."""
    rows = "".join(f'"{n}","f","(1, 1, 1)","(32, 1, 1)","7"\n' for n in range(900))
    head = '"ID","Kernel Name","Grid Size","Block Size","sm__cycles_active.avg"\n'
    (tmp_path / "x.csv").write_text(head + rows)
    done = ncukit(tmp_path, "metrics", "x.csv", "--json", TMPDIR=str(small))
    assert done.returncode == 1
    assert "No space left on device" in said(done.stderr)[0]
    assert list(small.iterdir()) == []


def test_without_a_place_for_words_the_exit_code_says_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ncukit", "show", "nothing.ncu-rep"]
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=full, check=False)
    assert done.returncode == 4


@pytest.mark.parametrize("place", ["fixed", "small"])
def test_a_cache_that_takes_nothing_is_no_obstacle(
    place: str, request: pytest.FixtureRequest, tmp_path: Path, one: Path
) -> None:
    cache: Path = request.getfixturevalue(place)
    if place == "small":
        with suppress(OSError), (cache / "full").open("wb", buffering=0) as file:
            while file.write(bytes(1024)):
                pass
    before = list(cache.rglob("*"))
    trace = one.with_name("gemm-tensor.sqlite")
    for words in (("report", one, "-o", tmp_path / "page.html"), ("timeline", trace)):
        done = ncukit(tmp_path, *words, XDG_CACHE_HOME=str(cache))
        assert (done.returncode, done.stderr) == (0, "")
    assert [path for path in cache.rglob("*") if path.is_file() and path not in before] == []


def test_a_folder_that_is_gone_is_said(tmp_path: Path, one: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = (
        "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    command = [sys.executable, "-c", program, "-m", "ncukit", "report", str(one)]
    done = subprocess.run(command, cwd=gone, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert said(done.stderr)


# ---- runs


LabIn = Callable[[Path], Lab]


@pytest.fixture
def lab_in(monkeypatch: pytest.MonkeyPatch, stands: Path) -> LabIn:
    """Furnish a folder to profile in."""

    return lambda folder: furnished(folder, monkeypatch, stands)


def test_a_run_on_a_full_disk_keeps_what_it_has(small: Path, tmp_path: Path, lab_in: LabIn) -> None:
    lab = lab_in(tmp_path / "lab")
    done = ncukit(lab.folder, *RUN, "-o", small / "run")
    assert done.returncode == 1, done.stderr
    assert "No space left on device" in said(done.stderr)[0]
    assert {path.name for path in whole(small)} >= {"run.json", "timing.json"}
    assert list(small.glob(".*")) == []


def test_a_run_directory_that_cannot_be_made_is_named(fixed: Path, tmp_path: Path, lab_in: LabIn) -> None:
    lab = lab_in(tmp_path / "lab")
    ran = lab(*RUN, "-o", str(fixed / "run"))
    assert (ran.code, "Read-only file system" in ran.err) == (2, True)
    assert not (lab.folder / "runs").exists()  # nothing was started for nothing


@pytest.mark.parametrize("name", ["mit Leerzeichen ü 核 [1]", "-a'\"$(x);&|*", "x" * 255])
def test_a_run_directory_may_have_any_name(name: str, tmp_path: Path, lab_in: LabIn) -> None:
    lab = lab_in(tmp_path / "mein Ordner (1) 核")
    lab.script(WORKLOAD + WAITS)
    process = lab.start(*RUN, f"-o{name}")
    wait_for((lab.folder / "runs").exists, process)
    process.kill()  # its scratch folder stays
    process.communicate()
    (left,) = lab.folder.glob(".*.part")
    of_another = left.with_name(f".{name[:100]}.2.12345678.part")
    of_another.mkdir()
    (lab.folder / "go").touch()
    ran = lab("profile", "--resume", f"./{name}")
    assert ran.code == 0, ran.err
    assert {path.name for path in whole(lab.folder / name)} >= {"report.html", "profile.ncu-rep"}
    assert list(lab.folder.glob(".*.part")) == [of_another]


WAITS = """
import pathlib, time
while not pathlib.Path("go").exists():
    time.sleep(0.02)
"""


def test_a_second_process_is_refused_and_the_first_ends_well(tmp_path: Path, lab_in: LabIn) -> None:
    lab = lab_in(tmp_path / "lab")
    lab.script(WORKLOAD + WAITS)
    first = lab.start(*RUN, "-o", "run")
    wait_for((lab.folder / "runs").exists, first)
    second = lab("profile", "--resume", "run")
    third = lab(*RUN, "-o", "run")
    (lab.folder / "go").touch()
    _, err = first.communicate(timeout=60)
    assert first.returncode == 0, err
    assert (second.code, third.code) == (2, 2)
    assert "error: another ncukit works on run\nhint: wait for it, or give another folder" in second.err
    assert "error: run exists already" in third.err
    assert len(lab.bodies()) == 3  # the others started nothing
    assert json.loads((lab.folder / "run" / "run.json").read_text())["status"] == "complete"


# ---- the module


def test_a_failure_while_writing_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "first")

    def fail() -> None:
        with beside(path) as name:
            name.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_overwritten_unless_forced(tmp_path: Path) -> None:
    path = write_text(tmp_path / "file", "first", force=False)
    with pytest.raises(UsageError, match="exists already"):
        write_text(path, "second", force=False)
    assert path.read_text() == "first"


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        path = write_text(tmp_path / "file", "x")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
