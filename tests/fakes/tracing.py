"""A stand-in for nsys: checks its arguments with the real one, runs the program, writes a trace.

Its .nsys-rep begins as a real one does, but holds the launches as JSON; its export makes the SQLite file of
them that a real nsys would, tables without rows left out.  A real report goes to the real nsys.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.fakes import options
from tests.fakes.launches import from_environment
from tests.fakes.scenarios import NSYS
from tests.fakes.stage import act, say_version, scenario

MAGIC = b"NVIDIA Tegra Profiler Report 2023@4@4@54-standin\n"
SHORT = {
    "-t": "--trace",
    "-s": "--sample",
    "-o": "--output",
    "-f": "--force-overwrite",
    "-c": "--capture-range",
}
SHORT |= {"-h": "--help", "-p": "--nvtx-capture"}


def main(argv: list[str]) -> int:
    if argv[:1] == ["--version"]:
        return say_version("NVIDIA Nsight Systems version {}-standin", "2023.4.4.54")
    if argv[:1] not in (["profile"], ["export"]):
        return refer(argv)
    command, *rest = argv
    if "--help" in rest or "-h" in rest:
        print(f"\nusage: nsys {command} [<args>]\n")
        print("\n".join(f"\t{name}=\n" for name in options.nsys(command)))
        return 0
    given, rest = split(rest)
    for name, _ in given:
        if name not in options.nsys(command):
            print(f"unrecognised option '{name}'\n\nusage: nsys {command} [<args>]", file=sys.stderr)
            return 1
    return profile(argv, dict(given), rest) if command == "profile" else export(argv, dict(given), rest)


def split(argv: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the options as (long name, value), and the rest."""
    given, at = [], 0
    while at < len(argv) and argv[at].startswith("-"):
        name, equals, value = argv[at].partition("=")
        at += 1
        if not equals and not name.startswith("--"):
            value, at = argv[at], at + 1
        given.append((SHORT.get(name, name), value))
    return given, argv[at:]


def refer(argv: list[str]) -> int:
    """Let the real nsys do it."""
    if real := os.environ.get("NCUKIT_FAKE_REAL_NSYS"):
        os.execv(real, [real, *argv])
    print("the stand-in has no real nsys to ask (NCUKIT_FAKE_REAL_NSYS)", file=sys.stderr)
    return 1


def profile(argv: list[str], opt: dict[str, str], program: list[str]) -> int:
    real = os.environ.get("NCUKIT_FAKE_REAL_NSYS")
    if real and "NCUKIT_FAKE_VERSION" not in os.environ:
        checked = [real, *argv[: len(argv) - len(program)], "/nonexistent/program"]
        # A stand-in for libcuda is not enough for the real one.
        env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        import subprocess  # late: most calls are questions

        done = subprocess.run(checked, capture_output=True, text=True, check=False, env=env)
        if "Executable not found" not in done.stderr:  # which is all that is wrong with good options
            sys.stdout.write(done.stdout)
            sys.stderr.write(done.stderr)
            return done.returncode
    path = report_path(opt)
    _, played = scenario(NSYS, "NCUKIT_FAKE_NSYS")
    if played and played.before:
        return act(played)
    import subprocess  # late: most calls are questions

    app = subprocess.Popen(program)
    signal.signal(signal.SIGTERM, lambda *_: (app.kill(), os._exit(143)))
    if played and played.hangs:
        while True:
            time.sleep(3600)
    if played and played.killed:
        app.kill()
    code = app.wait()
    code = played.rc if played and played.rc is not None else 128 - code if code < 0 else code
    for line in played.app if played else ():
        print(line)
    for line in played.stderr if played else ():
        print(line.format(output=path), file=sys.stderr)
    launches = [launch for launch in from_environment() if inside(launch, opt)]
    if played and played.report == "empty":
        launches = []
    marked = opt.get("--capture-range", "none") != "none"
    print("Generating '/tmp/nsys-report-1a2b.qdstrm'")
    if (played and played.report in ("none", "silent")) or (marked and not launches and not played):
        print("Generated:")
        return code
    if path.exists() and opt.get("--force-overwrite") != "true":
        print(f"Failed to create '{path}': File exists.", file=sys.stderr)
        path = Path(os.environ.get("TMPDIR", "/tmp")) / f"nsys-report-{os.getpid():x}.nsys-rep"
    device = json.loads(os.environ.get("NCUKIT_FAKE_DEVICE", "{}"))
    body = json.dumps({"launches": [asdict(launch) for launch in launches], "pid": app.pid, "device": device})
    path.write_bytes(MAGIC[:5] if played and played.report == "cut" else MAGIC + body.encode())
    print(f"Generated:\n    {path}")
    return code


def inside(launch: Any, opt: dict[str, str]) -> bool:
    capture = opt.get("--capture-range", "none")
    if capture == "cudaProfilerApi":
        return bool(launch.profiler)
    return capture == "none" or opt["--nvtx-capture"].split("@")[0] in (*launch.ranges, *launch.push_pop)


def export(argv: list[str], opt: dict[str, str], rest: list[str]) -> int:
    report = Path(rest[0])
    if not report.is_file() or not report.read_bytes().startswith(MAGIC):
        return refer(argv)
    target = Path(opt["--output"])
    if target.exists() and opt.get("--force-overwrite") != "true":
        print(f"Exportation error: File already exists: '{target}'.", file=sys.stderr)
        return 1
    target.unlink(missing_ok=True)
    trace(json.loads(report.read_bytes()[len(MAGIC) :]), target)
    return 0


def trace(data: dict[str, Any], target: Path) -> None:
    """Write the launches one after the other, each with its call, and the ranges around them."""
    from tests.nsys_builder import LAUNCH, Builder

    builder, pid, now = Builder(gpus=(0,) if data["launches"] else ()), data["pid"], 1_000_000
    for row in builder.rows.get("TARGET_INFO_GPU", ()):
        row["name"] = data["device"].get("name", row["name"])
        row["computeMajor"], row["computeMinor"] = data["device"].get("cc", (9, 0))
    builder.add("PROCESSES", globalPid=1 << 48 | pid << 24, pid=pid, name="program")
    opened: dict[tuple[str, int], list[int]] = {}
    for launch in data["launches"]:
        now += launch["gap"]
        end = now + launch["duration"]
        builder.kernel(
            launch["name"],
            now,
            end,
            call=(LAUNCH, now - 1500, now - 500),
            grid=tuple(launch["grid"]),
            block=tuple(launch["block"]),
            short=launch["function"],
            registers=launch["registers"],
            shared=(0, launch["shared"]),
            stream=launch["stream"],
            pid=pid,
        )
        for name, kind in [(n, 60) for n in launch["ranges"]] + [(n, 59) for n in launch["push_pop"]]:
            opened.setdefault((name, kind), [now - 1600, end])[1] = end + 500
        now = end
    for (name, kind), (start, end) in opened.items():
        builder.nvtx(name, start, end, type=kind, pid=pid)
    builder.write(target)


def report_path(opt: dict[str, str]) -> Path:
    """Return the file that --output means: macros expanded, suffix added."""
    values = {"%": "%", "p": str(os.getpid()), "h": os.uname().nodename}
    text = re.sub(r"%q\{(\w+)\}", lambda m: os.environ.get(m[1], ""), opt.get("--output", "report1"))
    text = re.sub(r"%([%ph])", lambda m: values[m[1]], text)
    return Path(text if text.endswith(".nsys-rep") else text + ".nsys-rep").absolute()
