"""The kinds of attack: each makes a ground hostile by the seed of its round, and names commands."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from ncukit.run import directory
from tests.attacks.commands import (
    ALL,
    COPIED,
    DATASET,
    PAGE,
    READ,
    REST,
    RESUME,
    SCRIPT,
    SWEEP,
    Command,
)
from tests.attacks.ground import OTHER, Ground


def _meeting(random: Random, path: Path, ground: Ground) -> list[Command]:
    """Return commands that meet ``path`` of the hostile folder."""
    top = path.relative_to(ground.hostile).parts[0]
    said = [words for words in ALL if any(f"hostile/{top}" in word for word in words)]
    return random.sample(said, min(2, len(said))) or [random.choice(REST)]


def _somewhere(random: Random, ground: Ground) -> Path:
    """Return a file or folder of the hostile folder: each folder is as likely as another."""
    top = random.choice(sorted(path for path in ground.hostile.iterdir() if path != ground.evil))
    below = sorted(path for path in top.rglob("*") if not path.is_symlink())
    return random.choice(below) if below and random.random() < 0.9 else top


def _away(path: Path) -> None:
    """Keep what ``path`` is under another name."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(path.name + ".was"))
    else:
        path.unlink(missing_ok=True)


def _target(random: Random, at: Path, ground: Ground) -> str:
    victim = ground.victim
    inside = [*sorted(victim.rglob("*")), victim, victim / "new", victim / "data/new.parquet", at]
    chosen = str(random.choice([*inside, Path("/dev/zero"), Path("/dev/full"), Path("/etc/passwd")]))
    if chosen.startswith("/dev") or random.random() < 0.5:
        return chosen
    return os.path.relpath(chosen, at.parent)


def links(random: Random, ground: Ground) -> list[Command]:
    """Links, hard links and pipes in place of files and folders, or beside them."""
    names = {
        "ds": ("gpu=evil", "_lock", "_state.json", "_errors.parquet", "gpu=A40/part.parquet"),
        "run": ("logs", "page.html", "report.html", "timeline.json.gz", "profile.ncu-rep", "run.json"),
        "own": ("logs", "report.html", ".lock", "timing.json", "timeline.nsys-rep"),
        "experiment": ("experiment.json", "experiment.html", "baseline", "variant"),
        "baselines": ("main.json", "other.json"),
        "page": ("plotly.min.js", "page.html"),
        "reports": ("y.ncu-rep", "z.ncu-repz", "deeper"),
    }
    path = _somewhere(random, ground)
    if random.random() < 0.5:
        top = random.choice(sorted(names))
        path = ground.hostile / top / random.choice(names[top])
        path.parent.mkdir(exist_ok=True)
    if path.parent == ground.hostile and path.is_dir():  # the user names it: the way to it may hold links
        path = path / random.choice(names.get(path.name, ("x.ncu-rep",)))
    _away(path)
    how = random.random()
    if how < 0.1:
        os.mkfifo(path)
    elif how < 0.2:
        os.link(ground.victim / "thesis.txt", path)
    else:
        path.symlink_to(_target(random, path, ground))
    return _meeting(random, path, ground)


def _value(random: Random, ground: Ground) -> Any:
    victim = ground.victim
    return random.choice(
        [
            str(victim / "thesis.txt"), "../../victim/thesis.txt", "../../victim/data",
            "../../victim/new.json", str(victim), "/dev/zero", str(ground.evil), "evil", "../evil", "x\0y",
            "", ".", "..", "a" * 5000, f"$({ground.evil})", "gpu=x/../../../victim/thesis.txt", None,
            True, -1, 10**30, 1e308, [], {}, [["x"]], {"path": str(victim / "bashrc")}, ["*"],
            "\ud800", "\x1b[2J\u202e",
        ]
    )  # fmt: skip


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Return each place of a value below ``node``: what holds it, and its key there."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    return [place for key in keys for place in ((node, key), *_places(node[key]))]


def records(random: Random, ground: Ground) -> list[Command]:
    """Records whose paths lead outside, and whose values are of other types."""
    names = (
        *("ds/_state.json", "run/run.json", "run/timing.json", "own/run.json", "baselines/main.json"),
        "experiment/experiment.json",
    )
    path = ground.hostile / random.choice(names)
    data = json.loads(path.read_bytes())
    for _ in range(random.randint(1, 3)):
        holder, key = random.choice(_places(data))
        value = _value(random, ground)
        if isinstance(holder, dict) and random.random() < 0.25 and isinstance(value, str):
            holder[value] = holder.pop(key)
        else:
            holder[key] = value
    path.write_text(json.dumps(data))
    return _meeting(random, path, ground)


