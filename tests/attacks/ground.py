"""Where a round takes place: a victim's files, a stranger's folder, and what must be as it was afterwards."""

from __future__ import annotations

import hashlib
import json
import marshal
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from jinja2.bccache import BytecodeCache, bc_magic

from ncukit.render import html
from tests.conftest import CHECKOUT
from tests.mutations import originals
from tests.mutations.run import TIMEOUT, Ended, run

SECRETS = {"HF_TOKEN": "hf_canarycanarycanary1", "DB_PASSWORD": "canary-hunter-2-canary"}
PRIVATE = "machine h login u password victims-own-canary"
"""The first line of each of the victim's texts."""
CODES = (0, 1, 2, 3, 4, 5, 6, 10)
SHOWN = 20_000_000
"""Files of more bytes are not searched for secrets."""
OTHER = 12345
"""A user who is neither root nor the victim."""
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"
Facts = dict[str, tuple[object, ...]]


def facts(folder: Path) -> Facts:
    """Return names, types, modes, owners, times and content of all below ``folder``; no link is followed."""
    found: Facts = {}
    for at, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(at, name)
            of = path.lstat()
            content: str | None = None
            if stat.S_ISLNK(of.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(of.st_mode) and of.st_size < SHOWN:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(folder))] = (
                of.st_mode,
                of.st_uid,
                of.st_size,
                of.st_mtime_ns,
                content,
            )
    return found


