"""The net under the outputs: every difference between two revisions in what a command line leaves behind.

Read `cases` (command lines as data), `run` (they run, in a tree at a fixed place), `worker` (the process that
loads a revision once and forks for each command line), `compare` (what differs, each hunk once).
"""
