"""Runs of a plan, killed before every single write: no charged value is lost, nothing is overspent.

Run: python -m benchmarks.kills_benchmark
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.kills import kill_plan, write_day

from benchmarks.support import write

RELEASES = 4
TEXT = """# Kills during a batch

{about}
A killed process leaves behind what it wrote, so the moments between two writes are alike. A run of a plan of {releases} releases kills itself, by a signal, before its
first write, another before its second, and so on to the last; to show a value counts as a write. The runs that continue what a kill left are killed in the same way. After each kill the
ledger is opened and checked: all releases are charged or none, every value that was kept or shown is there as it was, and no more is spent than the charges say. A run that is not killed
then ends with all values. The benchmark stops with an error at the first thing that is wrong.

| a kill left | kills |
|---|---|
{rows}
| together | {kills} |
| of these, inside a transaction | {inside} |

Values that killed runs had shown: {shown}, each equal to what the ledger keeps.
"""


def main() -> None:
    """Kill, check after every kill, and write the table; raise where no kill met a charge."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["EXPMECH_STATE"] = str(folder / "register")
        plan, path = write_day(folder, epsilon="1", releases=RELEASES)
        met = kill_plan(plan, path, releases=RELEASES)
    inside, shown = met.pop("in a transaction"), met.pop("shown")
    states = [f"{RELEASES} charged, {kept} kept" for kept in range(RELEASES + 1)]
    if set(met) != {"0 charged, 0 kept", *states} or not inside or not shown:
        raise RuntimeError(f"the kills did not meet every state: {met}")
    rows = "\n".join(f"| {state} | {count} |" for state, count in sorted(met.items()))
    text = TEXT.format(
        about=__doc__,
        releases=RELEASES,
        rows=rows,
        kills=sum(met.values()),
        inside=inside,
        shown=shown,
    )
    write("kills", text.splitlines(), module="kills_benchmark")


if __name__ == "__main__":
    main()