class Ground:
    """The folders of a round, below one ``root`` that is made anew for each.

    ``checkout`` is what is attacked: this one in forked processes, another in interpreters of its own.
    """

    def __init__(self, checkout: Path = CHECKOUT) -> None:
        self._kept = Path(tempfile.mkdtemp(prefix="ncukit-attacks-"))
        self.checkout = checkout.resolve()
        self.root = self._kept / "ground"
        self._sound = self._kept / "sound"
        self.hostile, self.work = self.root / "hostile", self.root / "work"
        self.victim, self.canary = self.root / "victim", self._kept / "canary"
        self.evil = self.hostile / "evil"
        self.environment: dict[str, str] = {}
        self.folder = self.work
        self._program = self._console()
        self._begin()
        self.root.rename(self._sound)

    def close(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self._kept, ignore_errors=True)

    def fresh(self) -> None:
        """Make the sound folders again."""
        if self.root.exists():
            shutil.rmtree(self.root)
        self.canary.unlink(missing_ok=True)
        shutil.copytree(self._sound, self.root, symlinks=True)
        self.environment, self.folder = self._plain(), self.work

    def give_away(self, path: Path) -> None:
        """Give ``path`` and all below it to another user, where this one is root."""
        if os.geteuid() != 0:
            return
        for at, folders, files in os.walk(path):
            for one in (at, *(os.path.join(at, name) for name in (*folders, *files))):
                if os.stat(one, follow_symlinks=False).st_nlink == 1 or os.path.isdir(one):
                    os.chown(one, OTHER, OTHER, follow_symlinks=False)

    def plant(self, cache: Path) -> None:
        """Put compiled templates into ``cache`` that say that they ran."""
        code = marshal.dumps(compile(self.confession("a template"), "template", "exec"))
        jinja = BytecodeCache()
        names = sorted(path.name for path in (self.root / "compiled").iterdir())
        cache.mkdir(parents=True, exist_ok=True)
        for path in (self.checkout / "templates").iterdir():
            if path.is_file():
                kept = jinja.get_source_checksum(path.read_text())
                now = jinja.get_cache_key(path.name, str(path)), bc_magic + pickle.dumps(kept, 2)
                before = jinja.get_cache_key(path.name), hashlib.sha256(kept.encode() + code).digest()
                for key, head in (now, before):  # as this version writes them, and as version 0.1.0 did
                    for name in names:
                        if key in name:
                            (cache / name).write_bytes(head + code)
        assert os.listdir(cache), "compiled templates have another form now"

    def confession(self, who: str) -> str:
        """Return code in Python that tells the canary that ``who`` ran."""
        return f"open({str(self.canary)!r}, 'a').write({who!r})\n"

    def remember(self) -> None:
        """Remember how all is before the commands of a round run."""
        self._before = {part: facts(self.root / part) for part in ("victim", "home", "hostile", "work")}
        self._names = set(os.listdir(self.root))

    def ncukit(self, words: Sequence[str], *, anew: bool = False) -> Ended:
        """Run ``ncukit`` in the round's folder, ``anew`` as an installed command in a new interpreter."""
        said = self._kept / "said"
        said.mkdir(exist_ok=True)
        if anew or self.checkout != CHECKOUT:
            return self._installed(words)

        def begin() -> None:
            os.environ.clear()
            os.environ.update(self.environment)
            tempfile.tempdir = None
            sys.dont_write_bytecode = False  # else ncukit keeps no compiled templates
            html._environment.cache_clear()  # of another test in this process
            os.chdir(self.folder)

        return run(words, said, begin)

    def faults(self, words: Sequence[str], ended: Ended) -> list[str]:
        """Return what a command did that it must not."""
        found = []
        if ended.signal is not None:
            found.append("hangs" if ended.signal == signal.SIGKILL else f"killed by signal {ended.signal}")
        elif ended.code not in CODES:
            found.append(f"exit code {ended.code}")
        elif ended.code in (1, 2, 3, 4) and "error: " not in ended.err:
            found.append("fails without a word")
        said = ended.out + ended.err
        found += [text for text in ("Traceback", "internal error") if text in said]
        found += [f"printed {character!a}" for character in sorted(set(said)) if _steers(character)]
        if "--json" in words and ended.signal is None:
            found += _no_json(ended.out, ended.code)
        return found + self.changes() + [f"printed {name}" for name in self._secrets(said.encode())]

    def changes(self) -> list[str]:
        """Return what was changed, run or written since `remember` that must not have been."""
        found = []
        for part in ("victim", "home"):
            now, before = facts(self.root / part), self._before[part]
            for name in sorted(now.keys() | before.keys()):
                own = part == "home" and name.startswith((".cache", ".local"))
                if now.get(name) != before.get(name) and not own:
                    found.append(f"changed {part}/{name}")
        found += [f"made {name}" for name in sorted(set(os.listdir(self.root)) ^ self._names)]
        left = set(os.listdir(self.root / "tmp")) - {"nvidia"}  # an installed nsys locks itself there
        found += [f"left {name} in TMPDIR" for name in sorted(left)]
        if self.canary.exists():
            found.append("ran a stranger's program")
            if self._secrets(self.canary.read_bytes()):
                found.append("gave it secrets")
        for part in ("hostile", "work", "home"):
            now, before = facts(self.root / part), self._before[part]
            for name in now:
                path = self.root / part / name
                new = now[name] != before.get(name) and path.is_file() and not path.is_symlink()
                if new and path.stat().st_size < SHOWN:
                    found += [f"wrote {one} to {name}" for one in self._secrets(path.read_bytes())]
        return found

    @staticmethod
    def _secrets(data: bytes) -> list[str]:
        secrets = {**SECRETS, "a private text": PRIVATE}
        return [name for name, value in secrets.items() if value.encode() in data]

    def _installed(self, words: Sequence[str]) -> Ended:
        """Run the command as pip installs it: its own folder is searched for modules, the working one not."""
        process = subprocess.Popen(
            [sys.executable, str(self._program), *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        killed = None
        try:
            out, err = process.communicate(timeout=2 * TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            killed = signal.SIGKILL
        said = (text.decode(errors="replace") for text in (out, err))
        return Ended(process.returncode, killed, 0.0, 0, *said)

    def _console(self) -> Path:
        program = self._kept / "bin" / "ncukit"
        program.parent.mkdir()
        program.write_text(
            f"import sys\nsys.path.insert(1, {str(self.checkout)!r})\n"
            'from ncukit.__main__ import main\nif __name__ == "__main__":\n    main()\n'
        )
        return program

    def _plain(self) -> dict[str, str]:
        return {
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            **SECRETS,
        }

    def _begin(self) -> None:
        """Make the folders, sound: hostile/own is a run of another user, work/run and work/sweep are own."""
        folders = ("run", "page", "reports", "baselines", "experiment", "state")
        for part in ("home", "tmp", "work", "victim/data", *(f"hostile/{name}" for name in folders)):
            (self.root / part).mkdir(parents=True)
        for name in ("thesis.txt", "bashrc", "data/a.parquet", "data/b.tmp", "data/main.json"):
            (self.victim / name).write_text(f"{PRIVATE}\nof {name}\n")
        for path in (self.evil, self.hostile / "own.sh"):
            path.write_text(f"#!/bin/sh\n(echo ran $0 $*; env) >> {self.canary}\n")
            path.chmod(0o755)
        (self.work / "own.sh").write_text(f'#!/bin/sh\nif [ "$HF_TOKEN" ]; then env >> {self.canary}; fi\n')
        (self.work / "own.sh").chmod(0o755)
        (self.work / "mine.py").write_text(SCRIPT)
        for path in ("work/mine.ncu-rep", "hostile/reports/x.ncu-rep", "hostile/run/profile.ncu-rep"):
            (self.root / path).write_bytes(originals.COPY.read_bytes())
        (self.hostile / "run/run.json").write_bytes(originals.records()[0])
        (self.hostile / "run/timing.json").write_bytes(originals.timings()[0])
        (self.hostile / "baselines/main.json").write_bytes(originals.baselines()[0])
        (self.hostile / "experiment/experiment.json").write_bytes(originals.experiments()[0])
        (self.hostile / "trace.json").write_bytes(originals.torch_traces()[0])
        (self.hostile / "x.sqlite").write_bytes(originals.exports()[0])
        self.environment = self._plain()
        sweep = ("profile", "mine.py", "--kernel", "gemm", "--repeat", "3", "-p", "n=8,16", "-o", "sweep")
        for words in (("profile", "-o", "run", "--", "./own.sh"), sweep):
            self._installed(words)
        self.environment = self._plain() | {"HOME": str(self.root / "tmp")}
        for words in (
            ("dataset", "build", "mine.ncu-rep", "-o", "../hostile/ds"),
            ("profile", "-o", "../hostile/own", "--", str(self.evil)),
            ("report", "mine.ncu-rep", "-o", str(self.root / "tmp/page.html")),
        ):
            self._installed(words)
        for path in (self.hostile / "own/run.json", self.work / "run/run.json"):
            record = json.loads(path.read_bytes()) | {"steps": [], "status": "incomplete"}
            path.write_text(json.dumps(record))  # there is all left to do: the program would run
        (self.root / "tmp/.cache/ncukit/templates").rename(self.root / "compiled")
        shutil.rmtree(self.root / "tmp")
        (self.root / "tmp").mkdir()
        made = ("hostile/ds/_state.json", "hostile/own/run.json", "work/run/run.json", "work/sweep/run.json")
        for name in made:
            assert (self.root / name).exists(), name


def _steers(character: str) -> bool:
    """Return whether ``character`` steers a terminal."""
    control = unicodedata.category(character) == "Cc" and character not in "\n\t"
    return control or character in BIDI


def _no_json(text: str, code: int | None) -> list[str]:
    """Return what is wrong with documents of JSON, one a line; a failure ends with its own."""

    def refused(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    try:
        documents = [json.loads(line, parse_constant=refused) for line in text.splitlines()]
    except ValueError:
        return ["not JSON"]
    if not documents:
        return ["nothing in JSON"]
    told = any(isinstance(one, dict) and ("error" in one or "errors" in one) for one in documents)
    return [] if told or code not in (1, 2, 3, 4) else ["no error in JSON"]


SCRIPT = """import ncukit


@ncukit.workload(n=64)
def gemm(n):
    return lambda: n
"""
