"""Where the tools are, how to install what is optional, and the environment that children get."""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from importlib import metadata, util
from pathlib import Path
from typing import Literal

from ncukit.errors import ToolError
from ncukit.record import dataclass
from ncukit.run.tools import capabilities, failures

# ---- How to install what is optional, into the environment in which ncukit runs: plain, of pipx, or of uv
#  ncukit itself comes from a checkout or a wheel; the packages that an extra names come from an index.


def install_command(extra: str) -> str:
    """Return the command that installs what the extra needs where this ncukit runs.

    >>> install_command("query").split()[-1]
    "'duckdb>=1.1'"
    """
    return adding(*requirements(extra))


def requirements(extra: str) -> tuple[str, ...]:
    """Return the packages of the extra; where ncukit is not installed, the extra of the checkout."""
    try:
        declared = metadata.requires("ncukit") or ()
    except metadata.PackageNotFoundError:
        return (f".[{extra}]",)
    of_extra = re.compile(rf"""(.+?)\s*;\s*extra\s*==\s*['"]{re.escape(extra)}['"]""")
    return tuple(found[1] for one in declared if (found := of_extra.fullmatch(one)))


def adding(*packages: str) -> str:
    """Return the command that adds packages to the environment of this interpreter."""
    home = Path(sys.prefix)
    words = shlex.join(packages)
    if (home / "pipx_metadata.json").is_file():
        return f"pipx inject {shlex.quote(home.name)} {words}"
    found = shutil.which("python")
    here = found is not None and Path(found).parent == Path(sys.executable).parent
    if util.find_spec("pip") is None:  # as in the environments that uv makes
        return f"uv pip install --python {shlex.quote(sys.executable)} {words}"
    return f"{'python' if here else shlex.quote(sys.executable)} -m pip install {words}"


# ---- The environment of children: no secrets (nsys stores all of it in its reports), no surprises

FIXED = {
    "LC_ALL": "C.UTF-8",  # messages are matched in English, names are UTF-8
    # else ncu copies its sections into the home folder
    "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT": "1",
}

_NAME = re.compile(
    r"""
      (^|_)(TOKEN|SECRETS?|PASSWD|PASSPHRASE|PWD|PW|CREDENTIALS?|CREDS|AUTH|AUTHORIZATION|AUTHTOKEN)(_|$)
    | (^|_)(COOKIE|BEARER|JWT|OAUTH|DSN|WEBHOOK)(_|$)
    | SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|(API|ACCESS|PRIVATE|SIGNING|AUTH)_?KEY|(TOKEN|PWD|PW)$
    """,
    re.VERBOSE,
)
# A secret unless the value is a plain number, a switch or a path: MAX_TOKENS=4096, SSL_KEY=/etc/x.pem.
_WEAK_NAME = re.compile(r"(^|_)(KEYS?|PASS|PAT|TOKENS)(_|$)|(?<!MON)KEY$|PASS$|LICENSE$")
_PLAIN = re.compile(r"[+-]?\d{1,7}(\.\d+)?|true|false|yes|no|on|off|/[\w./ -]*|", re.IGNORECASE)
_NEVER = frozenset({"PWD", "OLDPWD"})

_VALUE = re.compile(
    r"""
      \b[a-z][a-z0-9+.-]*://[^/\s@]+@                                # user:password@ or token@ in a URL
    | \bhttps://hooks\.[^/\s]+/\S+                                   # a web hook: its path is the secret
    | [?&](sig|signature|key|auth|code|sas)=[^&\s]+
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY
    | \b(gh[pousr]_|github_pat_|glpat-|npm_|pypi-|nvapi-|xox[abeoprs]-|[sr]k_live_|dckr_pat_)[\w-]{20,}
    | \bhf_[a-z0-9]{30,} | \bsk-(?=[\w-]*\d)[\w-]{20,} | \b(AKIA|ASIA)[0-9A-Z]{16}\b | \bAIza[\w-]{30,}
    | \beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.                                 # a JSON web token
    | \bbearer\ +[\w+/.=-]{8,} | \bauthorization\s*[:=]
    | (passwo?r?d|passphrase|secret|token|api[_-]?key|accountkey|private_key)["']?\s*[=:]\s*["']?[^\s"';]{4,}
    | \bpwd\s*=\s*[^\s;]{4,}
    """,
    re.IGNORECASE | re.VERBOSE,
)
_RANDOM = re.compile(r"(?!/)(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z0-9+/_=-]{32,}")
_UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_CHANCE = 4.2  # [bit per character]: letters and digits drawn at random have more, words and hexadecimal less

