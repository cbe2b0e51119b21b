"""The committed figures and tables of the paper are what the code draws now from its run."""

from __future__ import annotations

import base64
import csv
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib import image
from numpy.typing import NDArray
from rich.console import Console

from expmech.paper import study as work
from expmech.paper.fig3 import law as fig3_law
from expmech.paper.fig3 import study as fig3_study
from expmech.paper.fig3.law import THRESHOLDS
from expmech.paper.options import Options
from expmech.paper.studies import STUDIES
from expmech.paper.study import Backend, Cell, Results, Store, run_study

DOCS = Path(__file__).parents[2] / "docs" / "reproduction"
VERSION = "0.1.0"  # of the run whose cells are kept
DRAWN = [name for name in STUDIES if name != "fig3"]  # its discretisations are too large to keep
BLOCK = 8


def blocks(path: Path) -> NDArray[Any]:
    """Return the mean colours of small squares: what an eye sees, whatever smooths the letters."""
    picture = np.asarray(image.imread(path), dtype=np.float64)[..., :3]
    rows, columns = (size // BLOCK * BLOCK for size in picture.shape[:2])
    cut = picture[:rows, :columns].reshape(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK, 3)
    return np.asarray(cut.mean(axis=(1, 3)))


def look_alike(one: Path, other: Path) -> bool:
    first, second = blocks(one), blocks(other)
    if first.shape != second.shape:
        return False
    return bool((np.abs(first - second).max(axis=2) > 0.1).mean() < 0.001)


def read(path: Path) -> tuple[list[str], list[float]]:
    """Return the texts and the numbers of a table, each in order."""
    texts, numbers = [], []
    with path.open(newline="", encoding="utf-8") as file:
        for text in (text for row in csv.reader(file) for text in row):
            try:
                numbers.append(float(text))
            except ValueError:
                texts.append(text)
    return texts, numbers


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("paper")
    with zipfile.ZipFile(DOCS / "cells.zip") as archive:
        archive.extractall(out / "cells")
    return out


@pytest.mark.parametrize("name", DRAWN)
def test_committed_figures_are_what_the_code_draws_now(
    name: str, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(parameters: Any, stream: Any) -> Any:
        raise AssertionError(f"a cell of {name} is not in cells.zip")

    monkeypatch.setattr(work, "__version__", VERSION)
    study = STUDIES[name]
    quiet = Console(quiet=True)
    section = run_study(
        type(study)(study.name, study.cells, refuse, study.render, study.takes),
        Options(),
        seed=2021,
        out=kept,
        backend=Backend(),
        console=quiet,
    )
    for figure, _ in section.figures:
        assert look_alike(kept / f"{figure}.png", DOCS / f"{figure}.png"), figure
    for table in section.tables:
        drawn, committed = read(kept / f"{table}.csv"), read(DOCS / f"{table}.csv")
        assert drawn[0] == committed[0], table
        np.testing.assert_allclose(drawn[1], committed[1], rtol=1e-6, err_msg=table)


def test_the_discretised_mechanism_is_drawn_from_its_table(tmp_path: Path) -> None:
    with (DOCS / "fig3.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    epsilons = tuple(dict.fromkeys(float(row["epsilon"]) for row in rows))
    counts = tuple(dict.fromkeys(int(row["points"]) for row in rows))
    shape = (len(epsilons), len(counts), len(THRESHOLDS))
    read = {
        field: np.array([float(row[column]) for row in rows]).reshape(shape).swapaxes(0, 1)
        for field, column in (
            ("printed", "err_q05_printed"),
            ("meant", "err_q95_meant"),
            ("redrawn", "err_q95_data_redrawn"),
            ("curves", "continuous"),
        )
    }
    found: Any = SimpleNamespace(epsilons=epsilons, counts=counts, **read)
    found.curves = read["curves"][0]
    fig3_study.plot_discrete(found, tmp_path)
    assert look_alike(tmp_path / "fig3.png", DOCS / "fig3.png")


def test_the_random_atoms_are_drawn_from_their_cells(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "__version__", VERSION)
    store, results = Store(kept / "cells"), Results()
    for parameters, _ in STUDIES["fig3"].cells(Options()):
        stored = store.load(Cell("fig3", parameters, seed=2021, quick=False, weight=1.0))
        if parameters["part"] in ("continuous", "random atom"):
            assert stored is not None
            results.append((parameters, stored))
    exact = {p["epsilon"]: r for p, r in results if p["part"] == "continuous"}
    atoms = {(p["epsilon"], p["points"]): r for p, r in results if p["part"] == "random atom"}
    found: Any = SimpleNamespace(exact=exact, atoms=atoms, epsilons=tuple(exact))
    found.counts = tuple(dict.fromkeys(count for _, count in atoms))
    found.laws = {key: fig3_law.mixture_law(r, exact[key[0]]) for key, r in atoms.items()}
    fig3_study.plot_atoms(found, tmp_path)
    assert look_alike(tmp_path / "fig3_random_atom.png", DOCS / "fig3_random_atom.png")


def test_the_report_holds_the_committed_figures() -> None:
    report = (DOCS / "report.html").read_text(encoding="utf-8")
    for path in DOCS.glob("*.png"):
        assert base64.b64encode(path.read_bytes()).decode() in report, path.name


def test_a_figure_with_another_message_does_not_look_alike(tmp_path: Path) -> None:
    """The comparison can fail: a title changes, and a line moves."""
    picture = image.imread(DOCS / "delta.png")
    changed = picture.copy()
    changed[8:28, 300:700] = 1.0
    image.imsave(tmp_path / "title.png", changed)
    assert not look_alike(tmp_path / "title.png", DOCS / "delta.png")
    image.imsave(tmp_path / "moved.png", np.roll(picture, 12, axis=1))
    assert not look_alike(tmp_path / "moved.png", DOCS / "delta.png")
    image.imsave(tmp_path / "same.png", picture)
    assert look_alike(tmp_path / "same.png", DOCS / "delta.png")
