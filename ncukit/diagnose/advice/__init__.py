"""Which layer to look at next, and when to stop: a pure function of what is known of a run.

From above: framework operation -> CPU/GPU timeline -> one kernel -> source line.  Going down pays only while
the layer above says that the time is there (Amdahl, AFIPS 1967), and ends where a kernel reached its ceiling.
"""

from __future__ import annotations

from ncukit.diagnose.advice.bounds import amdahl
from ncukit.diagnose.advice.known import Known
from ncukit.diagnose.advice.steps import STEPS
from ncukit.model.advice import Advice

__all__ = ["Known", "advise", "amdahl"]


def advise(known: Known) -> Advice:
    """Return where to look next; the first step that applies decides.

    >>> advise(Known()).id
    'start'
    """
    return next(advice for step in STEPS for advice in step(known))
