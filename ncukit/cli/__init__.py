"""The command line: one module a command, each a thin call of `ncukit.api`.

Results go to stdout, words to stderr; an error is two lines, what happened and what to do.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated

import typer

from ncukit import __version__
from ncukit.cli import output
from ncukit.errors import NcukitError

COMMANDS = (
    *("profile", "time", "report", "show", "metrics", "compare", "baseline", "timeline"),
    *("dataset", "index", "mfu", "catalog", "doctor", "demo", "schema"),
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"ncukit {__version__}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Read Nsight Compute reports, translate their counters, say what limits the kernel.

    \b
    ncukit profile SCRIPT.py -k NAME   time, trace and measure one kernel, write the report
    ncukit demo                    the main job on a bundled sample, no GPU needed
    ncukit show FILE.ncu-rep       the diagnosis in the terminal
    ncukit report FILE.ncu-rep     the same as one HTML file
    ncukit metrics FILE.ncu-rep    neutral metrics as table, CSV, JSON or Parquet
    ncukit compare BASE OTHER      versions or GPUs side by side; gates for CI
    ncukit timeline FILE.nsys-rep  where the time of a traced run went
    ncukit doctor                  what of the tool chain works here, and how to mend the rest

    Every command takes --debug, which adds the traceback to an error.
    """


def application(*names: str) -> typer.Typer:
    """Return the command line with the commands ``names`` (default: all): one loads only its own code."""
    made = typer.Typer(
        name="ncukit",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    made.callback()(root)
    for name in names or COMMANDS:
        import_module(f"ncukit.cli.{name}").register(made)
    return made


def main() -> None:
    """Run the command line; every `NcukitError` ends as two lines on stderr and its exit code."""
    debug = output.debug = _take_debug()
    first = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")
    try:
        application(*(name for name in COMMANDS if name == first))()
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away: nobody to tell
        sys.exit(141)
    except KeyboardInterrupt:
        print("\nerror: interrupted", file=sys.stderr)
        sys.exit(130)
    except NcukitError as error:
        if debug:
            raise
        tell(error)
        sys.exit(error.exit_code)
    except Exception as error:
        if debug:
            raise
        tell(
            NcukitError(
                f"internal error: {type(error).__name__}: {error}", "run again with --debug and report it"
            )
        )
        sys.exit(NcukitError.exit_code)


def tell(error: NcukitError) -> None:
    """Print an error: two lines on stderr, and in JSON mode one object on stdout."""
    from ncukit.cli.output import complain

    if "--json" in sys.argv[1:]:
        from ncukit.render.json import error_text

        print(error_text(error))
    complain(error)


def _take_debug() -> bool:
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    if "--debug" not in arguments[:end]:
        return False
    sys.argv.remove("--debug")
    return True
