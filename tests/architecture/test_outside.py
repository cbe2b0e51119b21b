"""The worked examples of CONTRIBUTING are a package of their own, and everything serves them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USE = """
import json
import re
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

import expmech as em
from expmech.ledger.verification import verify_certificate, verify_value
from expmech.tables.arrays import ArrayRows
from expmech.tables.plan import plan
from expmech.tables.release import ReleaseRequest
from toys import Anywhere, EvenNumbers, NoisyCount, Patient, Total, TotalOf

values = np.random.default_rng(0).uniform(size=40)
box = em.Box([0.0], [40.0], bits=12)
mechanisms = {
    "loss": (em.ExponentialMechanism(loss=Total(values), domain=box), "auto"),
    "domain": (em.ExponentialMechanism(loss=Total(values), domain=EvenNumbers(20)), "auto"),
    "envelope": (em.ExponentialMechanism(loss=Total(values), domain=box),
                 em.Rejection(Anywhere())),
    "sampler": (em.ExponentialMechanism(loss=Total(values), domain=box), Patient()),
    "mechanism": (NoisyCount(31), "auto"),
}
folder = Path(sys.argv[1])
for name, (mechanism, sampler) in mechanisms.items():
    assert mechanism.plan(1.0).options
    release = mechanism.release(epsilon=1.0, sampler=sampler)
    assert all(check.holds for check in verify_certificate(release.certificate)), name
    altered = em.Certificate.from_json(release.certificate.to_json().replace(
        '"timing": "', '"timing": "not '))
    assert not all(check.holds for check in verify_certificate(altered)), name
    (folder / f"{name}.json").write_text(release.certificate.to_json())
assert mechanisms["mechanism"][0].plan(1.0).chosen == "NoisyCount"
others = NoisyCount(31).prepare(epsilon=100.0).with_data(7).release()
assert others.value == 7
assert others.certificate == NoisyCount(31).certificate(epsilon=100.0)
counts = NoisyCount(31).sample(epsilon=1.0, size=400, seed=3)
assert counts.dtype == np.int64 and abs(counts.mean() - 31) < 0.5
counted = NoisyCount(31).release(epsilon=1.0)
assert verify_value(counted.certificate, int(counted.value)).holds
assert not verify_value(counted.certificate, 30.5).holds
for claim in ('"eta": 1.5', '"sensitivity": 2', '"adjacency": "replace"'):
    field = claim.split(":")[0]
    text = re.sub(field + ": [^,]*", claim, counted.certificate.to_json())
    assert not all(check.holds for check in verify_certificate(em.Certificate.from_json(text)))
statistic = TotalOf(0)
assert plan(statistic, epsilon=Fraction(1), count=40).recommended is not None
settled = ReleaseRequest(epsilon=Fraction(100)).prepare_rows(statistic, 40)
drawn = settled.release(ArrayRows(numbers=values[:, None]).aggregate(settled.aggregation))
assert abs(drawn.value[0] - values.sum()) < 2.0
assert drawn.certificate == settled.certificate
(folder / "statistic.json").write_text(drawn.certificate.to_json())
"""
VERIFY = """
import json
import sys

from typer.testing import CliRunner

from expmech.cli.main import app

done = [CliRunner().invoke(app, ["verify", path, "--json"]) for path in sys.argv[1:]]
print(json.dumps([(one.exit_code, one.stdout) for one in done]))
"""
ENTRY_POINTS = """[expmech.domains]
EvenNumbers = toys:EvenNumbers

[expmech.envelopes]
anywhere = toys:Anywhere

[expmech.samplers]
Patient = toys:Patient

[expmech.mechanisms]
NoisyCount = toys:NoisyCount
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the snippets as a module, announced as an installed package would be."""
    folder = tmp_path_factory.mktemp("outside")
    text = (ROOT / "CONTRIBUTING.md").read_text()
    snippets = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(snippets) == 6
    return announce(folder, "toys", "\n\n".join(snippets), ENTRY_POINTS)


USE_KERNEL = """
import sys
from pathlib import Path

