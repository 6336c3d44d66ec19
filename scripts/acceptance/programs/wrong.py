"""A workload whose result is not that of its reference."""

import ncukit


@ncukit.workload(n=1024)
def wrong(n):
    data = [float(i) for i in range(n)]
    return ncukit.Case(run=lambda: [x + 1 for x in data], reference=lambda: data)
