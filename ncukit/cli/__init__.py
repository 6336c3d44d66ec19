"""The command line: one module a command, each a thin call of `ncukit.api`.

Results go to stdout, words to stderr; an error is two lines, what happened and what to do.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ncukit import __version__, signals
from ncukit.cli import output
from ncukit.errors import Interrupted, NcukitError

COMMANDS = (
    *("profile", "time", "experiment", "report", "show", "metrics", "compare", "baseline", "timeline"),
    *("ops", "dataset", "index", "roofline", "mfu", "advise", "probe", "catalog", "doctor", "demo", "schema"),
)

UNREAD = 141
"""Exit code where the reader of stdout went away: that of a program which SIGPIPE ends."""


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
    ncukit ops TRACE.json.gz       PyTorch operators and the kernels that each launched
    ncukit roofline MODEL          the bound of a computation from its shapes, without a report
    ncukit doctor                  what of the tool chain works here, and how to mend the rest

    Every command takes --debug, which adds the traceback to an error.
    """


class _Group(TyperGroup):
    """Commands whose values complete, and whose interruption is an error: typer would end without a word."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is not None and ctx.resilient_parsing:  # a shell asks
            from ncukit.cli.completion import complete_values

            complete_values(found)
        return found

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise signals.as_error(stop) from stop


def application(*names: str) -> typer.Typer:
    """Return the command line with the commands ``names`` (default: all): one loads only its own code."""
    made = typer.Typer(
        name="ncukit",
        cls=_Group,
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
    """Run the command line; every error ends as two lines on stderr and its exit code."""
    output.debug = _take_debug()
    output.show_what_the_terminal_cannot()
    first = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")
    with signals.heard():
        try:
            code = ended(application(*(name for name in COMMANDS if name == first)))
        except KeyboardInterrupt as stop:  # before the command began
            code = _interrupted(signals.as_error(stop))
    sys.exit(code)


def ended(program: typer.Typer) -> int:
    """Run ``program``, tell its error if it has one, and return the exit code."""
    try:
        code = program(prog_name="ncukit", standalone_mode=False)
        if code == Interrupted().exit_code:  # while typer read the arguments
            return _interrupted(signals.last())
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        return _unread()
    except SystemExit as end:  # what typer makes of a broken pipe
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        return _unread()
    except Interrupted as error:
        output.show_where()
        return _interrupted(error)
    except Exception as error:
        if output.asks_for_help(error):
            print(error, file=sys.stderr)
            return 2
        if (stop := signals.behind(error)) is not None:
            return _interrupted(signals.as_error(stop))
        output.show_where()
        found = output.as_error(error)
        tell(found)
        return found.exit_code


def _unread() -> int:
    """Drop what is still to be printed: its reader went away, as `head` does, and nobody is to be told."""
    output.drop_stdout()
    return UNREAD


def _interrupted(error: Interrupted) -> int:
    if sys.stderr.isatty():
        print(file=sys.stderr)  # behind the ^C of the terminal
    tell(error)
    return error.exit_code


def tell(error: NcukitError) -> None:
    """Print an error: two lines on stderr, and in JSON mode one object on stdout."""
    output.complain(error)
    try:
        if "--json" in sys.argv[1:]:
            from ncukit.render.json import error_text

            print(error_text(error))
        sys.stdout.flush()
    except OSError:
        output.drop_stdout()


def _take_debug() -> bool:
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    if "--debug" not in arguments[:end]:
        return False
    sys.argv.remove("--debug")
    return True
