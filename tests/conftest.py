"""Settings of every test run."""

from __future__ import annotations

from hypothesis import settings

# The same examples every time: a test that fails, fails again.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
