"""docs/schemas.md: every JSON schema with its fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ncukit.schemas import names, text
from scripts.pages.words import plain

HEAD = """\
# JSON schemas

Generated from the published schemas by `scripts/reference.py`; a test keeps it current.

Everything that is printed with `--json` or written as JSON names its schema in the field `schema`.  `ncukit
schema` lists them, `ncukit schema NAME` prints one (JSON Schema, draft 2020-12), for a validator or a code
generator.

- Numbers are base SI: seconds, bytes, hertz, FLOP, FLOP/s, byte/s.  Percent is 0 to 100, and is not
  clipped.
- What is not known is `null`, with the reason beside it: never 0, and never left out of an object that
  requires it.
- Within a version fields may be added; one that is removed or means something else makes a new version.
  Read what you need and ignore what you do not know.
- With several files `--json` prints one object a line, one line a file; a file that cannot be used is an
  object with `error`.

In the tables `a.b` is the field b of the object a, `a[]` an element of the list a, `a.*` a value under a
name that is data (a metric, a kernel).  A field with *?* may be absent.
"""
SCALARS = ("string", "number", "integer", "boolean", "null")


def page() -> str:
    """Return the text of docs/schemas.md."""
    return HEAD + "".join("\n" + "\n".join(_entry(json.loads(text(name)))) + "\n" for name in names())


def _entry(schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {schema['$id']}"
    yield ""
    yield "  ".join(sentence(schema[key]) for key in ("title", "description") if key in schema)
    yield ""
    yield "| field | type | meaning |"
    yield "| --- | --- | --- |"
    for path, node, required in fields(schema, schema):
        name = f"`{path}`" + ("" if required else " *?*")
        yield f"| {name} | {kind(node, schema)} | {plain(node.get('description', '')) or ' '} |"


def fields(
    node: Mapping[str, Any], root: Mapping[str, Any], path: str = "", above: tuple[str, ...] = ()
) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield path, schema and whether it must be there, of every field below ``node``.

    >>> inner = {"properties": {"b": {"type": "number"}}, "required": ["b"]}
    >>> [(path, required) for path, _, required in fields({"properties": {"a": inner}}, {})]
    [('a', False), ('a.b', True)]
    """
    node, above = _followed(node, root, above)
    if node is None:
        return
    dot = f"{path}." if path else ""
    for name, child in node.get("properties", {}).items():
        yield f"{dot}{name}", _own(child, root), name in node.get("required", ())
        yield from fields(child, root, f"{dot}{name}", above)
    if isinstance(other := node.get("additionalProperties"), Mapping):
        yield f"{dot}*", _own(other, root), True
        yield from fields(other, root, f"{dot}*", above)
    if isinstance(items := node.get("items"), Mapping):
        yield from fields(items, root, f"{path}[]", above)
    for word in ("oneOf", "anyOf", "allOf"):
        for child in node.get(word, ()):
            yield from fields(child, root, path, above)


def _followed(
    node: Mapping[str, Any], root: Mapping[str, Any], above: tuple[str, ...]
) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
    """Return what a reference leads to; None where it leads into itself."""
    reference = node.get("$ref")
    if reference is None:
        return node, above
    if reference in above:
        return None, above
    return _own(node, root), (*above, reference)


def _own(node: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with what it refers to."""
    reference = node.get("$ref")
    if reference is None:
        return node
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return {**found, **{key: value for key, value in node.items() if key != "$ref"}}


def kind(node: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Return the type of a field in words.

    >>> kind({"enum": ["high", None]}, {}), kind({"type": ["array", "null"], "items": {"type": "string"}}, {})
    ('`high`, null', 'array of string, null')
    """
    node = _own(node, root)
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join("null" if word is None else f"`{word}`" for word in node["enum"])
    if "type" in node:
        types = [node["type"]] if isinstance(node["type"], str) else node["type"]
        items = node.get("items")
        of = f" of {kind(items, root)}" if isinstance(items, Mapping) and items else ""
        return ", ".join(f"array{of}" if one == "array" else one for one in types)
    for word in ("oneOf", "anyOf"):
        if word in node:
            return ", ".join(dict.fromkeys(kind(child, root) for child in node[word]))
    return "any"


def sentence(text: str) -> str:
    """Return ``text`` as a sentence of Markdown."""
    return plain(text).rstrip(".") + "."
