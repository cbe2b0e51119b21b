"""Make the made-up tables of the pages and examples: python examples/data/make.py [FOLDER].

survey.csv has one row per person. visits.csv has one row per visit, and people have several;
patients.csv says in which household each of them lives.
regions.csv is public: it says in which region a town lies.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

TOWNS = ("Basel", "Bern", "Biel", "Chur", "Zug")
SHARES = (0.32, 0.29, 0.2, 0.12, 0.07)


def survey(rows: int = 1000) -> list[list[object]]:
    """Return a survey of commuters; some did not tell their income."""
    rng = np.random.default_rng(20260302)
    table: list[list[object]] = [
        ["person", "day", "town", "age", "answer", "income", "commute_minutes", "rent_share"]
    ]
    for number in range(1, rows + 1):
        town = rng.choice(len(TOWNS), p=SHARES)
        age = int(np.clip(rng.gamma(9.0, 5.0), 18, 95))
        income = round(float(rng.lognormal(10.9 + 0.004 * (age - 45) + 0.05 * town, 0.45)), -2)
        minutes = int(np.clip(rng.gamma(3.0, 8.0 + 2.0 * town), 1, 150))
        share = round(float(np.clip(rng.beta(5, 14) - (income - 6e4) / 1e6, 0.02, 0.9)), 3)
        yes = rng.uniform() < 1 / (1 + np.exp(-(minutes - 24) / 14))
        told = rng.uniform() < 0.95
        day = np.datetime64("2025-09-01") + int(rng.integers(0, 61))
        table.append(
            [
                f"p{number:04d}",
                day,
                TOWNS[town],
                age,
                "yes" if yes else "no",
                int(income) if told else "",
                minutes,
                share,
            ]
        )
    return table


def visits(people: int = 400) -> list[list[object]]:
    """Return the visits of patients to a practice, from one to nine of each."""
    rng = np.random.default_rng(20260303)
    table: list[list[object]] = [["patient", "day", "reason", "minutes"]]
    for number in range(1, people + 1):
        for _ in range(1 + min(int(rng.geometric(0.45)) - 1, 8)):
            day = np.datetime64("2025-01-01") + int(rng.integers(0, 365))
            reason = str(rng.choice(["check", "cough", "fall", "back"], p=(0.4, 0.3, 0.1, 0.2)))
            minutes = int(np.clip(rng.gamma(4.0, 4.5), 3, 60))
            table.append([f"k{number:03d}", day, reason, minutes])
    return table


def patients(people: int = 400) -> list[list[object]]:
    """Return the household of every patient, from one to four in each."""
    sizes = (1, 2, 1, 3, 2, 1, 4, 2, 1, 2)
    table: list[list[object]] = [["patient", "household"]]
    household, left = 1, sizes[0]
    for number in range(1, people + 1):
        if left == 0:
            household, left = household + 1, sizes[household % len(sizes)]
        table.append([f"k{number:03d}", f"h{household:03d}"])
        left -= 1
    return table


def regions() -> list[list[object]]:
    """Return the public table of towns and regions."""
    places = ("north", "middle", "middle", "east", "middle")
    return [["town", "region"], *([town, place] for town, place in zip(TOWNS, places, strict=True))]


def main() -> None:
    """Write the tables into a folder, this one by default."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    tables = {
        "survey.csv": survey(),
        "visits.csv": visits(),
        "patients.csv": patients(),
        "regions.csv": regions(),
    }
    for name, table in tables.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(table)


if __name__ == "__main__":
    main()
