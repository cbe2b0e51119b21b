"""What is loaded at the start: little, and NumPy only where numbers are computed."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import expmech
from expmech.cli.main import COMMANDS, load

IMPORT = "import expmech"
RUN = "from expmech.cli.main import main\ntry:\n    main()\nexcept SystemExit:\n    pass"
MEAN = ("release", "mean", "ages.csv", "--column", "age", "--bounds", "0,100", "--epsilon", "1")
LOOKS = ("TERMINAL_WIDTH", "GITHUB_ACTIONS", "PY_COLORS", "NO_COLOR", "FORCE_COLOR")
TELL = "import sys; print(*sorted(sys.modules), file=sys.stderr)"


def loaded(code: str, *arguments: str, folder: Path | None = None) -> list[str]:
    """Return the modules that a new process has loaded after ``code``."""
    program = [sys.executable, "-c", f"{code}\n{TELL}", *arguments]
    result = subprocess.run(program, capture_output=True, text=True, check=True, cwd=folder)
    return result.stderr.splitlines()[-1].split()


@pytest.mark.parametrize(
    ("code", "arguments"), [(IMPORT, ()), (RUN, ("--version",)), (RUN, ("--help",)), (RUN, ())]
)
def test_import_version_and_help_load_no_numpy(code: str, arguments: tuple[str, ...]) -> None:
    modules = loaded(code, *arguments)
    assert "expmech" in modules
    assert "numpy" not in modules
    ours = [name for name in modules if name.startswith("expmech")]
    assert len(ours) <= 10, ours


def test_the_version_and_the_help_of_the_program_are_shown_without_typer() -> None:
    assert not {"typer", "rich"} & set(loaded(RUN, "--version"))
    assert not {"typer", "rich.markdown", "expmech.cli.app"} & set(loaded(RUN, "--help"))


@pytest.mark.parametrize("colour", ["", "FORCE_COLOR", "PY_COLORS"])
@pytest.mark.parametrize("width", [40, 100])
def test_the_help_of_the_program_looks_as_typer_shows_it(width: int, colour: str) -> None:
    def shown(**more: str) -> str:
        plain = {name: text for name, text in os.environ.items() if name not in LOOKS}
        chosen = {colour: "1"} if colour else {}
        environment = plain | {"COLUMNS": str(width)} | chosen | more
        program = [sys.executable, "-m", "expmech", "--help"]
        done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
        return done.stdout

    assert shown() == shown(TYPER_ITSELF="1")


def test_a_command_loads_its_own_module_only() -> None:
    modules = loaded(RUN, "verify", "--help")
    assert "expmech.cli.verify" in modules
    assert not {"expmech.cli.budget", "expmech.auditing", "expmech.paper"} & set(modules)


def test_a_mean_of_a_file_loads_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "ages.csv").write_text("age\n30\n41\n")
    modules = loaded(RUN, *MEAN, folder=tmp_path)
    assert {"expmech.mechanisms.noisy_sums.noisy_sums", "duckdb"} <= set(modules)
    for room in ("exponential", "losses", "estimators", "cli.plan", "mechanisms.quantiles"):
        assert f"expmech.{room}" not in modules, room
    assert not {"pandas", "scipy", "sklearn", "pyarrow.parquet", "pydantic"} & set(modules)
    compilers = "ibis.backends.sql.compilers"
    assert f"{compilers}.duckdb" in modules and f"{compilers}.trino" not in modules
    ours = [name for name in modules if name.startswith("expmech")]
    assert len(ours) <= 100, len(ours)


def postponed_package(folder: Path, second: str) -> None:
    """Write a package `late.many` of two modules, whose names its own module imports."""
    package = folder / "late" / "many"
    package.mkdir(parents=True)
    (folder / "late" / "__init__.py").write_text("")
    (package / "__init__.py").write_text(
        "from late.many.one import A\nfrom late.many.two import B\n"
    )
    (package / "one.py").write_text("A = 1")
    (package / "two.py").write_text(second)


def test_a_postponed_package_is_the_package_to_whoever_uses_it(tmp_path: Path) -> None:
    postponed_package(tmp_path, "B = 2")
    code = """if True:
        from expmech.tables.sources.postponed import postpone
        postpone("late.many")
        import late.many.one, sys
        first = late.many
        assert first.one.A == 1 and "late.many.two" not in sys.modules
        assert first.two.B == 2 and not hasattr(first, "__all__")
        from late.many import B
        assert (first.A, B) == (1, 2) and not hasattr(first, "C")
        postpone("late.many")
        import late.many
        assert late.many is first
    """
    assert "late.many.two" in loaded(code, folder=tmp_path)


def test_a_module_of_a_postponed_package_may_import_a_name_of_the_package(tmp_path: Path) -> None:
    postponed_package(tmp_path, "from late.many import A\nB = A + 1")
    code = """if True:
        from expmech.tables.sources.postponed import postpone
        postpone("late.many")
        from late.many.two import B
        assert B == 2
    """
    assert "late.many.one" in loaded(code, folder=tmp_path)


def test_every_compiler_of_ibis_works_after_they_were_postponed() -> None:
    code = """if True:
        from expmech.tables.sources.postponed import postpone
        postpone("ibis.backends.sql.compilers")
        import ibis.backends.sql.compilers as compilers
        assert compilers.risingwave.compiler
        from ibis.backends.sql.compilers import *
        assert all(hasattr(compilers, name) for name in compilers.__all__)
        assert BigQueryCompiler is compilers.bigquery.BigQueryCompiler
    """
    assert "ibis.backends.sql.compilers.trino" in loaded(code)


def test_threads_that_use_a_postponed_package_at_once_all_get_their_names(tmp_path: Path) -> None:
    package = tmp_path / "late" / "many"
    package.mkdir(parents=True)
    (tmp_path / "late" / "__init__.py").write_text("")
    (package / "__init__.py").write_text(
        "import threading\n"
        "import late\n"
        "other = threading.Thread(target=late.ask)\n"
        "other.start()\n"
        "other.join(0.2)\n"
        "A, B = 1, 2\n"
    )
    code = """if True:
        import late
        seen = []
        late.ask = lambda: seen.append(late.many.B)
        from expmech.tables.sources.postponed import postpone
        postpone("late.many")
        assert late.many.A == 1
        late.many.other.join()
        assert seen == [2]
    """
    loaded(code, folder=tmp_path)


def test_the_help_of_a_group_makes_none_of_its_commands() -> None:
    modules = loaded(RUN, "release", "--help")
    assert "expmech.cli.statistics" in modules
    statistics = {name for name in modules if name.startswith("expmech.tables.statistics.")}
    assert statistics <= {"expmech.tables.statistics.base"}


@pytest.mark.parametrize("path", sorted(Path(expmech.__file__).parent.rglob("__init__.py")))
def test_names_on_demand_are_those_that_type_checkers_see(path: Path) -> None:
    tree = ast.parse(path.read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if not any("names_on_demand" in ast.unparse(call.func) for call in calls):
        return
    folders = path.parent.relative_to(Path(expmech.__file__).parents[1]).parts
    package = importlib.import_module(".".join(folders))
    (table,) = (ast.literal_eval(call.args[1]) for call in calls if len(call.args) == 2)
    seen = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for module, names in table.items():
        for name in names.split():
            assert getattr(package, name) is not None
            assert (f"{package.__name__}.{module}", name) in seen
    for name in package.__all__:
        assert getattr(package, name) is not None


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_the_program_is_the_first_paragraph_of_each_commands_help(name: str) -> None:
    command = load(name)
    assert command.name == name
    assert " ".join(command.help.split("\n\n")[0].split()) == COMMANDS[name]


def test_the_module_is_the_program() -> None:
    program = [sys.executable, "-m", "expmech", "--version"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("expmech ")
