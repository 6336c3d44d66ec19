"""Print the time of one launch of ``gemm_NAME.cu`` as JSON, from two runs of different length.

python products.py FOLDER NAME      compiles FOLDER/gemm_NAME.cu once, into a folder of its own
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZE, FEW, MANY = 2048, 10, 110


def seconds(program, repetitions):
    began = time.perf_counter()
    subprocess.run([program, str(SIZE), str(repetitions)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


folder, name = Path(sys.argv[1]), sys.argv[2]
program = Path(tempfile.gettempdir()) / f"ncukit-product-{os.getuid()}-{name}"
if not program.exists():
    nvcc = os.environ.get("NCUKIT_NVCC") or "nvcc"
    made = program.with_suffix(f".{os.getpid()}")
    source = folder / f"gemm_{name}.cu"
    subprocess.run([nvcc, "-O3", "-arch=native", "-o", str(made), str(source)], check=True)
    made.replace(program)
few, many = seconds(program, FEW), seconds(program, MANY)
print(json.dumps({"seconds_per_launch": (many - few) / (MANY - FEW)}))
