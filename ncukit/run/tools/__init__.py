"""The outside world: ncu, nsys and nvcc are found, probed, run and judged here, and nowhere else.

Only this package imports ``subprocess``. In reading order: `locate` finds the tools, `capabilities` asks
what they can do, `process` runs a command so that nothing outlives it, `failures` turns output into a
stable code, `names` are patterns for kernels; `ncu`, `nsys` and `nvcc` build command lines and judge what
came of them; `gpus` and `cuda` ask for the GPUs; `doctor` looks at the whole chain.
"""
