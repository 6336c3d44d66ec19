"""Fixtures of all tests: a fixed terminal, the shared real reports, the real Nsight tools."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from ncukit.model import Wanted
from ncukit.report import native, wire

if TYPE_CHECKING:
    from tests.runs import Lab

CHECKOUT = Path(__file__).resolve().parents[1]
REPORT_SUFFIXES = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")

os.environ.update(COLUMNS="80", NO_COLOR="1", TZ="UTC")
os.environ.setdefault("NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT", "1")
# Hundreds of processes start: each would compile all of ncukit and its templates again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
time.tzset()
# In the background of a script Ctrl-C is ignored, and what starts here would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# However slow the machine, the same sources get the same examples; a change of them may bring others, as
# constants of the modules that are loaded are mixed in.  HYPOTHESIS_PROFILE=default looks for new ones.
hypothesis.settings.register_profile("fixed", deadline=None, derandomize=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


gc.set_threshold(50_000, 20, 50)


def pytest_collection_finish() -> None:
    """Let no garbage collection look at modules and at thousands of tests again."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-golden``."""
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden anew instead of comparing"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the file of that name in tests/golden; with ``--update-golden`` write it."""

    def compare(name: str, text: str) -> None:
        path = CHECKOUT / "tests" / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), (
            f"{name} changed; if on purpose: pytest --update-golden"
        )

    return compare


class ReaderHere(wire.Reader):
    """Reads like a child, but here: the library loads and prepares its disassembler (0.4 s) but once."""

    def __init__(self, path: str) -> None:
        self.path, self._status, self._process = path, 0, os.getpid()

    def results(self, wanted: Wanted) -> Iterator[native.Plain]:
        """Yield what comes out of the pipe of a child."""
        try:
            for plain in native.results(native.load(self.path), wanted):
                yield json.loads(json.dumps(plain))
        except native.DAMAGE as error:
            raise self._crashed(f"{type(error).__name__}: {error}") from error


READER = wire.Reader


@pytest.fixture(scope="session", autouse=True)
def reader_here() -> Iterator[None]:
    """Read reports in this process; processes that tests fork read as users do."""
    process = os.getpid()

    def reader(path: str) -> wire.Reader:
        return (ReaderHere if os.getpid() == process else READER)(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "Reader", reader)
        yield


@pytest.fixture(scope="session", autouse=True)
def state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the key of runs out of the home of who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def reader_of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read reports in children, as users do: for damaged ones, and for tests of those children."""
    monkeypatch.setattr(wire, "Reader", READER)


@pytest.fixture
def processes() -> None:
    """Let builds of datasets start the processes that they start for users."""


def build_here(patch: pytest.MonkeyPatch) -> None:
    """Build datasets in this process: starting another takes longer than its work."""
    from ncukit.dataset import build

    def run(work: Callable[[Any], Any], tasks: Any, count: int, lost: Any) -> Iterator[Any]:
        return (work(task) for task in sorted(tasks, key=lambda task: -task.size))

    patch.setattr(build, "run_here", run)


@pytest.fixture
def in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build datasets here, unless a test asks for `processes`."""
    if "processes" not in request.fixturenames:
        build_here(monkeypatch)


def follows_its_schema(text: str) -> Any:
    """Return the JSON in ``text``, which must follow the published schema that it names."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    from ncukit.schemas import text as schema_text

    data = json.loads(text)
    fault = best_match(Draft202012Validator(json.loads(schema_text(data["schema"]))).iter_errors(data))
    assert fault is None, f"{fault.json_path}: {fault.message}"
    return data


def shared_folder() -> Path:
    """Return the folder of the shared real reports, which need not exist."""
    return Path(os.environ.get("NCUKIT_SHARED") or CHECKOUT.parent / "shared")


def no_shared() -> str:
    """Return why tests that need the shared reports are skipped."""
    return f"no shared reports: {shared_folder()} does not exist (set NCUKIT_SHARED)"


def reports(*folders: str) -> list[Path]:
    """Return the real reports in ``folders`` of the shared reports, sorted; [] when they are absent.

    For parametrisation, at collection time.  Without folders: ``ncu`` and ``ncu-more``.

    >>> all(path.suffix in REPORT_SUFFIXES for path in reports())
    True
    """
    root = shared_folder() / "reports"
    return sorted(
        path
        for folder in folders or ("ncu", "ncu-more")
        for path in (root / folder).glob("*")
        if path.suffix in REPORT_SUFFIXES
    )


def each_report(*folders: str) -> pytest.MarkDecorator:
    """Return the mark that runs a test once for each real report, as argument ``report``.

    Pytest runs all such tests of one report after another, whatever their modules (the scope says so): they
    share what `tests.real` reads.  Where the shared reports are absent the test is skipped once, with the
    reason.
    """
    paths = reports(*folders)
    if not paths:
        return pytest.mark.parametrize(
            "report", [pytest.param(None, marks=pytest.mark.skip(reason=no_shared()), id="no-reports")]
        )
    ids = [path.stem for path in paths]
    return pytest.mark.parametrize("report", paths, ids=ids, scope="session")


def tool(name: str) -> Path | None:
    """Return the real tool ``name``: from NCUKIT_<NAME>, PATH, or the places where CI installs Nsight."""
    if (given := os.environ.get(f"NCUKIT_{name.upper()}")) and Path(given).is_file():
        return Path(given)
    if found := shutil.which(name):
        return Path(found)
    for folder in (Path("/opt/nsight/bin"), CHECKOUT / ".tools" / "nsight" / "bin"):
        if (folder / name).is_file():
            return folder / name
    return None


def _tool_or_skip(name: str) -> Path:
    if (found := tool(name)) is None:
        pytest.skip(f"no {name}: not in NCUKIT_{name.upper()}, PATH, /opt/nsight/bin or .tools/nsight/bin")
    return found


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of the shared real reports and domain files; skips where it is absent."""
    if not (path := shared_folder()).is_dir():
        pytest.skip(no_shared())
    return path


