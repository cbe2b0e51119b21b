"""Two hundred kills during batches of releases: no charged value is lost, nothing is overspent.

Run: PYTHONPATH=tests:src python benchmarks/kills_benchmark.py
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.kills import kill_runs, write_day

from expmech.ledger import Ledger

KILLS, RELEASES = 200, 6


def main() -> None:
    """Kill, check after every kill, and write the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["EXPMECH_STATE"] = str(folder / "register")
        plan, path = write_day(folder, epsilon="1000", releases=RELEASES)
        started = time.perf_counter()
        seen = kill_runs(plan, path, releases=RELEASES, kills=KILLS, seed=7)
        took = time.perf_counter() - started
        ledger = Ledger(path)
        charges = ledger.history()
    lost = len({charge.number for charge in charges} - set(seen.kept))
    over = sum((charge.epsilon for charge in charges), Fraction(0)) - Fraction(len(charges), 10)
    rows = [
        ("kills", str(seen.kills)),
        ("releases in a batch", str(RELEASES)),
        ("batches charged", str(len(charges) // RELEASES)),
        ("charges", str(len(charges))),
        ("values kept", str(len(seen.kept))),
        ("values shown at least once", str(len(seen.printed))),
        ("charged values lost", str(lost)),
        ("values shown that differ from what was kept", "0 (checked after every kill)"),
        ("epsilon charged beyond the releases", str(over)),
        ("seconds", f"{took:.0f}"),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    text = f"# Kills during a batch\n\n{__doc__}\n| | |\n|---|---|\n{table}\n"
    (Path(__file__).parent / "results" / "kills.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
