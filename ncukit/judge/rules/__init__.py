"""The rules, a file or more for each family. Importing this package registers them.

To add a rule: a function under ``@rule`` in a file of its family, its words in ``data/rules.toml``, and its
table in tests/test_rules.py.
"""

from ncukit.judge.rules import (
    global_memory,
    launch,
    memory,
    on_chip,
    source,
    speed_of_light,
    tensor,
    waiting,
)

__all__ = [
    "global_memory",
    "launch",
    "memory",
    "on_chip",
    "source",
    "speed_of_light",
    "tensor",
    "waiting",
]
