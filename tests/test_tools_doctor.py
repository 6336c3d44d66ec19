"""``ncukit doctor`` looks at every link, says pass, fail or unknown, and gives the fix."""

from __future__ import annotations

import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ncukit.cli.doctor import _text as doctor_text
from ncukit.cli.doctor import doctor
from ncukit.run.tools import cuda
from ncukit.run.tools.doctor import SPOILING, Check, Examination, Machine, State, examine, write_bundle
from ncukit.run.tools.process import run
from tests.command import ncukit
from tests.conftest import follows_its_schema
from tests.fakes import install

# A driver with GPUs, as far as the doctor asks it.
LIBCUDA = """
#include <string.h>
#include <unistd.h>
int cuInit(unsigned f) { %(init)s; return %(code)d; }
int cuDriverGetVersion(int *v) { *v = 12040; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDeviceGetName(char *s, int n, int d) { strcpy(s, "NVIDIA H100 Test"); return 0; }
int cuDeviceTotalMem_v2(size_t *n, int d) { *n = 80ull << 30; return 0; }
int cuDeviceGetUuid(unsigned char *u, int d) { for (int i = 0; i < 16; i++) u[i] = i; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? %(major)d : a == 76 ? 0 : 132; return 0; }
"""

MakeDriver = Callable[..., dict[str, str]]


@pytest.fixture
def libcuda(tmp_path: Path) -> MakeDriver:
    """Make a stand-in for libcuda, return the environment in which programs find it."""

    def make(*, code: int = 0, init: str = "", major: int = 9) -> dict[str, str]:
        if (compiler := shutil.which("cc") or shutil.which("gcc")) is None:
            pytest.skip("no C compiler for a stand-in driver")
        folder = tmp_path / "lib"
        folder.mkdir(exist_ok=True)
        source = folder / "cuda.c"
        source.write_text(LIBCUDA % {"code": code, "init": init, "major": major})
        done = run([compiler, "-shared", "-fPIC", "-o", folder / "libcuda.so.1", source])
        assert done.returncode == 0, done.output
        return {"LD_LIBRARY_PATH": str(folder)}

    return make


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., Machine]:
    """A machine with the stand-ins for ncu and nsys, and files below its root."""

    def make(environ: dict[str, str] | None = None, files: dict[str, str] | None = None) -> Machine:
        root = tmp_path / "root"
        for name, text in (files or {}).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        tools = install(tmp_path / "bin")
        given = {"ncu": tools["NCUKIT_NCU"], "nsys": tools["NCUKIT_NSYS"]}
        return Machine({**base, **(environ or {})}, root, given)

    return make


def states(examination: Examination) -> dict[str, str]:
    return {check.id: check.state for check in examination.checks}


def check(examination: Examination, id: str) -> Check:
    return next(check for check in examination.checks if check.id == id)


def test_a_machine_where_all_works(machine: Callable[..., Machine], libcuda: MakeDriver) -> None:
    version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Fri Mar  7 00:36:28 UTC 2025\n"
    nvidia = {"version": version, "params": "RmProfilingAdminOnly: 0\n"}
    files = {f"proc/driver/nvidia/{name}": text for name, text in nvidia.items()}
    found = examine(machine(libcuda(), files))
    links = [
        "python",
        "ncukit",
        "ncu-report",
        "jinja2",
        "driver",
        "gpu",
        "ncu",
        "nsys",
        "nsys-run",
        "counters",
    ]
    assert {link: states(found)[link] for link in links} == dict.fromkeys(links, "pass")
    assert check(found, "driver").detail == "kernel driver 550.163.01, supports CUDA 12.4"
    assert check(found, "gpu").detail == "0: NVIDIA H100 Test, compute capability 9.0, 132 SMs, 80 GiB"
    assert found.can("driver", "gpu", "ncu", "counters") is True


def test_a_machine_without_a_driver_reads_reports_all_the_same(machine: Callable[..., Machine]) -> None:
    if cuda.driver().code is not None:
        pytest.skip("this machine has a driver")
    found = examine(machine({}, {"run/.containerenv": ""}))
    assert (states(found)["driver"], states(found)["gpu"]) == ("fail", "unknown")
    assert "--gpus all" in check(found, "driver").fix
    assert found.as_dict()["can"] == {"read_reports": True, "trace": False, "count": False}


