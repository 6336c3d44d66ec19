"""A stand-in for ncu: checks its arguments with the real one, runs the program, writes a real report."""

from __future__ import annotations

import json
import os
import re
import signal
import site
import sys
import time
from pathlib import Path
from typing import Any

from tests.fakes import options
from tests.fakes.launches import Filters, Work, from_environment
from tests.fakes.scenarios import NCU, Scenario
from tests.fakes.stage import act, say_version, scenario

NO_VALUE = {"--nvtx", "--quiet", "--verbose", "--csv", "--print-fp", "--print-rule-details", "--call-stack"}
NO_VALUE |= {"--null-stdin", "--force-overwrite", "--disable-profiler-start-stop", "--disable-extra-suffixes"}
SHORT = {"-k": "--kernel-name", "-c": "--launch-count", "-s": "--launch-skip", "-o": "--export"}
SHORT |= {"-i": "--import", "-f": "--force-overwrite", "-h": "--help", "-v": "--version"}
VERSION = "NVIDIA (R) Nsight Compute Command Line Profiler\nVersion {} (public-release)"
QUESTIONS = {"--import", "--list-sets", "--list-sections", "--list-rules", "--list-metrics", "--list-chips"}
QUESTIONS |= {"--query-metrics", "--query-metrics-mode"}


def main(argv: list[str]) -> int:
    given, program = split(argv)
    names = {name for name, _ in given}
    if "--version" in names:
        return say_version(VERSION, "2024.1.1.0")
    if "--help" in names:
        print("usage: ncu [options] [program] [program-arguments]\n")
        print("\n".join(f"  {name} arg" for name in options.ncu()))
        return 0
    real = os.environ.get("NCUKIT_FAKE_REAL_NCU")
    if names & QUESTIONS:
        if real is None:
            print("==ERROR== the stand-in has no real ncu to ask (NCUKIT_FAKE_REAL_NCU)")
            return 1
        os.execv(real, [real, *argv])
    if (refused := check(argv[: len(argv) - len(program)], given, real)) is not None:
        return refused
    return profile(given, program)


