"""Print the time of one launch of ``gemm_NAME.cu`` as JSON, from two runs of different length.

python products.py FOLDER ARCH NAME      compiles FOLDER/gemm_NAME.cu once, into the current folder
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from ncukit.run.tools.locate import find

SIZE, FEW, MANY = 2048, 10, 310  # the difference is most of a second, and jitter of a start a few hundredths


def seconds(program, repetitions):
    began = time.perf_counter()
    subprocess.run([program, str(SIZE), str(repetitions)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


folder, arch, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
program = Path(f"product-{name}-{arch}").absolute()
if not program.exists():
    made, source = program.with_suffix(".part"), folder / f"gemm_{name}.cu"
    nvcc = str(find("nvcc").path)
    subprocess.run([nvcc, "-O3", f"-arch={arch}", "-o", str(made), str(source)], check=True)
    made.replace(program)
few, many = seconds(program, FEW), seconds(program, MANY)
print(json.dumps({"seconds_per_launch": (many - few) / (MANY - FEW)}))