import expmech as em
from expmech.ledger.verification import verify_certificate
from steps import Neighbour, mechanism

folder = Path(sys.argv[1])
kernel = em.kernels.Mixture([Neighbour("1/2"), em.kernels.UniformMoves()])
samplers = {
    "atom": em.ConfAtomPerfect(kernel=Neighbour("1/2")),
    "points": em.RandomAtomPerfect([0.1, 0.7], kernel=Neighbour("3/4")),
    "chain": em.Metropolis(kernel, delta=1e-6),
}
for name, sampler in samplers.items():
    certificate = mechanism.release(epsilon=1.0, sampler=sampler).certificate
    assert all(check.holds for check in verify_certificate(certificate)), name
    (folder / f"{name}.json").write_text(certificate.to_json())
"""
KERNEL_POINTS = """[expmech.kernels]
neighbour = steps:Neighbour
"""


@pytest.fixture(scope="module")
def kernel_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the worked kernel as a package that is installed."""
    text = (ROOT / "docs" / "adding_a_kernel.md").read_text()
    snippets = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(snippets) == 3 and 'neighbour = "steps:Neighbour"' in text
    lines = ["from fractions import Fraction", *snippets]
    return announce(tmp_path_factory.mktemp("kernels"), "steps", "\n\n".join(lines), KERNEL_POINTS)


def announce(folder: Path, name: str, text: str, points: str) -> Path:
    """Write a module into ``folder``, announced as an installed package would be."""
    (folder / f"{name}.py").write_text(text)
    announced = folder / f"{name}-0.1.dist-info"
    announced.mkdir()
    (announced / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    (announced / "entry_points.txt").write_text(points)
    return folder


def python(folder: Path, *arguments: str, found: bool = True) -> subprocess.CompletedProcess[str]:
    path = [str(ROOT / "src"), *([str(folder)] if found else [])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder.parent,  # not the folder itself, which `python -c` would look into
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def verified(folder: Path, *names: str, found: bool = True) -> list[tuple[int, str]]:
    """Verify certificates by `expmech verify --json`, in one process; return codes and outputs."""
    files = [str(folder / f"{name}.json") for name in names]
    done = python(folder, "-c", VERIFY, *files, found=found)
    assert done.returncode == 0, done.stderr
    told = [(int(code), str(text)) for code, text in json.loads(done.stdout)]
    assert len(told) == len(names)
    return told


def test_toys_from_outside_are_planned_released_certified_and_verified(package: Path) -> None:
    done = python(package, "-W", "error", "-c", USE, str(package))
    assert done.returncode == 0, done.stderr
    for code, told in verified(
        package, "loss", "domain", "envelope", "sampler", "mechanism", "statistic"
    ):
        assert code == 0 and json.loads(told)["stands"], told
    # of these nobody knows without the package
    for code, told in verified(package, "domain", "envelope", "sampler", "mechanism", found=False):
        assert code == 4 and not json.loads(told)["stands"], told


def test_the_entry_points_of_the_page_are_those_of_the_test() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for name in ("EvenNumbers", "anywhere", "Patient", "NoisyCount"):
        assert re.search(rf'^{name} = "toys:\w+"$', text, flags=re.MULTILINE), name


def test_a_kernel_from_outside_is_checked_certified_and_verified(kernel_package: Path) -> None:
    done = python(kernel_package, "-W", "error", "-c", USE_KERNEL, str(kernel_package))
    assert done.returncode == 0, done.stderr
    for code, told in verified(kernel_package, "atom", "points", "chain"):
        assert code == 0 and json.loads(told)["stands"], told
    for code, told in verified(kernel_package, "atom", "points", "chain", found=False):
        assert code == 4 and not json.loads(told)["stands"], told
