"""How to install what is optional, into the environment in which ncukit runs: plain, of pipx, or of uv.

ncukit itself comes from a checkout or a wheel; the packages that an extra names come from an index.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from importlib import metadata, util
from pathlib import Path


def install_command(extra: str) -> str:
    """Return the command that installs what the extra needs where this ncukit runs.

    >>> install_command("query").split()[-1]
    "'duckdb>=1.1'"
    """
    return adding(*requirements(extra))


def requirements(extra: str) -> tuple[str, ...]:
    """Return the packages of the extra; where ncukit is not installed, the extra of the checkout."""
    try:
        declared = metadata.requires("ncukit") or ()
    except metadata.PackageNotFoundError:
        return (f".[{extra}]",)
    of_extra = re.compile(rf"""(.+?)\s*;\s*extra\s*==\s*['"]{re.escape(extra)}['"]""")
    return tuple(found[1] for one in declared if (found := of_extra.fullmatch(one)))


def adding(*packages: str) -> str:
    """Return the command that adds packages to the environment of this interpreter."""
    home = Path(sys.prefix)
    words = shlex.join(packages)
    if (home / "pipx_metadata.json").is_file():
        return f"pipx inject {shlex.quote(home.name)} {words}"
    found = shutil.which("python")
    here = found is not None and Path(found).parent == Path(sys.executable).parent
    if util.find_spec("pip") is None:  # as in the environments that uv makes
        return f"uv pip install --python {shlex.quote(sys.executable)} {words}"
    return f"{'python' if here else shlex.quote(sys.executable)} -m pip install {words}"