def parts(random: Random, ground: Ground) -> list[Command]:
    """A dataset whose state says that a report is gone, and that files elsewhere were its parts."""
    path = ground.hostile / "ds/_state.json"
    data = json.loads(path.read_bytes())
    lies = ["../../victim/thesis.txt", str(ground.victim / "bashrc"), "gpu=x/../../../victim/data/b.tmp"]
    for entry in list(data["files"].values()):
        data["files"]["/nonexistent/x"] = entry | {"parts": random.sample(lies, 2)}
    path.write_text(json.dumps(data))
    return list(DATASET[:2]) if random.random() < 0.5 else [DATASET[0], DATASET[2]]


def content(random: Random, ground: Ground) -> list[Command]:
    """Files of other content: nothing, NULs, deep nesting, giant numbers, a private text, a terabyte."""
    path = _somewhere(random, ground)
    if not path.is_file():
        path = ground.hostile / "ds/_state.json"
    texts = (
        b"", b"\0" * 100, b"[" * 100_000, b'{"a":' * 5000, b'{"schema": ' + b"9" * 200_000 + b"}", b"null",
        b"\xff\xfe\x00", b'"\\ud800"', b"[]", b"PAR1" * 10,
        (ground.victim / "thesis.txt").read_bytes(),
    )  # fmt: skip
    path.write_bytes(random.choice(texts))
    if random.random() < 0.1:
        os.truncate(path, 1 << 40)
    return _meeting(random, path, ground)


def modes(random: Random, ground: Ground) -> list[Command]:
    """Other modes and, as root, other owners."""
    path = _somewhere(random, ground)
    path.chmod(random.choice((0, 0o111, 0o444, 0o777, 0o7777)))
    ground.give_away(path)
    return _meeting(random, path, ground)


def resumed(random: Random, ground: Ground) -> list[Command]:
    """Runs of another user that name programs, interpreters and variables."""
    path = ground.hostile / random.choice(("own/run.json", "run/run.json"))
    data = json.loads(path.read_bytes())
    options, target = data["options"], data["target"]
    options["env"] = ["*"]
    for _ in range(random.randint(0, 2)):
        tool = random.choice(("ncu", "nsys", "nvcc", "nvidia-smi"))
        options["tools"] = {tool: str(ground.evil)}
        if random.random() < 0.5:
            options["python"] = str(ground.evil)
        if random.random() < 0.3:
            target |= {"program": str(ground.evil), "args": ["--token", "x"]}
        if random.random() < 0.3:
            data["status"] = "incomplete"
            for step in data["steps"]:
                step["status"] = "failed"
    path.write_text(json.dumps(data))
    return random.sample(RESUME, 2)


def copied(random: Random, ground: Ground) -> list[Command]:
    """A run or a sweep that the user began himself, copied and changed by a stranger."""
    name = random.choice(("run", "sweep"))
    place = ground.hostile / {"run": "copied"}.get(name, name)
    shutil.copytree(ground.work / name, place)
    paths = sorted(place.rglob("run.json"))
    path = random.choice(paths)
    data = json.loads(path.read_bytes())
    evil = str(ground.evil)
    changes: tuple[Callable[[], object], ...] = (
        lambda: data["options"].update(env=["*"]),
        lambda: data["options"].update(tools={random.choice(("ncu", "nsys", "python", "nvcc")): evil}),
        lambda: data["target"].update(program=[evil], args=[]),
        lambda: data["target"].update(program=evil, source="../hostile/mine.py", call="gemm"),
        lambda: data["tools"].update(ncu={"path": evil, "version": "2025.1.0.0"}),
        lambda: data.update(steps=[], status="incomplete"),
        lambda: data["target"].update(params={"n": f"$({evil})"}),
        lambda: (place / "logs").symlink_to("../../victim/data"),
        lambda: (place / random.choice(("program", "timing.json.tmp", "x"))).symlink_to("../evil"),
    )
    for change in random.sample(changes, 2):
        _try(change)
    path.write_text(json.dumps(data))
    if random.random() < 0.3:  # the words of the record mean other files in another folder
        ground.folder = ground.hostile
        shutil.copyfile(ground.work / "mine.py", ground.hostile / "own.py")
        (ground.hostile / "mine.py").write_text(ground.confession("a script"))
        shutil.copytree(place, ground.hostile / "again", symlinks=True)
        words = ("--resume", "again") if random.random() < 0.5 else ("--resume", str(place))
        return [("profile", *words), ("profile", *words, "--dry-run")]
    return random.sample(COPIED if name == "run" else SWEEP, 2)


