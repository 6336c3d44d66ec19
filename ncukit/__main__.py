"""``python -m ncukit``: the command line."""

import gc
import signal
import sys

COLLECT = (100_000, 20, 50)
"""When to look for garbage: reports make hundreds of thousands of objects and hardly a cycle among them."""


def main() -> None:
    """Run the command line; Ctrl-C while it is loaded, or when its work is done, shows no traceback."""
    gc.set_threshold(*COLLECT)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    from ncukit import signals

    try:
        with signals.heard():
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                from ncukit.cli import main as command_line

                command_line()
            finally:
                signals.finish()
                gc.freeze()  # the process ends: no garbage is worth looking for
    except (KeyboardInterrupt, RuntimeError) as error:
        stop = signals.behind(error)
        if stop is None:
            raise
        said = signals.as_error(stop)
        print(f"error: {said.message}", file=sys.stderr)
        if "--json" in sys.argv[1:]:
            from ncukit.render.json import error_text

            print(error_text(said))
        sys.exit(said.exit_code)
    except OSError as error:  # before the command line was there to tell it: no file can be opened
        from ncukit.cli import output, tell

        told = output.as_error(error)
        tell(told)
        sys.exit(told.exit_code)


if __name__ == "__main__":
    main()
