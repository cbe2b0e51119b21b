"""The files around the code say what is true: versions, commands, targets and addresses."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import yaml

import expmech as em
from expmech.ledger.verification import verify_certificate

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "hooks"))
import reference  # noqa: E402

GUIDES = ["README.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md"]
TEMPLATES = sorted((ROOT / ".github").rglob("*.md"))


def read_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


def makefile() -> str:
    return (ROOT / "Makefile").read_text()


def makefile_list(name: str) -> list[str]:
    """Return the words of a variable of the Makefile."""
    match = re.search(rf"^{name} := ((?:.*\\\n)*.*)$", makefile(), flags=re.MULTILINE)
    assert match, name
    return match[1].replace("\\\n", " ").split()


def recipe(target: str) -> list[str]:
    """Return the lines of a target of the Makefile, with the environment's folder written out."""
    match = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile(), flags=re.MULTILINE)
    assert match, target
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in match[1].splitlines()]


def test_workflow_runs_make_test_on_every_python_that_is_promised() -> None:
    (job,) = read_yaml(".github/workflows/tests.yml")["jobs"].values()
    versions = job["strategy"]["matrix"]["python"]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    assert project()["requires-python"] == f">={versions[0]}"
    prefix = "Programming Language :: Python :: 3."
    classified = [line for line in project()["classifiers"] if line.startswith(prefix)]
    assert classified == [f"Programming Language :: Python :: {version}" for version in versions]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == ["make test PYTHON=python${{ matrix.python }}"]
    assert "$(PYTHON) -m venv" in makefile()


def test_a_workflow_holds_new_versions_of_engines_to_additivity_every_week() -> None:
    workflow = read_yaml(".github/workflows/weekly.yml")
    (when,) = workflow[True]["schedule"]  # YAML reads the word `on` as true
    assert re.fullmatch(r"\d+ \d+ \* \* \d", when["cron"])
    commands = [step.get("run") for step in workflow["jobs"]["additivity"]["steps"]]
    assert commands[-1] == "make additivity"
    (command,) = recipe("additivity")
    assert command.startswith("EXPMECH_ADDITIVITY=long ")


