"""Columns of dates: means, quantiles and histograms are those of the days since 1970."""

import datetime
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import expmech as em
from expmech.certificates.postprocessing import ByName, Dates, OneNumber, rebuild_postprocessing
from expmech.cli.main import app
from expmech.core.dates import date_text, days_of_text, nearest_day
from expmech.core.errors import DataError, ParameterError, ParameterTypeError
from expmech.ledger.verification import verify_certificate, verify_interval, verify_value
from expmech.tables.aggregates import CellsOf, MomentsOf
from expmech.tables.arrays import ArrayRows
from expmech.tables.dates import day_number, read_days
from expmech.tables.engines.rows import TableRows
from expmech.tables.sources import open_frame

FIRST = datetime.date(2024, 1, 1)
DAYS = [FIRST + datetime.timedelta(days=(37 * k) % 366) for k in range(200)]
NUMBERS = [float((day - datetime.date(1970, 1, 1)).days) for day in DAYS]
BOUNDS = ("2024-01-01", "2024-12-31")
LIMITS = (19723.0, 20088.0)
SPELT: list[Any] = [
    *("2020-01-01", " 2020-02-29 ", "2021-02-29", "1900-02-29", "2000-02-29T23:59", "2020-04-31"),
    *("2020-01-01T12:00:59.999999Z", "2020-01-01 24:00", "2020-01-01T12:00Z", "2020-00-10"),
    *("0001-01-01", "9999-12-31 23:59:59.999999999", "0000-01-01", "1969-12-31T23:59:59.5"),
    *("5", None, "", "2020-1-1", "2020-01-01T12", "2020-01-01T10:60", "nan", "20200101"),
]


def test_dates_are_days_of_the_calendar_and_nothing_else_is() -> None:
    whole = datetime.date(1970, 1, 1).toordinal()
    ordinals = [*range(1, 3_652_060, 9973), *range(730_000, 731_500), 3_652_059]
    for ordinal in ordinals:
        day = datetime.date.fromordinal(ordinal)
        assert day_number(day) == day_number(day.isoformat()) == ordinal - whole
    assert (
        day_number(np.datetime64("2020-01-01T12:00")) == day_number("2020-01-01T12:00") == 18262.5
    )
    assert day_number(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)) == 18262.0
    for other in (18262, 18262.0, "18262", None, math.nan, "yes", np.datetime64("NaT"), True):
        assert math.isnan(day_number(other))


