"""Parameters that several models take, with the words that the command line and the documents show."""

from __future__ import annotations

from typing import Annotated

DType = Annotated[str, "data type: fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 and so on, or torch's name"]
Batch = Annotated[int, "independent problems"]
Heads = Annotated[int, "query heads"]
Queries = Annotated[int, "query positions"]
Keys = Annotated[int, "key positions"]
HeadDim = Annotated[int, "elements of one head's vector"]
Rows = Annotated[int, "rows, each on its own"]
Columns = Annotated[int, "elements of a row"]
ExactSums = Annotated[
    bool, "count 2k - 1 operations a sum of k products, not 2k (a sum that starts from zero)"
]
