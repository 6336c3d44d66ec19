"""What is built holds everything that ncukit needs and nothing else, and works where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncukit import __version__
from scripts import compatibility
from scripts.installing import environment, trial
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
        "ncukit/metrics/data/memory.json",
        "ncukit/schemas/kernel-1.json",
        "ncukit/run/tools/failures.toml",
        "ncukit/report/details_names.json",
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


def test_the_wheel_is_installed_does_the_demo_and_is_removed_without_a_trace(
    wheel: Path, tmp_path: Path
) -> None:
    """With the dependencies of this environment; scripts/compatibility.py fetches them as a user does."""
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "needed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    user = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}

    def run(*argv: object, env: dict[str, str] | None = user) -> str:
        words = [str(word) for word in argv]
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pip(*words: object) -> None:
        run(sys.executable, "-m", "pip", "--python", python, "-q", *words, env=None)

    before = everything(tmp_path / "venv")
    pip("install", "--no-deps", "--no-index", wheel)
    assert run(python, "-c", "import ncukit; print(ncukit.__file__)").startswith(str(site))
    assert run(site.parents[2] / "bin" / "ncukit", "demo", "-o", "pages").count("NEXT EXPERIMENT") == 1
    assert {path.stem for path in (tmp_path / "pages").glob("*.html")} == {
        Path(name).stem for name in kept(CHECKOUT / "reports" / "samples") if name.endswith(".ncu-rep")
    }
    written = {path.parent for path in (tmp_path / "home").rglob("*") if path.is_file()}
    assert written == {tmp_path / "home" / ".cache" / "ncukit" / "templates"}
    pip("uninstall", "-y", "ncukit")
    assert everything(tmp_path / "venv") == before


def everything(folder: Path) -> list[str]:
    """Return all files and folders below ``folder``."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_the_pythons_that_are_declared_begin_with_the_oldest_that_may_install_it() -> None:
    assert f">={environment.PYTHONS[0]}" == environment.PROJECT["requires-python"]
    assert sorted(environment.PYTHONS, key=lambda minor: int(minor[2:])) == environment.PYTHONS


def test_tests_of_every_dependency_run_with_its_lowest_and_its_newest_version() -> None:
    assert list(trial.SELECTION) == environment.DEPENDENCIES
    for names in trial.SELECTION.values():
        assert all((CHECKOUT / "tests" / f"{name}.py").is_file() for name in names)


def test_what_the_page_of_versions_shows_is_what_was_tried_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "compatibility.md"
    page.write_text(f"before\n\n{compatibility.BEGIN}\n{compatibility.END}\nafter\n")
    monkeypatch.setattr(compatibility, "PAGE", page)
    versions = dict.fromkeys(environment.DEPENDENCIES, "1.2")
    old, new = (trial.Row("Python 3.11.1, lowest", f"{n} passed", versions) for n in (3, 4))
    compatibility.record([old, trial.Row("pip", "used")])
    compatibility.record([new])
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert text.count("| Python 3.11.1, lowest | 1.2 |") == text.count("| 4 passed |") == 1
    assert text.count("| pip | used |") == 1
