"""Synthetic kernels: what a small model of a GPU says about real code, written as reports.

`program` counts what each SASS instruction of a compiled kernel executes, `model` turns that into work for
every unit and into a duration, `counters` into the raw metrics of ncu's ``full`` set, `rules` into sections
and rule results.  `kernels` describes the kernels.  Nothing here was measured.
"""
