"""Bits, coins, rounding, errors, adjacency and the registry of extensions."""
