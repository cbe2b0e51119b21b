"""Bridges to other libraries of differential privacy."""
