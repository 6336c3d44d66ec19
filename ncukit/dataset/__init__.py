"""Many reports as one Parquet dataset: one row a launch, partitioned by GPU, brought up to date in steps.

What belongs here: finding the files, reading them in many processes, the columns, the state of a dataset, and
questions to it.  This is the only user of pyarrow and DuckDB.  Not here: reading a report, translating
its counters, judging them, printing.
"""
