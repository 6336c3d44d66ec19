"""Read what the tools wrote: reports, their CSV text, traces. Nothing is interpreted here.

`native` is the only user of ``ncu_report``; everything leaves as `RawKernel`.
"""
