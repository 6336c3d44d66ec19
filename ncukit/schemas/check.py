"""What a document breaks of a published schema: the part of JSON Schema 2020-12 that those use.

Stricter than the standard in two ways: 1.0 is no integer, and a number is finite.  A keyword that is not
known here raises an error rather than being passed over.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
Fault = tuple[str, str]
"""Where, and what."""
Check = Callable[[Any, Schema, str, Schema], Iterator[Fault]]
"""Faults of a value at a place, by a schema inside a root."""


def fault(document: Any, schema: Schema) -> str | None:
    """Return the first place where ``document`` does not follow ``schema``, None where it does.

    >>> seconds = {"properties": {"steps": {"items": {"properties": {"seconds": {"type": "number"}}}}}}
    >>> fault({"steps": [{"seconds": 1.5}, {"seconds": "x"}]}, seconds)
    'steps[1].seconds must be number'
    >>> fault({}, {"required": ["steps"]})
    'steps is missing'
    """
    found = next(_faults(document, schema, "", schema), None)
    return None if found is None else f"{found[0] or 'it'} {found[1]}"


def _faults(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    for keyword in schema:
        if keyword not in _WORDS:
            yield from _KEYWORDS[keyword](value, schema, at, root)


def _type(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    wanted = schema["type"]
    names = [wanted] if isinstance(wanted, str) else wanted
    if not any(_TYPES[name](value) for name in names):
        yield at, f"must be {' or '.join(names)}"


def _const(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    if not _same(value, schema["const"]):
        yield at, f"must be {json.dumps(schema['const'])}"


def _enum(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    if not any(_same(value, one) for one in schema["enum"]):
        yield at, f"must be one of {', '.join(json.dumps(one) for one in schema['enum'])}"


def _required(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    if isinstance(value, dict):
        yield from ((_inside(at, name), "is missing") for name in schema["required"] if name not in value)


def _properties(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    if isinstance(value, dict):
        for name, inner in schema["properties"].items():
            if name in value:
                yield from _faults(value[name], inner, _inside(at, name), root)


def _additional(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    if isinstance(value, dict):
        inner = schema["additionalProperties"]
        for name in value.keys() - schema.get("properties", {}).keys():
            yield from _one(value[name], inner, _inside(at, name), root)


def _items(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    if isinstance(value, list):
        first = len(schema.get("prefixItems", ()))
        for n, item in enumerate(value[first:], first):
            yield from _one(item, schema["items"], f"{at}[{n}]", root)


def _prefix(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    if isinstance(value, list):
        for n, (item, inner) in enumerate(zip(value, schema["prefixItems"], strict=False)):
            yield from _faults(item, inner, f"{at}[{n}]", root)


def _one(value: Any, schema: Schema | bool, at: str, root: Schema) -> Iterator[Fault]:
    if schema is False:
        yield at, "is not known"
    elif schema is not True:
        yield from _faults(value, schema, at, root)


def _any_of(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    yield from _choice(value, schema["anyOf"], at, root, at_most=len(schema["anyOf"]))


def _one_of(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    yield from _choice(value, schema["oneOf"], at, root, at_most=1)


def _choice(value: Any, choices: list[Schema], at: str, root: Schema, *, at_most: int) -> Iterator[Fault]:
    """Yield the fault of the choice that comes closest: the deepest one."""
    found = [next(_faults(value, one, at, root), None) for one in choices]
    if (fitting := found.count(None)) > at_most:
        yield at, "is ambiguous"
    elif not fitting:
        deepest = max((one for one in found if one is not None), key=lambda one: len(one[0]))
        yield deepest if len(deepest[0]) > len(at) else (at, f"must be {_named(choices, root)}")


def _named(choices: list[Schema], root: Schema) -> str:
    types = [_resolved(one, root).get("type", "another value") for one in choices]
    return " or ".join(name for one in types for name in ([one] if isinstance(one, str) else one))


def _all_of(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    for one in schema["allOf"]:
        yield from _faults(value, one, at, root)


def _if(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    holds = next(_faults(value, schema["if"], at, root), None) is None
    yield from _faults(value, schema.get("then" if holds else "else", {}), at, root)


def _ref(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
    yield from _faults(value, _resolved(schema, root), at, root)


def _resolved(schema: Schema, root: Schema) -> Schema:
    place = schema.get("$ref")
    return schema if place is None else root["$defs"][place.removeprefix("#/$defs/")]


def _bound(keyword: str, fits: Callable[[float, float], bool], words: str) -> Check:
    def check(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
        if _TYPES["number"](value) and not fits(value, schema[keyword]):
            yield at, f"must be {words} {schema[keyword]}"

    return check


def _length(keyword: str, type: str, fits: Callable[[int, int], bool], words: str) -> Check:
    def check(value: Any, schema: Schema, at: str, root: Schema) -> Iterator[Fault]:
        if _TYPES[type](value) and not fits(len(value), schema[keyword]):
            yield at, f"must have {words} {schema[keyword]} {'characters' if type == 'string' else 'items'}"

    return check


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _inside(at: str, name: str) -> str:
    """Return the place of ``name`` inside ``at``; a name from the document is quoted where it is none."""
    if not re.fullmatch(r"[A-Za-z_]\w{0,60}", name, re.ASCII):
        return f"{at}[{json.dumps(name if len(name) <= 60 else name[:57] + '...')}]"
    return f"{at}.{name}" if at else name


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and (isinstance(value, int) or math.isfinite(value))
    ),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_WORDS = frozenset({"$schema", "$id", "$defs", "title", "description", "examples", "then", "else"})
"""Say nothing of a document by themselves."""
_KEYWORDS: Mapping[str, Check] = {
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
