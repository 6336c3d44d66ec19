"""Print the grids of the launches that ncu captures between the marks, and of the first after one is skipped.

Five launches of different size: two before cudaProfilerStart, three after it.
"""

import json
import os
import re
import subprocess
import sys

if sys.argv[1:] == ["child"]:
    import torch

    vectors = [torch.ones(n * 4096, device="cuda") for n in range(1, 6)]
    torch.cuda.synchronize()
    for number, vector in enumerate(vectors, 1):
        if number == 3:
            torch.cuda.profiler.start()
        vector.mul_(2)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    raise SystemExit


from ncukit.run.tools.locate import child_environment, find

ERRORS = []


def grids(*options):
    command = [str(find("ncu").path), "--config-file", "off", "--profile-from-start", "off"]
    command += ["--target-processes", "all", "--clock-control", "none"]
    command += ["--metrics", "launch__grid_size", *options, sys.executable, __file__, "child"]
    variables = child_environment(os.environ).variables
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=variables)
    print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    printed = done.stdout.splitlines() + done.stderr.splitlines()
    ERRORS.extend(line for line in printed if line.startswith(("==ERROR==", "==WARNING==")))
    return [int(n.replace(",", "")) for n in re.findall(r"launch__grid_size[^0-9\n]*([0-9,]+)", done.stdout)]


inside = grids()
after = grids("--launch-skip", "1", "--launch-count", "1") if inside else []
print(json.dumps({"inside": inside, "after_one": after, "said": " ".join(ERRORS)[:300]}))
