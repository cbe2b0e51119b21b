"""`expmech demo`: a release from made-up data, with nothing to prepare."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

from expmech.adjacency import Adjacency
from expmech.bits import seeded_bits
from expmech.cli.asked import Request
from expmech.cli.common import output, user_errors
from expmech.cli.options import Budgeted, ReleaseOptions, TableOptions
from expmech.cli.request import answer
from expmech.coins import Coins
from expmech.ledger import Ledger
from expmech.statistics import Mean, MostFrequent

_ROWS = 1000


def demo() -> None:
    """Make a small table and a ledger in a temporary folder.

    Release a mean and the most frequent answer, show the budget.
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
        for epsilon, told, statistic in (
            ("0.5", "mean survey.csv --column age --bounds 0,100", mean),
            ("0.1", "select survey.csv --column answer --candidates yes,no", select),
        ):
            output.print(f"$ expmech release {told} --epsilon {epsilon} ...", markup=False)
            budgeted, asked = Budgeted(epsilon=epsilon), ReleaseOptions(ledger=ledger)
            answer(Request(budgeted, TableOptions(source=str(table)), asked), statistic)
            output.print()
