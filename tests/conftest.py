"""Settings of every test run."""

from __future__ import annotations

import pytest
from hypothesis import settings

# The same examples every time: a test that fails, fails again.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def _own_register(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep which data sets have a budget apart from the user's register."""
    monkeypatch.setenv("EXPMECH_STATE", str(tmp_path_factory.getbasetemp() / "register"))
