"""For the site: examples in docstrings (``>>> ...``) are code, and their output is no link."""

from __future__ import annotations

from typing import Any

from griffe import Extension, Object


class Doctests(Extension):
    """Puts every example of a docstring into a block of code."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of ``obj``."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return a docstring with its examples in blocks of code.

    >>> fenced("Say it.\\n\\n>>> [1]\\n[1]").splitlines()
    ['Say it.', '', '```pycon', '>>> [1]', '[1]', '```']
    """
    blocks = text.split("\n\n")
    return "\n\n".join(
        f"```pycon\n{block.rstrip()}\n```" if block.startswith(">>>") else block for block in blocks
    )
