"""Ask pip-audit for known vulnerabilities of what is installed; say so where it cannot be asked.

    python scripts/audit.py

Ends with 1 where there are some.  Without pip-audit, or without its service, nothing was checked: it says
that and ends with 0, so that `make check` works offline.  A mirror of the index that tells no vulnerabilities
counts as no service, and what it does not know as not checked.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

COMMAND = (
    sys.executable,
    "-m",
    "pip_audit",
    "--format",
    "json",
    "--progress-spinner",
    "off",
    "--skip-editable",
)


def main() -> int:
    if importlib.util.find_spec("pip_audit") is None:
        return _not_run("it is not installed (pip install pip-audit)")
    try:
        done = subprocess.run([*COMMAND, "--timeout", "10"], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return _not_run("its service did not answer within two minutes")
    return judge(done.stdout, done.stderr)


def judge(out: str, err: str) -> int:
    """Print what pip-audit said and return the exit code; it prints JSON only where its service answered."""
    try:
        packages = json.loads(out)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return _not_run(
            f"its service cannot be reached ({(err.strip().splitlines() or ['no message'])[-1][:120]})"
        )
    asked = [package for package in packages if "skip_reason" not in package]
    if not asked:
        return _not_run(f"the index tells nothing of any of {len(packages)} packages (a mirror?)")
    found = [(package, fault) for package in asked for fault in package.get("vulns", ())]
    for package, fault in found:
        fixed = ", ".join(fault.get("fix_versions") or ["no release yet"])
        print(f"{package['name']} {package['version']}: {fault['id']}, fixed in {fixed}")
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    print(f"pip-audit: {len(asked)} packages, {len(found)} known vulnerabilities")
    if unknown:
        print(f"pip-audit: not checked: {', '.join(unknown)}")
    return int(bool(found))


def _not_run(why: str) -> int:
    print(f"pip-audit: not run: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
