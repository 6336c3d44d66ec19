"""Find the folders that ship with ncukit: templates, kernels, sample reports; and the user's cache."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ncukit.folders import is_own_way

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """Return the folder ``name`` inside an installed wheel, else in the checkout.

    Raises:
        FileNotFoundError: ncukit was installed without it.

    >>> folder("templates").name
    'templates'
    """
    for parent in (_PACKAGE, _PACKAGE.parent):
        if (found := parent / name).is_dir():
            return found
    raise FileNotFoundError(f"ncukit was installed without its {name!r} folder")


def cache_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the user's cache folder for ncukit, which need not exist.

    It is None for a user without a home, and where somebody else decides what lies there.

    >>> cache_folder({"XDG_CACHE_HOME": "/var/cache/me"})
    PosixPath('/var/cache/me/ncukit')
    """
    env = os.environ if environ is None else environ
    base = env.get("XDG_CACHE_HOME", "")
    home = env.get("HOME") or os.path.expanduser("~")
    if not os.path.isabs(base):
        base = os.path.join(home, ".cache")
    found = Path(base, "ncukit")
    return found if found.is_absolute() and is_own_way(found, home) else None
