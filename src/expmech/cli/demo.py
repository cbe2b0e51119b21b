"""`expmech demo`: a release from made-up data, with nothing to prepare."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

from expmech.bits import seeded_bits
from expmech.cli.common import output, user_errors
from expmech.cli.release import Request, release, show
from expmech.coins import Coins
from expmech.data import statistics
from expmech.ledger import Ledger

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
        output.print(
            "$ expmech release mean survey.csv --column age --bounds 0,100 --epsilon 0.5 ...",
            markup=False,
        )
        request = Request(
            "mean of age", str(table), None, "0.5", None, "replace", ledger, None, None, None
        )
        show(
            release(
                request,
                lambda rows, budget: statistics.mean(rows, ["age"], [(0.0, 100.0)], epsilon=budget),
            ),
            False,
        )
        output.print(
            "\n$ expmech release select survey.csv --column answer --candidates yes,no --epsilon"
            " 0.1 ...",
            markup=False,
        )
        request = Request(
            "most frequent answer",
            str(table),
            None,
            "0.1",
            None,
            "replace",
            ledger,
            None,
            None,
            None,
        )
        show(
            release(
                request,
                lambda rows, budget: statistics.select(
                    rows, "answer", ["yes", "no"], epsilon=budget
                ),
            ),
            False,
        )
