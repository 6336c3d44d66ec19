"""JSON that ncukit wrote follows its published schema, or is refused with the place."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ncukit.errors import ReportFormatError, ReportNotFound
from ncukit.folders import Folder
from ncukit.schemas import text as schema_text

# ---- What a document breaks of a published schema: the part of JSON Schema 2020-12 that those use
#  Stricter than the standard in two ways: 1.0 is no integer, and a number is finite.  A keyword that is not
# known here raises an error rather than being passed over.  A schema is compiled once into closures that
# return the first fault: baselines have a hundred thousand values.

Schema = Mapping[str, Any]
Fault = tuple[tuple[str | int, ...], str]
"""Names and positions that lead there, outermost first, and what is wrong."""
Check = Callable[[Any], Fault | None]


def fault(document: Any, schema: Schema) -> str | None:
    """Return the first place where ``document`` does not follow ``schema``, None where it does.

    >>> seconds = {"properties": {"steps": {"items": {"properties": {"seconds": {"type": "number"}}}}}}
    >>> fault({"steps": [{"seconds": 1.5}, {"seconds": "x"}]}, seconds)
    'steps[1].seconds must be number'
    >>> fault({}, {"required": ["steps"]})
    'steps is missing'
    """
    found = _compiled(schema, schema)(document)
    return None if found is None else f"{_place(found[0])} {found[1]}"


def _compiled(schema: Schema | bool, root: Schema) -> Check:
    if isinstance(schema, bool):
        return (lambda value: None) if schema else (lambda value: ((), "is not known"))
    checks = [_KEYWORDS[keyword](schema, root) for keyword in schema if keyword not in _WORDS]
    if len(checks) == 1:
        return checks[0]

    def check(value: Any) -> Fault | None:
        for one in checks:
            if (found := one(value)) is not None:
                return found
        return None

    return check


def _type(schema: Schema, root: Schema) -> Check:
    names = _names(schema["type"])
    fits, wrong = [_TYPES[name] for name in names], ((), f"must be {' or '.join(names)}")
    if len(fits) == 1:
        return lambda value: None if fits[0](value) else wrong
    return lambda value: None if any(fit(value) for fit in fits) else wrong


def _const(schema: Schema, root: Schema) -> Check:
    wrong = ((), f"must be {json.dumps(schema['const'])}")
    return lambda value: None if _same(value, schema["const"]) else wrong


def _enum(schema: Schema, root: Schema) -> Check:
    wrong = ((), f"must be one of {', '.join(json.dumps(one) for one in schema['enum'])}")
    return lambda value: None if any(_same(value, one) for one in schema["enum"]) else wrong


def _required(schema: Schema, root: Schema) -> Check:
    def check(value: Any) -> Fault | None:
        if isinstance(value, dict):
            for name in schema["required"]:
                if name not in value:
                    return (name,), "is missing"
        return None

    return check


def _properties(schema: Schema, root: Schema) -> Check:
    checks = {name: _compiled(inner, root) for name, inner in schema["properties"].items()}

    def check(value: Any) -> Fault | None:
        if isinstance(value, dict):
            for name, one in checks.items():
                if name in value and (found := one(value[name])) is not None:
                    return (name, *found[0]), found[1]
        return None

    return check


def _additional(schema: Schema, root: Schema) -> Check:
    known, one = frozenset(schema.get("properties", ())), _compiled(schema["additionalProperties"], root)

    def check(value: Any) -> Fault | None:
        if isinstance(value, dict):
            for name, inner in value.items():
                if name not in known and (found := one(inner)) is not None:
                    return (name, *found[0]), found[1]
        return None

    return check


def _items(schema: Schema, root: Schema) -> Check:
    first, one = len(schema.get("prefixItems", ())), _compiled(schema["items"], root)

    def check(value: Any) -> Fault | None:
        if isinstance(value, list):
            for n in range(first, len(value)):
                if (found := one(value[n])) is not None:
                    return (n, *found[0]), found[1]
        return None

    return check


def _prefix(schema: Schema, root: Schema) -> Check:
    checks = [_compiled(inner, root) for inner in schema["prefixItems"]]

    def check(value: Any) -> Fault | None:
        if isinstance(value, list):
            for n, (item, one) in enumerate(zip(value, checks, strict=False)):
                if (found := one(item)) is not None:
                    return (n, *found[0]), found[1]
        return None

    return check


def _any_of(schema: Schema, root: Schema) -> Check:
    return _choice(schema["anyOf"], root, at_most=len(schema["anyOf"]))


def _one_of(schema: Schema, root: Schema) -> Check:
    return _choice(schema["oneOf"], root, at_most=1)


def _choice(choices: list[Schema], root: Schema, *, at_most: int) -> Check:
    checks = [_compiled(one, root) for one in choices]
    types = [_names(_resolved(one, root).get("type", "another value")) for one in choices]
    wrong = f"must be {' or '.join(name for names in types for name in names)}"

    def check(value: Any) -> Fault | None:
        faults = [found for one in checks if (found := one(value)) is not None]
        if len(faults) == len(checks):  # the choice that comes closest is the one whose fault lies deepest
            deepest = max(faults, key=lambda found: len(found[0]))
            return deepest if deepest[0] else ((), wrong)
        return ((), "is ambiguous") if len(checks) - len(faults) > at_most else None

    return check


def _all_of(schema: Schema, root: Schema) -> Check:
    checks = [_compiled(one, root) for one in schema["allOf"]]
    return lambda value: next((found for one in checks if (found := one(value)) is not None), None)


def _if(schema: Schema, root: Schema) -> Check:
    condition, then, other = (_compiled(schema.get(word, True), root) for word in ("if", "then", "else"))
    return lambda value: then(value) if condition(value) is None else other(value)


def _ref(schema: Schema, root: Schema) -> Check:
    return _compiled(_resolved(schema, root), root)


def _resolved(schema: Schema, root: Schema) -> Schema:
    place = schema.get("$ref")
    found: Schema = schema if place is None else root["$defs"][place.removeprefix("#/$defs/")]
    return found


def _bound(keyword: str, fits: Callable[[float, float], bool], words: str) -> Callable[..., Check]:
    def compiled(schema: Schema, root: Schema) -> Check:
        bound, number = schema[keyword], _TYPES["number"]
        wrong = ((), f"must be {words} {bound}")
        return lambda value: wrong if number(value) and not fits(value, bound) else None

    return compiled


def _length(keyword: str, type: str, fits: Callable[[int, int], bool], words: str) -> Callable[..., Check]:
    def compiled(schema: Schema, root: Schema) -> Check:
        bound, right = schema[keyword], _TYPES[type]
        wrong = ((), f"must have {words} {bound} {'characters' if type == 'string' else 'items'}")
        return lambda value: wrong if right(value) and not fits(len(value), bound) else None

    return compiled


def _names(types: str | list[str]) -> list[str]:
    return [types] if isinstance(types, str) else types


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _place(path: tuple[str | int, ...]) -> str:
    """Return a place as JavaScript writes it; a name that is none there is quoted, a long one cut.

    >>> _place(("steps", 2, "a b"))
    'steps[2]["a b"]'
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[A-Za-z_]\w{0,60}", part, re.ASCII):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part if len(part) <= 60 else part[:57] + '...')}]"
    return text or "it"


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: (
        math.isfinite(value)
        if isinstance(value, float)
        else isinstance(value, int) and not isinstance(value, bool)
    ),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_WORDS = frozenset({"$schema", "$id", "$defs", "title", "description", "examples", "then", "else"})
"""Say nothing of a document by themselves."""
_KEYWORDS: Mapping[str, Callable[[Schema, Schema], Check]] = {
    "type": _type,
    "const": _const,
    "enum": _enum,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "prefixItems": _prefix,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "allOf": _all_of,
    "if": _if,
    "$ref": _ref,
    "minimum": _bound("minimum", lambda value, bound: value >= bound, "at least"),
    "maximum": _bound("maximum", lambda value, bound: value <= bound, "at most"),
    "exclusiveMinimum": _bound("exclusiveMinimum", lambda value, bound: value > bound, "more than"),
    "minLength": _length("minLength", "string", lambda size, bound: size >= bound, "at least"),
    "minItems": _length("minItems", "array", lambda size, bound: size >= bound, "at least"),
    "maxItems": _length("maxItems", "array", lambda size, bound: size <= bound, "at most"),
}


# ---- Read JSON that ncukit wrote: a document follows its published schema, or is refused with the place

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
