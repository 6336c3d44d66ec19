"""Secrets of command lines, variables and other people's files: none is recorded, bundled or quoted."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from ncukit.comparison.options import load_settings
from ncukit.errors import NcukitError, UsageError
from ncukit.report.container import identify
from ncukit.run.tools.locate import redact, redact_words, secret
from ncukit.schemas.check import read_json
from tests.command import ncukit

SECRETS = {
    **{
        "SSHPASS": "hunter",
        "LDAP_BINDPW": "x1y2z3",
        "DBPW": "hunter2",
        "USERPWD": "ab",
        "ADMINPASS": "hunter2",
    },
    **{"KRB5PASS": "hunter2", "TF_VAR_pw": "hunter2", "WANDBKEY": "abcdef", "NCCL_AUTHKEY": "abcdef"},
    **{
        "PIP_INDEX_URL": "https://5f4dcc3b@host/simple",
        "NOTIFY": "https://hooks.slack.com/services/T0/B0/xyz",
    },
    **{
        "BLOB": "https://a.blob.host/x?sv=1&sig=abc%3D",
        "PYTHONKEYRING_PW": "hunter3",
        "TRITON_AUTHPW": "hunter5",
    },
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_variable_that_holds_a_secret_is_seen(name: str) -> None:
    assert secret(name, SECRETS[name])


@pytest.mark.parametrize(
    ("name", "value"),
    [("PWD", "/x"), ("MONKEY", "wrench"), ("XKB_KEYMAP", "us"), ("BYPASS", "1"), ("SSL_KEY", "/etc/x.pem")],
)
def test_a_plain_variable_is_given_to_programs(name: str, value: str) -> None:
    assert not secret(name, value)


@pytest.mark.parametrize(
    "words",
    [
        *(["--password", "hunter2hunter2"], ["--api-key", "hunter2hunter2"], ["-p", "hunter2hunter2"]),
        *(["--db-pw=hunter2hunter2"], ["MY_TOKEN=hunter2hunter2"], ["--auth_token", "hunter2hunter2"]),
        *(["https://hunter2hunter2@host/"], ["run", "hunter2hunter2"], ["--x=hunter2hunter2/y"]),
    ],
)
def test_no_secret_of_a_command_line_is_recorded(words: list[str]) -> None:
    shown = redact_words(["python", "leak.py", *words], {"DB_PASSWORD": "hunter2hunter2"})
    assert "hunter2" not in " ".join(shown)


def test_words_that_are_no_secrets_stay() -> None:
    words = ["./a.out", "-p", "8080", "--keys", "8", "--tokens", "4096", "--monkey", "x", "--password-file"]
    assert redact_words(words) == words


def test_a_url_keeps_its_host() -> None:
    assert redact("https://token@host/x") == "***host/x"


@pytest.mark.parametrize(
    "head", [b"machine h login u password hunter2secret", b"root:x:0:0\n", b"\x00\x01hunter2secret"]
)
def test_what_a_file_is_never_quotes_it(head: bytes) -> None:
    found = identify(head)
    assert "hunter2" not in found.what + found.hint
    assert "root" not in found.what + found.hint
    assert head[:4].hex(" ") not in found.what


@pytest.mark.parametrize("command", ["show", "ops", "timeline", "metrics", "compare", "advise", "report"])
def test_an_error_quotes_nothing_of_a_foreign_file(tmp_path: Path, command: str) -> None:
    file = tmp_path / "token.ncu-rep"
    file.write_text("machine h login u password hunter2secret\n")
    ended = ncukit(command, str(file), *([str(file)] if command == "compare" else []))
    assert ended.returncode != 0
    assert "hunter2secret" not in ended.stdout + ended.stderr
    assert "machine h" not in ended.stdout + ended.stderr


def test_a_bug_report_holds_known_variables_only(tmp_path: Path) -> None:
    from ncukit.run.tools.doctor import Examination, write_bundle

    env = {
        "CUDA_VISIBLE_DEVICES": "0",
        "TORCH_HUB": "x",
        "CUDA_SITE": "inner",
        "MASTER_ADDR": "10.0.0.1",
        **SECRETS,
    }
    path = write_bundle(Examination("bare", ()), tmp_path / "b.zip", environ=env, root=tmp_path)
    with zipfile.ZipFile(path) as archive:
        kept = json.loads(archive.read("environment.json"))["variables"]
    assert kept["CUDA_VISIBLE_DEVICES"] == "0"
    assert not {"TORCH_HUB", "CUDA_SITE", "MASTER_ADDR", *SECRETS} & kept.keys()


def test_a_number_of_200_000_digits_is_damage(tmp_path: Path) -> None:
    digits = "9" * 200_000
    trace = tmp_path / "bigint.json"
    trace.write_text(f'{{"traceEvents": [{{"ph": "X", "ts": {digits}}}]}}')
    for command in ("ops", "timeline"):
        ended = ncukit(command, str(trace))
        assert ended.returncode == 4
        assert "too many digits" in ended.stderr
    record = tmp_path / "run.json"
    record.write_text(f'{{"schema": {digits}}}')
    with pytest.raises(NcukitError, match="is damaged"):
        read_json(record)


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "9" * 200_000, "password = hunter2secret"])
def test_a_ncukit_toml_that_is_no_toml_is_said_so_and_not_quoted(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ncukit.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match="is not valid TOML") as raised:
        load_settings(file=file)
    assert "hunter2" not in str(raised.value)
