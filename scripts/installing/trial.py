"""The wheel in a fresh environment: installed, used, removed, installed again and tested."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from scripts.installing.environment import (
    CHECKOUT,
    DEPENDENCIES,
    Built,
    Environment,
    Failed,
    bare,
    new,
    registry,
    run,
)

ENDS = {"lowest": "lowest-direct", "newest": "highest"}
"""How uv calls the choice of versions; what is not named in pyproject.toml is always the newest."""
SELECTION = {
    "ncu-report": ("test_native", "test_samples"),
    "pandas": ("test_frame",),
    "pyarrow": ("test_dataset",),
    "jinja2": ("test_html",),
    "typer": ("test_cli", "test_help"),
    "rich": ("test_text",),
    "plotly": ("test_html", "test_figures"),
    "numpy": ("test_frame",),
}
"""The tests of what each dependency is needed for."""
TOOLS = ("pytest", "hypothesis", "jsonschema", "protobuf", "pyyaml")
"""What these tests need beside the wheel."""


@dataclass(frozen=True)
class Row:
    """What was tried and what came of it; ``failure`` says what went wrong."""

    what: str
    result: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    failure: str = ""


def try_wheel(built: Built, tools: Environment, python: Path, end: str, folder: Path) -> Row:
    """Try the wheel with ``python`` and the ``end`` of the versions that it allows.

    Raises:
        Failed: something is not as it must be.
    """
    environment = Environment.fresh(folder / "venv", python)
    pinned = folder / "versions.txt"
    compiled = [
        "--quiet",
        "--no-header",
        "--no-annotate",
        "--only-binary",
        ":all:",
        "--resolution",
        ENDS[end],
    ]
    run(
        [tools.program("uv"), "pip", "compile", *compiled, "--python", environment.program("python"),
         "-o", pinned, CHECKOUT / "pyproject.toml"],
        env=registry(tools),
    )  # fmt: skip
    install_use_remove(environment, built.wheel, folder / "use", "--only-binary", ":all:", "-c", pinned)
    environment.pip("install", "--quiet", "-c", pinned, built.wheel, *TOOLS)
    exact = run([environment.program("python"), "-c", "import platform; print(platform.python_version())"])
    found = dict(re.findall(r"^([\w.-]+)==(\S+)", pinned.read_text(), re.MULTILINE))
    return Row(
        f"Python {exact.strip()}, {end}",
        test(environment, built.sdist, folder / "tests"),
        {name: found[name] for name in DEPENDENCIES},
    )


def install_use_remove(environment: Environment, wheel: Path, folder: Path, *options: object) -> None:
    """Install ``wheel`` with what it needs, use it in ``folder``, and remove it.

    Raises:
        Failed: it does not work, brings torch, or leaves something behind.
    """
    environment.pip("install", "--quiet", *options, wheel)
    environment.pip("check")
    if environment.holds("torch"):
        raise Failed("torch was installed: it is an extra")
    environment.pip("uninstall", "--quiet", "--yes", "ncukit")
    needed = environment.files()
    environment.pip("install", "--quiet", *options, wheel)
    use(environment.program("ncukit"), folder)
    environment.pip("uninstall", "--quiet", "--yes", "ncukit")
    if left := environment.files() - needed:
        raise Failed(f"left behind by pip uninstall: {sorted(left)[:10]}")
    if environment.holds("ncukit"):
        raise Failed("pip uninstall did not remove ncukit")


def use(program: Path, folder: Path) -> None:
    """Do with ``program`` what a newcomer does, in a folder and a home that are empty.

    Raises:
        Failed: a command fails, prints something else, or writes where it must not.
    """
    home = folder / "home"
    environ, work = bare(home), new(folder / "work")

    def ncukit(*words: object) -> str:
        return run([program, *words], cwd=work, env=environ)

    if (said := ncukit("--version").split()[-1]) != version():
        raise Failed(f"--version is {said}, not {version()}")
    if "NEXT EXPERIMENT" not in ncukit("demo", "-o", "pages"):
        raise Failed("ncukit demo shows no experiment")
    samples = sorted((CHECKOUT / "reports" / "samples").glob("*.ncu-rep"))
    pages = {page.stem for page in (work / "pages").glob("*.html")}
    if pages != {sample.stem for sample in samples}:
        raise Failed(f"ncukit demo wrote other pages than the samples: {sorted(pages)}")
    ncukit("report", samples[0], "-o", "one.html")
    if not (work / "one.html").read_text(encoding="utf-8").rstrip().endswith("</html>"):
        raise Failed("ncukit report wrote half a page")
    json.loads(ncukit("schema", "kernel"))
    if strange := {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()} - {
        str(path.relative_to(home)) for path in (home / ".cache" / "ncukit").rglob("*")
    }:
        raise Failed(f"written into the home, outside of .cache/ncukit: {sorted(strange)}")


def version() -> str:
    """Return the version of ncukit, from its one place."""
    text = (CHECKOUT / "ncukit" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)[1]  # type: ignore[index]


def test(environment: Environment, sdist: Path, folder: Path) -> str:
    """Return what pytest says of the selected tests on the installed wheel.

    Raises:
        Failed: a test fails, or another ncukit is tested.
    """
    with tarfile.open(sdist) as archive:
        archive.extractall(new(folder), filter="data")
    (root,) = folder.iterdir()
    for shipped in ("ncukit", "templates", "kernels"):
        shutil.rmtree(root / shipped)
    python = environment.program("python")
    place = run([python, "-c", "import ncukit; print(ncukit.__file__)"], cwd=root)
    if not Path(place).is_relative_to(environment.folder):
        raise Failed(f"not the installed wheel: {place}")
    files = sorted({f"tests/{name}.py" for names in SELECTION.values() for name in names})
    words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not browser and not speed"]
    environ = {**bare(folder / "home"), "NCUKIT_SHARED": str(folder / "none")}
    return run([*words, *files], cwd=root, env=environ).splitlines()[-1].partition(" in ")[0]
