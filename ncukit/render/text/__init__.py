"""What the terminal shows: the diagnosis of a file, metrics as a table, the catalog.

Words, numbers and their order come from `ncukit.render.view`, as on the page; here they are set in columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ncukit.model import Diagnosis, Kernel, ReportFile
from ncukit.render.text.catalog import catalog_text
from ncukit.render.text.launch import launch_lines
from ncukit.render.text.metrics import metrics_text
from ncukit.render.text.terminal import Terminal

if TYPE_CHECKING:
    from ncukit.model.source import SourceView
    from ncukit.render.text.source import Listing
    from ncukit.render.timeline.beside import Beside

__all__ = ["catalog_text", "listing_text", "metrics_text", "show_text"]


def show_text(
    file: ReportFile,
    diagnoses: Sequence[Diagnosis],
    *,
    color: bool,
    encoding: str,
    verbose: bool = False,
    width: int = 80,
    beside: Beside | None = None,
) -> str:
    """Return what a terminal of ``width`` columns shows of ``file``: one launch in full, or all as a table.

    ``color`` marks class and limiter; characters that ``encoding`` lacks are spelled in ASCII; ``verbose``
    unfolds rules, checks and reasons; ``beside`` is a trace of the same program.  No newline at the end.
    """
    terminal = Terminal(width, encoding, color)
    if len(diagnoses) == 1:
        lines = launch_lines(terminal, file, diagnoses[0], verbose=verbose, beside=beside)
    else:
        from ncukit.render.text.many import many_lines

        lines = many_lines(terminal, file, diagnoses, verbose=verbose, beside=beside)
    return terminal.page(lines)


def listing_text(
    kernel: Kernel, view: SourceView | None, what: Listing, *, encoding: str, width: int = 80
) -> str:
    """Return the whole source or SASS of one launch, with shares of samples.  No newline at the end.

    ``view`` is None where nothing was counted by instruction.
    """
    from ncukit.render.text.source import listing

    t = Terminal(width, encoding)
    where = f"launch {kernel.index + 1:,}"
    heading = t.beside(t.cut_middle(t.text(kernel.name), width - len(where) - 2), where)
    return t.page([*heading, "", *listing(t, view, what)])
