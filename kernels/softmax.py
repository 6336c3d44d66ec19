"""Softmax of each row of a matrix through torch, with rows that fit into registers.

Shows: three passes over a row that reach DRAM once: the exponentials hide behind the bytes.
Parameters: rows, columns [elements]; up to 1024 columns a row stays in the registers of a warp.
Model: softmax(rows, columns, fp16), 3 FLOP an element less one a row; one read, one write.
"""

import torch

import ncukit

EXPECT = {
    "gpu_kernel": "softmax",
    "verdict": ["memory-bound:dram"],
    "findings": ["busiest-unit"],
    "counted": {"flop": None},  # exponentials and divisions are sequences of multiply-adds
}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@ncukit.workload(rows=131072, columns=1024)
def softmax(rows, columns):
    torch.manual_seed(0)
    scores = torch.randn(rows, columns, device=DEVICE, dtype=torch.float16)
    return ncukit.Case(
        run=lambda: torch.softmax(scores, dim=1),
        reference=lambda: torch.softmax(scores.double(), dim=1),
        model=ncukit.models.softmax(rows, columns, "fp16"),
    )
