"""Regressions where the data live: passes in an engine give what rows in memory give."""

from __future__ import annotations

import dataclasses
import itertools
import math
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.engines import ENGINE_WARNINGS, postgres_programs, postgres_server, spark_session
from support.statistics import ready

from expmech.core.adjacency import Adjacency
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import DataError
from expmech.mechanisms.optimum import Lattice, enclosure, in_engine
from expmech.mechanisms.optimum import draw as draw_module
from expmech.mechanisms.optimum.dyadic import DyadicBox, Dyadics
from expmech.mechanisms.optimum.enclosure import precise_residual
from expmech.mechanisms.optimum.solver import PerturbedProblem
from expmech.tables.arrays import ArrayRows
from expmech.tables.engines import regression, sums
from expmech.tables.engines.regression import EnginePasses, EngineTable
from expmech.tables.engines.rows import TableRows
from expmech.tables.engines.sums import SnappedColumns
from expmech.tables.sources.opening import open_source
from expmech.tables.statistics import (
    Linear,
    RegressionChoices,
    Statistic,
    logistic_regression,
)

pytestmark = ENGINE_WARNINGS
KINDS = ("linear", "logistic", "classes")
DRAWN = [  # Spark compiles every query for a second: few of them
    *itertools.product(("parquet", "postgres"), KINDS),
    ("parquet", "huber"),
    ("datafusion", "linear"),
    ("datafusion", "classes"),
    ("spark", "linear"),
]
SUMMED = [
    *itertools.product(("parquet", "postgres"), KINDS, (None, Fraction(5, 4))),
    ("parquet", "huber", None),
    ("parquet", "huber", Fraction(5, 4)),
    ("datafusion", "logistic", Fraction(5, 4)),
    ("datafusion", "classes", None),
    ("datafusion", "huber", None),
    ("spark", "logistic", Fraction(5, 4)),
    ("spark", "classes", None),
]
ROWS, SMALL = 600, 100
BOUNDS = ((-2.0, 2.0), (-5.0, 5.0), (0.0, 6.0))
NAMES = ("a", "b", "c")
ONE = Fraction(1)


def columns() -> dict[str, np.ndarray[Any, Any]]:
    """Return rows that are hostile to a start from the first ones, which are sorted and odd."""
    generator = np.random.default_rng(1)
    features = generator.normal(size=(ROWS, 3)) * [1.0, 2.0, 3.0]
    target = features @ [0.5, -0.3, 0.2] + generator.normal(size=ROWS)
    order = np.argsort(target)
    features, target = features[order], target[order]
    features[:9, 1] = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-308, -5e-324, 0.0, -0.0]
    place = np.clip(np.floor(target + 1.5), 0, 2).astype(np.int64)
    return {**dict(zip(NAMES, features.T, strict=True)), "t": target, "k": place}


COLUMNS = columns()


def choices(more: dict[str, Any]) -> RegressionChoices:
    """Take the settings of a regression out of its other arguments."""
    names = {"data_norm", "sum_norm", "penalty", "intercept_penalty", "rows"} & set(more)
    return RegressionChoices(**{name: more.pop(name) for name in names})


def linear(by_name: bool, **more: Any) -> Linear:
    named: dict[str, Any] = {"columns": (0, 1, 2), "target": 3}
    if by_name:
        named = {"columns": NAMES, "target": "t"}
    settings = choices(more).settings(3, owner="a linear regression")
    return Linear(bounds=BOUNDS, target_bounds=(-4.0, 4.0), settings=settings, **named, **more)


def logistic(by_name: bool, several: bool, **more: Any) -> Statistic:
    labels: dict[str, Any] = {"classes": (0, 1, 2)} if several else {"positive": 2}
    found = NAMES if by_name else (0, 1, 2)
    labels["choices"] = choices(more)
    return logistic_regression(columns=found, bounds=BOUNDS, target="k", **labels, **more)


def statistic(kind: str, by_name: bool, **more: Any) -> Statistic:
    if kind == "linear":
        return linear(by_name, **more)
    if kind == "huber":
        return linear(by_name, threshold=0.25, **more)
    return logistic(by_name, kind == "classes", **more)


