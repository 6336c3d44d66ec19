"""The neutral metrics: what each means, which raw counters feed it, and how a launch is translated.

In reading order: `catalog` loads the data (one JSON file a family under ``data/``), `expression` and
`evaluation` compute, `normalise` makes a `Kernel` of a `RawKernel`.  Not here: reading reports, rules.
"""

from ncukit.metrics.catalog import Catalog, Metric, Source, load

__all__ = ["Catalog", "Metric", "Source", "load"]
