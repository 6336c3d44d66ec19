"""The options that the stand-ins take, by the version that they claim to be."""

from __future__ import annotations

import os
import re

_NCU = """
--help --version --mode --config-file --config-file-path --check-exit-code --nvtx --target-processes
--target-processes-filter --null-stdin --kill --replay-mode --app-replay-buffer --app-replay-match
--app-replay-mode --graph-profiling --range-replay-options --list-sets --set --list-sections --section-folder
--section --metrics --list-rules --apply-rules --rule --import-source --source-folders --list-metrics
--query-metrics --query-metrics-mode --list-chips --chips --profile-from-start --disable-profiler-start-stop
--quiet --verbose --cache-control --clock-control --devices --filter-mode --kernel-id --kernel-name
--kernel-name-base --launch-count --launch-skip --launch-skip-before-match --disable-extra-suffixes
--nvtx-include --nvtx-exclude --range-filter --pm-sampling-interval --warp-sampling-interval --log-file
--export --force-overwrite --import --csv --page --print-units --call-stack
"""

_NSYS = """
--help --backtrace --capture-range --capture-range-end --cpuctxsw --cuda-flush-interval --cuda-graph-trace
--cuda-memory-usage --cudabacktrace --delay --duration --env-var --export --force-overwrite
--gpu-metrics-device --kill --nvtx-capture --output --sample --show-output --stats --stop-on-exit --trace
--trace-fork-before-exec --wait
"""

_NSYS_EXPORT = "--append --force-overwrite --help --lazy --output --quiet --tables --times --type"

# Option -> the first version that has it; an option named nowhere here is in all of them.
_SINCE = {
    "--config-file": (2023, 1),
    "--config-file-path": (2023, 1),
    "--source-folders": (2023, 1),
    "--range-filter": (2023, 1),
    "--graph-profiling": (2022, 4),
    "--verbose": (2023, 1),
    "--pm-sampling-interval": (2023, 3),
    "--warp-sampling-interval": (2023, 1),
    "--pipeline-boost-state": (2025, 1),
    "--rename-kernels": (2025, 1),
    "--cuda-event-trace": (2025, 1),
}


def ncu() -> list[str]:
    """Return the options of the ncu that is played."""
    return _of(f"{_NCU} --pipeline-boost-state --rename-kernels", (2024, 1))


def nsys(command: str) -> list[str]:
    """Return the options of ``nsys profile`` or ``nsys export`` of the nsys that is played."""
    return _of(f"{_NSYS} --cuda-event-trace" if command == "profile" else _NSYS_EXPORT, (2023, 4))


def _of(text: str, default: tuple[int, int]) -> list[str]:
    given = os.environ.get("NCUKIT_FAKE_VERSION")
    version = tuple(int(n) for n in given.split(".")[:2]) if given else default
    return [name for name in re.findall(r"--[\w-]+", text) if _SINCE.get(name, (0, 0)) <= version]
