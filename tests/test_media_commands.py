"""Every command, every medium, hostile names everywhere: nothing steers, suggestions can be pasted."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from ncukit.cli import application
from tests import hostile
from tests.mutations import originals
from tests.mutations.run import Ended, run
from tests.mutations.warm import warm
from tests.ncurep import Device, Launch, Rule, Section, write_report
from tests.test_timeline_output import training
from tests.torch_builder import TorchBuilder

FILES = {
    "controls": "zq7 \x1b[2J\x07\x9b31m\x85\r\n# Approved\n::set-output name=a::b\u202e\u2028##[add-mask]c",
    "shell": "::set-output name=zq7 $(touch PWNED)`id`'q\" ;&|*",
    "dash": "-rf --zq7",
}
"""How the names of files begin; zq7 finds them in what is printed."""
NAME = (
    "kq7 \x1b[2J\x1b]8;;https://evil.example\x07\x9b31m\x85\r# Approved\r\n- [x] https://evil.example #1 "
    "@team\n::set-output name=a::b\n##[add-mask]c\u202e\u2066\u2028\u200b```\n"
    "# Approved|<h1>Approved</h1>`=cmd()"
)
"""The name of a kernel, a function, a GPU, a metric's value, a range, a process."""
HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
ORDER = re.compile(r"^\s*::(?!(?:error|warning|notice) title=)|##\w*\[", re.MULTILINE)
"""What a log of CI would obey, but for the annotations of ``--format github``."""
COMMAND = re.compile(r"(?:^|(?<=[\s`\"]))(?:ncukit [a-z]+|nsys export|chmod|git -C|zstd|gunzip|unzip) .*")

R, C, J, S, D = "{0}.ncu-rep", "{0}.csv", "{0}.json", "{0}.sqlite", "{0} run"
MEDIA: dict[str, list[tuple[str, ...]]] = {
    "show": [(R,), ("-v", R), ("--format", "markdown", R), ("--json", R), (C,), ("{0} missing",),
             ("{0} folder",), ("{0}.nsys-rep",), ("{0}.gz",), ("{0} lfs",), ("--kernel", "{0}", R),
             ("--timeline", S, R), ("{0}.qdstrm",)],
    "metrics": [(R,), ("--raw", R), ("--format", "csv", R), ("--raw", "--format", "csv", R), ("--json", R),
                ("--raw", "--json", R), ("-m", "{0}", R)],
    "report": [("-o", "{0}.html", "--force", R), ("--run", D, "-o", "{0} run.html", "--force"),
               ("-o", "{0} no/{0}.html", R)],
    "compare": [(R, R), ("--format", "markdown", R, R), ("--format", "github", R, R),
                ("--format", "junit", R, R), ("--json", R, R), (D, D), ("{0}", R), (D, R), ("{0} broken", R)],
    "baseline": [("list",), ("list", "--json"), ("show", "{0}"), ("show", "kept"), ("show", "kept", "--json"),
                 ("set", "{0}", R)],
    "timeline": [(S,), ("--json", S), ("-o", "{0} t.html", "--force", S), ("--range", "{0}", S), (J,), (R,),
                 ("{0}.nsys-rep",), ("{0}.qdstrm",), ("{0} lfs",)],
    "ops": [(J,), ("--json", J), ("-o", "{0} o.html", "--force", J), (R,), ("{0} folder",)],
    "advise": [(R,), ("--json", R), (D,), ("--json", D), (S,), ("--json", S), (R, "--timeline", S), (J,)],
    "index": [("{0} folder", "-o", "{0} i.html", "--force", "--workers", "1")],
    "dataset build": [("{0} folder", "-o", "{0} data", "--workers", "1", "--json"),
                      ("{0} folder", "-o", "{0} data", "--workers", "1")],
    "dataset query": [("select * from launches", "-d", "{0} data"), ("select '{0}' as a", "-d", "{0} data"),
                      ("select * from launches", "-d", "{0} data", "--format", "csv"),
                      ("{0}", "-d", "{0} data"),
                      ("select * from launches", "-d", "{0} data", "--json")],
    "profile": [("--dry-run", "{0}.py"), ("--dry-run", "--json", "--", "{0}", "{0}"), ("--resume", D),
                ("--resume", D, "--json"), ("-o", D, "{0}.py"), ("{0}.cu",)],
    "time": [("{0}.py", "-k", "{0}"), ("{0}.py", "--json"), ("{0} missing.py",)],
    "experiment": [("{0}.py", "--baseline", "{0}", "--variant", "{0}"), ("{0} missing.py", "--variant", "b")],
    "probe": [("{0}",), ("gpu", "--json"), ("gpu", "-o", "{0} p.json")],
    "doctor": [("--ncu", "{0}"), ("--json", "--nsys", "{0}"), ("--bundle", "{0}.zip")],
    "mfu": [("{0}",), ("--gpu", "{0}")],
    "catalog": [("{0}",), ("--json",), ()],
    "schema": [("{0}",)],
    "roofline": [("{0}",), ("point", "--flops", "1e9", "--bytes", "1e9", "--gpu", "{0}")],
    "demo": [("-o", "{0} demo")],
}  # fmt: skip
"""Command -> how it is called; {0} is the beginning of a name."""


