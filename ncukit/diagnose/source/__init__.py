"""What each instruction and source line cost, and who waits for whom: `source_view`; the hottest: `hot`.

`ncukit.model.source` says how to read the result.  Not here: rules about it (``rules/lines.py``).
"""

from ncukit.diagnose.source.hot import hot
from ncukit.diagnose.source.view import source_view

__all__ = ["hot", "source_view"]
