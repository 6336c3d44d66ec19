"""Take names of machine, user and folders out of what is carried home."""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Iterable
from pathlib import Path

TEXT = (".json", ".md", ".out", ".err", ".log", ".html")
PLAIN = frozenset({"", "localhost", "root", "nobody", "user"})
"""Names that say nothing, and words that may mean something else."""


class Scrub:
    """Replaces paths and names: by words in text, by as many "x" in a report, whose fields know their length.

    >>> scrub = Scrub([("/home/ann/work", "CHECKOUT")], ["ann"])
    >>> scrub.text("/home/ann/work/a.py by ann"), scrub.data(b"at /home/ann/work/a.py")
    ('CHECKOUT/a.py by xxx', b'at /xxxx/xxx/xxxx/a.py')
    """

    def __init__(self, paths: Iterable[tuple[str, str]], names: Iterable[str]) -> None:
        self._paths = sorted(paths, key=lambda pair: -len(pair[0]))
        self._names = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)") for name in names]

    @classmethod
    def here(cls, folder: Path, checkout: Path) -> Scrub:
        """Return what scrubs this machine's names, and the folders of this run."""
        user = _user()
        paths = {str(folder): "RUN", str(checkout): "CHECKOUT", str(Path.home()): "HOME"}
        known = [(path, word) for path, word in paths.items() if path != "/"]
        names = {socket.gethostname(), socket.gethostname().partition(".")[0], user}
        return cls(known, sorted(name for name in names if name.lower() not in PLAIN and len(name) > 2))

    def text(self, text: str) -> str:
        """Return ``text`` without them."""
        for path, word in self._paths:
            text = re.sub(rf"{re.escape(path)}(?![\w.-])", word, text)
        for name in self._names:
            text = name.sub(lambda found: "x" * len(found[0]), text)
        return text

    def data(self, data: bytes) -> bytes:
        """Return the bytes of a report without them; where something is compressed it stays as it is."""
        for path, _ in self._paths:
            whole = rb"" if len(path) > 7 else rb"(?=/)"  # a short one may be a part of something else
            data = re.sub(re.escape(path.encode()) + whole, re.sub(rb"[^/]", b"x", path.encode()), data)
        for name in self._names:
            pattern = re.compile(name.pattern.encode())
            data = pattern.sub(lambda found: b"x" * len(found[0]), data)
        return data

    def file(self, path: Path) -> bytes:
        """Return the content of a file without them."""
        data = path.read_bytes()
        if path.suffix in TEXT:
            return self.text(data.decode("utf-8", "replace")).encode()
        return self.data(data)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user without a name
        return ""
