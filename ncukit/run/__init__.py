"""Plan a run (pure: options to command lines), then carry it out step by step into a run directory.

In reading order: `options` says what a user can ask for, `target` what is measured and whether it is still
the same, `directory` keeps files whole and sealed, `session` runs tools and traces, `measure` times,
`capture` measures one launch with ncu and proves that it is the chosen one, `plan` puts the steps together,
goes on with a run or only shows it; `sweep`, `bench`, `experiment_workloads` and `probes` build on these.
Nothing here concludes or draws: the launch is chosen by a function that the caller gives.
"""
