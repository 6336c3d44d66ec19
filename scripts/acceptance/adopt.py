"""Take what a run on a GPU measured into the repository.

    python -m scripts.acceptance.adopt acceptance.tar.gz

Reports under 1 MB go to ``reports/samples/measured/``, each named after its workload and GPU; the README of
the samples lists them with GPU, driver, version of ncu and command; the table goes into ``docs/measured.md``.
What is adopted of an earlier run is replaced.  The archive is scrubbed already, where the format of a file
allows it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
LARGEST = 1_000_000
"""Size of a report [byte] from which it is left out."""
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
HEAD = """\
## Measured

These were measured by `scripts/gpu_acceptance.py`; none is synthetic.

| file | GPU | driver | ncu | command |
| --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Sample:
    """A measured report, and what its run directory says about it."""

    name: str
    data: bytes
    run: Mapping[str, Any]

    @property
    def file(self) -> str:
        """The name of the file in the samples."""
        gpu = str((self.run.get("gpu") or {}).get("name", "gpu")).removeprefix("NVIDIA ")
        return f"{self.name.replace('_', '-')}-{re.sub(r'[^a-z0-9]+', '-', gpu.lower()).strip('-')}.ncu-rep"

    @property
    def row(self) -> str:
        """The line of the README."""
        counters = next(step for step in self.run["steps"] if step["name"] == "counters")
        tool = (self.run.get("tools") or {}).get("ncu") or {}
        driver = (self.run.get("driver") or {}).get("kernel")
        gpu = (self.run.get("gpu") or {}).get("name")
        command = " ".join(counters["command"]).replace("|", "\\|")
        return f"| `measured/{self.file}` | {gpu} | {driver} | {tool.get('version')} | `{command}` |\n"


def adopt(archive: Path, samples: Path, page: Path) -> list[str]:
    """Put the reports and the table of ``archive`` in their places; return the names of the samples.

    Raises:
        ValueError: the page or the README has no place for it, or the archive is of no run.
    """
    with tarfile.open(archive) as file:
        names = set(file.getnames())
        if "table.json" not in names:
            raise ValueError(f"{archive} is no archive of scripts/gpu_acceptance.py")
        found = sorted(_samples(file, names), key=lambda sample: sample.name)
        table = _read(file, "table.md").decode()
    listed = HEAD + "".join(sample.row for sample in found) if found else "No report was measured.\n"
    replaced = [_between(page, table), _between(samples / "README.md", listed)]
    folder = samples / "measured"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.ncu-rep"):
        old.unlink()
    for sample in found:
        (folder / sample.file).write_bytes(sample.data)
    for path, text in zip((page, samples / "README.md"), replaced, strict=True):
        path.write_text(text, encoding="utf-8")
    return [sample.file for sample in found]


def _samples(file: tarfile.TarFile, names: set[str]) -> Iterator[Sample]:
    for row in json.loads(_read(file, "table.json"))["rows"]:
        kind, _, name = row["name"].partition(" ")
        report, record = (f"runs/{row['folder']}/{part}" for part in ("profile.ncu-rep", "run.json"))
        if kind == "profile" and {report, record} <= names and file.getmember(report).size < LARGEST:
            yield Sample(name, _read(file, report), json.loads(_read(file, record)))


def _read(file: tarfile.TarFile, name: str) -> bytes:
    found = file.extractfile(name)
    if found is None:
        raise ValueError(f"{name} in the archive is no file")
    return found.read()


def _between(path: Path, text: str) -> str:
    """Return the file at ``path`` with ``text`` between its marks."""
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{path} has no {BEGIN} with {END} after it")
    return f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{after}"


def main(arguments: list[str] | None = None) -> int:
    """Adopt an archive and say what was taken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("archive", type=Path)
    options = parser.parse_args(arguments)
    try:
        taken = adopt(options.archive, CHECKOUT / "reports" / "samples", CHECKOUT / "docs" / "measured.md")
    except (OSError, ValueError, tarfile.TarError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(taken) or "no report under 1 MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
