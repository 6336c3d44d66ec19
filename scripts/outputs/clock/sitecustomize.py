"""Stop the clock of every Python that has this folder on PYTHONPATH: pages print when they were made."""

import time

NOW = 1_767_225_600.0
"""2026-01-01 00:00 UTC [s]."""
_gmtime, _localtime = time.gmtime, time.localtime
time.gmtime = lambda seconds=None, /: _gmtime(NOW if seconds is None else seconds)
time.localtime = lambda seconds=None, /: _localtime(NOW if seconds is None else seconds)
time.time = lambda: NOW
