"""Find the folders that ship with ncukit: templates, kernels, sample reports; and the user's cache."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

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
    """Return the user's cache folder for ncukit, which need not exist; None for a user without a home.

    >>> cache_folder({"XDG_CACHE_HOME": "/var/cache/me"})
    PosixPath('/var/cache/me/ncukit')
    """
    env = os.environ if environ is None else environ
    base = env.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(env.get("HOME") or os.path.expanduser("~"), ".cache")
    return Path(base) / "ncukit" if os.path.isabs(base) else None
