"""The rules, one file a family (memory has three). Importing this package registers them.

To add a rule: a function under ``@rule`` in the file of its family, and its table in tests/test_rules.py.
"""

from ncukit.diagnose.rules import (
    launch,
    local_memory,
    memory,
    scheduler,
    shared_memory,
    source,
    speed_of_light,
    tensor,
)

__all__ = [
    "launch",
    "local_memory",
    "memory",
    "scheduler",
    "shared_memory",
    "source",
    "speed_of_light",
    "tensor",
]
