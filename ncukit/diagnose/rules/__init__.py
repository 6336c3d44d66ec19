"""The rules, a file or more for each family. Importing this package registers them.

To add a rule: a function under ``@rule`` in a file of its family, its words in ``data/rules.toml``, and its
table in tests/test_rules.py.
"""

from ncukit.diagnose.rules import (
    caches,
    coalescing,
    launch,
    local_memory,
    measured,
    memory,
    occupancy,
    operands,
    scheduler,
    shared_memory,
    source,
    speed_of_light,
    tensor,
    waiting,
)

__all__ = [
    "caches",
    "coalescing",
    "launch",
    "local_memory",
    "measured",
    "memory",
    "occupancy",
    "operands",
    "scheduler",
    "shared_memory",
    "source",
    "speed_of_light",
    "tensor",
    "waiting",
]
