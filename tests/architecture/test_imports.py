"""The picture of the house: imports point left, and nothing else knows a thing by its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import expmech as em

ROOT = Path(em.__file__).parent
ORDER = [
    "_version",
    "core",
    "domains",
    "losses",
    "theory",
    "certificates",
    "exponential",
    "mechanisms",
    "ledger",
    "tables",
]
SHELLS = ["estimators", "auditing", "interop", "paper", "explore", "cli"]
TOP = {
    "paper": ["auditing"],
    "explore": ["auditing", "paper"],
    "cli": ["estimators", "auditing", "paper", "explore"],
}
CONCRETE = re.compile(r"isinstance\([^)]*\b(Box|L1Ball|L2Ball|Simplex|Candidates)\b")
CLOCK = re.compile(
    r"\b(perf_counter|process_time|thread_time|monotonic)(_ns)?\(\)|\btime\.(time|time_ns|sleep)\("
)
GUESSED = re.compile(r"(get|has)attr\((self\.)?(loss|domain|problem\.loss|target\.domain)\b")


def sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def stage_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[str]:
    """Return the rooms a file imports, also inside functions, but not for types alone.

    The base of a mechanism names the type of a sampler, which stands to its right.
    """
    tree = ast.parse(path.read_text())
    typed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typed:
            continue
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "expmech":
                names = [f"expmech.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "expmech" and len(parts) > 1:
                yield parts[1]


def test_every_file_has_a_place_in_the_picture() -> None:
    known = {*ORDER, *SHELLS, "__init__", "__main__"}
    assert {stage_of(path) for path in sources()} == known
    assert len(known - {"_version", "__init__", "__main__"}) <= 15


def test_every_public_name_is_loaded_on_first_use() -> None:
    for name in em.__all__:
        assert getattr(em, name) is not None, name


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_left(path: Path) -> None:
    stage = stage_of(path)
    if stage == "__init__":
        return
    if stage == "__main__":  # python -m expmech
        assert set(imports_of(path)) == {"cli"}
        return
    for imported in imports_of(path):
        if imported == "__version__":
            continue
        if stage in SHELLS:
            allowed = [*ORDER, stage, *TOP.get(stage, [])]
        else:
            allowed = ORDER[: ORDER.index(stage) + 1]
        assert imported in allowed, (path, imported)


def test_no_concrete_domain_is_asked_for_outside_the_domains() -> None:
    for path in sources():
        if stage_of(path) != "domains":
            assert not CONCRETE.search(path.read_text()), path


def test_no_attribute_of_a_loss_or_a_domain_is_guessed() -> None:
    for path in sources():
        if stage_of(path) not in ("domains", "losses"):
            assert not GUESSED.search(path.read_text()), path


def test_no_assert_guards_a_guarantee() -> None:
    for path in sources():
        tree = ast.parse(path.read_text())
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree)), path


def test_no_clock_is_read_but_one_that_a_test_can_give() -> None:
    """A clock is the default of a parameter; tests neither read one nor sleep."""
    tests = Path(__file__).parents[1]
    others = [path for path in tests.rglob("*.py") if path.parent.name != "mutants"]
    assert CLOCK.search("start = time.perf_counter()") and CLOCK.search("time.sleep(1)")
    for path in [*sources(), *others]:
        assert path == Path(__file__) or not CLOCK.search(path.read_text()), path
