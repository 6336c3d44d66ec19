"""Read a Chrome trace one event at a time: a trace of gigabytes needs the memory of one event.

The file is JSON, plain or gzip: an object with ``traceEvents``, or the bare list of events.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ncukit.errors import ReportFormatError, ReportNotFound
from ncukit.report import container
from ncukit.report.container import GZIP

CHUNK = 1 << 20
"""[byte] read at once."""
LIMIT = 1 << 26
"""Characters of one event, or of one value of the head, beyond which the file is no trace."""
_BOMB = 200
"""A file that unpacks to more than this many times its size holds no trace: those reach 30 times."""
_SMALL = 1 << 26
"""Size [byte] below which that is never asked."""
_GIVE = "give the file that profile.export_chrome_trace() wrote"
_AFTER = (",", "]", "}", " ", "\t", "\r", "\n")
"""What may follow a number."""
_MARGIN = 16
"""Characters before the end of what was read in which a fault may be the missing rest."""
_NO_NUMBER = re.compile(r'(":\s*)[+-]?(?:inf|nan)\b', re.IGNORECASE)
"""Some versions of Kineto write these bare, which no JSON may hold."""


class Events:
    """The events of the trace at ``path``; ``head`` holds all other keys once all events were read.

    Raises:
        ReportNotFound: there is no such file, or it cannot be read.
        ReportFormatError: it is no Chrome trace, truncated or damaged; raised while iterating.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.head: dict[str, Any] = {}
        self.count = 0

    def __iter__(self) -> Iterator[Any]:
        container.refuse_pipe(self.path)
        try:
            with self.path.open("rb") as raw:
                packed = raw.read(2) == GZIP
                raw.seek(0)
                yield from self._events(_Text(_Unpacked(raw) if packed else raw))
        except FileNotFoundError as error:
            raise ReportNotFound(self.path, f"there is no file {self.path}", "check the path") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._broken(f"the compressed data is damaged or ends early ({error})") from error
        except _Fault as error:
            raise self._broken(str(error)) from error
        except OSError as error:
            raise ReportNotFound(self.path, f"{self.path} cannot be read: {error.strerror}") from error

    def _events(self, text: _Text) -> Iterator[Any]:
        first = text.peek()
        if first == "[":
            yield from self._list(text)
        elif first == "{":
            found = False
            for key in _keys(text):
                if key == "traceEvents" and text.peek() == "[":
                    found = True
                    yield from self._list(text)
                else:
                    self.head[key] = text.value()
            if not found:
                raise self._foreign("it has no traceEvents")
        elif first:
            raise self._other()
        else:
            raise _Fault("it is empty")
        if text.peek():
            raise _Fault("something follows after its end")

    def _list(self, text: _Text) -> Iterator[Any]:
        text.take("[")
        if text.peek() == "]":
            text.take("]")
            return
        while True:
            event = text.value()
            self.count += 1
            yield event
            if text.peek() != ",":
                text.take("]")
                return
            text.take(",")

    def _broken(self, why: str) -> ReportFormatError:
        said = f" after {self.count:,} events" if self.count else ""
        return ReportFormatError(
            self.path,
            f"{self.path} is no whole trace of torch's profiler: {why}{said}",
            "copy it again, or trace again",
        )

    def _foreign(self, why: str) -> ReportFormatError:
        return ReportFormatError(self.path, f"{self.path} is no trace of torch's profiler: {why}", _GIVE)

    def _other(self) -> ReportFormatError:
        """Return the error of a file that is no JSON, by what it is."""
        with self.path.open("rb") as file:
            found = container.identify(container.unpacked(file.read(container.HEAD)))
        error = self._foreign(f"it is no JSON, but {found.what}")
        if "FILE" in found.hint or "BASENAME" in found.hint:
            error.hint = found.advice(self.path)
        return error


class _Fault(Exception):
    """What is wrong with the text."""


class _Unpacked:
    """What a gzip file holds, as far as that is in proportion to its size."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._file = gzip.GzipFile(fileobj=raw)
        self._most = max(_SMALL, _BOMB * os.fstat(raw.fileno()).st_size)
        self._read = 0

    def read(self, size: int) -> bytes:
        """Return the next ``size`` [byte] at most."""
        data = self._file.read(size)
        self._read += len(data)
        if self._read > self._most:
            raise _Fault(f"it unpacks to more than {_BOMB} times its size")
        return data


def _keys(text: _Text) -> Iterator[str]:
    """Yield the keys of an object; the value of each must be taken before the next key is asked for."""
    text.take("{")
    if text.peek() == "}":
        text.take("}")
        return
    while True:
        key = text.value()
        if not isinstance(key, str):
            raise _Fault("a key is no text")
        text.take(":")
        yield key
        if text.peek() != ",":
            text.take("}")
            return
        text.take(",")


class _Text:
    """JSON text that is read as it is needed."""

    def __init__(self, file: IO[bytes] | _Unpacked) -> None:
        import codecs

        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._buffer, self._at, self._done = "", 0, False
        self._decode = json.JSONDecoder(strict=False).raw_decode

    def peek(self) -> str:
        """Return the next character that is no space, "" at the end."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more(CHUNK):
                return ""

    def take(self, character: str) -> None:
        """Take ``character``, which must be next."""
        found = self.peek()
        if found != character:
            raise _Fault(f"{character!r} is missing before {found!r}" if found else "it ends in the middle")
        self._at += 1

    def value(self) -> Any:
        """Take a whole value."""
        size, mended = CHUNK, False
        self.peek()
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                if self._cut(error):
                    if not self._more(size):
                        raise _Fault("it ends in the middle") from error
                    size, mended = size * 2, False
                    continue
                if mended:
                    raise _Fault(error.msg) from error
                mended, self._buffer = True, _NO_NUMBER.sub(r"\1null", self._buffer[self._at :])
                self._at = 0
                continue
            except ValueError as error:  # Python refuses to convert a number of thousands of digits
                raise _Fault("a number has too many digits") from error
            except RecursionError as error:
                raise _Fault("it is nested too deeply") from error
            open_end = not isinstance(value, dict | list | str) and self._buffer[end : end + 1] not in _AFTER
            if open_end and self._more(size):
                continue  # a number may go on
            self._at = end
            return value

    def _cut(self, error: json.JSONDecodeError) -> bool:
        """Return whether the fault may be that the text was not read to its end."""
        unterminated = error.msg.startswith("Unterminated")
        return unterminated or error.pos >= len(self._buffer) - _MARGIN

    def _more(self, size: int) -> bool:
        """Read on; what was taken is forgotten."""
        if self._done:
            return False
        if len(self._buffer) - self._at > LIMIT:
            raise _Fault(f"one value is longer than {LIMIT:,} characters")
        data = self._file.read(size)
        self._done = not data
        self._buffer = self._buffer[self._at :] + self._decoder.decode(data, final=self._done)
        self._at = 0
        return bool(data) or bool(self._buffer)
