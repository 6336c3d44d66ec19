"""Every link of the chain from Python to the GPU's counters, and the file for a bug report."""

from __future__ import annotations

import io
import json
import os
import platform
import sys
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, field
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib import metadata, util
from itertools import count
from pathlib import Path
from typing import Literal

from ncukit.errors import ToolError
from ncukit.files import beside
from ncukit.media import dumps
from ncukit.record import dataclass
from ncukit.run.tools import cuda, gpus, locate, ncu, nsys
from ncukit.run.tools.capabilities import Probe, probe
from ncukit.run.tools.failures import Context, failure
from ncukit.run.tools.locate import (
    BUNDLED,
    ChildEnvironment,
    adding,
    child_environment,
    install_command,
    redact,
)
from ncukit.run.tools.process import run

# ---- Every link of the chain from Python to the GPU's counters: does it work here, and if not, the fix

State = Literal["pass", "fail", "unknown"]
SCHEMA = "ncukit.doctor/1"

# Distribution, module, and what it is needed for.
PACKAGES = (
    ("jinja2", "jinja2", "HTML reports"),
    ("plotly", "plotly", "figures"),
    ("pandas", "pandas", "tables"),
    ("pyarrow", "pyarrow", "Parquet"),
    ("rich", "rich", "the terminal"),
)
# Distribution, module, the extra that brings it, and what it is needed for.
OPTIONAL = (("torch", "torch", "torch", "PyTorch workloads"),)
# Variables that spoil a measurement, and how.
SPOILING = {
    "CUDA_INJECTION64_PATH": "loads another profiler into every CUDA program, and ncu refuses to run with it",
    "TRITON_DISABLE_LINE_INFO": "takes the source lines out of Triton kernels",
    "TRITON_INTERPRET": "runs Triton kernels on the CPU",
}
READING = ("python", "ncukit", "ncu-report", *(name for name, _, _ in PACKAGES))
TRACING = ("driver", "gpu", "nsys", "nsys-run")
COUNTING = ("driver", "gpu", "ncu", "ncu-gpu", "counters", "lock", "CUDA_INJECTION64_PATH")


@dataclass(frozen=True)
class Check:
    """One link: whether it works, what was seen, and the fix where it does not."""

    id: str
    state: State
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class Examination:
    """All links, and what they allow."""

    place: gpus.Place
    checks: tuple[Check, ...]
    dropped: tuple[str, ...] = field(default=(), repr=False)
    """Variables that children will not get because they look like secrets."""

    def can(self, *links: str) -> bool | None:
        """Return whether all of ``links`` work: False if one fails, None if one is unknown."""
        states = {check.state for check in self.checks if check.id in links}
        return False if "fail" in states else None if "unknown" in states else True

    def hindered(self, *links: str) -> tuple[str, ...]:
        """Return which of ``links`` keep `can` from True: those that fail, else those that are unknown."""
        state = "fail" if self.can(*links) is False else "unknown"
        return tuple(dict.fromkeys(c.id for c in self.checks if c.id in links and c.state == state))

    def as_dict(self) -> dict[str, object]:
        """Return the examination as JSON data (schema ``ncukit.doctor/1``)."""
        return {
            "schema": SCHEMA,
            "place": self.place,
            "can": {
                "read_reports": self.can(*READING),
                "trace": self.can(*TRACING),
                "count": self.can(*COUNTING),
            },
            "checks": [asdict(check) for check in self.checks],
            "secrets_withheld": list(self.dropped),
        }


@dataclass(frozen=True)
class Machine:
    """The machine that is examined; ``root`` and ``environ`` are replaced in tests."""

    environ: Mapping[str, str]
    root: Path = Path("/")
    tools: Mapping[str, str] = field(default_factory=dict)
    """Tool -> path that was given with --ncu, --nsys, --nvcc."""

    @cached_property
    def child(self) -> ChildEnvironment:
        """What children get."""
        return child_environment(self.environ)

    @cached_property
    def place(self) -> gpus.Place:
        """What kind of machine it is."""
        return gpus.place(self.root, self.environ)

    @cached_property
    def driver(self) -> cuda.Driver:
        """What the driver says, asked once."""
        return cuda.driver(self.child.variables)

    def find(self, tool: locate.Tool) -> locate.Install:
        """Return the tool to use.

        Raises:
            ToolError: there is none.
        """
        return locate.find(tool, self.tools.get(tool), environ=self.environ, root=self.root)

    def probe(self, tool: locate.Tool) -> Probe:
        """Return what the tool to use can do.

        Raises:
            ToolError: there is none that works.
        """
        return probe(tool, self.find(tool).path, environ=self.child.variables)


