"""The commands that meet a folder of a stranger, by what of it they meet."""

from __future__ import annotations

PAGE = ("-o", "page.html", "--force")
GEMM = ("profile", "mine.py", "--kernel", "gemm", "--repeat", "3")
Command = tuple[str, ...]
DATASET: tuple[Command, ...] = (
    ("dataset", "build", "mine.ncu-rep", "-o", "../hostile/ds", "--workers", "1"),
    ("dataset", "query", "../hostile/ds", "select count(*) as n from launches", "--json"),
    ("index", "../hostile/ds", "--workers", "1", *PAGE),
)
RUN: tuple[Command, ...] = (
    ("report", "--run", "../hostile/run", *PAGE),
    ("advise", "../hostile/run", "--json"),
    ("compare", "../hostile/run", "mine.ncu-rep"),
    ("compare", "../hostile/own", "../hostile/own", "--json"),
    ("report", "--run", "../hostile/own", "--force"),
    ("show", "../hostile/run/profile.ncu-rep"),
)
RESUME: tuple[Command, ...] = (
    ("profile", "--resume", "../hostile/own", "--dry-run"),
    ("profile", "--resume", "../hostile/own"),
    ("profile", "--resume", "../hostile/run", "--dry-run"),
    ("profile", "--resume", "../hostile/run", "--json"),
)
COPIED: tuple[Command, ...] = (
    ("profile", "--resume", "../hostile/copied"),
    ("profile", "--resume", "../hostile/copied", "--json"),
    ("profile", "--resume", "../hostile/copied", "--dry-run"),
    ("profile", "--resume", "../hostile/copied", "--", "./own.sh"),
)
SWEEP: tuple[Command, ...] = (
    ("profile", "--resume", "../hostile/sweep"),
    ("profile", "--resume", "../hostile/sweep", "--dry-run"),
    (
        "profile",
        "mine.py",
        "--kernel",
        "gemm",
        "--repeat",
        "3",
        "-p",
        "n=8,16",
        "--resume",
        "../hostile/sweep",
    ),
    ("report", "--run", "../hostile/sweep", *PAGE),
)
EXPERIMENT: tuple[Command, ...] = (
    ("advise", "../hostile/experiment"),
    ("compare", "../hostile/experiment", "mine.ncu-rep", "--json"),
    ("report", "--run", "../hostile/experiment", *PAGE),
    ("index", "../hostile/experiment", "--workers", "1", *PAGE),
    (
        *("experiment", "mine.py", "--baseline", "gemm", "--control", "n=8,16", "-n", "2", "--samples", "2"),
        *("--no-profile", "-o", "../hostile/experiment"),
    ),
)
SCRIPT: tuple[Command, ...] = (
    (*GEMM, "--dry-run"),
    ("time", "mine.py", "--kernel", "gemm", "--repeat", "3"),
    (*GEMM, "-o", "new", "--json"),
)
REST: tuple[Command, ...] = (
    ("index", "../hostile", "--workers", "1", *PAGE),
    ("dataset", "build", "../hostile/reports", "-o", "out", "--workers", "1", "--json"),
    ("ops", "../hostile/trace.json", "--json"),
    ("timeline", "../hostile/x.sqlite", "--json"),
    ("metrics", "../hostile/reports/x.ncu-rep", "--json"),
    ("report", "../hostile/reports/x.ncu-rep", "-o", "../hostile/page/page.html", "--plotlyjs", "directory"),
    ("baseline", "list", "--folder", "../hostile/baselines", "--json"),
    ("baseline", "show", "main", "--folder", "../hostile/baselines"),
    ("baseline", "set", "main", "mine.ncu-rep", "--folder", "../hostile/baselines", "--force"),
)
READ: tuple[Command, ...] = (
    ("show", "mine.ncu-rep"),
    ("report", "mine.ncu-rep", *PAGE),
    ("metrics", "mine.ncu-rep", "--json"),
    ("doctor",),
)
"""Commands that meet nothing of the stranger but the working folder and the caches."""
ALL = (*DATASET, *RUN, *RESUME, *EXPERIMENT, *REST)
