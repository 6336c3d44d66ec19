"""What a bug report needs, in one zip file, without secrets."""

from __future__ import annotations

import io
import json
import os
import platform
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from itertools import count
from pathlib import Path

from ncukit.media import dumps
from ncukit.tools.doctor import Examination
from ncukit.tools.environment import BUNDLED, child_environment, redact
from ncukit.whole import beside

_KERNEL_FILES = ("proc/driver/nvidia/version", "proc/driver/nvidia/params", "proc/sys/kernel/osrelease")


def write_bundle(
    examination: Examination,
    path: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    root: Path = Path("/"),
) -> Path:
    """Write the zip file and return its path; the default is ``ncukit-doctor-<UTC time>.zip``.

    Holds the examination, versions of installed packages, facts of the driver, and of the environment only
    what the tool chain needs; values that look like secrets, and the home folder, are replaced.

    Raises:
        UsageError: it cannot be written.
    """
    env = os.environ if environ is None else environ
    target = path or _free(f"ncukit-doctor-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    kept = child_environment(env, clean=True)
    files = {
        "doctor.json": dumps(examination.as_dict(), indent=1),
        "environment.json": json.dumps(
            {
                "variables": {name: value for name, value in kept.variables.items() if name in BUNDLED},
                "withheld": kept.dropped,
            },
            indent=1,
        ),
        "packages.txt": "\n".join(sorted({f"{d.name}=={d.version}" for d in metadata.distributions()})),
        "system.txt": f"{platform.platform()}\nPython {platform.python_version()}\n",
    }
    for name in _KERNEL_FILES:
        try:
            files[name] = (root / name).read_text(errors="replace")
        except OSError as error:
            files[name] = f"{error.strerror}\n"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)  # of 1980: a clock may stand before that, and zip knows no earlier
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
            archive.writestr(entry, _private(text, env))
    with beside(target) as written:
        written.write_bytes(data.getvalue())
    return target


def _free(stem: str) -> Path:
    """Return a name that no file has: clocks go back."""
    return next(
        path for n in count(1) if not (path := Path(f"{stem}{f'-{n}' if n > 1 else ''}.zip")).exists()
    )


def _private(text: str, env: Mapping[str, str]) -> str:
    clean = redact(text, env)
    home, user = env.get("HOME", ""), env.get("USER") or env.get("LOGNAME") or ""
    clean = clean.replace(home, "~") if len(home) > 1 else clean
    return clean.replace(f"/{user}/", "/<user>/") if user else clean