def examine(machine: Machine | None = None, links: Collection[str] | None = None) -> Examination:
    """Look at every link, or at ``links``; never raises, whatever is broken."""
    machine = machine or Machine(os.environ)
    checks = [
        check for name, look in LINKS.items() if links is None or name in links for check in look(machine)
    ]
    return Examination(machine.place, tuple(checks), machine.child.dropped)


def _python(machine: Machine) -> Iterator[Check]:
    yield Check("python", "pass", f"{platform.python_version()} at {sys.executable}")
    version = _installed("ncukit", "ncukit") or "not installed, a checkout"
    yield Check("ncukit", "pass", f"{version} in {Path(__file__).parents[2]}")


def _packages(machine: Machine) -> Iterator[Check]:
    for name, module, use in PACKAGES:
        if version := _installed(name, module):
            yield Check(name, "pass", version)
        else:
            yield Check(name, "fail", f"not installed; needed for {use}", adding(name))
    for name, module, extra, use in OPTIONAL:
        if version := _installed(name, module):
            yield Check(name, "pass", version)
        else:
            yield Check(name, "unknown", f"not installed; needed only for {use}", install_command(extra))


def _installed(name: str, module: str) -> str | None:
    """Return the version of a distribution whose module can be found, without importing it."""
    try:
        return metadata.version(name) if util.find_spec(module) else None
    except metadata.PackageNotFoundError:
        return None


def _reader(machine: Machine) -> Iterator[Check]:
    """Import NVIDIA's reader in a child: it is native code."""
    version = _installed("ncu-report", "ncu_report")
    done = run([sys.executable, "-P", "-c", "import ncu_report"], env=machine.child.variables, timeout=30)
    if done.returncode == 0 and version:
        yield Check("ncu-report", "pass", version)
    else:
        said = f"cannot be imported: {done.tail(1).strip() or 'no answer'}"
        yield Check("ncu-report", "fail", said, "pip install --force-reinstall ncu-report")


def _driver(machine: Machine) -> Iterator[Check]:
    driver, kernel = machine.driver, gpus.driver_version(machine.root)
    detail = f"kernel driver {kernel}" if kernel else "no kernel driver"
    detail += f", supports CUDA {driver.version}" if driver.version else ""
    if driver.code is None:
        yield Check("driver", "fail", f"{driver.problem} ({detail})", _NO_DRIVER[machine.place])
    elif driver.code == 0 or (driver.code == _NO_DEVICE and kernel):  # no device is the next link's matter
        yield Check("driver", "pass", detail)
    elif driver.code == _NO_DEVICE:
        yield Check("driver", "fail", detail, _NO_DRIVER[machine.place])
    else:
        fix = _REFUSALS.get(driver.code, "reboot; the kernel log (dmesg) says more")
        yield Check("driver", "fail", f"cuInit says {driver.name} ({detail})", fix)


_NO_DEVICE = 100
_NO_DRIVER: Mapping[gpus.Place, str] = {
    "bare": "install the NVIDIA driver on a machine with an NVIDIA GPU; reading reports needs none",
    "container": "start the container with its GPU (docker run --gpus all); reading reports needs none",
    "wsl": "install the NVIDIA driver in Windows, none in WSL; reading reports needs none",
}
_REFUSALS = {
    34: "take the stub folder out of LD_LIBRARY_PATH",
    803: "driver and user-mode library are of different versions: reboot, or reinstall the driver",
    804: "take the compat folder of CUDA out of LD_LIBRARY_PATH",
}


def _gpu(machine: Machine) -> Iterator[Check]:
    driver = machine.driver
    for gpu in driver.gpus:
        cc, memory = f"{gpu.cc[0]}.{gpu.cc[1]}", f"{gpu.memory / 2**30:.0f} GiB"
        detail = f"{gpu.index}: {gpu.name}, compute capability {cc}, {gpu.sms} SMs, {memory}"
        yield Check("gpu", "pass", detail)
    if not driver.gpus and driver.code in (0, _NO_DEVICE):
        hidden = machine.environ.get("CUDA_VISIBLE_DEVICES")
        seen = f"CUDA_VISIBLE_DEVICES is {hidden!r}" if hidden is not None else "the driver shows none"
        yield Check("gpu", "fail", f"no GPU: {seen}", _NO_DRIVER[machine.place])
    elif not driver.gpus:
        yield Check("gpu", "unknown", "the driver does not answer")


