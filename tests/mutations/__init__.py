"""Damaged inputs of every kind, run through the commands that read them.

    python -m tests.mutations 1000            a thousand of each kind; --kind csv for one of them
    python -m tests.mutations --kind csv --seed 17 --keep x.csv

Passed is: the command ends within 30 s and 2 GB, with an exit code of its own, with two lines for an error,
and without a traceback, an internal error, or success that prints nothing.  A flipped digit in a value cannot
be seen: no format here has checksums over all of its content.
"""
