"""The exponential mechanism: target, kernels, envelopes and samplers."""
