"""Which advice is right depends on the machine: bare, container, WSL; and on what the driver allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncukit.run.tools import gpus

PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Fri Mar  7 00:36:28 UTC 2025\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (root@host)\n"


def machine(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "environ", "place"),
    [
        ({"proc__sys__kernel__osrelease": "6.1.0-18-amd64\n"}, {}, "bare"),
        ({"proc__1__cgroup": "0::/init.scope\n"}, {}, "bare"),
        ({"proc__1__cgroup": "12:cpu:/docker/4f1c\n"}, {}, "container"),
        ({"proc__1__cgroup": "0::/kubepods.slice/pod1\n"}, {}, "container"),
        ({"run__.containerenv": ""}, {}, "container"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "container"),
        ({}, {"container": "lxc"}, "container"),
        ({"proc__self__mountinfo": "21 1 0:20 / / rw - overlay overlay rw\n"}, {}, "container"),
        ({"proc__sys__kernel__osrelease": "5.15.153.1-microsoft-standard-WSL2\n"}, {}, "wsl"),
    ],
)
def test_the_place_is_told_apart(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], place: str
) -> None:
    assert gpus.place(machine(tmp_path, **files), environ) == place


def test_a_docker_mark_is_enough(tmp_path: Path) -> None:
    (tmp_path / ".dockerenv").touch()
    assert gpus.place(tmp_path, {}) == "container"


@pytest.mark.parametrize(("text", "version"), [(PROPRIETARY, "550.163.01"), (OPEN, "570.86.15"), ("", None)])
def test_the_driver_version_comes_from_the_kernel(tmp_path: Path, text: str, version: str | None) -> None:
    assert gpus.driver_version(machine(tmp_path, proc__driver__nvidia__version=text)) == version


@pytest.mark.parametrize(
    ("files", "there"),
    [
        ({}, False),
        ({"dev__nvidiactl": "", "dev__nvidia-uvm": ""}, False),
        ({"dev__nvidia0": ""}, True),
        ({"dev__nvidiactl": "", "proc__driver__nvidia__gpus__0000:01:00.0__information": ""}, True),
        ({"dev__nvidia7": ""}, True),
        ({"dev__dxg": ""}, True),
        ({"dev__nvhost-gpu": ""}, True),
    ],
)
def test_a_gpu_is_a_device_of_its_driver(tmp_path: Path, files: dict[str, str], there: bool) -> None:
    assert gpus.has_gpu(machine(tmp_path, **files)) is there


def test_without_a_driver_there_is_no_version(tmp_path: Path) -> None:
    assert gpus.driver_version(tmp_path) is None


@pytest.mark.parametrize(
    ("params", "admin", "allowed"),
    [
        ("Foo: 1\nRmProfilingAdminOnly: 0\n", False, True),
        ("RmProfilingAdminOnly: 1\n", False, False),
        ("RmProfilingAdminOnly: 1\n", True, True),
        ("Foo: 1\n", True, None),
    ],
)
def test_counters_are_allowed_forbidden_or_unknown(
    tmp_path: Path, params: str, admin: bool, allowed: bool | None
) -> None:
    root = machine(tmp_path, proc__driver__nvidia__params=params)
    assert gpus.counters(root, admin=admin).allowed is allowed


@pytest.mark.parametrize(("caps", "admin"), [("000001ffffffffff", True), ("00000000a80425fb", False)])
def test_root_in_a_container_is_no_administrator(tmp_path: Path, caps: str, admin: bool) -> None:
    assert gpus.is_admin(machine(tmp_path, proc__self__status=f"Uid:\t0\nCapEff:\t{caps}\n")) is admin


def test_the_owner_of_a_file_is_named(tmp_path: Path) -> None:
    assert gpus.owner(tmp_path) == tmp_path.owner()
    assert gpus.owner(tmp_path / "none") is None
