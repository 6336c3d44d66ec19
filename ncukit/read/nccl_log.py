"""Read what NCCL prints with ``NCCL_DEBUG=INFO``: version, settings, transports, warnings."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

from ncukit.errors import ReportFormatError, ReportNotFound
from ncukit.model.ranks import NcclLog, Setting

_LINE = re.compile(r"\bNCCL (INFO|WARN|version)\b")
_VERSION = re.compile(r"\bNCCL version (\S+)")
_SET = re.compile(r"\bNCCL INFO (NCCL_\w+) set (?:by environment )?to (.+?)\.?\s*$")
_VIA = re.compile(r"\bvia ([A-Z0-9]+(?:/[\w-]+)*)")
_RANKS = re.compile(r"\bn[Rr]anks (\d+)\b")
_WARN = re.compile(r"\bNCCL WARN (.+?)\s*$")
_FACTS = (
    ("network", re.compile(r"\bNCCL INFO Using network (\S+)")),
    ("InfiniBand", re.compile(r"\bNCCL INFO NET/IB : (Using .+?|No device found)\s*\.?\s*$")),
    ("sockets", re.compile(r"\bNCCL INFO NET/Socket : (Using .+?)\s*$")),
    ("channels", re.compile(r"\b(\d+ coll channels, .+?)\s*$")),
)
NOTES = {
    "NCCL_P2P_DISABLE": ("1", "GPUs of one machine do not reach each other directly"),
    "NCCL_SHM_DISABLE": ("1", "shared memory between processes is off"),
    "NCCL_IB_DISABLE": ("1", "InfiniBand and RoCE are off: between machines only sockets are left"),
    "NCCL_NET_GDR_LEVEL": ("0", "the network card does not reach GPU memory itself"),
    "NCCL_ALGO": ("", "the algorithm is fixed: NCCL cannot choose by size"),
    "NCCL_PROTO": ("", "the protocol is fixed: NCCL cannot choose by size"),
    "NCCL_LAUNCH_MODE": ("", "how collectives are launched is fixed"),
    "NCCL_DEBUG": ("TRACE", "this much output slows the program"),
}
"""Settings that often explain slow collectives: the value that does (any where empty), and what it means."""
WARNINGS = 20
"""Different warnings that are kept."""


def read_nccl_log(path: str | os.PathLike[str]) -> NcclLog:
    """Return what the log at ``path`` says; lines of other programs are skipped.

    Raises:
        ReportNotFound: there is no such file.
        ReportFormatError: it holds no line of NCCL.
    """
    place = Path(path)
    version, ranks, lines = None, None, 0
    settings: dict[tuple[str, str], Setting] = {}
    transports: Counter[str] = Counter()
    warnings: dict[str, None] = {}
    try:
        with place.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if not _LINE.search(line):
                    continue
                lines += 1
                if match := _VERSION.search(line):
                    version = version or match[1]
                if match := _SET.search(line):
                    made = setting(match[1], match[2], "log")
                    settings.setdefault((made.name, made.value), made)
                for name, pattern in _FACTS:
                    if match := pattern.search(line):
                        settings.setdefault((name, match[1]), Setting(name, match[1], "log"))
                if match := _VIA.search(line):
                    transports[match[1]] += 1
                if match := _RANKS.search(line):
                    ranks = max(ranks or 0, int(match[1]))
                if (match := _WARN.search(line)) and len(warnings) < WARNINGS:
                    warnings.setdefault(match[1])
    except FileNotFoundError as error:
        raise ReportNotFound(place, f"there is no file {place}", "check the path") from error
    except OSError as error:
        raise ReportNotFound(place, f"{place} cannot be read: {error.strerror}") from error
    if not lines:
        raise ReportFormatError(
            place, f"{place} holds no line of NCCL", "run with NCCL_DEBUG=INFO and keep what it prints"
        )
    return NcclLog(str(place), version, tuple(settings.values()), dict(transports), tuple(warnings), ranks)


def setting(name: str, value: str, source: str) -> Setting:
    """Return a setting with what it means, where that often explains slow collectives.

    >>> setting("NCCL_P2P_DISABLE", "1", "log").note
    'GPUs of one machine do not reach each other directly'
    """
    wanted, note = NOTES.get(name, ("-", ""))
    return Setting(name, value, source, note if wanted in ("", value) else "")
