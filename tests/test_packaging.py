"""What is built holds everything that ncukit needs and nothing else, and works where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncukit import __version__
from tests.conftest import CHECKOUT

# Folders of the checkout -> where their files lie in the wheel.
SHIPPED = {
    "ncukit": "ncukit",
    "templates": "ncukit/templates",
    "kernels": "ncukit/kernels",
    "reports/samples": "ncukit/reports/samples",
}
NEEDED = [
    *("pyproject.toml", "README.md", "LICENSE", ".gitignore", "Makefile", "CHANGELOG.md", "CONTRIBUTING.md"),
    *("docs", "scripts", "benchmarks", "tests"),
]


def kept(folder: Path) -> Iterator[str]:
    """Yield every file below ``folder`` that is no by-product."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder).as_posix()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, with by-products that must not be shipped."""
    copy = tmp_path_factory.mktemp("source")
    for name in [*SHIPPED, *NEEDED]:
        origin = CHECKOUT / name
        if origin.is_dir():
            shutil.copytree(origin, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif origin.exists():
            shutil.copy(origin, copy / name)
    for made in ("kernels/build/gemm.o", "ncukit/__pycache__/x.pyc", "reports/run-1/report.html", "dist/x"):
        (copy / made).parent.mkdir(parents=True, exist_ok=True)
        (copy / made).write_bytes(b"made")
    return copy


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("built")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(source)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


def test_the_wheel_holds_all_of_these_folders_and_nothing_else(wheel: Path) -> None:
    expected = {f"{home}/{name}" for folder, home in SHIPPED.items() for name in kept(CHECKOUT / folder)}
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == expected


def test_the_wheel_holds_what_is_no_python(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    assert held >= {
        "ncukit/py.typed",
        "ncukit/templates/base.html",
        "ncukit/catalog/data/memory.json",
        "ncukit/schemas/kernel-1.json",
        "ncukit/tools/failures.toml",
        "ncukit/read/details_names.json",
        "ncukit/reports/samples/gemm-tensor.ncu-rep",
        "ncukit/reports/samples/README.md",
    }


def test_the_wheel_built_from_the_checkout_is_the_same(source: Path, wheel: Path, tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--outdir",
        str(tmp_path),
        str(source),
    ]
    subprocess.run(build, capture_output=True, check=True)
    (direct,) = tmp_path.glob("*.whl")
    listed = [sorted((i.filename, i.CRC) for i in zipfile.ZipFile(w).infolist() if "RECORD" not in i.filename)
              for w in (direct, wheel)]  # fmt: skip
    assert listed[0] == listed[1]


def test_the_checkout_installs_editable(source: Path, tmp_path: Path) -> None:
    """As `make demo` does it."""
    hook = "import sys, hatchling.build as b; print(b.build_editable(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", hook, str(tmp_path)], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / done.stdout.strip()) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".pth"))
        assert archive.read(name).decode().split() == [str(source)]


def test_the_source_distribution_holds_tests_and_documents(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"README.md", "LICENSE", "Makefile", "tests/conftest.py", "docs/architecture.md"} <= names
    assert not [name for name in names if "build/" in name or "__pycache__" in name or "reports/run" in name]


def test_the_metadata_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    assert f"\nVersion: {__version__}\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert "\nRequires-Python: >=3.11\n" in metadata
    assert "\nRequires-Dist: torch>=2.4; extra == 'torch'\n" in metadata


def test_the_installed_wheel_does_the_demo(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(site)}  # before the checkout, which is installed editable

    def run(*argv: str) -> str:
        done = subprocess.run(
            argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run(sys.executable, "-c", "import ncukit; print(ncukit.__file__)").startswith(str(site))
    shown = run(str(site / "bin" / "ncukit"), "demo", "-o", "pages")
    assert "shared" in shown
    assert {path.stem for path in (tmp_path / "pages").glob("*.html")} == {
        Path(name).stem for name in kept(CHECKOUT / "reports" / "samples") if name.endswith(".ncu-rep")
    }