def split(argv: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the options as (long name, value), and the program with its arguments."""
    given, at = [], 0
    while at < len(argv) and argv[at].startswith("-"):
        name, equals, value = argv[at].partition("=")
        name = SHORT.get(name, name)
        at += 1
        alone = name in NO_VALUE or name in ("--help", "--version", "--query-metrics") or "--list-" in name
        if not equals and not alone and at < len(argv):
            value, at = argv[at], at + 1
        given.append((name, value))
    return given, argv[at:]


def check(arguments: list[str], given: list[tuple[str, str]], real: str | None) -> int | None:
    """Return the exit code for bad options, having said what the real tool says; None for good ones."""
    known = options.ncu()
    for name, _ in given:
        if name not in known:
            print(f"==ERROR== unrecognised option '{name}'. Use --help for further details.")
            return 1
    if real and "NCUKIT_FAKE_VERSION" not in os.environ:
        libcuda = Path(real).parents[1] / "libcuda"
        import subprocess  # late: most calls are questions

        done = subprocess.run(
            [real, *arguments, "/bin/true"],
            capture_output=True,
            text=True,
            env={**os.environ, "LD_LIBRARY_PATH": str(libcuda)},
            check=False,
        )
        if done.returncode:
            sys.stdout.write(done.stdout)
            sys.stderr.write(done.stderr)
            return done.returncode
    path, force = report_path(dict(given)), "--force-overwrite" in dict(given)
    if path and path.exists() and not force:
        print(f"==ERROR== {path.name} already exists. Use '-f' for overwriting the file.")
        return 1
    if path and force:
        path.unlink(missing_ok=True)  # at the start, whatever comes of the run
    return None


def profile(given: list[tuple[str, str]], program: list[str]) -> int:
    opt = dict(given)
    clocks_locked = opt.get("--clock-control", "base") == "base"
    name, played = scenario(NCU, "NCUKIT_FAKE_NCU")
    if name == "mig-clocks" and not clocks_locked:
        played = None
    path = report_path(opt)
    if played and (played.before or played.stderr):
        return act(played, output=str(path))
    import subprocess  # late: most calls are questions

    app = subprocess.Popen(program)
    signal.signal(signal.SIGTERM, lambda *_: stop(app))
    signal.signal(signal.SIGINT, lambda *_: stop(app))
    if played is None or played.connected:
        import shutil

        path_of_app = os.path.realpath(shutil.which(program[0]) or program[0])
        say(f"==PROF== Connected to process {app.pid} ({path_of_app})")
    if played and played.hangs:
        launches = from_environment()
        print_lines(played, launches, opt, app.pid, path)
        while True:
            time.sleep(3600)
    code = app.wait() if not (played and played.killed) else (app.kill(), app.wait(), played.rc)[2]
    code = -code if code < 0 else code
    launches = from_environment()
    if played:
        print_lines(played, launches, opt, app.pid, path)
    picked = [] if played and played.report == "none" else pick(launches, given, opt)
    if played is None:
        for n, launch in enumerate(picked):
            whole = opt.get("--launch-count") or len(picked)
            passes = os.environ.get("NCUKIT_FAKE_PASSES", "8")
            sys.stdout.write(f'==PROF== Profiling "{launch.function}" - {n} ({n + 1}/{whole}): 0%')
            sys.stdout.flush()
            say(f"....50%....100% - {passes} passes")
    if played is None or (played.connected and not played.killed):
        say(f"==PROF== Disconnected from process {app.pid}")
    if played and played.killed and played.connected:
        say("==PROF== Trying to shutdown target application")
    if code and not (played and played.rc == 1 and played.connected):
        say(f"==ERROR== The application returned an error code ({code}).")
    wrote = bool(picked) and path is not None and write(path, picked, played, app.pid, program)
    if not wrote and not (played and played.report in ("silent", "cut")):
        say("==WARNING== No kernels were profiled.")
    elif path is not None and played is None:
        say(f"==PROF== Report: {path}")
    return played.rc if played and played.rc is not None else code


def print_lines(
    played: Scenario, launches: list[Work], opt: dict[str, str], pid: int, path: Path | None
) -> None:
    words = {
        "name": launches[0].function if launches else "k",
        "pid": pid,
        "metric": opt.get("--metrics", "foo.sum"),
        "output": path,
    }
    for line in (*played.app, *played.lines):
        say(line.format_map(words))


def pick(launches: list[Work], given: list[tuple[str, str]], opt: dict[str, str]) -> list[Work]:
    if wanted := os.environ.get("NCUKIT_FAKE_CAPTURE"):
        return [launch for launch in launches if launch.function == wanted][:1]
    filters = Filters(
        name=opt.get("--kernel-name"),
        base=opt.get("--kernel-name-base", "function"),
        skip=int(opt.get("--launch-skip", 0)),
        count=int(opt["--launch-count"]) if "--launch-count" in opt else None,
        includes=tuple(value for name, value in given if name == "--nvtx-include"),
        from_start=opt.get("--profile-from-start", "on") in ("on", "yes", "1", "true"),
    )
    return filters.pick(launches, skip_counts=os.environ.get("NCUKIT_FAKE_SKIP", "marked"))


def write(path: Path, picked: list[Work], played: Scenario | None, pid: int, program: list[str]) -> bool:
    site.main()  # protobuf; not needed before, so that the stand-in starts quickly
    from tests.ncurep import Device, Launch, Session, report_bytes

    device = json.loads(os.environ.get("NCUKIT_FAKE_DEVICE", "{}"))
    device |= {"cc": tuple(device["cc"])} if "cc" in device else {}
    launches = [
        Launch(
            demangled=work.name,
            grid=work.grid,
            block=work.block,
            mangled=work.mangled,
            function=work.function,
            stream=work.stream,
            ranges=work.push_pop,
            metrics={
                "gpu__time_duration.sum": float(work.duration),
                "launch__registers_per_thread": float(work.registers),
                "launch__shared_mem_per_block_dynamic": float(work.shared),
                **work.metrics,
            },
        )
        for work in picked
    ]
    session = Session(pid=pid, app=Path(program[0]).name, cmdline=" ".join(sys.argv))
    data = report_bytes(launches, Device(**device), session)
    if played and played.report == "cut":
        data = data[:3]
    if not (played and played.report == "silent"):
        path.write_bytes(data)
    return True


def report_path(opt: dict[str, str]) -> Path | None:
    """Return the file that -o means: macros expanded, suffix added."""
    if (given := opt.get("--export")) is None:
        return None
    values = {"%": "%", "p": str(os.getpid()), "h": os.uname().nodename}
    text = re.sub(r"%q\{(\w+)\}", lambda m: os.environ.get(m[1], ""), given)
    text = re.sub(r"%([%ph])", lambda m: values[m[1]], text)
    return Path(text if text.endswith(".ncu-rep") else text + ".ncu-rep").absolute()


def stop(app: Any) -> None:
    say("==PROF== Trying to shutdown target application")
    app.kill()
    say("==ERROR== The application returned an error code (9).")
    os._exit(9)


def say(line: str) -> None:
    print(line, flush=True)
