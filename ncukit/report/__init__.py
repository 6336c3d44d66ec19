"""Reports as they are: ``.ncu-rep`` and what ncu prints. Nothing is interpreted here.

In reading order: `container` says what kind of file it is and whether it is whole, `blocks` walks it, `wire`
reads it in a child process, `native` is the only user of ``ncu_report``, `source_code` takes SASS and source
lines out of it, `printed` reads what ncu prints (its tables: `csv_tables`), `reader` gives one `RawKernel` a
launch.
"""
