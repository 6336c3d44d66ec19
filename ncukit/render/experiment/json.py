"""An experiment as JSON: schema ``ncukit.experiment/1``, in base units; percent is 0 to 100."""

from __future__ import annotations

import math
from typing import Any

from ncukit.media import dumps
from ncukit.model.experiment import ExperimentRecord


def experiment_text(record: ExperimentRecord, *, indent: int | None = None) -> str:
    """Return the JSON of an experiment, on one line unless ``indent`` is given."""
    return dumps(experiment_data(record), indent=indent)


def experiment_data(record: ExperimentRecord) -> dict[str, Any]:
    """Return an experiment as JSON data; an end of an interval without bound is null."""
    data: dict[str, Any] = _finite(record.as_dict())
    return data


def _finite(tree: Any) -> Any:
    if isinstance(tree, float):
        return tree if math.isfinite(tree) else None
    if isinstance(tree, dict):
        return {name: _finite(value) for name, value in tree.items()}
    return [_finite(part) for part in tree] if isinstance(tree, list | tuple) else tree