UNITS = ["W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "M", "25s"]


@pytest.mark.parametrize("unit", UNITS)
def test_columns_of_times_are_read_as_each_time_alone(unit: str) -> None:
    """Before the first day and after the last one that ISO 8601 spells, at their ends and far."""
    least, most = (
        np.array([text], dtype=f"datetime64[{unit}]").astype(np.int64)[0]
        for text in ("0001-01-01", "9999-12-31T23:59:59")
    )
    near = [end + k for end in (least, most) for k in (-2, -1, 0, 1, 2)]
    far = [0, -1, 1, -(2**62), 2**62, np.iinfo(np.int64).min]
    drawn = np.random.default_rng(0).integers(-(10**12), 10**12, 200).tolist()
    steps = near if unit not in ("ns", "ps") else []  # these ends are beyond 64 bits
    column = np.array([*steps, *far, *drawn], dtype=np.int64).view(f"datetime64[{unit}]")
    alone = [day_number(value) for value in column]
    assert np.array_equal(read_days(column), alone, equal_nan=True)
    assert np.array_equal(read_days(column.astype(column.dtype.newbyteorder())), alone, True)


def test_times_of_frames_are_read_in_utc() -> None:
    times = pandas.Series(["2020-01-01 12:00", None, "2021-05-06 07:08:09"], dtype="datetime64[us]")
    expected = [18262.5, math.nan, day_number("2021-05-06 07:08:09")]
    earlier = times.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    for column in (times, earlier, polars.Series(times), earlier.astype(object)):
        assert np.array_equal(read_days(column), expected, equal_nan=True), column


def test_duckdb_reads_text_dates_and_times_as_arrays_do() -> None:
    every = [datetime.date(1995, 1, 1) + datetime.timedelta(days=7 * k) for k in range(600)]
    texts = SPELT + [day.isoformat() for day in every]
    times = [
        datetime.datetime(1970, 1, 1) + datetime.timedelta(days=day, seconds=0.75)
        if 0 < day < 1e5
        else None
        for day in read_days(texts)
    ]
    frame = pyarrow.table(
        {
            "text": pyarrow.array(texts, pyarrow.string()),
            "day": pyarrow.array([None, *every, *[None] * (len(SPELT) - 1)], pyarrow.date32()),
            "micro": pyarrow.array(times, pyarrow.timestamp("us")),
            "nano": pyarrow.array(times, pyarrow.timestamp("ns")),
            "zone": pyarrow.array(times, pyarrow.timestamp("us", tz="Europe/Zurich")),
        }
    )
    source = open_frame(frame, name="dates")
    for name in frame.column_names:
        held = source.staged_days({"x": name}, {}).to_pyarrow()["x"].to_pylist()
        numbers = np.array([math.nan if value is None else value for value in held])
        np.testing.assert_array_equal(numbers, read_days(frame[name].to_pylist()), name)


@pytest.mark.parametrize("missing", ["lower", "skip"])
def test_aggregates_of_dates_are_those_of_days(missing: str) -> None:
    frame = pyarrow.table({"day": [None, *DAYS], "text": [*map(str, DAYS), "7"]})
    source = TableRows(source=open_frame(frame, name="dates"))
    moments = MomentsOf(
        columns=("day", "text"), bounds=(LIMITS,) * 2, missing=missing, bits=20, dates=True
    )
    rows = ArrayRows(
        numbers=np.array([[math.nan, *NUMBERS], [*NUMBERS, math.nan]]).T, names=("day", "text")
    )
    assert source.aggregate(moments) == rows.aggregate(moments)
    cells = CellsOf(column="day", edges=(19723.0, 19800.0, 20088.0), dates=True)
    assert source.aggregate(cells) == rows.aggregate(cells)


@pytest.mark.parametrize(
    "column",
    [
        DAYS,
        [day.isoformat() for day in DAYS],
        np.array(DAYS, dtype="datetime64[D]"),
        np.array(DAYS, dtype="datetime64[ns]"),
        pandas.Series(pandas.to_datetime(DAYS)),
        pandas.Series(pandas.to_datetime(DAYS).tz_localize("UTC")),
        polars.Series(DAYS),
    ],
    ids=["dates", "text", "days", "nanoseconds", "pandas", "pandas with zone", "polars"],
)
def test_statistics_of_dates_are_those_of_days(column: Any) -> None:
    more: dict[str, Any] = {"epsilon": 1.0, "random_state": 5}
    in_numpy = tuple(np.array(BOUNDS, dtype="datetime64[D]"))
    pairs: list[Any] = [BOUNDS, in_numpy, (DAYS[0], "2024-12-31T00:00")]
    for pair in pairs:
        mean = em.mean(column, bounds=pair, **more)
        number = em.mean(NUMBERS, bounds=LIMITS, **more)
        assert (mean.value, mean.accuracy.lower) == (  # type: ignore[union-attr]
            date_text(number.value),
            date_text(number.accuracy.lower),  # type: ignore[union-attr]
        )
    median = em.median(column, bounds=BOUNDS, **more)
    assert median.value == date_text(em.median(NUMBERS, bounds=LIMITS, step=1, **more).value)
    several = em.quantiles(column, bounds=BOUNDS, step=7, **more).value
    days = em.quantiles(NUMBERS, bounds=LIMITS, step=7, **more).value
    assert several == {level: date_text(day) for level, day in days.items()}
    cells = em.histogram(column, edges=["2024-01-01", "2024-07-01", "2025-01-01"], **more).value
    counts = em.histogram(NUMBERS, edges=[19723, 19905, 20089], **more).value
    assert list(cells.values()) == list(counts.values())
    assert list(cells) == ["[2024-01-01, 2024-07-01)", "[2024-07-01, 2025-01-01]", "other"]


def test_releases_of_dates_are_shown_as_days_and_verified() -> None:
    release = em.mean(pandas.Series(DAYS, name="day"), epsilon=1.0, bounds=BOUNDS)
    near = release.accuracy
    assert near is not None and "T" in release.value
    shown = str(release)
    for part in (
        f"  {nearest_day(release.value)} (95% interval ",
        f"{nearest_day(near.lower, -1)} to {nearest_day(near.upper, 1)}",
        "2024-01-01 to 2024-12-31; values outside are clipped",
    ):
        assert part in shown
    stated = {"lower": near.lower, "upper": near.upper, "scale": near.scale, "level": 0.95}
    assert all(check.holds for check in verify_certificate(release.certificate))
    assert verify_value(release.certificate, release.value).holds
    assert verify_interval(release.certificate, release.value, stated).holds
    for wrong in ("2023-12-31", "2025-01-01", 19800.0, "2024-06-31", "2024-06-01T00:00:00"):
        assert not verify_value(release.certificate, wrong).holds
    for end in ("lower", "upper"):
        moved = date_text(days_of_text(stated[end]) + 0.5)
        changed = stated | {end: moved}
        assert not verify_interval(release.certificate, release.value, changed).holds


@pytest.mark.parametrize("shape", [OneNumber(), ByName(labels=("a", "b"))])
@pytest.mark.parametrize("days", [0.0, 18262.25, 65536.1, 2932895.9999, -719162.0])
def test_the_map_to_dates_goes_back_to_the_microsecond(shape: Any, days: float) -> None:
    dates = rebuild_postprocessing(Dates(shape=shape).describe())
    point = np.array([days] if isinstance(shape, OneNumber) else [days, 1.0])
    back = dates.back(dates.apply(point))
    assert back is not None
    assert (np.abs(back - point) <= dates.lost(point)).all()
    width = dates.back_width(dates.apply_width(point))
    np.testing.assert_array_equal(width, point)


def test_what_mixes_dates_and_numbers_is_refused_before_anything_is_read() -> None:
    with pytest.raises(ParameterError, match="all dates such as 2020-01-31, or all numbers"):
        em.mean(DAYS, epsilon=1.0, bounds=("2024-01-01", 5))
    with pytest.raises(ParameterError, match="all dates such as 2020-01-31, or all numbers"):
        em.histogram(DAYS, epsilon=1.0, edges=["2024-01-01", 20000.0])
    with pytest.raises(ParameterError, match="must be numbers; got dates"):
        em.sum(DAYS, epsilon=1.0, bounds=BOUNDS)
    with pytest.raises(ParameterError, match="LOWER < UPPER"):
        em.mean(DAYS, epsilon=1.0, bounds=BOUNDS[::-1])
    with pytest.raises(ParameterError, match="whole number of days"):
        em.median(DAYS, epsilon=1.0, bounds=BOUNDS, step=Fraction(1, 2))
    with pytest.raises(ParameterTypeError, match="declared as float64"):
        em.mean(np.array(NUMBERS), epsilon=1.0, bounds=BOUNDS)
    with pytest.raises(ParameterTypeError, match="declared as datetime64"):
        em.mean(np.array(DAYS, dtype="datetime64[D]"), epsilon=1.0, bounds=LIMITS)


def test_a_file_of_numbers_is_refused_by_its_declared_type(tmp_path: Path) -> None:
    path = tmp_path / "days.parquet"
    parquet.write_table(pyarrow.table({"number": NUMBERS, "day": DAYS}), path)
    with pytest.raises(DataError, match="must hold dates"):
        em.mean(path, column="number", epsilon=1.0, bounds=BOUNDS)
    more: dict[str, Any] = {"epsilon": 1.0, "random_state": 5}
    held = em.mean(path, column="day", bounds=BOUNDS, **more).value
    assert held == em.mean(DAYS, bounds=BOUNDS, **more).value


@pytest.mark.parametrize(
    "command",
    [
        ["mean", "--bounds", "2024-01-01,2024-12-31"],
        ["median", "--bounds", "2024-01-01,2024-12-31"],
        ["quantile", "--q", "0.25,0.75", "--bounds", "2024-01-01,2024-12-31"],
        ["histogram", "--edges", "2024-01-01,2024-07-01,2025-01-01"],
    ],
)
def test_command_line_releases_dates_that_verify(command: list[str], tmp_path: Path) -> None:
    table, record = tmp_path / "days.csv", tmp_path / "record.json"
    table.write_text("\n".join(["day", *map(str, DAYS), "seven"]) + "\n")
    name, *options = command
    words = ["release", name, str(table), "--column", "day", *options, "--epsilon", "5"]
    result = CliRunner().invoke(app, [*words, "--output", str(record)])
    assert result.exit_code == 0, result.output
    assert "2024-" in result.stdout
    assert "2024-" in json.dumps(json.loads(record.read_text())["value"])
    assert CliRunner().invoke(app, ["verify", str(record)]).exit_code == 0


@pytest.mark.parametrize("option", ["2024-01-01,7", "7,2024-01-01", "2024-01-01,2024-02-30"])
def test_command_line_refuses_bounds_that_are_partly_dates(option: str, tmp_path: Path) -> None:
    table = tmp_path / "days.csv"
    table.write_text("day\n2024-01-01\n")
    words = ["release", "mean", str(table), "--column", "day", "--bounds", option]
    result = CliRunner().invoke(app, [*words, "--epsilon", "1"])
    assert result.exit_code == 1
    assert "must be all dates such as 2020-01-31, or all numbers" in result.output
