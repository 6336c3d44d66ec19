"""Import what the commands need once, before processes are forked."""

from __future__ import annotations

import importlib
import pkgutil

_LEFT_OUT = ("ncukit.__main__", "ncukit.tables", "ncukit.workload", "ncukit.dataset")
"""Need pandas, torch or pyarrow."""


def warm(*, dataset: bool = False) -> None:
    """Import the commands and what they import late.

    The native reader stays unloaded, and pyarrow unless ``dataset`` is set, as in a real start: with them
    loaded ncukit forks no reader.
    """
    import numpy as np

    import ncukit
    from ncukit.metrics import load

    for module in pkgutil.walk_packages(ncukit.__path__, "ncukit."):
        if not module.name.startswith(_LEFT_OUT):
            importlib.import_module(module.name)
    load()
    np.unique(np.arange(2))
    if dataset:
        for name in ("pandas", "pyarrow.parquet", "ncukit.dataset.inputs", "ncukit.dataset.survey"):
            importlib.import_module(name)