def arrays(kind: str) -> ArrayRows:
    features = np.column_stack([COLUMNS[name] for name in NAMES])
    if kind in ("linear", "huber"):
        return ArrayRows(numbers=np.column_stack([features, COLUMNS["t"]]))
    return ArrayRows(numbers=features, target=COLUMNS["k"])


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("regressions")
    parquet = folder / "rows.parquet"
    write_table(pyarrow.table(COLUMNS), parquet)
    named = {
        "parquet": {"source": str(parquet)},
        "datafusion": {"source": str(parquet), "engine": "datafusion"},
    }
    programs = postgres_programs()
    if programs is None or shutil.which("java") is None:
        yield named
        return
    with postgres_server(programs) as address, spark_session() as session:
        fill_postgres(address)
        session.read.parquet(str(parquet)).createOrReplaceTempView("regression_rows")
        named["postgres"] = {"source": address, "table": "regression_rows"}
        named["spark"] = {"source": "spark", "table": "regression_rows"}
        yield named


def fill_postgres(address: str) -> None:
    import psycopg

    lines = [tuple(one.item() for one in row) for row in zip(*COLUMNS.values(), strict=True)]
    with psycopg.connect(address, autocommit=True) as connection:
        kinds = "a float8, b float8, c float8, t float8, k integer"
        connection.execute(f"CREATE TABLE regression_rows ({kinds})")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO regression_rows VALUES (%s, %s, %s, %s, %s)", lines)


@dataclass
class Watched:
    """What leaves the engine: passes, and the sizes of tables that are read."""

    passes: list[int]
    sizes: list[int]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    found = Watched(passes=[], sizes=[])
    inner = SnappedColumns.in_memory

    def reading(rows: Any) -> Any:
        steps = inner(rows)
        found.sizes.append(len(steps))
        return steps

    monkeypatch.setattr(regression, "SMALL", SMALL)
    monkeypatch.setattr(SnappedColumns, "in_memory", reading)
    return found


def opened(sources: dict[str, dict[str, str]], engine: str) -> Any:
    if engine not in sources:
        pytest.skip(f"{engine} is not installed (apt-get install postgresql openjdk-17-jre)")
    place: dict[str, Any] = {**sources[engine]}
    return closing(open_source(**place))


@pytest.mark.parametrize(("engine", "kind"), DRAWN)
def test_draws_in_an_engine_are_those_from_memory(
    engine: str, kind: str, sources: dict[str, dict[str, str]], watched: Watched
) -> None:
    with opened(sources, engine) as source:
        rows = TableRows(source=source, progress=watched.passes.append)
        cases = [("replace", "middle", 0.1), ("add-remove", "drop", 2.0)]
        if kind in ("linear", "huber"):
            cases.append(("add-remove", "lower", 1.0))
        for adjacency, missing, epsilon in cases[: 1 if engine == "spark" else 3]:
            more: dict[str, Any] = {"adjacency": Adjacency(adjacency), "missing": missing}
            if missing == "lower":
                more |= {"center": False, "sum_norm": 0.75, "intercept_penalty": 3.0}
            amount = Fraction(epsilon)
            there = ready(statistic(kind, True, **more), rows, amount).study(7).value
            here = ready(statistic(kind, False, **more), arrays(kind), amount).study(7).value
            np.testing.assert_array_equal(there, here)
    assert 2 <= len(watched.passes) <= 60
    assert max(watched.sizes) <= SMALL < ROWS  # all that is ever read is where it starts from