def test_a_driver_without_a_gpu(machine: Callable[..., Machine], libcuda: MakeDriver) -> None:
    found = examine(machine({**libcuda(code=100), "CUDA_VISIBLE_DEVICES": ""}), ["driver", "gpu"])
    assert states(found)["gpu"] == "fail"
    assert "CUDA_VISIBLE_DEVICES is ''" in check(found, "gpu").detail


@pytest.mark.parametrize(
    ("code", "name", "fix"), [(803, "MISMATCH", "reboot"), (34, "STUB", "stub"), (999, "UNKNOWN", "dmesg")]
)
def test_a_driver_that_refuses(
    machine: Callable[..., Machine], libcuda: MakeDriver, code: int, name: str, fix: str
) -> None:
    found = check(examine(machine(libcuda(code=code)), ["driver"]), "driver")
    assert found.state == "fail"
    assert name in found.detail
    assert fix in found.fix


@pytest.mark.parametrize(
    ("init", "problem"), [("*(volatile int *)0 = 1", "SIGSEGV"), ("sleep(300)", "did not answer")]
)
def test_a_driver_that_crashes_or_hangs_does_not_take_ncukit_with_it(
    libcuda: MakeDriver, init: str, problem: str
) -> None:
    answer = cuda.driver(libcuda(init=init), timeout=0.7)
    assert answer.code is None
    assert problem in str(answer.problem)


def test_the_driver_tells_its_gpus(libcuda: MakeDriver) -> None:
    answer = cuda.driver(libcuda())
    uuid = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    gpu = cuda.Gpu(0, "NVIDIA H100 Test", (9, 0), 132, 80 << 30, uuid)
    assert answer == cuda.Driver(0, "libcuda.so.1", "12.4", (gpu,))


def test_a_gpu_that_is_too_new_or_too_old_for_this_ncu(
    machine: Callable[..., Machine], libcuda: MakeDriver, ncu: Path
) -> None:
    for major, fix in ((10, "newer Nsight Compute"), (6, "nvprof")):
        patient = machine({**libcuda(major=major), "NCUKIT_FAKE_REAL_NCU": str(ncu)})
        found = check(examine(patient, ["ncu-gpu"]), "ncu-gpu")
        assert found.state == "fail"
        assert fix in found.fix


