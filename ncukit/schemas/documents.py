"""Read JSON that ncukit wrote: a document follows its published schema, or is refused with the place."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from ncukit.errors import ReportFormatError, ReportNotFound
from ncukit.folders import Folder
from ncukit.schemas import text as schema_text
from ncukit.schemas.check import fault

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
LARGEST = 256 << 20
"""Size [byte] of the largest document that is read."""


def read_document(
    file: Path, schema: str, again: str = "profile again", *, found: bool = False
) -> dict[str, Any]:
    """Return the document of the schema of that name in ``file``; ``again`` says how to make it anew.

    With ``found`` the file was found in a folder that the user named: a link there is not followed.

    Raises:
        ReportNotFound: there is no such file.
        ReportFormatError: it is damaged, of another schema, or of a version that this ncukit does not know.
    """
    data = _object(file, again, _no_number, found)
    if data.get("schema") != schema:
        raise ReportFormatError(file, f"{file} is not of schema {schema}", "use the ncukit that wrote it")
    if (wrong := fault(data, json.loads(schema_text(schema)))) is not None:
        raise _damaged(file, wrong, again)
    return data


def read_json(file: Path, again: str = "profile again") -> dict[str, Any]:
    """Return the JSON object in ``file``, whatever is in it.

    Raises:
        ReportNotFound: there is no such file.
        ReportFormatError: it is no JSON object, or too large for one of ncukit's.
    """
    return _object(file, again, float, False)


def _object(file: Path, again: str, constant: Callable[[str], float], found: bool) -> dict[str, Any]:
    try:
        with _opened(file, found) as opened:
            if (size := os.fstat(opened.fileno()).st_size) > LARGEST:
                raise _damaged(file, f"it has {size >> 20} MiB", again)
            text = opened.read().decode("utf-8")
        data = json.loads(text, parse_constant=constant)
        if _SURROGATE.search(text):  # which an escape can name; a pair of them is a character
            json.dumps(data, ensure_ascii=False).encode()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ReportNotFound(file, f"there is no {file.name} in {file.parent}", "check the path") from error
    except OSError as error:
        raise ReportNotFound(file, f"{file} cannot be read: {error.strerror}", "check the path") from error
    except UnicodeEncodeError as error:
        raise _damaged(file, "a text holds half of a character", again) from error
    except RecursionError as error:
        raise _damaged(file, "it is nested too deeply", again) from error
    except ValueError as error:
        raise _damaged(file, str(error).partition(";")[0], again) from error
    if not isinstance(data, dict):
        raise _damaged(file, "it holds no object", again)
    return data


def _opened(file: Path, found: bool) -> BinaryIO:
    if not found:
        return file.open("rb")
    with Folder.open(file.parent) as folder:
        return folder.open_file(file.name)


def _damaged(file: Path, what: str, again: str) -> ReportFormatError:
    return ReportFormatError(file, f"{file} is damaged: {what}", again, code="report-damaged")


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")