@pytest.mark.parametrize(("engine", "kind", "sum_norm"), SUMMED)
def test_sums_in_an_engine_are_within_what_they_promise(
    engine: str, kind: str, sum_norm: Fraction | None, sources: dict[str, dict[str, str]]
) -> None:
    """Scores against ball arithmetic over the rows in memory: exact rows, bounded derivatives."""
    with opened(sources, engine) as source:
        asked = statistic(kind, True, adjacency=Adjacency.REPLACE, data_norm=1.0)
        table = TableRows(source=source).aggregate(asked.aggregation(ONE))
        assert isinstance(table, EngineTable)
        mechanism: Any = asked.mechanism(table, ONE, "unprotected")
        mechanism.settings = dataclasses.replace(mechanism.settings, sum_norm=sum_norm)
        terms = mechanism.terms(epsilon=1)
        passes = EnginePasses(table=table, terms=terms)
        memory = arrays(kind).aggregate(
            statistic(kind, False, adjacency=Adjacency.REPLACE).aggregation(ONE)
        )
        rows = memory.rows(terms.risk, terms.norms)
        for part, whole in zip(
            np.sort(np.concatenate([one.matrix for one in passes.batches()]), axis=0),
            np.sort(rows.matrix, axis=0),
            strict=True,
        ):
            np.testing.assert_array_equal(part, whole)
        targets = np.concatenate([one.targets for one in passes.batches()])
        np.testing.assert_array_equal(np.sort(targets), np.sort(rows.targets))
        for scale in (400.0,) if engine == "spark" else (0.0, 3.0, 400.0):
            check_sums(passes, rows, terms, scale)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize("kind", ["logistic", "classes"])
def test_the_score_of_a_row_is_a_whole_number_times_its_entries(
    kind: str, engine: str, tmp_path: Path
) -> None:
    """Exactly: then what is off in a score is the derivative of each row, and nothing else."""
    path = tmp_path / "row.parquet"
    for k in (100, 333, 555):
        write_table(pyarrow.table(COLUMNS).slice(k, 1), path)
        with closing(open_source(str(path), engine=engine)) as source:
            asked = statistic(kind, True, adjacency=Adjacency.ADD_REMOVE)
            table = TableRows(source=source).aggregate(asked.aggregation(ONE))
            mechanism: Any = asked.mechanism(table, ONE, "unprotected")
            terms = mechanism.terms(epsilon=1)
            passes = EnginePasses(table=table, terms=terms)
            (rows,) = passes.batches()
            entries = [int(entry) for entry in rows.matrix[0] * 2.0**20]
            score = passes.sums(np.full(terms.shape, 0.3)).score.values
        for first in range(0, len(score), terms.dimension):
            whole, rest = divmod(score[first], entries[0])
            assert 0 < abs(whole) <= 1 << 52 and rest == 0
            of_row = score[first : first + terms.dimension]
            assert of_row == [whole * entry for entry in entries]