@pytest.fixture(scope="session")
def without_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the samples without their code: for a new process its disassembly takes 0.4 s of 0.7 s."""
    from tests import make_samples

    folder = tmp_path_factory.mktemp("without-code")
    make_samples.main(folder, code=False)
    return folder


@pytest.fixture(scope="session")
def ncu() -> Path:
    """Path of the real ncu; skips where there is none."""
    return _tool_or_skip("ncu")


@pytest.fixture(scope="session")
def nsys() -> Path:
    """Path of the real nsys; skips where there is none."""
    return _tool_or_skip("nsys")


@pytest.fixture(scope="session")
def nvcc() -> Path:
    """Path of nvcc; skips where there is none."""
    if found := tool("nvcc"):
        return found
    for folder in sorted(Path("/usr/local").glob("cuda*/bin"), reverse=True):
        if (folder / "nvcc").is_file():
            return folder / "nvcc"
    pytest.skip("no nvcc: not in NCUKIT_NVCC, PATH or /usr/local/cuda*/bin")


@pytest.fixture(scope="session")
def stands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the stand-ins for driver, nsys and ncu lie, and what was asked of them."""
    return tmp_path_factory.mktemp("standins")


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stands: Path) -> Lab:
    """A lab without a GPU."""
    from tests.runs import Lab

    return Lab(tmp_path, monkeypatch, stands)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stands: Path) -> Lab:
    """A lab with a GPU, a workload, and what it launches."""
    from tests.runs import furnished

    return furnished(tmp_path, monkeypatch, stands)


@pytest.fixture(scope="session")
def run_tool() -> Callable[..., str]:
    """Run a tool and return what it prints; the test fails when the tool does."""

    def run(*argv: object) -> str:
        words = [str(word) for word in argv]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One real Chromium for all tests of pages; skips where it or playwright is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
        yield found
        found.close()


class Tabs:
    """One tab with scripts and one without, in which tests open pages one after another.

    A new tab starts processes and compiles the figure library anew: thrice the work of a page in an old tab.
    """

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._tabs: dict[bool, Any] = {}
        self._faults: list[str] = []

    def open(
        self,
        page: Path,
        *,
        hash: str = "",
        width: int = 1366,
        scheme: str = "light",
        java_script_enabled: bool = True,
    ) -> Any:
        """Return the tab in which ``page`` is open as if for the first time."""
        tab = self._tabs.get(java_script_enabled)
        if tab is None or tab.is_closed():
            tab = self._tabs[java_script_enabled] = self._new(java_script_enabled)
        self._blank(tab)
        tab.set_viewport_size({"width": width, "height": 768})
        tab.emulate_media(media="null", color_scheme=scheme)
        tab.goto(page.as_uri() + hash)
        return tab

    def leave(self) -> list[str]:
        """Leave all pages; return what they complained of and asked for, other than files."""
        for tab in self._tabs.values():
            self._blank(tab)
        faults, self._faults[:] = self._faults.copy(), []
        return faults

    @staticmethod
    def _blank(tab: Any) -> None:
        """Leave the page and forget what it stored."""
        if tab.url != "about:blank":
            tab.mouse.move(0, 0)
            tab.evaluate("localStorage.clear()")
            tab.goto("about:blank")

    def _new(self, java_script_enabled: bool) -> Any:
        faults = self._faults
        tab = self._browser.new_context(java_script_enabled=java_script_enabled).new_page()
        tab.on("console", lambda m: faults.append(m.text) if m.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.on("dialog", lambda dialog: (faults.append("a dialog opened"), dialog.dismiss()))
        local = ("file:", "blob:", "about:")
        tab.on("request", lambda r: None if r.url.startswith(local) else faults.append(f"asked for {r.url}"))
        return tab


@pytest.fixture(scope="session")
def tabs(browser: Any) -> Tabs:
    """The tabs that all tests of pages share."""
    return Tabs(browser)


@pytest.fixture
def visit(tabs: Tabs, pages: Path) -> Iterator[Callable[..., Any]]:
    """Open one of the module's ``pages``; at the end none complained or asked for anything but files."""
    yield lambda name, **options: tabs.open(pages / f"{name}.html", **options)
    assert tabs.leave() == []
