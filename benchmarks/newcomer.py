"""A newcomer's path: from a clone in an empty environment to the diagnosis of the bundled samples."""

from __future__ import annotations

import os
from collections.abc import Iterator

from benchmarks.measure import CHECKOUT, Row, amount, measured
from benchmarks.readers import Setting

TOTAL, OWN = 120.0, 10.0
KEPT = ("PATH", "LANG", "SSL_CERT_FILE")


def newcomer(setting: Setting) -> Iterator[Row]:
    """Clone, let ``make demo`` set itself up, and do it once more: that is ncukit's own time.

    What pip takes depends on the network, or on where else it finds packages.
    """
    if not (CHECKOUT / ".git").exists():
        yield Row("clone to diagnosis", "not measured: this is no clone")
        return
    home, clone = setting.folder / "home", setting.folder / "ncukit"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith("PIP_")}
    env = {**kept, "HOME": str(home)}
    cloned = measured(["git", "clone", "--quiet", "--no-hardlinks", CHECKOUT, clone], setting.folder, env)
    installed = measured(["make", "--silent", ".venv/.installed"], clone, env)
    demo = measured(["make", "--silent", "demo"], clone, env)
    again = measured(["make", "--silent", "demo"], clone, env)
    assert "transpose" in demo.out
    steps = {"clone": cloned, "make demo: set-up": installed, "make demo: first run": demo}
    for name, cost in steps.items():
        yield Row(f"newcomer, {name}", f"{amount(cost.seconds, 's')}, {amount(cost.cpu, 's')} of CPU")
    total = sum(cost.seconds for cost in steps.values())
    yield Row("newcomer, clone to diagnosis", amount(total, "s"), bar=f"{TOTAL:.0f} s", met=total <= TOTAL)
    own = f"{amount(again.seconds, 's')}, {amount(again.cpu, 's')} of CPU"
    yield Row("newcomer, make demo again", own, bar=f"{OWN:.0f} s", met=again.seconds <= OWN)
