"""The neutral metrics as data (one JSON file a family under ``data/``), their loader and evaluator.

What belongs here: what a metric means and which raw counters feed it.  Not here: reading reports, rules.
"""

from ncukit.catalog.load import Catalog, Metric, Source, load

__all__ = ["Catalog", "Metric", "Source", "load"]
