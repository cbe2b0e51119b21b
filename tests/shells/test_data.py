"""The data layer.

The same exact integers from DuckDB, PostgreSQL and Spark, and refusals that quote no record.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from support.aggregates import histogram, moments, row_count, tally
from support.engines import ENGINE_WARNINGS, postgres_filled, spark_session
from support.statistics import mean, quantile, ridge, select

from expmech.core.errors import DataError, ParameterError
from expmech.domains import Box
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.mechanisms.noisy_sums.noisy_sums import snap
from expmech.tables.engines.sums import fresh_names
from expmech.tables.sources.opening import open_source
from expmech.tables.sources.source import Source
from expmech.tables.statistics.quantiles import rank_loss
from expmech.tables.statistics.ridge import centred

# Warnings about what the engines' own Python code does: old pandas options, and sockets that Spark
# leaves to the collector.
pytestmark = ENGINE_WARNINGS

# Columns named like the helper columns a careless implementation would make, and one that differs
# from what is asked only by case.
COLUMNS = ("x", "Ema", "emc0", "s")
BOUNDS = [(-2.0, 2.5), (0.1, 40.7)]


def table(rows: int = 500) -> dict[str, list[object]]:
    generator = np.random.default_rng(3)
    return {
        "x": [*(generator.normal(size=rows - 2) * 2).tolist(), float("inf"), float("-inf")],
        "Ema": generator.integers(-5, 50, rows).tolist(),
        "emc0": [1.5] * rows,
        "s": generator.choice(["a", "b", "c"], rows).tolist(),
    }


def parquet(path: Path, columns: Mapping[str, Sequence[object]]) -> Path:
    connection = duckdb.connect()
    names = ", ".join(f'unnest(?) AS "{name}"' for name in columns)
    connection.execute(
        f"COPY (SELECT {names}) TO '{path}' (FORMAT parquet)", list(columns.values())
    )
    connection.close()
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def file(folder: Path) -> Path:
    return parquet(folder / "survey.parquet", table())


@pytest.fixture(scope="module")
def postgres(file: Path) -> Iterator[str]:
    def fill(connection: Any) -> None:
        connection.execute(
            'CREATE TABLE survey (x double precision, "Ema" bigint, emc0 real, s text)'
        )
        with connection.cursor() as cursor:
            rows = zip(*table().values(), strict=True)
            cursor.executemany("INSERT INTO survey VALUES (%s, %s, %s, %s)", list(rows))
        connection.execute(
            "CREATE TABLE gaps AS SELECT * FROM (VALUES (1.0::float8), (NULL), ('NaN')) AS t (x)"
        )

    with postgres_filled(fill) as filled:
        yield filled


@pytest.fixture(scope="module")
def spark(file: Path, folder: Path) -> Iterator[str]:
    with spark_session() as session:
        session.read.parquet(str(file)).createOrReplaceTempView("survey")
        session.sql(
            "SELECT * FROM VALUES (1.0D), (NULL), (double('NaN')) AS t (x)"
        ).createOrReplaceTempView("gaps")
        yield "spark"


def check_aggregates(source: Source) -> None:
    columns = table()
    values = np.column_stack(
        [np.array(columns["x"], dtype=float), np.array(columns["Ema"], dtype=float)]
    )
    lower, upper = np.array(BOUNDS).T
    snapped = snap(values, lower, upper, 20)
    found = moments(source, ["X", "ema"], BOUNDS, bits=20, products=True)
    assert found.count == len(values)
    assert found.sums == tuple(snapped.sum(axis=0).tolist())
    assert found.products == tuple(map(tuple, (snapped.T @ snapped).tolist()))
    cells = np.minimum((np.clip(values[:, 0], -2.0, 2.5) + 2.0) * (2.0**5 / 4.5), 31).astype(int)
    assert (
        histogram(source, "x", BOUNDS[0], bits=5).tolist()
        == np.bincount(cells, minlength=32).tolist()
    )
    assert tally(source, "s", ["c", "none", "a"]) == (
        columns["s"].count("c"),
        0,
        columns["s"].count("a"),
    )
    assert row_count(source.where("s", "b")) == columns["s"].count("b")


def check_missing(source: Source) -> None:
    with pytest.raises(DataError, match="missing values"):
        moments(source, ["x"], [(0.0, 4.0)], bits=8, missing="error")
    with pytest.raises(DataError, match="missing values"):
        histogram(source, "x", (0.0, 4.0), bits=2, missing="error")
    dropped = moments(source, ["x"], [(0.0, 4.0)], bits=8, missing="drop")
    assert (dropped.count, dropped.sums) == (1, (64,))
    for rule in ("lower", "clip"):
        lowered = moments(source, ["x"], [(0.0, 4.0)], bits=8, missing=rule)
        assert (lowered.count, lowered.sums) == (3, (64,))
    middle = moments(source, ["x"], [(0.0, 4.0)], bits=8)
    assert (middle.count, middle.sums) == (3, (64 + 2 * 128,))
    assert histogram(source, "x", (0.0, 4.0), bits=2, missing="clip").tolist() == [2, 1, 0, 0]


def test_duckdb_aggregates_are_exact(file: Path, folder: Path) -> None:
    check_aggregates(open_source(str(file)))
    text = folder / "survey.csv"
    duckdb.connect().execute(f"COPY (SELECT * FROM '{file}') TO '{text}' (HEADER)")
    check_aggregates(open_source(str(text)))
    check_missing(
        open_source(str(parquet(folder / "gaps.parquet", {"x": [1.0, None, float("nan")]})))
    )


def test_postgres_aggregates_are_exact(postgres: str) -> None:
    with closing(open_source(postgres, table="survey")) as source:
        assert "steward" not in source.identity
        check_aggregates(source)
    with closing(open_source(postgres, table="gaps")) as source:
        check_missing(source)
    with pytest.raises(DataError, match=r"no table 'surwey'.*Did you mean 'survey'"):
        open_source(postgres, table="surwey")
    with pytest.raises(DataError, match="There is no connection"):
        open_source("postgresql://steward:secret@127.0.0.1:1/postgres", table="survey")


def test_spark_aggregates_are_exact(spark: str) -> None:
    check_aggregates(open_source(spark, table="survey"))
    check_missing(open_source(spark, table="gaps"))


NEARLY_ONE = 1 - 2.0**-30  # snaps to 2^30 - 1, whose square float64 cannot hold


def wide_sums(source: Source) -> None:
    for bits, largest in ((30, (1 << 30) - 1), (29, 1 << 29)):
        found = moments(source, ["x"], [(0.0, 1.0)], bits=bits, products=True)
        assert found.sums == (found.count * largest,)
        assert found.products == ((found.count * largest**2,),), (
            "a sum past 2^63 must neither wrap nor round"
        )
        assert found.count * largest**2 > 1 << 63


def test_sums_past_64_bits_are_exact_in_duckdb(folder: Path) -> None:
    wide_sums(open_source(str(parquet(folder / "ones.parquet", {"x": [NEARLY_ONE] * 1001}))))


def test_sums_past_64_bits_are_exact_in_postgres(postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE ones AS SELECT {NEARLY_ONE!r}::float8 AS x FROM generate_series(1, 1001)"
        )
    with closing(open_source(postgres, table="ones")) as source:
        wide_sums(source)


def test_sums_past_64_bits_are_exact_in_spark(spark: str) -> None:
    from pyspark.sql import SparkSession

    SparkSession.builder.getOrCreate().sql(
        f"SELECT {NEARLY_ONE!r}D AS x FROM range(1001)"
    ).createOrReplaceTempView("ones")
    wide_sums(open_source(spark, table="ones"))


def test_helper_names_collide_with_no_column() -> None:
    for columns in (["x"], ["EM", "x"], ["Ema", "emc0", "EM_"]):
        for name in fresh_names(columns, 5):
            assert not any(column.lower().startswith(name.lower()) for column in columns)


def test_columns_that_differ_only_by_case_are_refused_as_ambiguous(folder: Path) -> None:
    import ibis

    source = Source(table=ibis.table({"Age": "float64", "AGE": "float64"}, name="t"), identity="t")
    with pytest.raises(DataError, match="ambiguous"):
        source.column("age")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("twins.csv", "age,AGE\n50,1\n60,1\n"),
        ("same.csv", "age,age\n50,1\n60,1\n"),
        ("words.csv", "name,Name\na,b\nc,d\n"),
        ("quoted.csv", '"age",n,"Age"\n50,2,1\n60,2,1\n'),
        ("tabs.tsv", "age\tAGE\n50\t1\n60\t1\n"),
        ("blank.csv", ",column1\n50,1\n60,1\n"),
    ],
)
def test_names_that_the_engine_would_change_are_refused(
    name: str, text: str, tmp_path: Path
) -> None:
    """DuckDB calls the second column of age and AGE `AGE_1`.

    --column AGE would release the first.
    """
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match="differ only by case"):
        open_source(str(tmp_path / name))
    (tmp_path / f"a{name}").write_text(
        text.replace("AGE", "c").replace("Age", "c").replace("column1", "c")
    )
    with pytest.raises(DataError, match="differ only by case"):  # in any of several files
        open_source(str(tmp_path / f"*{name}"))


def test_parquet_names_that_differ_only_by_case_are_refused(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow.parquet import write_table

    write_table(pyarrow.table({"age": [50.0, 60.0], "AGE": [1.0, 1.0]}), tmp_path / "twins.parquet")
    with pytest.raises(DataError, match="differ only by case"):
        open_source(str(tmp_path / "twins.parquet"))


def test_other_names_are_kept(tmp_path: Path) -> None:
    texts = {
        "numbered.csv": "age,AGE_1\n50,1\n60,2\n",
        "quoted.csv": '"age, in years","""b"""\n50,1\n60,2\n',
        "marked.csv": "\ufeffage,b\n50,1\n60,2\n",
        "it's.csv": "age,b\n50,1\n60,2\n",
    }
    found = {}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        with closing(open_source(str(tmp_path / name))) as source:
            found[name] = list(source.table.columns)
            assert row_count(source) == 2
    assert list(found.values()) == [
        ["age", "AGE_1"],
        ["age, in years", '"b"'],
        ["age", "b"],
        ["age", "b"],
    ]


def test_a_first_record_is_not_listed_as_if_it_were_a_header(tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("Alice Smith,HIV positive\nBob Jones,healthy\n")
    with (
        closing(open_source(str(tmp_path / "names.csv"))) as source,
        pytest.raises(DataError) as caught,
    ):
        source.column("age")
    assert "Alice" not in str(caught.value) and "HIV" not in str(caught.value)
    assert "must hold the names of its columns" in str(caught.value)


@pytest.mark.parametrize(
    "address", ["postgresql://u:secret@localhost:99999/db", "postgresql://u:secret@[bad/db"]
)
def test_a_misshapen_address_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(ParameterError, match="must be an address") as caught:
        open_source(address, table="t")
    assert "secret" not in str(caught.value) and caught.value.__cause__ is None
    with pytest.raises(ParameterError, match="must name a table of postgresql"):
        open_source(address)


BAD: list[tuple[str, Callable[[Source], object], str]] = [
    (
        "column",
        lambda s: mean(s, ["emc1"], [(0.0, 1.0)], epsilon=Fraction(1)),
        r"no column 'emc1'.*Did you mean 'emc0'",
    ),
    ("reversed", lambda s: mean(s, ["x"], [(1.0, 0.0)], epsilon=Fraction(1)), "LOWER < UPPER"),
    (
        "bounds",
        lambda s: mean(s, ["x"], [(0.0, 1.0)] * 2, epsilon=Fraction(1)),
        "once for every column",
    ),
    ("twice", lambda s: mean(s, ["x", "X"], [(0.0, 1.0)] * 2, epsilon=Fraction(1)), "must differ"),
    (
        "drop",
        lambda s: mean(s, ["x"], [(0.0, 1.0)], epsilon=Fraction(1), missing="drop"),
        "must not be 'drop' under 'replace'",
    ),
    (
        "mode",
        lambda s: mean(s, ["x"], [(0.0, 1.0)], epsilon=Fraction(1), missing="leave"),
        "'middle', 'lower', 'skip', 'drop', 'error'; got 'leave'",
    ),
    ("few", lambda s: select(s, "s", ["a"], epsilon=Fraction(1)), "at least two different"),
]


@pytest.mark.parametrize(
    ("ask", "message"),
    [(ask, message) for _, ask, message in BAD],
    ids=[name for name, _, _ in BAD],
)
def test_mistakes_are_refused_in_one_sentence(
    ask: Callable[[Source], object], message: str, file: Path
) -> None:
    with pytest.raises((DataError, ParameterError), match=message):
        ask(open_source(str(file)))


def test_a_refusal_that_was_asked_for_never_quotes_a_record(folder: Path) -> None:
    late = folder / "late.csv"
    late.write_text("x\n" + "1.5\n" * 50_000 + "Jane Doe\n")
    with closing(open_source(str(late))) as source:
        asked = mean(source, ["x"], [(0.0, 1.0)], epsilon=Fraction(1), missing="error")
        with pytest.raises(DataError, match="missing values") as caught:
            asked.release()
    assert "Jane" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_means_agree_with_the_rows_at_large_epsilon(file: Path) -> None:
    columns = table()
    truth = np.clip(np.array(columns["x"], dtype=float), -2.0, 2.5).mean()
    for adjacency in ("replace", "add-remove"):
        ready = mean(
            open_source(str(file)), ["x"], BOUNDS[:1], epsilon=Fraction(10**5), adjacency=adjacency
        )
        np.testing.assert_allclose(ready.release().value, [truth], atol=1e-3)
    ready = mean(
        open_source(str(file)), ["x"], BOUNDS[:1], epsilon=Fraction(1000), sampler="Rejection"
    )
    assert ready.certificate().sampler["sampler"] == "Rejection"
    np.testing.assert_allclose(ready.release().value, [truth], atol=1e-1)


def test_selection_takes_the_most_frequent_at_large_epsilon(folder: Path) -> None:
    source = open_source(str(parquet(folder / "votes.parquet", {"v": [7] * 60 + [8] * 40})))
    for adjacency, monotone in (("replace", False), ("add-remove", True)):
        ready = select(source, "v", ["8", "7", "9"], epsilon=Fraction(20), adjacency=adjacency)
        certificate = ready.certificate()
        assert (certificate.sensitivity, certificate.sampler["monotone"]) == (1.0, monotone)
        assert ready.release().value == "7"


def test_row_counts_are_judged_only_where_they_are_public(folder: Path) -> None:
    empty = open_source(str(parquet(folder / "empty.parquet", {"x": [1.0]})))
    empty = Source(table=empty.table.filter(empty.table.x > 2.0), identity="empty")
    one = open_source(str(folder / "empty.parquet"))
    for source, message in ((empty, "no rows"), (one, "one row")):
        with pytest.raises(DataError, match=message):
            mean(source, ["x"], [(0.0, 1.0)], epsilon=Fraction(1))
        value = (
            mean(source, ["x"], [(0.0, 1.0)], epsilon=Fraction(1), adjacency="add-remove")
            .release()
            .value
        )
        assert 0.0 <= value[0] <= 1.0


def test_ridge_cross_products_are_those_of_the_scaled_rows(file: Path) -> None:
    columns = table()
    values = np.column_stack(
        [np.array(columns["x"], dtype=float), np.array(columns["Ema"], dtype=float)]
    )
    lower, upper = np.array(BOUNDS).T
    scaled = 2 * (np.clip(values, lower, upper) - lower) / (upper - lower) - 1
    rows = np.column_stack([np.ones(len(scaled)), scaled])
    gram = np.array(
        centred(moments(open_source(str(file)), ["x", "Ema"], BOUNDS, bits=20, products=True)),
        dtype=float,
    )
    np.testing.assert_allclose(gram / 2.0**40, rows.T @ rows, atol=1e-3)


def test_a_ridge_release_is_in_the_units_of_the_table(folder: Path) -> None:
    x = np.linspace(100.0, 300.0, 400)
    path = parquet(folder / "line.parquet", {"x": x.tolist(), "z": (5.0 + 0.01 * x).tolist()})
    for adjacency in ("replace", "add-remove"):
        bounds, target_bounds = [(100.0, 300.0)], (5.0, 9.0)
        source = open_source(str(path))
        ready = ridge(
            source,
            ["x"],
            "z",
            bounds,
            target_bounds,
            epsilon=Fraction(10),
            penalty=1e-3,
            adjacency=adjacency,
        )
        found = ready.release().value
        assert abs(found["intercept"] + 200.0 * found["x"] - 7.0) < 1.0
        assert abs(found["x"] - 0.01) < 0.01


def test_rank_losses_count_the_values_below_and_at_a_point() -> None:
    box = Box([0.0], [1.0], bits=2)
    loss = rank_loss(np.array([3, 0, 5, 2]), Fraction(3, 10), box, (0.0, 1.0), "replace")
    assert loss(box.points(np.arange(4)[:, None])).tolist() == [0.0, 0.0, 0.0, 5.0]


def test_quantiles_agree_with_the_rows_at_large_epsilon(file: Path) -> None:
    values = np.clip(np.array(table()["x"], dtype=float), -2.0, 2.5)
    for adjacency, sensitivity in (("replace", 1.0), ("add-remove", 0.75)):
        ready = quantile(
            open_source(str(file)),
            "x",
            BOUNDS[0],
            Fraction(3, 4),
            epsilon=Fraction(50),
            adjacency=adjacency,
        )
        assert ready.certificate().sensitivity == sensitivity
        low, high = np.quantile(values, [0.74, 0.76])
        assert low < ready.release().value < high
    with pytest.raises(ParameterError, match="between 0 and 1"):
        quantile(open_source(str(file)), "x", BOUNDS[0], Fraction(1), epsilon=Fraction(1))


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(9, 10)])
def test_quantile_laws_of_all_neighbours_are_within_epsilon(q: Fraction) -> None:
    """Every histogram of three rows on four cells.

    Against every one with a row replaced or added.
    """
    epsilon, box = Fraction(2), Box([0.0], [1.0], bits=2)

    def law(cells: tuple[int, ...], adjacency: str) -> np.ndarray[Any, Any]:
        loss = rank_loss(np.bincount(cells, minlength=4), q, box, (0.0, 1.0), adjacency)
        return ExponentialMechanism(loss=loss, domain=box, adjacency=adjacency).law(
            epsilon=epsilon
        )[1]

    worst = {"replace": 0.0, "add-remove": 0.0}
    for rows in itertools.combinations_with_replacement(range(4), 2):
        for one in range(4):
            without = law(rows, "add-remove")
            added = law((*rows, one), "add-remove")
            worst["add-remove"] = max(
                worst["add-remove"], float(np.abs(np.log(without / added)).max())
            )
            for other in range(4):
                pair = [law((*rows, row), "replace") for row in (one, other)]
                worst["replace"] = max(
                    worst["replace"], float(np.abs(np.log(pair[0] / pair[1])).max())
                )
    for largest in worst.values():
        assert float(epsilon) / 4 < largest <= float(epsilon)
