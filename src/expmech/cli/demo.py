"""`expmech demo`: a release from made-up data, with nothing to prepare."""

from __future__ import annotations

import csv
import tempfile
from fractions import Fraction
from pathlib import Path

import typer

from expmech.cli.common import user_errors
from expmech.cli.console import output
from expmech.cli.options import ReleaseOptions, TableOptions
from expmech.cli.release import ReleaseCommand, run
from expmech.core.adjacency import Adjacency
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.ledger import Ledger
from expmech.tables.release import ReleaseRequest
from expmech.tables.statistics import Mean, MostFrequent

app = typer.Typer(add_completion=False)

_ROWS = 1000


@app.command()
def demo() -> None:
    """Release a mean and the most frequent answer of a made-up table.

    The table and a ledger are made in a temporary folder.
    """
    with user_errors(), tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "survey.csv"
        coins = Coins(seeded_bits(1))  # made-up data, not a release
        ages, answers = coins.integers_below(60, _ROWS) + 20, coins.integers_below(5, _ROWS)
        with table.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["age", "answer"])
            writer.writerows(
                [int(age), "yes" if answer < 3 else "no"]
                for age, answer in zip(ages, answers, strict=True)
            )
        ledger = Path(folder) / "survey.ledger"
        Ledger.create(ledger, data_set=str(table), epsilon="1")
        output.print(
            f"A made-up table of {_ROWS} rows, and a ledger with a total of epsilon = 1.\n"
        )
        mean = Mean(
            columns=("age",), bounds=((0.0, 100.0),), adjacency=Adjacency.REPLACE, named=True
        )
        choices = ("yes", "no")
        select = MostFrequent(
            column="answer", candidates=choices, labels=choices, adjacency=Adjacency.REPLACE
        )
        for epsilon, command, statistic in (
            ("0.5", "mean survey.csv --column age --bounds 0,100", mean),
            ("0.1", "select survey.csv --column answer --candidates yes,no", select),
        ):
            output.print(f"$ expmech release {command} --epsilon {epsilon} ...", markup=False)
            run(
                ReleaseCommand(
                    request=ReleaseRequest(epsilon=Fraction(epsilon)),
                    statistics=(statistic,),
                    place=TableOptions(source=str(table)),
                    options=ReleaseOptions(ledger=ledger),
                )
            )
            output.print()
