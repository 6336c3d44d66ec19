"""Folders of strangers, hostile in every way, run through the commands that meet them.

    python -m tests.attacks 1000              a thousand rounds; --kind links for one kind
    python -m tests.attacks --seed 17         one round again, with all that it prints

Passed is: nothing outside the hostile folder and the output asked for changes, no program of a stranger
runs, no secret is printed or written, and each command ends in time, with an exit code of its own and
without a traceback or an internal error.
"""
