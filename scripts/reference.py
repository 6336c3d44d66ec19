"""Write the generated pages of docs/ anew: what is said elsewhere already is not written twice.

    python scripts/reference.py [--check]

``--check`` writes nothing and ends with 1 when a file is not what it would write.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from scripts.pages import commands, metrics, models, rules, schemas, troubleshooting

FOLDER = Path(__file__).resolve().parents[1] / "docs"
PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands.page,
    "metrics.md": metrics.page,
    "models.md": models.page,
    "rules.md": rules.page,
    "schemas.md": schemas.page,
    "troubleshooting.md": troubleshooting.page,
}


def main() -> None:
    """Write the files, or check them."""
    check = "--check" in sys.argv[1:]
    for name, page in PAGES.items():
        file, text = FOLDER / name, page()
        if check and (not file.exists() or file.read_text(encoding="utf-8") != text):
            sys.exit(f"{name} is not current: python scripts/reference.py")
        if not check:
            file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
