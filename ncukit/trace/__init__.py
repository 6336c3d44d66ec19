"""Traces of nsys and of torch's profiler: what they hold, where the time went, what deserves ncu.

In reading order: `nsys` with `nsys_events`, and `torch_events` with `events`, read; `files` opens whatever
lies in a folder of ranks.  `intervals`, `scope` and `activity` are the arithmetic; `causes` splits the time,
`region` names what limits it, `launch_choice` picks the launch for ncu; `operators`, `operator_table`,
`host_functions` and `rank_comparison` do the same for programs of torch.
"""