@pytest.fixture(scope="module", params=FILES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The beginning of every name of a file, and a folder with such files of every kind."""
    warm()
    name, folder = FILES[request.param], tmp_path_factory.mktemp("hostile")

    def path(form: str) -> Path:
        return folder / form.format(name)

    section, rule = (
        Section("SpeedOfLight", NAME, {NAME: "sm__throughput.avg"}),
        Rule("Rule", NAME, "SpeedOfLight"),
    )
    metrics = {
        "gpu__time_duration.sum": 1000.0,
        "dram__bytes.sum": 1e9,
        "device__attribute_display_name": NAME,
    }
    launches = [
        Launch(f"void {NAME}(int)", metrics=metrics, function=NAME, mangled=NAME, ranges=(NAME,),
               sections=(section,), rules=(rule,))
    ] * 2  # fmt: skip
    write_report(path(R), launches, Device(NAME, (8, 6)))
    path("{0} folder").mkdir()
    shutil.copy(path(R), path("{0} folder") / path(R).name)
    hostile.printed(path(C))
    builder = TorchBuilder()
    builder.op(NAME, 0, 500)
    builder.launch(NAME, 10, 20, 100)
    builder.annotation(NAME, 0, 900)
    builder.write(path(J))
    trace = training(3, NAME)
    trace.nvtx(NAME, 0, 3_000_000)
    trace.add("PROCESSES", globalPid=1 << 24, pid=4242, name=NAME)
    trace.rows["TARGET_INFO_GPU"][0]["name"] = NAME
    trace.write(path(S))
    hostile.run_directory(path(D))
    path("{0} broken").mkdir()
    (path("{0} broken") / "run.json").write_bytes(originals.records()[0])
    path("{0}.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report" + bytes(100))
    path("{0}.gz").write_bytes(b"\x1f\x8b" + bytes(100))
    path("{0} lfs").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    path("{0}.qdstrm").write_bytes(bytes(100))
    path("{0}.py").write_text("raise RuntimeError(" + repr(NAME) + ")\n")
    path("{0}.cu").write_text("int main() { return 0; }\n")
    kept = json.loads(originals.baselines()[0])
    (folder / "ncukit-baselines").mkdir()
    text = json.dumps(kept | {"name": "kept"}, ensure_ascii=False)
    for file in ("kept.json", f"{name}.json"):
        (folder / "ncukit-baselines" / file).write_text(
            text.replace("gemm", "gemm\x9b\u202e"), encoding="utf-8"
        )
    table = json.dumps(f"*{NAME}\x00"[:-1])
    (folder / "ncukit.toml").write_text(
        f'[compare]\nbaselines = "ncukit-baselines"\nfail_on = ["dram_bytes > +1%"]\n'
        f'[compare.kernels.{table}]\nfail_on = ["kernel_duration > +1%"]\n',
        encoding="utf-8",
    )
    return name, folder


def called(words: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Return the words of a call; a name that begins with a dash is given as a path, as users do."""
    made = (word.format(name) if "{0}" in word else word for word in words)
    return tuple(f"./{word}" if word.startswith("-rf") else word for word in made)


def commands() -> set[str]:
    """Return the commands that there are, and those below them (of roofline one stands for all)."""
    import typer

    found: Any = typer.main.get_command(application())
    below = {name: getattr(command, "commands", {}) for name, command in found.commands.items()}
    parts = {f"{name} {part}" for name, inner in below.items() if name != "roofline" for part in inner}
    return {name for name, inner in below.items() if not inner or name == "roofline"} | parts


def test_the_walk_knows_every_command() -> None:
    assert set(MEDIA) == commands()


@pytest.mark.parametrize("command", MEDIA)
def test_no_command_lets_a_name_steer_and_every_suggestion_can_be_pasted(
    command: str, place: tuple[str, Path]
) -> None:
    name, folder = place
    if command == "demo" and name != FILES["controls"]:
        pytest.skip("its pages take long, and it names the folder only")
    if command == "dataset query":
        run(called(("dataset", "build", "{0} folder", "-o", "{0} data", "--workers", "1"), name), folder)
    for words in MEDIA[command]:
        ended = run((*command.split(), *called(words, name)), folder)
        assert ended.signal is None, words
        assert "Traceback" not in ended.err, ended.err
        harmless(ended, words)
        pasteable(ended, name, folder)
        if "--json" in words and ended.code == 0:
            json.loads(ended.out)
        if "markdown" in words:
            markdown(ended.out)
    assert not (folder / "PWNED").exists()


def harmless(ended: Ended, words: tuple[str, ...]) -> None:
    for text in (ended.out, ended.err):
        assert not (found := HARMFUL.search(text)), (
            words,
            text[max(0, found.start() - 200) : found.end() + 40],
        )
        assert not (found := ORDER.search(text)), (
            words,
            text[max(0, found.start() - 200) : found.end() + 40],
        )


def pasteable(ended: Ended, name: str, folder: Path) -> None:
    """Whatever a command that is suggested says of a file is the file's path, whole, and no option."""
    files = {str(path.relative_to(folder)) for path in folder.rglob("*")} | {name}
    known = {stem for file in files for stem in (file, Path(file).name)}
    out = ended.out
    if out.startswith("{"):
        out = "\n".join(strings(json.JSONDecoder().raw_decode(out)[0]))
    texts = re.sub(r" \\\n\s*", " ", f"{out}\n{ended.err}").splitlines()
    for text in texts:
        for found in COMMAND.findall(text):
            if (
                "zq7" not in found
                or text.lstrip().startswith(("error:", "#", "warning:"))
                or "record says" in text
            ):
                continue
            for word in shlex.split(found.split(" #")[0]):
                if "zq7" in word:
                    said = word.rstrip(",.;:").removeprefix("./").removeprefix("--include=")
                    assert said in known or said.removeprefix(f"{folder}/") in known, (found, word)
                    assert not word.startswith("-r"), found


def strings(tree: Any) -> list[str]:
    if isinstance(tree, dict):
        return [text for value in tree.values() for text in strings(value)]
    if isinstance(tree, list):
        return [text for value in tree for text in strings(value)]
    return tree.splitlines() if isinstance(tree, str) else []


def markdown(text: str) -> None:
    """Nothing in it is a heading, a link or markup that a name brought."""
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(text)
    inline = [child for token in tokens for child in token.children or []]
    assert not [token for token in inline if token.type in ("link_open", "image")]
    heads = [tokens[n + 1].content for n, token in enumerate(tokens) if token.type == "heading_open"]
    assert not [head for head in heads if head.startswith("Approved")]
    raw = " ".join(t.content for t in (*tokens, *inline) if t.type in ("html_block", "html_inline"))
    assert "h1" not in raw.replace("&lt;h1", "").replace("/h1", "")
    said = "".join(token.content for token in inline if token.type == "text")
    assert not re.search(r"://|#1|@team", said)
