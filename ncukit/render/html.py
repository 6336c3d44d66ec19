"""One view as one HTML file: nothing but markup is added here."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import jinja2
from markupsafe import Markup

from ncukit import __version__
from ncukit.errors import NcukitError
from ncukit.files import cache_folder, check_new, folder, write_bytes
from ncukit.folders import Folder, is_own_way

Plotly = Literal["inline", "directory"]
PLOTLY_FILE = "plotly.min.js"
CSP = "default-src 'none'; script-src 'unsafe-inline'{file}; style-src 'unsafe-inline'; img-src data:"
"""No network at all; Plotly draws under it.  With the library beside the page also scripts of ``file:``."""

_HERE = "<!--plotly-->"
"""Where the figure library goes; no text of a report can hold it: its markup is escaped."""


def page(view: Mapping[str, Any], *, plotly: Plotly = "inline") -> str:
    """Return the HTML of ``view`` (see `ncukit.render.view.page_view`).

    ``plotly`` "directory" leaves the figure library out and loads it from the file beside the page.

    Raises:
        NcukitError: the figure library is not installed.
    """
    parts = _parts(view, plotly)
    return b"".join(part.read_bytes() if isinstance(part, Path) else part for part in parts).decode()


def write_page(
    path: str | Path, view: Mapping[str, Any], *, force: bool = False, plotly: Plotly = "inline"
) -> Path:
    """Write the page of ``view`` to ``path`` and return it; the file appears only when whole.

    Raises:
        UsageError: the file exists and ``force`` is not set, or it cannot be written.
        NcukitError: the figure library is not installed.
    """
    path = Path(path)
    check_new(path, force=force)
    library = _library(path.parent) if plotly == "directory" and view["figures"] else None
    if library is not None and not _same(library):
        write_bytes(library, _plotly())  # first: a page must never stand beside another's script of that name
    return write_bytes(path, *_parts(view, plotly, PLOTLY_FILE if library is None else library.name))


def _library(folder: Path) -> Path:
    """Return where the figure library lies beside the pages of ``folder``.

    Where another file has its name, it has its hash in its own: what lies there already is code, and may be a
    stranger's.
    """
    library = folder / PLOTLY_FILE
    if not os.path.lexists(library) or _same(library):
        return library
    return folder / PLOTLY_FILE.replace(".", f"-{_hash(_plotly())[:16]}.", 1)


def _same(library: Path) -> bool:
    """Return whether the file ``library`` is that of the package."""
    try:
        with Folder.open(library.parent) as place, place.open_file(library.name) as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == _hash(_plotly())
    except OSError:
        return False


@functools.cache
def _hash(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _parts(view: Mapping[str, Any], plotly: Plotly, library: str = PLOTLY_FILE) -> tuple[bytes | Path, ...]:
    """Return the page as what stands before the figure library, its file, and what comes after it.

    Its megabytes would take longer through a template than all else.  It is made to stand in a page:
    no end tag is in it.
    """
    environment = _environment()
    beside = plotly == "directory"
    text = environment.get_template(f"{view['kind']}.html").render(
        view=view,
        csp=CSP.format(file=" 'self' file:" if beside else ""),
        css=Markup(compact(environment.get_template("page.css").render())),  # noqa: S704 - shipped with ncukit
        js=Markup(compact(_source("page.js"))),  # noqa: S704 - shipped with ncukit
        plotly_file=library if beside else "",
        plotly=Markup(_HERE),  # noqa: S704 - no text of a report
    )  # fmt: skip
    before, here, after = text.partition(_HERE)
    return (before.encode(), _plotly(), after.encode()) if here else (text.encode(),)


def compact(source: str) -> str:
    """Return CSS or JavaScript without indentation, blank lines and whole-line comments.

    >>> compact("a {\\n  b\\n}\\n// note\\n/* note */\\n\\nc")
    'a {\\nb\\n}\\nc'
    """
    lines = (line.strip() for line in source.splitlines())
    return "\n".join(
        line
        for line in lines
        if line and not line.startswith("//") and not (line.startswith("/*") and line.endswith("*/"))
    )


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder("templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=_compiled(),
    )
    environment.policies["json.dumps_kwargs"] = {
        "separators": (",", ":"),
        "ensure_ascii": False,
        "allow_nan": False,
    }
    return environment


def _compiled() -> _Compiled | None:
    """Return where compiled templates are kept, if Python keeps compiled modules too.

    Compiling them takes longer than reading a small report.  They are code: only a folder that is the user's
    own, and that nobody else can write, will do.
    """
    cache = cache_folder()
    if cache is None or sys.dont_write_bytecode:
        return None
    place = cache / "templates"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = place.lstat()
    except OSError:
        return None
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not (own and is_own_way(place, os.path.expanduser("~"))):
        return None
    return _Compiled(str(place), f"{__version__}-{jinja2.__version__}-%s.cache")


class _Compiled(jinja2.FileSystemBytecodeCache):
    """Jinja's cache, of files that are the user's own; what cannot be read or written is compiled anew."""

    def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        try:
            with Folder.open(self.directory) as place, place.open_file(self.pattern % bucket.key) as file:
                if os.fstat(file.fileno()).st_uid == os.geteuid():
                    bucket.load_bytecode(file)
        except Exception:  # none is kept, it is a link, or damaged: whatever reading it then raises
            bucket.reset()

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


def _source(name: str) -> str:
    return (folder("templates") / name).read_text(encoding="utf-8")


def _plotly() -> Path:
    """Return the file of Plotly's JavaScript in its package, which is not imported for it."""
    found = importlib.util.find_spec("plotly")
    for place in (found.submodule_search_locations or []) if found else []:
        file = Path(place) / "package_data" / PLOTLY_FILE
        if file.is_file():
            return file
    raise NcukitError("the figure library plotly is not installed", "pip install plotly")
