"""Benchmarks; `python -m benchmarks` runs them and writes benchmarks/results."""
