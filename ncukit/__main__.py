"""``python -m ncukit``: the command line."""

from ncukit.cli import main

main()
