"""How `expmech paper` runs: resume, any number of jobs, a Dask cluster, and bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from distributed import LocalCluster
from rich.console import Console
from typer.testing import CliRunner

from expmech.cli.main import app
from expmech.paper.study import Backend, Cell, Parameters, Result, Store, run_cells

CALLS: list[int] = []
STOP_AT: list[int] = []


def count_up(parameters: Parameters, stream: list[int]) -> Result:
    CALLS.append(parameters["x"])
    if parameters["x"] in STOP_AT:
        raise KeyboardInterrupt
    return {"square": np.array(parameters["x"] ** 2), "seed": np.array(stream)}


def make_cells() -> list[Cell]:
    return [Cell("toy", {"x": x}, seed=1, quick=True, weight=float(10 - x)) for x in range(6)]


def run_toy(cells: list[Cell], folder: Path) -> list[Result]:
    CALLS.clear()
    return run_cells(cells, count_up, Store(folder), Backend(jobs=1), Console(quiet=True))


def paper(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["paper", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result.exit_code, " ".join(result.output.split())


def test_an_interrupted_run_continues_from_finished_cells(tmp_path: Path) -> None:
    STOP_AT.append(3)
    with pytest.raises(KeyboardInterrupt):
        run_toy(make_cells(), tmp_path)
    STOP_AT.clear()
    assert CALLS == [0, 1, 2, 3]
    assert len(list(tmp_path.glob("*.npz"))) == 3
    results = run_toy(make_cells(), tmp_path)
    assert CALLS == [3, 4, 5]
    assert [int(result["square"]) for result in results] == [0, 1, 4, 9, 16, 25]


def test_a_damaged_cell_is_computed_again(tmp_path: Path) -> None:
    cells = make_cells()
    run_toy(cells, tmp_path)
    damaged = sorted(tmp_path.glob("*.npz"))[0]
    damaged.write_bytes(damaged.read_bytes()[:20])
    results = run_toy(cells, tmp_path)
    assert len(CALLS) == 1
    assert [int(result["square"]) for result in results] == [0, 1, 4, 9, 16, 25]


def test_every_cell_has_a_stream_and_a_name_of_its_own() -> None:
    cells = make_cells()
    assert len({tuple(cell.stream) for cell in cells}) == len({cell.key for cell in cells}) == 6
    one = cells[0]
    others = [
        Cell("toy", {"x": 0}, 2, True, 1.0),
        Cell("toy", {"x": 0}, 1, False, 1.0),
        Cell("toys", {"x": 0}, 1, True, 1.0),
    ]
    assert all(other.key != one.key for other in others)
    assert Cell("toy", {"x": 0}, 1, True, 99.0).key == one.key


@pytest.fixture(scope="module")
def errata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("errata")
    assert paper("errata", "--quick", "--out", str(out))[0] == 0
    return out


def test_numbers_do_not_depend_on_the_number_of_jobs(errata: Path, tmp_path: Path) -> None:
    assert paper("errata", "--quick", "--out", str(tmp_path), "--jobs", "2")[0] == 0
    for name in ("errata.csv", "errata_numbers.csv", "errata.svg"):
        assert (tmp_path / name).read_bytes() == (errata / name).read_bytes()
    assert paper("errata", "--quick", "--out", str(tmp_path), "--seed", "7")[0] == 0
    assert (tmp_path / "errata_numbers.csv").read_bytes() != (
        errata / "errata_numbers.csv"
    ).read_bytes()


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_of_two_processes_gives_the_same_numbers(
    errata: Path, tmp_path: Path
) -> None:
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:  # type: ignore[no-untyped-call]
        code, text = paper(
            "errata",
            "--quick",
            "--out",
            str(tmp_path),
            "--backend",
            "dask",
            "--scheduler",
            cluster.scheduler_address,
        )
    assert code == 0, text
    assert (tmp_path / "errata_numbers.csv").read_bytes() == (
        errata / "errata_numbers.csv"
    ).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["figg1"], "Did you mean 'fig1'?"),
        (["errrata", "--quick"], "Did you mean 'errata'?"),
        (
            ["fig1", "--jobs", "0"],
            "`jobs` of expmech paper must be a whole number in 1..4096; got 0.",
        ),
        (
            ["fig1", "--backend", "dask"],
            "`scheduler` of expmech paper must be given with backend 'dask'",
        ),
        (
            ["fig1", "--scheduler", "tcp://127.0.0.1:1"],
            "`scheduler` of expmech paper must be given with backend 'dask'",
        ),
        (
            ["fig1", "--backend", "ray"],
            "`backend` of expmech paper must be one of 'loky', 'dask'; got 'ray'.",
        ),
        (["fig1", "--seed", "-1"], "`seed` of expmech paper must be"),
    ],
)
def test_bad_input_is_one_sentence_and_no_traceback(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    code, text = paper(*arguments, "--out", str(tmp_path / "out"))
    assert code == 1
    assert words in text


def test_an_out_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code, text = paper("errata", "--quick", "--out", str(blocked / "below"))
    assert code == 1
    assert "`out` of expmech paper must be a folder that can be written to" in text
