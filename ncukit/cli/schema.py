"""``ncukit schema``: the JSON schemas of what ncukit prints and writes."""

from __future__ import annotations

from typing import Annotated

import typer

from ncukit.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(schema)


def schema(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A schema; without it all are listed.")
    ] = None,
) -> None:
    """Print the JSON schema NAME, for example of `metrics --json` and `show --json`.

    \b
    ncukit schema
    ncukit schema ncukit.kernel/1
    """
    from ncukit.schemas import names, text

    known = names()
    if name is None:
        print("\n".join(known))
        return
    matches = [n for n in known if n == name or n.split("/")[0] in (name, f"ncukit.{name}")]
    if not matches:
        raise UsageError(f"there is no schema {name!r}", f"there is: {', '.join(known)}")
    print(text(matches[-1]))
