"""The wheel and the sdist hold what they should, and the wheel works where nothing else is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from expmech import __version__

ROOT = Path(__file__).parents[2]
NOT_SOURCE = (".*", "__pycache__", "*.egg-info", "build", "dist")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the tracked files, and nothing that lies about beside them."""
    copy = tmp_path_factory.mktemp("distribution") / "checkout"
    if not (ROOT / ".git").exists():  # an unpacked sdist or archive
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_SOURCE))
        return copy
    for name in run("git", "ls-files", "-z", folder=ROOT).split("\0"):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def distribution(checkout: Path) -> Path:
    """Build the sdist and from it the wheel, as `make dist` does, with the tools at hand."""
    folder = checkout.parent / "dist"
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), folder=checkout)
    return folder


@pytest.fixture(scope="module")
def installed(distribution: Path) -> Iterator[Path]:
    """Yield the Python of an empty environment, with the wheel and its dependencies in it."""
    environment = distribution.parent / "environment"
    run(sys.executable, "-m", "venv", str(environment), folder=distribution)
    python = environment / "bin" / "python"
    pip = [str(python), "-I", "-m", "pip", "--retries", "1", "--disable-pip-version-check"]
    try:
        run(*pip, "install", str(wheel_in(distribution)), folder=distribution)
    except AssertionError:
        skip_if_unreachable(pip, folder=distribution)
        raise
    yield python
    shutil.rmtree(environment)


def run(*command: str, folder: Path) -> str:
    """Run a command without this checkout on its path; fail with what it said."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def skip_if_unreachable(pip: list[str], *, folder: Path) -> None:
    """Skip if no version of the dependencies can be had; a wrong requirement is no excuse."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.split(r"[^\w.-]", requirement)[0] for requirement in project["dependencies"]]
    try:
        run(*pip, "download", "--no-deps", "--dest", "probe", *names, folder=folder)
    except AssertionError:
        pytest.skip(f"the package registry cannot be reached: no {', '.join(names)} to install")


def wheel_in(folder: Path) -> Path:
    (wheel,) = folder.glob("*.whl")
    return wheel


def modules_of(checkout: Path) -> set[str]:
    source = checkout / "src"
    return {str(path.relative_to(source)) for path in (source / "expmech").rglob("*.py")}


def test_wheel_holds_every_module_the_marker_of_types_and_the_licence(
    checkout: Path, distribution: Path
) -> None:
    with zipfile.ZipFile(wheel_in(distribution)) as wheel:
        held = set(wheel.namelist())
    metadata = f"expmech-{__version__}.dist-info"
    wanted = modules_of(checkout) | {"expmech/py.typed", f"{metadata}/licenses/LICENSE"}
    assert len(wanted) > 50
    assert not wanted - held, "the wheel lacks these files"
    foreign = {name for name in held if not name.startswith(("expmech/", metadata))}
    assert not foreign, "the wheel would install these beside the package"


def test_sdist_holds_the_sources_the_licence_and_the_demo(
    checkout: Path, distribution: Path
) -> None:
    (sdist,) = distribution.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {f"src/{name}" for name in modules_of(checkout)}
    wanted |= {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "src/expmech/py.typed"}
    wanted |= {"examples/demo.py", "examples/data/survey.csv"}
    assert not wanted - held, "the sdist lacks these files"


def test_the_wheel_releases_in_an_empty_environment(installed: Path, tmp_path: Path) -> None:
    where = "import expmech; print(expmech.__file__, expmech.__version__)"
    file, version = run(str(installed), "-I", "-c", where, folder=tmp_path).split()
    assert Path(file).is_relative_to(installed.parents[1])
    assert version == __version__
    release = (
        "import expmech as em;"
        "mean = em.NoisyMean.from_rows([[0.2], [0.9]], lower=[0.0], upper=[1.0]);"
        "print(mean.release(epsilon=1.0).certificate)"
    )
    said = run(str(installed), "-I", "-W", "error", "-c", release, folder=tmp_path)
    assert "epsilon = 1" in said and "replace" in said


def test_the_demo_runs_from_the_wheel_with_the_extras_that_make_demo_installs(
    installed: Path, checkout: Path, distribution: Path, tmp_path: Path
) -> None:
    shutil.copytree(checkout / "examples", tmp_path / "examples")
    (extras,) = re.findall(
        r"install --quiet --editable '\.(\[cli.*\])'\n\ttouch \$\(VENV\)/\.demo",
        (ROOT / "Makefile").read_text(),
    )
    pip = [str(installed), "-I", "-m", "pip", "--retries", "1", "--disable-pip-version-check"]
    run(*pip, "install", f"{wheel_in(distribution)}{extras}", folder=distribution)
    said = run(str(installed), "-I", "examples/demo.py", str(tmp_path), folder=tmp_path)
    assert "mean of income" in said
    assert (tmp_path / "report.html").exists()
