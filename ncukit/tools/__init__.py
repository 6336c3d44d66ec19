"""The outside world: ncu, nsys and nvcc are found, probed, run and judged here, and nowhere else.

Only this package imports ``subprocess``.  ``locate`` finds the tools, ``probe`` asks what they can do,
``run`` runs a command so that nothing outlives it, ``failures`` turns output into a stable code; ``ncu``,
``nsys`` and ``nvcc`` build command lines and judge what came of them; ``doctor`` looks at the whole chain.
"""
