"""No value changes how another is read: lists, NumPy, pandas and Polars."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from support.reading import CANDIDATES, ODD_VALUES, changed

from expmech.tables.keys import canonical_key, tally_values
from expmech.tables.reading import read_column, read_numbers

ORDINARY: list[list[Any]] = [
    [1.5, 2, None, 7, float("inf")],
    ["north", "7", " 7.0", "", "2020-01-01", "0.1"],
    [True, False, None],
    [np.datetime64("2020-01-01"), np.datetime64("2020-01-02", "ns"), np.datetime64("NaT")],
    [pandas.Timestamp("2020-01-01"), pandas.NaT, pandas.Timestamp("2021-05-05 01:02:03.000000004")],
    [np.float32(0.1), np.float32(7), np.float32("nan")],
]


def numpy_objects(values: list[Any]) -> Any:
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value
    return column


CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda values: values,
    "NumPy": numpy_objects,
    "pandas": lambda values: pandas.Series(values),
    "pandas objects": lambda values: pandas.Series(numpy_objects(values)),
    "Polars": lambda values: polars.Series(values, dtype=polars.Object),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_value_of_any_type_leaves_all_other_values_as_they_were(container: str) -> None:
    generator, build = random.Random(17), CONTAINERS[container]
    for base in ORDINARY:
        candidates = [*CANDIDATES, np.float32(0.1), 0.1, "2021-05-05 01:02:03.000000004"]
        counts, numbers = tally_values(build(base), candidates), read_column(build(base))
        for value in ODD_VALUES:
            place = generator.randrange(len(base) + 1)
            try:
                column = build(changed(base, place, value, "add"))
            except Exception:
                continue  # pandas itself refuses to hold such a column: no table, no release
            own = tally_values([value], candidates)
            found = np.array(tally_values(column, candidates))
            assert (found - counts == own).all(), (base, value)
            np.testing.assert_array_equal(np.delete(read_column(column), place), numbers)
            np.testing.assert_array_equal(read_column(column)[place], read_column([value])[0])


@pytest.mark.filterwarnings("error")
def test_a_row_of_any_values_leaves_all_other_rows_of_a_table_as_they_were() -> None:
    generator = random.Random(19)
    rows = [[1.0, 2.0], [float("nan"), 7], ["3", None]]
    for _ in range(400):
        odd = [generator.choice(ODD_VALUES) for _ in range(generator.choice([1, 2, 2, 2, 3]))]
        table = changed(rows, generator.randrange(3), odd, "add")
        found = read_numbers(table, columns=2)
        kept = [place for place, row in enumerate(table) if row is not odd]
        np.testing.assert_array_equal(found[kept], read_numbers(rows))
        assert found.shape == (4, 2)
        if len(odd) == 2:
            frames = [pandas.DataFrame({"a": numpy_objects([r[0] for r in table]), "b": 1.0})]
            frames.append(polars.DataFrame({"a": [1.0, None, 3.0, 4.0], "b": ["x", "7", "", "é"]}))
            np.testing.assert_array_equal(read_numbers(frames[0])[:, 0], found[:, 0])
            assert read_numbers(frames[1])[1].tolist()[1] == 7.0


def test_named_attacks_on_types_of_columns_move_no_count() -> None:
    days = [np.datetime64("2020-01-01")] * 500 + [np.datetime64("2020-01-02")] * 299
    asked = ["2020-01-01", "2020-01-02"]
    for column in (
        [*days, "unknown"],
        numpy_objects([*days, "unknown"]),
        pandas.Series([*days, "unknown"], dtype=object),
        np.array(days, dtype="datetime64[ns]"),
        np.array([str(day) for day in days] + ["unknown"]),
        polars.Series(np.array(days, dtype="datetime64[ns]")),
        polars.Series([str(day) for day in days] + ["unknown"]),
    ):
        assert tally_values(column, asked) == (500, 299)
    small = [np.float32(0.1)] * 500
    for mixed in (np.array(small), np.array([*small, np.float64(3)]), [*small, np.float64(3)]):
        assert tally_values(mixed, [0.1, np.float32(0.1)]) == (0, 500)
    assert canonical_key("2020-01-01") == canonical_key(np.datetime64("2020-01-01", "us"))
