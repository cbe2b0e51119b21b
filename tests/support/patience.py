"""How long a test waits for what hangs. Nothing is asserted about speed."""

PATIENCE = 900.0
"""Seconds, hundreds of times what anything takes that is waited for."""
