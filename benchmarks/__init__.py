"""`python -m benchmarks` runs them and writes benchmarks/results; each has one thread unless told."""

import os

# before NumPy is imported, which asks once: threads that wait for each other count as work
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
