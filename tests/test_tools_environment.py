"""Children get the user's environment without secrets: nsys writes all of it into its reports."""

from __future__ import annotations

import pytest

from ncukit.run.tools.locate import child_environment, redact, secret

RANDOM = "q8Zr2LmV0xKc7TnJ5bWf1YsHd9PgEu3A"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "x"),
        ("HF_TOKEN", "x"),
        ("githubToken", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AWS_SESSION_TOKEN", "x"),
        ("OPENAI_API_KEY", "x"),
        ("NVIDIA_API_KEY", "x"),
        ("WANDB_API_KEY", "x"),
        ("DB_PASSWORD", "1234"),
        ("MYSQL_PWD", "x"),
        ("PGPASSWORD", "x"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json"),
        ("SSH_AUTH_SOCK", "/run/agent.1"),
        ("SLACK_WEBHOOK", "https://example.org/x"),
        ("SENTRY_DSN", "https://example.org/1"),
        ("LICENSE_KEY", "AB-CD"),
    ],
)
def test_a_secret_is_known_by_its_name(name: str, value: str) -> None:
    assert secret(name, value)


@pytest.mark.parametrize(
    "value",
    [
        "https://me:hunter2@example.org/simple",
        "postgres://u:p@db/x",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
        "gh" + "p_abcdefghijklmnopqrstuvwxyz0123456789",
        "hf" + "_abcdefghijklmnopqrstuvwxyzABCDEFGH",
        "sk" + "-proj-abcdefghijklmnopqrst0123",
        "AKIA" + "ABCDEFGHIJKLMNOP",
        "Authorization: Basic abc",
        "Server=db;User=me;Password=hunter2",
        '{"private_key": "abcdef"}',
        RANDOM,
    ],
)
def test_a_secret_is_known_by_its_value(value: str) -> None:
    assert secret("SETTING", value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("PWD", "/home/me"),
        ("OLDPWD", "/home/me/token"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MAX_TOKENS", "4096"),
        ("SSL_KEY", "/etc/ssl/key.pem"),
        ("KEYBOARD_LAYOUT", "de"),
        ("MONKEY", "banana"),
        ("XAUTHORITY", "/home/me/.Xauthority"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus"),
        ("CUDA_VISIBLE_DEVICES", "GPU-5b2c9d1e-1f2a-3b4c-5d6e-7f8091a2b3c4"),
        ("NVIDIA_REQUIRE_CUDA", "cuda>=12.4 brand=tesla,driver>=470,driver<471"),
        ("GIT_COMMIT", "0d15dd2f5aab16e3e5fd7e1a8d2b4c6f8a9b0c1d"),
        ("HF_HOME", "/data/hf_transformers_cache_of_everybody"),
        ("PYTHONPATH", "/src/sk-learn-contrib-extensions-and-more"),
        ("LD_LIBRARY_PATH", "/usr/local/cuda-12.4/lib64:/opt/A1b2C3d4E5f6G7h8I9j0K1l2M3n4"),
        ("http_proxy", "http://proxy:3128"),
        ("TRITON_CACHE_DIR", "/tmp/triton"),
    ],
)
def test_what_a_program_needs_is_no_secret(name: str, value: str) -> None:
    assert not secret(name, value)


def test_dropped_variables_are_named_and_gone() -> None:
    made = child_environment({"PATH": "/bin", "HF_TOKEN": "x", "A_PASSWORD": "y"})
    assert made.dropped == ("A_PASSWORD", "HF_TOKEN")
    assert "HF_TOKEN" not in made.variables
    assert made.variables["PATH"] == "/bin"


def test_messages_are_english_and_ncu_does_not_fill_the_home_folder() -> None:
    made = child_environment({"LC_ALL": "de_DE.UTF-8"}).variables
    assert made["LC_ALL"] == "C.UTF-8"
    assert made["NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT"] == "1"


def test_keep_passes_a_secret_on_by_name_or_glob() -> None:
    environ = {"HF_TOKEN": "x", "MY_TOKEN": "y", "OTHER_TOKEN": "z"}
    made = child_environment(environ, keep=("HF_TOKEN", "MY_*"))
    assert made.dropped == ("OTHER_TOKEN",)
    assert (made.variables["HF_TOKEN"], made.variables["MY_TOKEN"]) == ("x", "y")


def test_clean_passes_on_only_what_the_tool_chain_needs() -> None:
    environ = {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0", "EDITOR": "vi", "MINE": "1", "HF_TOKEN": "x"}
    made = child_environment(environ, clean=True, keep=("MINE",))
    assert {"PATH", "CUDA_VISIBLE_DEVICES", "MINE"} <= set(made.variables)
    assert "EDITOR" not in made.variables
    assert made.dropped == ("HF_TOKEN",)


def test_extra_variables_win() -> None:
    assert child_environment({"A": "1"}, extra={"A": "2"}).variables["A"] == "2"


def test_text_is_freed_of_secrets() -> None:
    text = f"run --url=https://me:hunter2@host/x --key {RANDOM} --mode fast"
    assert redact(text, {"MY_KEY": RANDOM}) == "run --url=***host/x --key *** --mode fast"
