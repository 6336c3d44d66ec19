"""Where a launch lies on the roofline: ceilings, points, consistency checks, analytic models.

Plain arithmetic, no drawing.
"""

from ncukit.roofline.place import LEVELS, PRECISIONS, aggregate, attainable, check, place

__all__ = ["LEVELS", "PRECISIONS", "aggregate", "attainable", "check", "place"]
