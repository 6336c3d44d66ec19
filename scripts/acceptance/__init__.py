"""The parts of `scripts/gpu_acceptance.py`: what is run, what is expected, what is written down."""
