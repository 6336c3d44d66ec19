"""How a dataset names its folders, one a GPU, and the part files in them."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from urllib.parse import quote

PARTITION = "gpu"
"""Key of the partitions, which no file holds: it is read from the names of the folders."""
NOWHERE = "__HIVE_DEFAULT_PARTITION__"
"""Value of the partition where the GPU is not known, as Hive writes it."""
_LONGEST = 200
"""Characters of the longest folder name that is the GPU's own; of a longer one its beginning and a hash."""
_FILE = r"[A-Za-z0-9-][A-Za-z0-9._-]{0,60}-[0-9a-f]{12}\.parquet"
_PART = re.compile(rf"gpu=[^/\0]+/{_FILE}")
_HIDDEN = re.compile(rf"gpu=[^/\0]+/\.{_FILE}\.[0-9]+\.tmp")


def part_name(path: str) -> str:
    """Return the name of the part files of the report at ``path``: the same for the same path.

    >>> part_name("/runs/a b.ncu-rep")
    'a_b-44ca9e4aac7b.parquet'
    """
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "-.") else "_" for c in Path(path).stem)
    return (
        f"{stem[:60].lstrip('._') or 'report'}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}.parquet"
    )


def partition_name(gpu: str | None) -> str:
    """Return the folder of a GPU's launches.

    >>> partition_name("NVIDIA A100-PCIE-40GB"), partition_name(None)
    ('gpu=NVIDIA%20A100-PCIE-40GB', 'gpu=__HIVE_DEFAULT_PARTITION__')
    """
    if not gpu:
        return f"{PARTITION}={NOWHERE}"
    name = quote(gpu, safe="")
    if len(name) > _LONGEST:  # a file system takes 255 bytes
        name = f"{quote(gpu[:16], safe='')}-{hashlib.sha256(gpu.encode()).hexdigest()[:12]}"
    return f"{PARTITION}={name}"


def is_part(name: str) -> bool:
    """Return whether ``name`` is one that a build gives its part files, by the path inside the dataset.

    >>> is_part("gpu=NVIDIA%20A40/a_b-44ca9e4aac7b.parquet"), is_part("../thesis.parquet")
    (True, False)
    """
    return _PART.fullmatch(name) is not None


def is_left(name: str) -> bool:
    """Return whether ``name`` is a file that a build left when it was killed.

    >>> is_left("gpu=A40/.a-44ca9e4aac7b.parquet.12.tmp"), is_left("gpu=A40/notes.tmp")
    (True, False)
    """
    return _HIDDEN.fullmatch(name) is not None
