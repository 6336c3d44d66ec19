"""Instructions: too many, of a costly kind, or work that another unit would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncukit.judge.remedies.candidate import Candidate
from ncukit.judge.remedies.launch import Launch

BUSY_ISSUE = 0.65
"""Share of issue slots from which the number of instructions counts."""
FULL_PIPE = 0.6
UNPACKING = ("F2FP", "PRMT", "HMUL2", "HADD2", "I2F", "I2FP", "F2F")


def instructions(launch: Launch) -> Iterator[Candidate]:
    """Yield fewer instructions, by what they are: addresses, decoding and generators, or just many."""
    issue, integer = launch.issue or 0.0, launch.unit("int")
    busy = max(issue, integer)
    if busy < FULL_PIPE or launch.unit("fp32") >= 0.75 or launch.unit("tensor") >= 0.85:
        return
    if issue < BUSY_ISSUE and integer < BUSY_ISSUE and launch.unit("tensor") < 0.5:
        return
    if launch.unit("lsu") >= issue and launch.unit("lsu") >= integer:
        return
    next_unit = max(
        launch.fullness(id) for id in ("dram", "l2", "fp64", "fp32", "fp16", "tensor", "lsu", "xu")
    )
    if _addresses(launch):
        yield Candidate("fewer-integer", 0.3, max(next_unit, 0.3), 1, "inst_executed", 0.85)
    elif issue >= BUSY_ISSUE:
        yield Candidate("fewer-instructions", 0.28, max(next_unit, 0.7), 1, "inst_executed", 0.85)
    elif integer >= BUSY_ISSUE:
        yield Candidate("fewer-integer", 0.3, max(next_unit, 0.3), 1, "pipe_alu_pct", 0.85)


def _addresses(launch: Launch) -> bool:
    """Return whether the integer instructions are addresses: IMAD, no logic of a generator or a decoder."""
    integer = launch.value("inst_mix_integer_pct") / 100
    multiply = launch.executed("IMAD", "IADD3", "IADD", "LEA", "SHF", "ISETP")
    logic = launch.executed("LOP3", *UNPACKING, "PLOP3")
    if launch.rows and (multiply or logic):
        return multiply > 0.2 and logic < 0.5 * multiply and launch.executed("F2FP", "HMUL2") < 0.2
    heavy = launch.value("fma_pipe_integer_pct") / 100
    return launch.unit("int") >= 0.75 or (heavy >= 0.3 and integer >= 0.3)


def full_pipe(launch: Launch) -> Iterator[Candidate]:
    """Yield fewer or cheaper operations where an arithmetic pipe is full."""
    if launch.unit("tensor") >= 0.9:
        yield Candidate(
            "lower-precision", 0.5, max(launch.unit("dram"), launch.unit("l2")), 2, "pipe_tensor_pct", 0.8
        )
    elif launch.unit("xu") >= 0.8:
        yield Candidate("cheaper-math", 0.5, launch.issue or 0.0, 1, "pipe_xu_pct", 0.7)
    elif launch.unit("fp64") >= 0.8:
        yield Candidate("lower-precision", 0.5, launch.issue or 0.0, 2, "pipe_fp64_pct", 0.6)
    elif launch.unit("fp32") >= 0.8:
        matrix = launch.executed("FFMA") > 0.5
        yield Candidate(
            "use-tensor-cores" if matrix else "fewer-flops", 0.5, launch.unit("dram"), 2, "pipe_fma_pct", 0.7
        )


RELIEF: Mapping[str, str] = {
    "dram": "reduce-bytes",
    "shared": "register-tile",
    "lsu": "register-tile",
    "tensor": "lower-precision",
    "fp32": "fewer-flops",
    "fp64": "lower-precision",
    "fp16": "use-tensor-cores",
    "int": "fewer-integer",
    "xu": "cheaper-math",
    "issue": "fewer-instructions",
}
"""What takes work from a full unit, where nothing else is known of its work."""


def full_unit(launch: Launch) -> Iterator[Candidate]:
    """Yield less work for the unit that is full, bounded by the next one."""
    ranked = launch.facts.shares.ranked()
    if not (ranked and ranked[0].full):
        return
    unit = ranked[0].unit.id
    left = max((share.percent / share.unit.reach for share in ranked[1:]), default=0.0)
    stored = launch.value("l2_input_pct") > 1.5 * launch.value("l2_return_pct", 100.0)
    if unit == "l2" and stored:
        yield Candidate("pack-stores", 0.3, left, 2)
    elif unit in RELIEF:
        yield Candidate(RELIEF[unit], 0.3, left, 2)


def divergence(launch: Launch) -> Iterator[Candidate]:
    """Yield regrouped work where a warp runs few of its threads and issue slots are what is used."""
    threads = launch.number("active_threads_per_warp")
    if threads is not None and threads < 16 and (launch.issue or 0) >= BUSY_ISSUE:
        yield Candidate("less-divergence", 1 - threads / 32, launch.unit("dram"), 1, "inst_executed", 0.8)