@pytest.mark.parametrize("engine", ["parquet", "postgres", "spark"])
def test_norms_of_rows_are_counted_in_an_engine_as_in_memory(
    engine: str, sources: dict[str, dict[str, str]], watched: Watched
) -> None:
    """Squares are whole numbers: the counts are equal, and no row is read."""
    with opened(sources, engine) as source:
        asked = statistic("linear", True, adjacency=Adjacency.REPLACE)
        table = TableRows(source=source).aggregate(asked.aggregation(ONE))
        plain = statistic("linear", False, adjacency=Adjacency.REPLACE)
        memory = arrays("linear").aggregate(plain.aggregation(ONE))
        mechanism: Any = asked.mechanism(table, ONE, "unprotected")
        search = mechanism.terms(epsilon=1).search
        found = table.count_within(search.grid)
        assert found == memory.count_within(search.grid)
        assert found[-1] == ROWS and 0 < found[len(found) // 2] < ROWS
        assert found == sorted(found)
    assert watched.sizes == []


def check_sums(passes: EnginePasses, rows: Any, terms: Any, scale: float) -> None:
    generator = np.random.default_rng(5)
    point = np.rint(generator.normal(size=terms.shape) * scale * 2.0**20) * 2.0**-20
    sums = passes.sums(point)
    zeros = np.zeros(terms.dimension)
    problem = PerturbedProblem(rows=rows, risk=terms.risk, penalties=zeros, pull=zeros)
    nothing = DyadicBox(lower=[0] * terms.size, upper=[0] * terms.size, exponent=0)
    exact = precise_residual(problem, Dyadics.of(point.ravel().tolist()).at(80), nothing)
    off = np.abs((exact.middle.plus(_minus(sums.score))).to_floats())
    sizes = np.tile(rows.absolute_sums, terms.risk.margins)
    slopes = 2.0 * float(terms.risk.lipschitz) * sums.eta + sums.beta
    assert sums.count == rows.count
    assert (off <= sizes * slopes * 1.001 + 1e-15).all()
    if terms.risk.name == "huber" and scale == 0.0:
        assert (off == 0.0).all()  # derivatives are steps: another row would show
    margins = rows.matrix @ point.T
    for a, b, weights in terms.risk.curvature(margins, rows.targets):
        d = terms.dimension
        found = sums.curvature[a * d : (a + 1) * d, b * d : (b + 1) * d]
        gram = (rows.matrix * weights[:, None]).T @ rows.matrix
        np.testing.assert_allclose(found, gram, atol=1e-9)
    _check_kinks(sums, rows, terms, margins)
    _check_slopes(passes, rows, terms, point)


def _minus(numbers: Dyadics) -> Dyadics:
    return Dyadics(values=[-one for one in numbers.values], exponent=numbers.exponent)


def _check_kinks(sums: Any, rows: Any, terms: Any, margins: Any) -> None:
    if terms.risk.name != "huber":
        assert sums.near is None
        return
    away = np.abs(np.abs(margins[:, 0] - rows.targets) - terms.risk.threshold)
    for distance, count in sums.near:
        assert count == int((away <= distance).sum())


def _check_slopes(passes: EnginePasses, rows: Any, terms: Any, point: Any) -> None:
    step, lengths = np.full(terms.shape, 0.25), (0.5, 0.125)
    moved = rows.matrix @ step.T
    for length, found in zip(lengths, passes.slopes(point, step, lengths), strict=True):
        slopes = terms.risk.derivative(rows.matrix @ (point + length * step).T, rows.targets)
        assert math.isclose(found, float((slopes * moved).sum()), rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("kind", ["linear", "logistic", "classes"])
def test_what_no_pass_decides_is_decided_batch_by_batch(
    kind: str,
    sources: dict[str, dict[str, str]],
    watched: Watched,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with opened(sources, "parquet") as source:
        asked = statistic(kind, True, adjacency=Adjacency.REPLACE)
        table = TableRows(source=source).aggregate(asked.aggregation(ONE))
        mechanism: Any = asked.mechanism(table, ONE, "unprotected")
        terms = mechanism.terms(epsilon=1)

        def draw() -> list[int]:
            cells = table.prepare_draws(terms)(Lattice(bits=20), Coins(seeded_bits(3)))
            return list(map(int, cells.ravel()))

        expected = draw()
        calls = itertools.count()
        inner = enclosure.enclose_in

        def late(*arguments: Any) -> DyadicBox:
            box = inner(*arguments)
            wide = (1 << box.exponent) if next(calls) < 12 else 0
            return DyadicBox(
                lower=[low - wide for low in box.lower],
                upper=[up + wide for up in box.upper],
                exponent=box.exponent,
            )

        monkeypatch.setattr(sums, "_BATCH", 128)
        monkeypatch.setattr(enclosure, "enclose_in", late)
        assert draw() == expected
        assert next(calls) > 12


@pytest.mark.parametrize("threshold", [None, 0.5])
@pytest.mark.parametrize("name", ["collinear", "two tied values", "nearly collinear"])
def test_passes_alone_decide_on_collinear_and_tied_rows(
    name: str, threshold: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading all rows again, one by one in ball arithmetic, is for what no pass decides."""
    n, generator = 80_000, np.random.default_rng(0)
    base = generator.uniform(-1, 1, (n, 2))
    features = {
        "collinear": base[:, [0, 0, 0]],
        "two tied values": np.ones((n, 3)),
        "nearly collinear": np.column_stack(
            [base[:, 0], base[:, 0] + 2e-6 * base[:, 1], base[:, 1]]
        ),
    }[name]
    target = np.clip(base[:, 0] + generator.normal(0, 0.3, n), -1, 1)
    if name == "two tied values":
        target = np.where(np.arange(n) < n // 2, 0.5, -0.5)
    path = tmp_path / "rows.parquet"
    write_table(pyarrow.table({**dict(zip(NAMES, features.T, strict=True)), "t": target}), path)
    slow: list[Any] = []
    inner = draw_module.decide

    def counted(*arguments: Any) -> Any:
        slow.append(1)
        return inner(*arguments)

    monkeypatch.setattr(in_engine, "decide", counted)
    with closing(open_source(source=str(path))) as source:
        asked = Linear(
            columns=NAMES,
            bounds=((-1.0, 1.0),) * 3,
            target="t",
            target_bounds=(-1.0, 1.0),
            adjacency=Adjacency.REPLACE,
            threshold=threshold,
        )
        table = TableRows(source=source).aggregate(asked.aggregation(Fraction(30)))
        mechanism: Any = asked.mechanism(table, Fraction(30), "unprotected")
        draw = table.prepare_draws(mechanism.terms(epsilon=30))
        for seed in range(4):
            draw(Lattice(), Coins(seeded_bits(seed)))
    assert not slow


def test_a_missing_value_is_refused_in_an_engine_where_that_was_asked_for(
    sources: dict[str, dict[str, str]], watched: Watched
) -> None:
    with opened(sources, "parquet") as source:
        asked = linear(True, adjacency=Adjacency.REPLACE, missing="error")
        with pytest.raises(DataError, match="A column has missing values"):
            ready(asked, TableRows(source=source), ONE).release()


def test_a_release_from_an_engine_says_what_it_assumes_of_it(
    sources: dict[str, dict[str, str]], tmp_path: Path, watched: Watched
) -> None:
    import json

    from typer.testing import CliRunner

    from expmech.cli.main import app

    words = "--column a --bounds -2,2 --column b --bounds -5,5 --target k --positive 2 --epsilon 1"
    file = tmp_path / "model.json"
    asked = ["release", "logistic", sources["parquet"]["source"], *words.split()]
    done = CliRunner().invoke(app, [*asked, "--output", str(file), "--json"])
    assert done.exit_code == 0, done.stderr
    assumed = json.loads(done.stdout)["certificate"]["assumptions"]
    assert any("the engine's float64" in one for one in assumed)
    assert CliRunner().invoke(app, ["verify", str(file)]).exit_code == 0
    assert "pass" not in done.stderr


def one_more(rows: dict[str, Any]) -> dict[str, Any]:
    return {name: np.append(column, column[-1]) for name, column in rows.items()}


def another_value(rows: dict[str, Any]) -> dict[str, Any]:
    return {**rows, "a": np.append(rows["a"][:-1], 0.25)}


def places_exchanged(rows: dict[str, Any]) -> dict[str, Any]:
    """Two values of a column change rows: no count, sum or sum of squares of a column changes."""
    return {**rows, "c": np.concatenate([rows["c"][:-2], rows["c"][-1:], rows["c"][-2:-1]])}


@pytest.mark.parametrize("change", [one_more, another_value, places_exchanged])
@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_a_file_that_changes_between_two_passes_ends_the_release(
    kind: str, change: Any, watched: Watched, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    write_table(pyarrow.table(COLUMNS), path)
    asked = statistic(kind, True, adjacency=Adjacency.ADD_REMOVE, missing="drop", data_norm=1.0)

    def progress(number: int) -> None:
        watched.passes.append(number)
        if number == 2:
            write_table(pyarrow.table(change(COLUMNS)), path)

    with closing(open_source(source=str(path))) as source:
        drawn = ready(asked, TableRows(source=source, progress=progress), ONE)
        with pytest.raises(DataError) as caught:
            drawn.release()
    assert str(caught.value) == regression.CHANGED
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert watched.passes == [1, 2]


def test_rows_in_other_places_of_a_file_are_the_same_table(
    watched: Watched, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    write_table(pyarrow.table(COLUMNS), path)
    asked = statistic("linear", True, adjacency=Adjacency.REPLACE)
    turned = {name: column[::-1] for name, column in COLUMNS.items()}
    with closing(open_source(source=str(path))) as source:
        rows = TableRows(
            source=source,
            progress=lambda number: write_table(pyarrow.table(turned), path, row_group_size=7),
        )
        there = ready(asked, rows, ONE).study(7).value
    here = ready(statistic("linear", False, adjacency=Adjacency.REPLACE), arrays("linear"), ONE)
    np.testing.assert_array_equal(there, here.study(7).value)


def test_batches_of_another_table_than_that_of_the_passes_are_refused(
    watched: Watched, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    write_table(pyarrow.table(COLUMNS), path)
    asked = statistic("linear", True, adjacency=Adjacency.REPLACE, data_norm=1.0)
    with closing(open_source(source=str(path))) as source:
        table = TableRows(source=source).aggregate(asked.aggregation(ONE))
        mechanism: Any = asked.mechanism(table, ONE, "unprotected")
        passes = EnginePasses(table=table, terms=mechanism.terms(epsilon=1))
        passes.sums(np.zeros((1, 4)))
        assert sum(rows.count for rows in passes.batches()) == ROWS
        write_table(pyarrow.table(places_exchanged(COLUMNS)), path)
        with pytest.raises(DataError, match="did not see the same rows"):
            list(passes.batches())


def test_a_small_table_that_changes_between_two_readings_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_table(pyarrow.table(COLUMNS), path)
    asked = statistic("linear", True, adjacency=Adjacency.REPLACE)
    with closing(open_source(source=str(path))) as source:
        for change in (one_more, places_exchanged):
            write_table(pyarrow.table(COLUMNS), path)
            table = TableRows(source=source).aggregate(asked.aggregation(ONE))
            mechanism: Any = asked.mechanism(table, ONE, "unprotected")
            terms = mechanism.terms(epsilon=1)
            table.count_within(terms.search.grid)
            table.prepare_draws(terms)
            write_table(pyarrow.table(change(COLUMNS)), path)
            with pytest.raises(DataError, match="did not see the same rows"):
                table.prepare_draws(terms)


def test_a_row_that_is_inserted_into_a_server_is_seen_by_no_pass_or_ends_the_release(
    sources: dict[str, dict[str, str]], watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one transaction all passes see one table; the norms are counted before it."""
    import psycopg

    asked = statistic("linear", True, adjacency=Adjacency.ADD_REMOVE, missing="drop")
    with opened(sources, "postgres") as source, ExitStack() as undone:
        writer = psycopg.connect(sources["postgres"]["source"], autocommit=True)
        undone.enter_context(closing(writer))
        undone.callback(writer.execute, "DELETE FROM regression_rows WHERE t = 77")

        def insert(*_: Any) -> None:
            writer.execute("INSERT INTO regression_rows VALUES (1, 1, 1, 77, 1)")

        before = ready(asked, TableRows(source=source), ONE).study(7).value
        drawn = ready(asked, TableRows(source=source, progress=insert), ONE)
        np.testing.assert_array_equal(drawn.study(7).value, before)
        counted = EngineTable.count_within

        def late(table: EngineTable, limits: Any) -> list[int]:
            found = counted(table, limits)
            insert()
            return found

        monkeypatch.setattr(EngineTable, "count_within", late)
        with pytest.raises(DataError) as caught:
            ready(asked, TableRows(source=source), ONE).release()
        assert str(caught.value) == regression.CHANGED


def test_a_charge_for_a_table_that_changed_is_named_and_redeemed(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from expmech.cli.main import app

    path, ledger = tmp_path / "rows.parquet", str(tmp_path / "rows.ledger")
    write_table(pyarrow.table(COLUMNS), path)
    words = ["budget", "init", ledger, str(path), "--epsilon", "1"]
    assert CliRunner().invoke(app, words).exit_code == 0
    asked = ["release", "linear", str(path), "--column", "a", "--bounds", "-2,2", "--target", "t"]
    asked += ["--target-bounds", "-4,4", "--epsilon", "1", "--ledger", ledger, "--json"]
    inner, calls = EnginePasses.sums, itertools.count()

    def replaced(passes: EnginePasses, point: Any) -> Any:
        if next(calls) == 1:
            write_table(pyarrow.table(another_value(COLUMNS)), path)
        return inner(passes, point)

    monkeypatch.setattr(EnginePasses, "sums", replaced)
    ended = CliRunner().invoke(app, asked)
    shown = " ".join(ended.stderr.split())
    assert ended.exit_code != 0 and not ended.stdout
    assert regression.CHANGED in shown
    assert "Charge 1 was made, with no value yet; redeem it with:" in shown
    assert "--redeem 1" in shown
    redeemed = CliRunner().invoke(app, [*asked, "--redeem", "1"])
    assert redeemed.exit_code == 0, redeemed.stderr
    again = CliRunner().invoke(app, asked)
    assert again.exit_code != 0 and "Charge" not in again.stderr  # the budget was spent once
