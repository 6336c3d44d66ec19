"""Models of what is done to each row: softmax, normalisation."""

from __future__ import annotations

from typing import Annotated

from ncukit.model.work import WorkModel
from ncukit.roofline.models.dtypes import scalar_precision, size
from ncukit.roofline.models.parameters import Columns, DType, Rows
from ncukit.roofline.models.terms import COLD, EXP, called, checked, floating, widened, work

TWO_PASSES = "the mean first, then the variance of the differences (Welford's recurrence does more)"
PASSES = "a row stays on the chip between its passes"


def softmax(rows: Rows, columns: Columns, dtype: DType = "fp32") -> WorkModel:
    """Return the model of a softmax of each row.

    3 FLOP an element, less one a row: subtract the maximum, sum, divide.  One read and one write an
    element, which needs the row on the chip; otherwise 3 or 4 accesses (Milakov, Gimelshein: Online
    normalizer calculation for softmax, 2018).

    Raises:
        UsageError: a size is not positive, the data type is unknown or an integer.

    >>> rows = softmax(1024, 1000, "fp32")
    >>> rows.flop, rows.bytes
    ({'fp32': 3070976}, 8192000)
    """
    kind = floating(checked(dtype, rows=rows, columns=columns), "a softmax")
    moved = size(kind, rows * columns)
    return WorkModel(
        called(softmax, rows=rows, columns=columns),
        work((scalar_precision(kind), 3 * rows * columns - rows)),
        kind,
        moved,
        moved,
        ("subtract, sum and divide: 3 an element, one less a row",),
        (EXP, *widened(kind), PASSES, COLD),
        exact=False,
    )


def layer_norm(
    rows: Rows,
    columns: Columns,
    dtype: DType = "fp16",
    *,
    affine: Annotated[bool, "multiply by a weight and add a bias (rms: a weight alone), read once"] = True,
    rms: Annotated[bool, "divide by the root mean square, without a mean"] = False,
) -> WorkModel:
    """Return the model of a layer normalisation of each row of d elements.

    5 d + 1 FLOP a row: mean d, differences d, their mean square 2 d, epsilon 1, scaling d; 2 d more with
    weight and bias (Ba, Kiros, Hinton: Layer Normalization, 2016).  ``rms``: 3 d + 1, d more with a weight
    (Zhang, Sennrich: Root Mean Square Layer Normalization, 2019).  One read and one write an element.

    Raises:
        UsageError: a size is not positive, the data type is unknown or an integer.

    >>> norm = layer_norm(4096, 1024, "fp32")
    >>> norm.flop, norm.bytes
    ({'fp32': 29364224}, 33562624)
    """
    kind = floating(checked(dtype, rows=rows, columns=columns), "a normalisation")
    vectors = (1 if rms else 2) * affine
    each = (3 if rms else 5) * columns + 1 + vectors * columns
    moved = size(kind, rows * columns)
    return WorkModel(
        called(layer_norm, rows=rows, columns=columns, affine=affine, rms=rms),
        work((scalar_precision(kind), each * rows)),
        kind,
        moved + size(kind, vectors * columns),
        moved,
        (f"{(3 if rms else 5) + vectors} an element and one a row", *(() if rms else (TWO_PASSES,))),
        (
            "the reciprocal square root is no FLOP",
            *widened(kind),
            PASSES,
            "means and deviations are not written, no residual is added",
            COLD,
        ),
        exact=False,
    )
