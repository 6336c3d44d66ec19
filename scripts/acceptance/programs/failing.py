"""A workload that ends in an exception."""

import ncukit


@ncukit.workload()
def failing():
    def run():
        raise RuntimeError("this workload fails on purpose")

    return ncukit.Case(run=run)
