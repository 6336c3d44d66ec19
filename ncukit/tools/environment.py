"""The environment of children: no secrets (nsys stores all of it in its reports), no surprises."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from ncukit.record import dataclass

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
