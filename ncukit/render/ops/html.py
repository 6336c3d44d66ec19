"""The pages of operators and of ranks: one self-contained file each."""

from __future__ import annotations

import time
from pathlib import Path

from ncukit.model.ops import Ops, Ranks
from ncukit.render.html import write_page
from ncukit.render.ops.ranks_view import page_view as ranks_view
from ncukit.render.ops.view import TOP, page_view
from ncukit.trace.files import sha256_of


def write_ops(
    path: str | Path,
    ops: Ops,
    *,
    sort: str = "",
    top: int | None = TOP,
    kept: str = "",
    force: bool = False,
    command: str = "",
) -> Path:
    """Write the page of ``ops`` to ``path`` and return it; ``kept`` is where the trace of a run was left.

    Raises:
        UsageError: the file exists and ``force`` is not set, or it cannot be written.
    """
    generated = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    sha256 = sha256_of(ops.file.path)
    view = page_view(ops, sort=sort, top=top, kept=kept, sha256=sha256, generated=generated, command=command)
    return write_page(path, view, force=force)


def write_ranks(path: str | Path, ranks: Ranks, *, force: bool = False, command: str = "") -> Path:
    """Write the page of ``ranks`` to ``path`` and return it.

    Raises:
        UsageError: the file exists and ``force`` is not set, or it cannot be written.
    """
    generated = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return write_page(path, ranks_view(ranks, generated=generated, command=command), force=force)
