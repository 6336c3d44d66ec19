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


def grids(*options):
    command = [os.environ.get("NCUKIT_NCU") or "ncu", "--profile-from-start", "off"]
    command += ["--clock-control", "none"]
    command += ["--metrics", "launch__grid_size", *options, sys.executable, __file__, "child"]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return [int(n.replace(",", "")) for n in re.findall(r"launch__grid_size[^0-9\n]*([0-9,]+)", done.stdout)]


inside = grids()
print(json.dumps({"inside": inside, "after_one": grids("--launch-skip", "1", "--launch-count", "1")}))