def _try(change: Callable[[], object]) -> None:
    """Make a change, where the record has a place for it."""
    try:
        change()
    except (AttributeError, TypeError, KeyError, FileExistsError):
        return


def keys(random: Random, ground: Ground) -> list[Command]:
    """A run sealed with a key that a stranger knows, where keys are kept in a folder of several users."""
    sealed_by(ground, KNOWN)
    clone = ground.work / "clone"  # of the stranger's repository, by a user who lets others see nothing
    given = clone if random.random() < 0.5 else ground.hostile / "state"
    key = put_key(given / "ncukit")
    shared = ground.root / "state"
    how = random.choice(("above", "folder", "key", "mode", "hard"))
    if how == "above":
        (ground.root / "open").mkdir()
        (ground.root / "open").chmod(0o777)
        shared = ground.root / "open/state"
        shared.symlink_to(given)
    elif how == "folder":
        shared.mkdir()
        (shared / "ncukit").symlink_to(key.parent)
    else:
        (shared / "ncukit").mkdir(parents=True, mode=0o700)
        other = shared / "ncukit/key"
        if how == "key":
            other.symlink_to(key)
        else:
            (os.link if how == "hard" else shutil.copy)(key, other)
            other.chmod(random.choice((0o640, 0o604, 0o620, 0o602)))
    ground.environment["XDG_STATE_HOME"] = str(shared)
    return [("profile", "--resume", "../hostile/own"), ("profile", "--resume", "../hostile/own", "--json")]


KNOWN = b"k" * 32


def put_key(folder: Path) -> Path:
    """Put the stranger's key into ``folder`` as ncukit keeps its own, and return its path."""
    folder.mkdir(parents=True, mode=0o700)
    key = folder / "key"
    key.write_bytes(KNOWN)
    key.chmod(0o600)
    return key


def sealed_by(ground: Ground, key: bytes) -> None:
    """Seal the stranger's run with ``key``, as the one that the user began in his working folder."""
    path = ground.hostile / "own/run.json"
    found = directory._seal(directory.read_record(path.parent), key, ground.work)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seal": found}))


def modules(random: Random, ground: Ground) -> list[Command]:
    """Modules and programs of a stranger in the working folder."""
    names = [
        "json", "numpy", "typer", "jinja2", "ncu_report", "encodings", "sitecustomize", "threading",
        "pyarrow", "subprocess", "ncukit", "pandas", "duckdb", "plotly", "signal", "socket",
    ]  # fmt: skip
    for name in ("multiprocessing", *random.sample(names, 8)):
        package = ground.work / name
        package.mkdir()
        (package / "__init__.py").write_text(ground.confession(f"module {name}"))
    for name in ("ncu", "git", "nsys", "nvidia-smi", "zstd", "sh", "python"):
        shutil.copy(ground.evil, ground.work / name)
    folder = ("index", ".", *PAGE), ("dataset", "build", ".", "-o", "out", "--workers", "2")
    return [random.choice(folder if random.random() < 0.6 else READ)]


