"""What a notebook shows of a value: the model names no renderer, the API registers them."""

from __future__ import annotations

from importlib import import_module

_RENDERERS: dict[str, str] = {}


def show_with(**renderers: str) -> None:
    """Register, for a class by its name, the function "package.module:name" that turns it into HTML."""
    _RENDERERS.update(renderers)


class Shown:
    """A value that a notebook shows as HTML, once `show_with` knows how."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """Return the HTML that a notebook shows, or None: then it prints the plain text."""
        place = _RENDERERS.get(type(self).__name__)
        if place is None:
            return None
        module, _, name = place.partition(":")
        html: str = getattr(import_module(module), name)(self)
        return html