def test_citation_names_this_version_this_licence_and_the_paper() -> None:
    citation = read_yaml("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == em.__version__
    assert citation["license"] == project()["license"]
    assert citation["abstract"].rstrip(".") == project()["description"]
    (paper,) = citation["references"]
    assert [author["family-names"] for author in paper["authors"]] == [
        "Seeman",
        "Reimherr",
        "Slavković",
    ]
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f'"{paper["title"]}" ({paper["year"]})' in readme


def test_pre_commit_hooks_are_local_and_are_the_commands_of_make_lint() -> None:
    (repository,) = read_yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    entries = [hook["entry"] for hook in repository["hooks"]]
    assert entries == recipe("lint")
    for hook in repository["hooks"]:
        assert hook["language"] == "system", hook["id"]
        assert hook["pass_filenames"] is False, hook["id"]
        program, *words = shlex.split(hook["entry"])
        assert program.startswith(".venv/bin/"), program
        tool = Path(program).name
        assert shutil.which(tool, path=str(Path(sys.executable).parent)), tool
        for folder in words[words.index("src") :] if "src" in words else []:
            assert (ROOT / folder).is_dir(), folder


def test_makefile_targets_named_in_the_guides_exist() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", makefile(), flags=re.MULTILINE)
    assert phony
    targets = set(re.findall(r"^([a-z]+):", makefile(), flags=re.MULTILINE))
    assert targets == set(phony[1].split())
    named = set()
    for page in [*(ROOT / guide for guide in GUIDES), *TEMPLATES]:
        named |= set(re.findall(r"(?:`|^)make ([a-z]+)", page.read_text(), flags=re.MULTILINE))
    assert {"check", "test", "dist", "coverage"} <= named <= targets


def test_make_check_names_tests_that_exist() -> None:
    quick, slow = makefile_list("QUICK"), makefile_list("SLOW")
    for folder in quick:
        assert list((ROOT / folder).rglob("*.py")), folder
    for file in slow:
        assert (ROOT / file).is_file(), f"{file} is on the list SLOW of the Makefile"
        assert str(Path(file).parent) in quick, file


def test_tools_of_the_makefile_are_in_the_test_extra() -> None:
    requirements = project()["optional-dependencies"]["test"]
    names = {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}
    assert {"pytest", "pytest-xdist", "pytest-cov", "ruff", "mypy", "build"} <= names


def test_paths_and_links_of_the_guides_lead_somewhere() -> None:
    for guide in GUIDES:
        text = (ROOT / guide).read_text()
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
            assert (ROOT / target).exists(), (guide, target)
    for path in re.findall(
        r"`((?:src|tests|examples)/[\w/.]+)`", (ROOT / "RELEASING.md").read_text()
    ):
        assert (ROOT / path).exists(), path
    privacy = (ROOT / ".github" / "ISSUE_TEMPLATE" / "privacy_bug.md").read_text()
    assert "SECURITY.md" in privacy


def test_issue_templates_have_a_name_and_a_description() -> None:
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"))
    assert [form.stem for form in forms] == ["bug", "feature", "privacy_bug"]
    for form in forms:
        _, head, body = form.read_text().split("---\n", maxsplit=2)
        assert {"name", "about"} <= yaml.safe_load(head).keys(), form.name
        assert body.strip(), form.name


def test_no_machine_and_no_registry_is_named() -> None:
    names = ["Makefile", "pyproject.toml", "CITATION.cff", ".pre-commit-config.yaml", *GUIDES]
    pages = [ROOT / name for name in names]
    for page in [*pages, *(path for path in (ROOT / ".github").rglob("*") if path.is_file())]:
        found = re.findall(
            r"index-url|find-links|file://|/(?:home|root|work|opt)/", page.read_text()
        )
        assert not found, (page.name, found)


def test_changelog_starts_with_this_version() -> None:
    match = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert match
    assert match[1] == em.__version__


def test_verify_treats_an_older_certificate_as_the_release_page_says() -> None:
    loss = em.losses.L1Mean([0.2, 0.4, 0.9])
    mechanism = em.ExponentialMechanism(loss=loss, domain=em.Box([0.0], [1.0]))
    certificate = mechanism.certificate(epsilon=0.5)
    older = dataclasses.replace(certificate, version="0.0.1")
    (check,) = [check for check in verify_certificate(older) if not check.holds]
    assert check.claim == "version"
    assert check.detail == f"written by 0.0.1, recomputed by {em.__version__}"
    assert '"written by 0.1.0, recomputed by 0.2.0"' in (ROOT / "RELEASING.md").read_text()


def parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of what a caller passes, without those that take any others."""
    rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    signature = inspect.signature(function).parameters
    named = [name for name, parameter in signature.items() if parameter.kind not in rest]
    return [name for name in named if name not in ("self", "cls")]


def undocumented(names: list[str], docstring: str | None) -> list[str]:
    """Return the names that no entry of a section Parameters has."""
    text = inspect.cleandoc(docstring or "").partition("Parameters\n----------\n")[2]
    section = re.split(r"\n\n\w+\n---", text)[0]
    entries = [line for line in section.splitlines() if re.match(r"\*{0,2}\w", line)]
    documented = {name for line in entries for name in re.findall(r"\w+", line.partition(" : ")[0])}
    return [name for name in names if name not in documented]


def public_methods(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, member in vars(kind).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if inspect.isfunction(function) and not name.startswith("_"):
            yield name, function


def explained(kind: type, name: str, names: list[str], page: list[type]) -> bool:
    """Tell whether the method, or the one that it implements, documents its parameters.

    The latter belongs to a base class, or to a protocol on the same page of the reference.
    """
    if not undocumented(names, inspect.getdoc(getattr(kind, name))):
        return True
    others = [other for other in (*kind.__mro__[1:], *page) if other is not kind]
    methods = [vars(other)[name] for other in others if name in vars(other)]
    docstrings = [inspect.getdoc(getattr(method, "__func__", method)) or "" for method in methods]
    return any("Parameters\n" in text for text in docstrings)


@pytest.mark.parametrize("page", reference.PAGES)
def test_everything_in_the_reference_documents_its_parameters(page: str) -> None:
    listed = [
        getattr(importlib.import_module(f"expmech.{module}"), name)
        for module, name in reference.listed(page)
    ]
    kinds = [thing for thing in listed if inspect.isclass(thing)]
    missing = []
    for thing in listed:
        if inspect.isfunction(thing) and len(parameters(thing)) > 1:
            missing += [
                (thing.__name__, name) for name in undocumented(parameters(thing), thing.__doc__)
            ]
        if not inspect.isclass(thing) or issubclass(thing, Enum | BaseException):
            continue
        if thing.__init__ is not object.__init__ and not getattr(thing, "_is_protocol", False):
            names = undocumented(parameters(thing.__init__), thing.__doc__)
            missing += [(thing.__name__, name) for name in names]
        for name, method in public_methods(thing):
            names = parameters(method)
            if len(names) > 1 and not explained(thing, name, names, kinds):
                missing.append((thing.__name__, name))
    assert not missing