def _tool(tool: locate.Tool, machine: Machine) -> Iterator[Check]:
    try:
        install, found = machine.find(tool), machine.probe(tool)
    except ToolError as error:
        optional = tool == "nvcc" and error.code == "tool-missing"
        detail = error.message + ("; needed only for .cu files" if optional else "")
        yield Check(tool, "unknown" if optional else "fail", detail, error.hint)
        return
    everywhere = locate.installs(tool, install.path, environ=machine.environ, root=machine.root)
    others = ", ".join(str(other.path) for other in everywhere[1:])
    detail = f"{found.version} at {install.path} ({install.source})"
    yield Check(tool, "pass", detail + (f"; also {others}" if others else ""))


def _ncu_gpu(machine: Machine) -> Iterator[Check]:
    """Compare the chips that ncu knows with the GPUs that are here."""
    try:
        tool = machine.probe("ncu")
        chips = ncu.list_chips(tool, environ=machine.child.variables) if machine.driver.gpus else ()
    except ToolError as error:
        yield Check("ncu-gpu", "unknown", error.message, error.hint)
        return
    for gpu in machine.driver.gpus:
        known = ncu.supports(chips, gpu.cc)
        said = (
            f"ncu {tool.version} {'knows' if known else 'does not know'} {gpu.name} ({gpu.cc[0]}.{gpu.cc[1]})"
        )
        if known is None:
            yield Check("ncu-gpu", "unknown", f"whether ncu {tool.version} knows {gpu.name} shows only a run")
        else:
            newer, older = "install a newer Nsight Compute", "ncu has dropped this GPU: use nvprof"
            yield Check("ncu-gpu", "pass" if known else "fail", said, newer if gpu.cc >= (7, 0) else older)
    if not machine.driver.gpus:
        yield Check("ncu-gpu", "unknown", "no GPU to compare with what ncu knows")


def _nsys_run(machine: Machine) -> Iterator[Check]:
    """Trace an empty program: nsys ends with 0 even when its importer is missing."""
    try:
        tool = machine.probe("nsys")
    except ToolError:
        yield Check("nsys-run", "unknown", "there is no nsys to try")
        return
    with tempfile.TemporaryDirectory(prefix="ncukit-") as folder:
        options = nsys.NsysOptions(("true",), Path(folder) / "try")
        done = run(nsys.argv(options, tool), env=machine.child.variables, timeout=60, cwd=folder)
        outcome = nsys.judge(done, options, None, place=machine.place)
    if cause := outcome.failure:
        yield Check("nsys-run", "fail", cause.message, cause.hint)
    else:
        yield Check("nsys-run", "pass", "traces a program without GPU work and writes its report")


def _counters(machine: Machine) -> Iterator[Check]:
    """Tell whether this user may read counters, as far as it can be known without a kernel."""
    allowed = gpus.counters(machine.root)
    fix = failure("permission", Context(place=machine.place)).hint
    state: State = "unknown" if allowed.allowed is None else "pass" if allowed.allowed else "fail"
    yield Check("counters", state, allowed.reason, fix if state == "fail" else "")


def _files(machine: Machine) -> Iterator[Check]:
    """Look at the temporary folder, where ncu keeps its lock and its data."""
    folder = Path(machine.environ.get("TMPDIR", "/tmp"))  # noqa: S108 - looked at, nothing is made there
    lock = folder / "nsight-compute-lock"
    fix = "set TMPDIR to a folder of your own"
    if not os.access(folder, os.W_OK):
        yield Check("lock", "fail", f"{folder} cannot be written", fix)
    elif lock.exists() and not os.access(lock, os.W_OK):
        yield Check("lock", "fail", f"{lock} belongs to {gpus.owner(lock)}: ncu cannot run", fix)
    else:
        yield Check("lock", "pass", f"ncu can keep its lock file in {folder}")


def _variables(machine: Machine) -> Iterator[Check]:
    for name, effect in SPOILING.items():
        if machine.environ.get(name, "0") not in ("", "0"):
            yield Check(name, "fail", f"is set: {effect}", f"unset {name}")


LINKS: Mapping[str, Callable[[Machine], Iterator[Check]]] = {
    "python": _python,
    "packages": _packages,
    "ncu-report": _reader,
    "driver": _driver,
    "gpu": _gpu,
    "ncu": partial(_tool, "ncu"),
    "nsys": partial(_tool, "nsys"),
    "nvcc": partial(_tool, "nvcc"),
    "ncu-gpu": _ncu_gpu,
    "nsys-run": _nsys_run,
    "counters": _counters,
    "lock": _files,
    "variables": _variables,
}
"""The links in the order of the chain; each yields one check or more."""


# ---- What a bug report needs, in one zip file, without secrets

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
