"""The examples of the documents and of the help texts, for tests that run or parse them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import CHECKOUT

PAGES = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHELL = ("", "bash", "sh", "text", "console")
NEEDS = re.compile(r"# needs ([\w .]+?)(?:[:;,]|\s*$)", re.MULTILINE)
"""How an example says that a test cannot run it: a GPU, torch, nsys, Docker, ..."""
EXIT = re.compile(r"# exit code (\d+)")


@dataclass(frozen=True)
class Example:
    """A line ``ncukit ...``, or a block of Python: where it stands, and what it needs."""

    page: str
    text: str
    needs: str = ""
    exit_code: int = 0

    @property
    def words(self) -> list[str]:
        """The words of the command after ``ncukit``, without pipes, redirections and comments."""
        return words(self.text)


def words(line: str) -> list[str]:
    """Return the words after ``ncukit``; prose that follows two blanks is none of them.

    >>> words("ncukit show a.ncu-rep --json | jq '.kernels[0]'   (one launch)")
    ['show', 'a.ncu-rep', '--json']
    >>> words("ncukit compare a b --fail-on 'dram_bytes > +5%'     says why")
    ['compare', 'a', 'b', '--fail-on', 'dram_bytes > +5%']
    """
    own = re.match(r"""(?:'[^']*'|"[^"]*"|(?!  | [|#>]).)*""", line.removeprefix("ncukit").strip())
    assert own is not None
    return shlex.split(own[0])


def blocks(page: Path, *languages: str) -> Iterator[tuple[str, str]]:
    """Yield language and code of every block of ``page`` in one of ``languages``."""
    for language, code in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language in languages:
            yield language, code


def command_examples(page: Path) -> Iterator[Example]:
    """Yield the lines ``ncukit ...`` in the blocks of ``page``."""
    for _, code in blocks(page, *SHELL):
        yield from (
            Example(
                page.name,
                line.removeprefix("$ "),
                needs[1] if (needs := NEEDS.search(line)) else "",
                int(code[1]) if (code := EXIT.search(line)) else 0,
            )
            for line in code.replace("\\\n", " ").splitlines()
            if re.match(r"(\$ )?ncukit [a-z-]", line)
        )


def python_examples(page: Path) -> Iterator[Example]:
    """Yield the blocks of Python of ``page``."""
    for _, code in blocks(page, "python"):
        needs = NEEDS.search(code)
        yield Example(page.name, code, needs[1] if needs else "")


def help_examples(text: str) -> Iterator[Example]:
    """Yield the lines ``ncukit ...`` of a help text."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip().startswith("ncukit "):
            yield Example("--help", line.strip())
