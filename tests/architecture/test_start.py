"""What is loaded at the start: little, and NumPy only where numbers are computed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from expmech.cli.main import COMMANDS, load

IMPORT = "import expmech"
RUN = "from expmech.cli.main import main\ntry:\n    main()\nexcept SystemExit:\n    pass"
TELL = "import sys; print(*sorted(sys.modules), file=sys.stderr)"


def loaded(code: str, *arguments: str) -> list[str]:
    """Return the modules that a new process has loaded after ``code``."""
    program = [sys.executable, "-c", f"{code}\n{TELL}", *arguments]
    result = subprocess.run(program, capture_output=True, text=True, check=True)
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


def test_a_command_loads_its_own_module_only() -> None:
    modules = loaded(RUN, "verify", "--help")
    assert "expmech.cli.verify" in modules
    assert not {"expmech.cli.budget", "expmech.auditing", "expmech.paper"} & set(modules)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_the_program_is_the_first_paragraph_of_each_commands_help(name: str) -> None:
    command = load(name)
    assert command.name == name
    assert " ".join(command.help.split("\n\n")[0].split()) == COMMANDS[name]


def test_the_module_is_the_program() -> None:
    program = [sys.executable, "-m", "expmech", "--version"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("expmech ")
