"""Run both sides of an experiment: correctness first, then fresh processes in the order A B, B A, A B, ...

No profiler is near.  What belongs to a process but not to the measured region (import, making the case,
warming up) is timed apart.  ``workloads`` are sides in a Python file, ``commands`` whole programs.
"""
