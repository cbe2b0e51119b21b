"""The list of deliberate breakages is in step with the source, so that it cannot rot."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from mutants.table import SOURCE, TESTS, Mutant, mutate, read_all

MUTANTS = read_all()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.number}-{one.file}")
def test_a_mutant_breaks_one_line_that_is_there(mutant: Mutant) -> None:
    text = (SOURCE / mutant.file).read_text()
    broken = mutate(text, mutant)
    assert broken != text
    ast.parse(broken)
    assert mutant.breaks
    assert mutant.tests
    for test in mutant.tests:
        assert (TESTS / test.partition("::")[0]).is_file(), test


def test_there_are_enough_of_them_and_each_is_listed_once() -> None:
    assert len(MUTANTS) >= 150
    lines = Counter((mutant.file, mutant.old, mutant.new) for mutant in MUTANTS)
    assert max(lines.values()) == 1