def repository(random: Random, ground: Ground) -> list[Command]:
    """A git repository whose configuration and hooks name programs, around the user's script."""
    git = ["git", "-C", str(ground.work), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "-q"], ["add", "mine.py"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    settings = ["core.fsmonitor", "core.hooksPath", "filter.evil.clean", "filter.evil.process", "core.pager",
                "core.sshCommand", "diff.external", "core.editor", "gpg.program",
                "alias.status", "core.askPass", "credential.helper"]  # fmt: skip
    for name in ("core.fsmonitor", *random.sample(settings, 4)):
        value = {"core.hooksPath": str(ground.work / "hooks"), "alias.status": f"!{ground.evil}"}
        subprocess.run([*git, "config", name, value.get(name, str(ground.evil))], check=True)
    for folder in (ground.work / "hooks", ground.work / ".git/hooks"):
        folder.mkdir(exist_ok=True)
        for name in ("post-index-change", "fsmonitor-watchman", "pre-commit", "reference-transaction"):
            shutil.copy(ground.evil, folder / name)
    (ground.work / ".gitattributes").write_text("*.py filter=evil diff=evil\n")
    with (ground.work / "mine.py").open("a") as file:
        file.write("# changed\n")
    return [random.choice(SCRIPT)]


def settings(random: Random, ground: Ground) -> list[Command]:
    """An ncukit.toml of a stranger that names folders outside, or is nested too deeply."""
    where = random.choice(
        ("../victim/data", str(ground.victim / "data"), "link/data", "../victim", "x\\u0000y")
    )
    (ground.work / "link").symlink_to("../victim")
    text = f'[compare]\nbaselines = "{where}"\n'
    if random.random() < 0.2:
        text = "x = " + "[" * random.choice((100, 5000)) + "\n"
    path = ground.work / "ncukit.toml"
    if random.random() < 0.1:
        path.symlink_to(ground.victim / "thesis.txt")
    else:
        path.write_text(text)
    name = random.choice(("main", "new", "../main", "x/y"))
    return [
        ("baseline", "set", name, "mine.ncu-rep", "--force"),
        random.choice((("baseline", "list"), ("compare", "mine.ncu-rep", "mine.ncu-rep"))),
    ]


def plotly(random: Random, ground: Ground) -> list[Command]:
    """A library of a stranger beside the page, or a link, also under the name that holds its hash."""
    page = ground.hostile / "page"
    digest = hashlib.sha256(LIBRARY.read_bytes()).hexdigest()[:16]
    (page / "other.js").write_text(HOSTILE_SCRIPT)
    for name in ("plotly.min.js", f"plotly-{digest}.min.js"):
        if random.random() < 0.4:
            (page / name).write_text(HOSTILE_SCRIPT)
        else:
            (page / name).symlink_to(
                random.choice(("../../victim/bashrc", "../../victim/new.js", "other.js"))
            )
    return [
        ("report", "mine.ncu-rep", "-o", "../hostile/page/page.html", "--force", "--plotlyjs", "directory")
    ]


LIBRARY = Path(str(importlib.resources.files("plotly"))) / "package_data" / "plotly.min.js"
HOSTILE_SCRIPT = "window.canary = 1; // of a stranger"


def caches(random: Random, ground: Ground) -> list[Command]:
    """A cache in a folder of several users: another's, behind a link, or open to be written."""
    shared = ground.root / "cache"
    cache = shared / "ncukit"
    clone = ground.work / "clone"  # the user's own copy of what a stranger made
    ground.plant(clone)
    how = random.choice(("link", "parent", "mode", "other", "cache", "above"))
    if how == "cache":
        shared.mkdir()
        (clone / "inner").mkdir()
        ground.plant(clone / "inner/templates")
        cache.symlink_to(clone / "inner")
    elif how == "above":
        (ground.root / "open").mkdir()
        (ground.root / "open").chmod(0o777)
        ground.plant(clone / "inner/ncukit/templates")
        shared = ground.root / "open/cache"
        shared.symlink_to(clone / "inner")
    else:
        cache.mkdir(parents=True)
        where = cache / random.choice(("templates", "templates", "tools", "locate.json", "key"))
        if how == "other":
            where.symlink_to(ground.victim / random.choice(("data", "new", "bashrc")))
        elif how == "link":
            where = cache / "templates"
            where.symlink_to(clone)
        else:
            ground.plant(cache / "templates")
    if os.geteuid() == 0:
        os.chown(cache if how in ("link", "other") else shared, OTHER, OTHER, follow_symlinks=False)
    else:
        (cache if how in ("link", "other") else shared).chmod(0o777)
    if how in ("parent", "mode", "cache"):
        shared.chmod(0o777)
    if how == "mode":
        (cache / "templates").chmod(0o777)
    ground.environment["XDG_CACHE_HOME"] = ground.environment["XDG_STATE_HOME"] = str(shared)
    return [random.choice((("report", "mine.ncu-rep", *PAGE), *READ)), random.choice(RESUME)]


KINDS: dict[str, Callable[[Random, Ground], list[Command]]] = {
    attack.__name__: attack
    for attack in (
        *(
            links,
            records,
            parts,
            content,
            modes,
            resumed,
            copied,
            keys,
            modules,
            repository,
            settings,
            plotly,
        ),
        caches,
    )
}


def page_faults(ground: Ground) -> list[str]:
    """Return what is wrong with the page that stands beside a library of a stranger."""
    page = ground.hostile / "page/page.html"
    if not page.is_file():
        return []
    content = page.read_bytes()
    for library in page.parent.glob("*.js"):
        named = f'"{library.name}"'.encode() in content
        if named and library.is_file() and library.read_bytes() == HOSTILE_SCRIPT.encode():
            return ["a page loads a stranger's script"]
    return []


def attack(seed: int, ground: Ground, kind: str | None = None) -> tuple[str, list[Command]]:
    """Make ``ground`` anew, and hostile by ``seed``; return the kind and the commands to run."""
    random = Random(seed)
    names = list(KINDS)
    chosen = kind or names[seed % len(names)]
    ground.fresh()
    commands = KINDS[chosen](random, ground)
    if random.random() < 0.5:
        ground.give_away(ground.hostile)
    return chosen, commands
