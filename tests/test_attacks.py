"""Hostile folders in a few rounds with fixed seeds; ``python -m tests.attacks 1000`` runs more."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.attacks.ground import PRIVATE, Ground
from tests.attacks.kinds import HOSTILE_SCRIPT, KINDS, KNOWN, page_faults, put_key, sealed_by
from tests.attacks.rounds import attacked
from tests.mutations.run import Ended
from tests.mutations.warm import warm


@pytest.fixture(scope="module")
def made() -> Iterator[Ground]:
    """The folders of a user, a victim and a stranger."""
    warm()
    ground = Ground()
    yield ground
    ground.close()


@pytest.fixture
def ground(made: Ground) -> Ground:
    """The same, sound again."""
    made.fresh()
    return made


@pytest.mark.parametrize("seed", range(len(KINDS)), ids=list(KINDS))
def test_a_hostile_folder_changes_runs_and_tells_nothing(made: Ground, seed: int) -> None:
    assert attacked(seed, made).faults == (), f"python -m tests.attacks --seed {seed}"


# ---- the harness sees each class of fault --------------------------------------------------------


def ended(code: int = 0, out: str = "", err: str = "") -> Ended:
    return Ended(code, None, 0.0, 0, out, err)


def spoiled(ground: Ground, spoil: Callable[[Ground], object]) -> list[str]:
    """Return what the harness says of ``spoil``."""
    ground.remember()
    assert ground.changes() == []
    spoil(ground)
    return ground.changes()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda g: (g.victim / "thesis.txt").write_text(""), "changed victim/thesis.txt"),
        (lambda g: (g.victim / "data/b.tmp").unlink(), "changed victim/data/b.tmp"),
        (lambda g: (g.victim / "bashrc").chmod(0o600), "changed victim/bashrc"),
        (lambda g: (g.root / "home/new").write_text(""), "changed home/new"),
        (lambda g: (g.root / "new").mkdir(), "made new"),
        (lambda g: (g.root / "tmp/new").write_text(""), "left new in TMPDIR"),
        (lambda g: (g.work / "page.html").write_text(PRIVATE), "wrote a private text to page.html"),
        (lambda g: g.canary.write_text("hf_canarycanarycanary1"), "gave it secrets"),
    ],
)
def test_a_file_outside_that_is_changed_is_seen(
    ground: Ground, spoil: Callable[[Ground], object], said: str
) -> None:
    assert said in spoiled(ground, spoil)


def test_a_program_that_ran_is_seen(ground: Ground) -> None:
    words = ("profile", "--skip-nsys", "--skip-ncu", "--env", "*", "-o", "new", "--", str(ground.evil))
    ground.remember()
    found = ground.faults(words, ground.ncukit(words))
    assert found == ["ran a stranger's program", "gave it secrets"]


def test_a_template_that_is_planted_in_the_user_s_own_cache_is_run_and_seen(ground: Ground) -> None:
    ground.plant(ground.root / "home/.cache/ncukit/templates")
    ground.remember()
    words = ("report", "mine.ncu-rep", "-o", "page.html")
    assert "ran a stranger's program" in ground.faults(words, ground.ncukit(words))


def test_a_run_that_is_sealed_with_the_user_s_own_key_is_run_and_seen(ground: Ground) -> None:
    shutil.rmtree(ground.root / "home/.local/state")
    put_key(ground.root / "home/.local/state/ncukit")
    sealed_by(ground, KNOWN)
    ground.remember()
    words = ("profile", "--resume", "../hostile/own")
    assert "ran a stranger's program" in ground.faults(words, ground.ncukit(words))


def test_a_module_of_the_working_folder_that_is_imported_is_seen(ground: Ground) -> None:
    (ground.work / "mine.py").write_text("import planted\nimport ncukit\n")
    (ground.work / "planted.py").write_text(ground.confession("a module"))
    ground.remember()
    words = ("time", "mine.py", "--kernel", "gemm")
    assert "ran a stranger's program" in ground.faults(words, ground.ncukit(words, anew=True))


@pytest.mark.parametrize(
    ("words", "end", "said"),
    [
        ((), ended(out=PRIVATE), "printed a private text"),
        ((), ended(err="canary-hunter-2-canary"), "printed DB_PASSWORD"),
        ((), ended(1, err="error: internal error: KeyError\nhint: report it"), "internal error"),
        ((), ended(1, err="Traceback (most recent call last):\nerror: x"), "Traceback"),
        ((), ended(99), "exit code 99"),
        ((), ended(4), "fails without a word"),
        ((), Ended(None, 11, 0.0, 0, "", ""), "killed by signal 11"),
        ((), Ended(None, 9, 0.0, 0, "", ""), "hangs"),
        ((), ended(out="a\x1b[2J"), "printed '\\x1b'"),
        ((), ended(err="a\u202e"), "printed '\\u202e'"),
        (("--json",), ended(out="text"), "not JSON"),
        (("--json",), ended(out='{"a": NaN}'), "not JSON"),
        (("--json",), ended(out='{"a": 1}\n{"b"'), "not JSON"),
        (("--json",), ended(4, err="error: x"), "nothing in JSON"),
        (("--json",), ended(4, out='{"a": 1}', err="error: x"), "no error in JSON"),
    ],
)
def test_what_a_command_must_not_say_is_seen(
    ground: Ground, words: tuple[str, ...], end: Ended, said: str
) -> None:
    ground.remember()
    assert said in ground.faults(words, end)
    assert ground.faults(("--json",), ended(out='{"a": 1}\n')) == []


def test_a_page_that_loads_a_strangers_script_is_seen(ground: Ground) -> None:
    (ground.hostile / "page/plotly.min.js").write_text(HOSTILE_SCRIPT)
    (ground.hostile / "page/page.html").write_text('<script src="plotly.min.js"></script>')
    assert page_faults(ground) == ["a page loads a stranger's script"]
