"""The ways to install: pip, pip from the source distribution, pipx, uv."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from scripts.installing.environment import Built, Environment, Failed, new, registry, run
from scripts.installing.trial import install_use_remove, use


def pip(built: Built, tools: Environment, folder: Path) -> str:
    """Install the wheel with pip, use it, remove it."""
    environment = Environment.fresh(folder / "pip" / "venv", sys.executable)
    install_use_remove(environment, built.wheel, folder / "pip" / "use")
    return "`pip install`, used, `pip uninstall`: nothing is left"


def sdist(built: Built, tools: Environment, folder: Path) -> str:
    """Let pip build a wheel from the source distribution, with a build backend from the index."""
    place = new(folder / "sdist")
    tools.pip("wheel", "--quiet", "--no-deps", "-w", place, built.sdist)
    (made,) = place.glob("*.whl")
    if _content(made) != _content(built.wheel):
        raise Failed("the wheel that the source distribution makes holds something else")
    return f"the same {len(_content(made))} files as the wheel"


def pipx(built: Built, tools: Environment, folder: Path) -> str:
    """Run the wheel once, install it, use it, remove it."""
    place = new(folder / "pipx")
    environ = registry(tools) | {
        "PIPX_HOME": str(place / "home"),
        "PIPX_BIN_DIR": str(place / "bin"),
        "PIPX_MAN_DIR": str(place / "man"),
        "PIPX_DEFAULT_PYTHON": sys.executable,
    }
    program = tools.program("pipx")
    shown = run([program, "run", "--spec", built.wheel, "ncukit", "--version"], env=environ)
    run([program, "install", built.wheel], env=environ)
    if any((place / "home" / "venvs").rglob("site-packages/torch")):
        raise Failed("torch was installed: it is an extra")
    use(place / "bin" / "ncukit", place / "use")
    run([program, "uninstall", "ncukit"], env=environ)
    if left := [path for path in (place / "bin", place / "home" / "venvs") if any(path.glob("ncukit*"))]:
        raise Failed(f"left behind by pipx uninstall: {left}")
    return f"`pipx run` ({shown.strip()}), `pipx install`, used, `pipx uninstall`"


def uv(built: Built, tools: Environment, folder: Path) -> str:
    """Run the wheel once, install it, use it, remove it."""
    place = new(folder / "uv")
    environ = registry(tools) | {
        "UV_PYTHON": sys.executable,
        "UV_TOOL_DIR": str(place / "tools"),
        "UV_TOOL_BIN_DIR": str(place / "bin"),
    }
    words = [tools.program("uvx"), "--from", built.wheel, "ncukit"]
    if "NEXT EXPERIMENT" not in run([*words, "demo"], cwd=place, env=environ):
        raise Failed("ncukit demo shows no experiment")
    if not (pages := list((place / "reports" / "demo").glob("*.html"))):
        raise Failed("ncukit demo wrote no page")
    program = tools.program("uv")
    run([program, "tool", "install", built.wheel], env=environ)
    if any((place / "tools").rglob("site-packages/torch")):
        raise Failed("torch was installed: it is an extra")
    use(place / "bin" / "ncukit", place / "use")
    run([program, "tool", "uninstall", "ncukit"], env=environ)
    if left := [path for path in (place / "bin", place / "tools") if any(path.glob("ncukit*"))]:
        raise Failed(f"left behind by uv tool uninstall: {left}")
    return f"`uvx` (demo with {len(pages)} pages), `uv tool install`, used, `uv tool uninstall`"


def _content(wheel: Path) -> dict[str, int]:
    """Return name and checksum of what a wheel holds; the backend writes its own version into ``WHEEL``."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            item.filename: item.CRC
            for item in archive.infolist()
            if not item.filename.endswith((".dist-info/RECORD", ".dist-info/WHEEL"))
        }


INSTALLERS: dict[str, Callable[[Built, Environment, Path], str]] = {
    "pip": pip,
    "pip, from the source distribution": sdist,
    "pipx": pipx,
    "uv": uv,
}