@pytest.mark.parametrize(
    ("params", "caps", "state", "fix"),
    [
        ("RmProfilingAdminOnly: 1\n", "00000000a80425fb", "fail", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("RmProfilingAdminOnly: 1\n", "000001ffffffffff", "pass", ""),
        ("RmProfilingAdminOnly: 0\n", "0000000000000000", "pass", ""),
        ("", "0000000000000000", "unknown", ""),
    ],
)
def test_counter_permission(
    machine: Callable[..., Machine], params: str, caps: str, state: str, fix: str
) -> None:
    files = {"proc/driver/nvidia/params": params, "proc/self/status": f"CapEff:\t{caps}\n"}
    found = check(examine(machine({}, files), ["counters"]), "counters")
    assert found.state == state
    assert fix in found.fix


def test_missing_old_and_broken_tools_have_their_fix(machine: Callable[..., Machine], tmp_path: Path) -> None:
    old = examine(machine({"NCUKIT_FAKE_VERSION": "2020.3.0.0"}), ["ncu", "nsys"])
    assert (states(old)["ncu"], states(old)["nsys"]) == ("fail", "fail")
    assert "too old" in check(old, "ncu").detail
    assert "--ncu PATH" in check(old, "ncu").fix
    gone = examine(
        Machine({"PATH": "", "HOME": str(tmp_path)}, tmp_path), ["ncu", "nsys", "nvcc", "nsys-run"]
    )
    assert (states(gone)["ncu"], states(gone)["nsys"], states(gone)["nsys-run"]) == (
        "fail",
        "fail",
        "unknown",
    )
    assert states(gone)["nvcc"] == "unknown"  # only .cu files need it


def test_an_nsys_that_writes_no_report_fails_though_it_ends_with_0(machine: Callable[..., Machine]) -> None:
    found = check(examine(machine({"NCUKIT_FAKE_NSYS": "importer"}), ["nsys-run"]), "nsys-run")
    assert found.state == "fail"
    assert "importer" in found.detail


def test_a_lock_file_of_another_user(machine: Callable[..., Machine], tmp_path: Path) -> None:
    lock = tmp_path / "nsight-compute-lock"
    lock.touch()
    lock.chmod(0o444)
    if os.access(lock, os.W_OK):
        pytest.skip("root may write every file")
    assert states(examine(machine({"TMPDIR": str(tmp_path)}), ["lock"]))["lock"] == "fail"


@pytest.mark.parametrize("name", SPOILING)
def test_variables_that_spoil_a_measurement(machine: Callable[..., Machine], name: str) -> None:
    assert states(examine(machine({name: "1"}), ["variables"]))[name] == "fail"


def test_no_heavy_package_is_imported_to_see_that_it_is_there() -> None:
    code = "import sys; from ncukit.run.tools.doctor import examine; examine(links=['packages'])"
    modules = set(run([sys.executable, "-c", f"{code}; print(*sys.modules)"]).stdout.split())
    assert not modules & {"pandas", "plotly", "torch", "pyarrow", "ncu_report", "jinja2"}


def test_text_has_a_line_and_a_fix_for_each_link(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tools = install(tmp_path / "bin")
    doctor(ncu=tools["NCUKIT_NCU"], nsys=tools["NCUKIT_NSYS"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("pass     python")
    assert any(line.startswith("pass     ncu ") and "--ncu" in line for line in lines)
    assert lines[-3:][0] == "read reports: works"
    failing = [n for n, line in enumerate(lines) if line.startswith("fail")]
    assert all("fix: " in lines[n + 1] for n in failing)


@pytest.mark.parametrize(
    ("states_of", "line"),
    [
        ({"driver": "fail", "gpu": "unknown"}, "trace a program (nsys): does not work here, see driver"),
        ({"nsys": "fail", "gpu": "fail"}, "trace a program (nsys): does not work here, see gpu, nsys"),
        ({"gpu": "unknown"}, "trace a program (nsys): unknown, see gpu"),
        ({"ncu": "fail"}, "trace a program (nsys): works"),
        ({"counters": "unknown"}, "measure a kernel (ncu): unknown, see counters"),
    ],
)
def test_the_summary_says_what_stands_in_the_way(states_of: dict[str, State], line: str) -> None:
    links = ("driver", "gpu", "ncu", "nsys", "nsys-run", "counters")
    checks = tuple(Check(link, states_of.get(link, "pass"), "") for link in links)
    assert line in doctor_text(Examination("bare", checks)).splitlines()


def test_json_has_the_same_facts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tools = install(tmp_path / "bin")
    doctor(json=True, ncu=tools["NCUKIT_NCU"], nsys=tools["NCUKIT_NSYS"])
    data = follows_its_schema(capsys.readouterr().out)
    assert data["schema"] == "ncukit.doctor/1"
    assert data["can"]["read_reports"] is True
    assert {"id", "state", "detail", "fix"} == set(data["checks"][0])
    assert {c["state"] for c in data["checks"]} <= {"pass", "fail", "unknown"}


def test_a_bundle_replaces_nothing_unasked(tmp_path: Path) -> None:
    place = tmp_path / "bug.zip"
    place.write_text("precious")
    found = ncukit("doctor", "--bundle", "-o", place)
    assert (found.returncode, place.read_text()) == (2, "precious")
    assert ncukit("doctor", "--bundle", "-o", place, "--force").returncode == 0
    assert place.read_bytes().startswith(b"PK")
    assert ncukit("doctor", "-o", tmp_path / "other").returncode == 2


def test_the_bundle_holds_the_facts_and_no_secrets(tmp_path: Path) -> None:
    environ = {
        "PATH": "/home/jane/bin:/bin",
        "HOME": "/home/jane",
        "USER": "jane",
        "HF_TOKEN": "t0psecret",
        "MY_SETTING": "private matter",
        "CUDA_VISIBLE_DEVICES": "0",
        "LD_LIBRARY_PATH": "/data/jane/lib",
    }
    seen = Examination(
        "bare", (Check("ncu", "fail", "/home/jane/ncu said: t0psecret is bad"),), ("HF_TOKEN",)
    )
    path = write_bundle(seen, tmp_path / "bug.zip", environ=environ)
    with zipfile.ZipFile(path) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    whole = "\n".join(texts.values())
    assert not [word for word in ("t0psecret", "private matter", "/home/jane", "/jane/") if word in whole]
    assert json.loads(texts["environment.json"])["withheld"] == ["HF_TOKEN"]
    assert json.loads(texts["environment.json"])["variables"]["CUDA_VISIBLE_DEVICES"] == "0"
    assert "ncukit" in texts["packages.txt"]
    assert {"doctor.json", "system.txt", "proc/driver/nvidia/version"} <= set(texts)
