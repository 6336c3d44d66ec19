"""Kinds of damage, each decided by a seed alone."""

from __future__ import annotations

import json
import random
from typing import Any

GROWN = 300_000
"""Characters beyond which no line is repeated: thousands of sound launches are slow, not damaged."""
ODD_NUMBERS = (0, -1, 1e308, -1e308, 2**63, 2**64, 1e-320, True, 0.1, 10**30)
ODD_TEXTS = (
    "",
    "NaN",
    "Infinity",
    "\x1b[31m",
    "../../etc/passwd",
    "\u202egnp",
    "<script>alert(1)</script>",
    "x" * 7000,
    "\ud800",
)
ODD_VALUES = (*ODD_NUMBERS, *ODD_TEXTS, None, [], {}, [[]], {"a": None}, float("nan"), float("inf"))


def damaged_bytes(seed: int, data: bytes) -> bytes:
    """Return ``data`` cut, flipped, with a part removed, inserted, zeroed, repeated or set to ones."""
    rng = random.Random(seed)
    size = len(data)
    at = rng.randrange(size)
    end = min(size, at + rng.randrange(1, 2000))
    damaged = bytearray(data)
    match seed % 8:
        case 0:
            return data[:at]
        case 1:
            damaged[at] ^= 1 << rng.randrange(8)
        case 2:
            for _ in range(rng.randrange(2, 200)):
                damaged[rng.randrange(size)] ^= 1 << rng.randrange(8)
        case 3:
            del damaged[at:end]
        case 4:
            damaged[at:at] = rng.randbytes(end - at)
        case 5:
            damaged[at:end] = bytes(end - at)
        case 6:
            damaged[at:at] = damaged[rng.randrange(size) :][: end - at]
        case 7:
            damaged[at : at + 8] = b"\xff" * len(damaged[at : at + 8])
    return bytes(damaged)


def damaged_text(seed: int, data: bytes) -> bytes:
    """Return the text ``data`` with words exchanged, lines dropped, doubled or cut, or damaged as bytes."""
    rng = random.Random(seed)
    if seed % 3 == 0:
        return damaged_bytes(seed // 3, data)
    lines = data.decode("utf-8", "surrogateescape").splitlines(keepends=True)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                del lines[at]
                lines = lines or ["\n"]
            case 1:
                lines.insert(at, lines[rng.randrange(len(lines))])
            case 2:
                lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
            case 3:
                lines[at] = lines[at].replace(
                    rng.choice('",=[]{}.0'), rng.choice(('"', "", ",", "=", "e999", "\0"))
                )
            case 4:
                words = lines[at].split(",")
                words[rng.randrange(len(words))] = json.dumps(rng.choice(ODD_VALUES))
                lines[at] = ",".join(words)
            case 5:
                room = max(0, GROWN - sum(map(len, lines))) // (len(lines[at]) + 1)
                lines[at] *= 1 + min(rng.randrange(1, 200), room)
    return "".join(lines).encode("utf-8", "surrogateescape")


def damaged_json(seed: int, data: bytes) -> bytes:
    """Return the JSON document ``data`` with values exchanged, removed or nested, or damaged as text."""
    rng = random.Random(seed)
    if seed % 4 == 0:
        return damaged_text(seed // 4, data)
    document = json.loads(data)
    for _ in range(rng.randrange(1, 4)):
        document = _changed(rng, document)
    return json.dumps(document).encode()


def _changed(rng: random.Random, document: Any) -> Any:
    """Return ``document`` with one value below it changed; big lists are entered rather than replaced."""
    holder, key, value = None, None, document
    while isinstance(value, dict | list) and value and (holder is None or rng.random() < 0.85):
        holder = value
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        value = value[key]
    if holder is None:
        return rng.choice(ODD_VALUES)
    match rng.randrange(5):
        case 0:
            del holder[key]
        case 1 | 2:
            holder[key] = rng.choice(ODD_VALUES)
        case 3:
            deep: Any = value
            for _ in range(rng.choice((1, 3, 400))):
                deep = [deep]
            holder[key] = deep
        case 4:
            holder[key] = rng.choice(ODD_TEXTS) if isinstance(value, int | float) else rng.choice(ODD_NUMBERS)
    return document
