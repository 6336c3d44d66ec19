"""Find the folders that ship with ncukit: templates, kernels, sample reports."""

from __future__ import annotations

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
