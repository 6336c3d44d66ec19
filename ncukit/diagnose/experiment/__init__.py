"""What an experiment shows: statistics of pairs of repetitions, and the conclusion they allow.

Pure: numbers in, words and numbers out.  Nothing here runs, reads or prints.
"""

from ncukit.diagnose.experiment.conclusion import conclude
from ncukit.diagnose.experiment.effect import effect, spread

__all__ = ["conclude", "effect", "spread"]
