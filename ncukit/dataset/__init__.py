"""Many reports as one Parquet dataset: one row a launch, partitioned by GPU, brought up to date in steps.

In reading order: `rows` (the columns), `parts` (the files), `inputs` (what is meant, and what is known of
it), `build` (who reads what), `survey` (questions to it).  This is the only user of pyarrow and DuckDB.  Not
here: reading a report, translating its counters, judging them, printing.
"""