_OPTION = re.compile(
    r"--?([\w-]+[-_])?(password|passwd|passphrase|pass|pwd|pw|token|secret|auth|credentials?|cookie|(api|auth|access|private)?key)",
    re.IGNORECASE,
)
"""An option whose value, the next word, is a secret; ``-p`` is one too, but for a number (a port)."""

BUNDLED = (
    *(
        "PATH",
        "HOME",
        "SHELL",
        "TMPDIR",
        "TZ",
        "LANG",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
    ),
    *(
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONSAFEPATH",
        "PYTHONNOUSERSITE",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUTF8",
    ),
    *("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"),
    *("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_VERSION", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
    *("CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "CUDA_CACHE_PATH", "CUDA_CACHE_DISABLE"),
    *("CUDA_INJECTION64_PATH", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_DEVICE_MAX_CONNECTIONS"),
    *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_TF32_OVERRIDE"),
    *("NVTX_INJECTION64_PATH", "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT"),
    *(
        "NCUKIT_NCU",
        "NCUKIT_NSYS",
        "NCUKIT_NVCC",
        "NCCL_DEBUG",
        "NCCL_ALGO",
        "NCCL_PROTO",
        "NCCL_P2P_DISABLE",
    ),
    *("NCCL_IB_DISABLE", "NCCL_SOCKET_IFNAME", "TORCH_CUDA_ARCH_LIST", "TORCHINDUCTOR_CACHE_DIR"),
    *("PYTORCH_CUDA_ALLOC_CONF", "TRITON_CACHE_DIR", "TRITON_INTERPRET", "NUMBA_ENABLE_CUDASIM"),
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LC_ALL"),
)
"""The variables that a bug report may hold: known names only, none by a pattern."""

_CLEAN = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LD_LIBRARY_PATH", "LD_PRELOAD"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHON*", "XDG_*", "CUDA*", "NV_*", "NVTX_*", "NSYS_*", "NCCL_*"),
    *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NCUKIT_*", "TORCH*", "PYTORCH_*", "TRITON_*"),
    *("NUMBA_*", "CUPY_*", "OMP_*", "MKL_*", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_*"),
)


@dataclass(frozen=True)
class ChildEnvironment:
    """The variables that a child gets, and the names of those that were kept from it because of secrets."""

    variables: Mapping[str, str]
    dropped: tuple[str, ...] = ()


def child_environment(
    environ: Mapping[str, str],
    *,
    keep: Iterable[str] = (),
    clean: bool = False,
    extra: Mapping[str, str] | None = None,
) -> ChildEnvironment:
    """Return ``environ`` without variables whose name or value looks like a secret.

    ``keep`` (names or globs) are passed on whatever they look like; ``clean`` passes on only those and what
    the tool chain needs; ``extra`` is set last.

    >>> made = child_environment({"PATH": "/bin", "HF_TOKEN": "x", "TOKENIZERS_PARALLELISM": "false"})
    >>> made.dropped, sorted(made.variables)[:2]
    (('HF_TOKEN',), ['LC_ALL', 'NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT'])
    """
    wanted = tuple(keep)
    variables: dict[str, str] = {}
    dropped = []
    for name, value in environ.items():
        kept = any(fnmatchcase(name, pattern) for pattern in wanted)
        if not kept and secret(name, value):
            dropped.append(name)
        elif kept or not clean or any(fnmatchcase(name, pattern) for pattern in _CLEAN):
            variables[name] = value
    return ChildEnvironment({**variables, **FIXED, **(extra or {})}, tuple(sorted(dropped)))


def secret(name: str, value: str) -> bool:
    """Return whether a variable looks like a secret, by its name or by its value.

    >>> secret("GITHUB_TOKEN", "x"), secret("INDEX_URL", "https://me:pw@host/"), secret("MAX_TOKENS", "4096")
    (True, True, False)
    """
    if name not in _NEVER:
        if _NAME.search(name.upper()):
            return True
        if _WEAK_NAME.search(name.upper()) and not _PLAIN.fullmatch(value):
            return True
    return secret_value(value)


def secret_value(value: str) -> bool:
    """Return whether ``value`` holds a password, a key in a known form, or is a long random string."""
    if _VALUE.search(value):
        return True
    if not _RANDOM.fullmatch(value) or _UUID.search(value):
        return False
    counts = [value.count(character) / len(value) for character in set(value)]
    return -sum(share * math.log2(share) for share in counts) > _CHANCE


def redact_words(words: Iterable[str], environ: Mapping[str, str] | None = None) -> list[str]:
    """Return the words of a command line without secrets, also those after options such as ``--password``.

    >>> redact_words(["./a.out", "--password", "hunter2", "--port", "80", "--api-key=abc", "-p", "8080"])
    ['./a.out', '--password', '***', '--port', '80', '--api-key=***', '-p', '8080']
    """
    shown, hidden = [], False
    for word in words:
        option, equals, _ = word.partition("=")
        if hidden and not (word.startswith("--") and len(word) > 2):
            shown.append("***")
        elif equals and (_OPTION.fullmatch(option) or secret(option.lstrip("-").replace("-", "_"), "x")):
            shown.append(f"{option}=***")
        else:
            shown.append(redact(word, environ))
        hidden = bool(_OPTION.fullmatch(word)) and not hidden
        if word == "-p":
            hidden = True
        elif len(shown) > 1 and shown[-1] == "***" and word.isdecimal() and shown[-2] == "-p":
            shown[-1] = word
    return shown


def redact(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Return ``text`` with what looks like a secret, and the values of secret variables, replaced by ``***``.

    >>> redact("run --url https://me:pw@host/x --token=abcdef")
    'run --url ***host/x --***'
    """
    values = {v for k, v in (environ or {}).items() if len(v) >= 6 and secret(k, v)}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, "***")
    return _VALUE.sub("***", text)


# ---- Where ncu, nsys and nvcc are: option, environment, PATH, then the usual folders, newest first

Tool = Literal["ncu", "nsys", "nvcc"]

# Relative to the root of the file system.  CUDA's own folder, NVIDIA's packages, Debian's split packages,
# the HPC SDK, Arch, and the prefix of scripts/install_nsight.sh.
FOLDERS: Mapping[Tool, tuple[str, ...]] = {
    "ncu": (
        "opt/nvidia/nsight-compute/*/ncu",
        "usr/local/cuda*/bin/ncu",
        "usr/local/cuda*/nsight-compute-*/ncu",
        "opt/nvidia/hpc_sdk/*/*/profilers/Nsight_Compute/ncu",
        "opt/cuda/bin/ncu",
        "usr/bin/ncu",
        "usr/lib/nsight-compute/ncu",
        "opt/nsight/bin/ncu",
    ),
    "nsys": (
        "opt/nvidia/nsight-systems*/*/bin/nsys",
        "opt/nvidia/nsight-systems*/*/target-linux-*/nsys",
        "usr/local/cuda*/bin/nsys",
        "usr/local/cuda*/nsight-systems-*/bin/nsys",
        "opt/nvidia/hpc_sdk/*/*/profilers/Nsight_Systems/bin/nsys",
        "opt/cuda/bin/nsys",
        "usr/bin/nsys",
        "usr/lib/nsight-systems/target-linux-*/nsys",
        "usr/lib/*/nsight-systems/target-linux-*/nsys",
        "opt/nsight/bin/nsys",
    ),
    "nvcc": (
        "usr/local/cuda*/bin/nvcc",
        "opt/cuda/bin/nvcc",
        "opt/nvidia/hpc_sdk/*/*/compilers/bin/nvcc",
        "usr/bin/nvcc",
        "usr/lib/cuda/bin/nvcc",
        "usr/lib/nvidia-cuda-toolkit/bin/nvcc",
    ),
}


@dataclass(frozen=True)
class Install:
    """One executable that was found, and where the pointer to it came from."""

    tool: Tool
    path: Path
    source: str


def find(
    tool: Tool,
    explicit: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    root: Path = Path("/"),
) -> Install:
    """Return the ``tool`` to use: ``explicit``, NCUKIT_<TOOL>, PATH, or the newest in the usual folders.

    Raises:
        ToolError: there is none, or what was asked for is no executable file (code ``tool-missing``).
    """
    env = os.environ if environ is None else environ
    variable = f"NCUKIT_{tool.upper()}"
    for given, source in ((explicit, f"--{tool}"), (env.get(variable), variable)):
        if given:
            if (path := shutil.which(os.path.expanduser(given), path=env.get("PATH", ""))) is None:
                raise ToolError(
                    f"{source} names {given}, which is not an executable file",
                    f"give the path of {tool} itself, or leave {source} out to search for it",
                    code="tool-missing",
                )
            return Install(tool, Path(path).absolute(), source)
    if path := shutil.which(tool, path=env.get("PATH", "")):
        return Install(tool, Path(path).absolute(), "PATH")
    if not (found := list(_folders(tool, env, root))):
        raise failures.failure("tool-missing", tool=tool, looked=", ".join(_looked(tool))).error()
    return max(found, key=lambda install: capabilities.version_or_zero(tool, install.path, environ=env))


def installs(
    tool: Tool,
    explicit: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    root: Path = Path("/"),
) -> tuple[Install, ...]:
    """Return every ``tool`` on this machine, the one that ``find`` takes first, the others newest first."""
    env = os.environ if environ is None else environ
    found: list[Install] = []
    try:
        found.append(find(tool, explicit, environ=env, root=root))
    except ToolError:
        if explicit or env.get(f"NCUKIT_{tool.upper()}"):
            return ()
    others = [*_on_path(tool, env), *_folders(tool, env, root)]
    others.sort(
        key=lambda install: capabilities.version_or_zero(tool, install.path, environ=env), reverse=True
    )
    seen: dict[Path, Install] = {}
    for install in (*found, *others):
        seen.setdefault(install.path.resolve(), install)
    return tuple(seen.values())


def _on_path(tool: Tool, env: Mapping[str, str]) -> Iterator[Install]:
    for folder in env.get("PATH", "").split(os.pathsep):
        if folder and (path := shutil.which(tool, path=folder)):
            yield Install(tool, Path(path).absolute(), "PATH")


def _folders(tool: Tool, env: Mapping[str, str], root: Path) -> Iterator[Install]:
    for variable in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"):
        if (home := env.get(variable)) and _executable(path := Path(home) / "bin" / tool):
            yield Install(tool, path, variable)
    seen = set()
    for pattern in FOLDERS[tool]:
        for path in sorted(root.glob(pattern)):
            if _executable(path) and (real := path.resolve()) not in seen:
                seen.add(real)
                yield Install(tool, path, "install folder")


def _executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _looked(tool: Tool) -> tuple[str, ...]:
    return ("PATH", *(f"/{pattern.rsplit('/', 1)[0]}" for pattern in FOLDERS[tool][:3]))
