"""The pages of the API reference: every public name, from the lists ``__all__`` of the source."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.structure.pages import Page

SOURCE = Path(__file__).parents[2] / "src" / "expmech"
# Each page: its title, and the modules whose public names it lists. A module without a list ``__all__`` is listed by the names after the colon.
PAGES = {
    "mechanisms": (
        "Mechanisms and releases",
        (
            "exponential.mechanism: ExponentialMechanism",
            "exponential.posterior: posterior, PosteriorSampling",
            "exponential.target: BaseMeasure",
            "mechanisms.noisy_sums.noisy_sums: NoisyMean, NoisySums",
            "mechanisms.k_norm.k_norm: KNorm",
            "mechanisms.quantiles",
            "mechanisms.selection",
            "mechanisms.groups",
            "mechanisms.bounds",
            "mechanisms.directions",
            "mechanisms.optimum.perturbed_optimum: PerturbedOptimum",
            "mechanisms.optimum.draw: Lattice",
            "certificates.mechanism: Draws, Mechanism, Release",
            "certificates.certificate: Certificate",
            "certificates.plan: Option, Plan",
            "certificates.accuracy: Accuracy",
        ),
    ),
    "functions": ("Releases in one line", ("tables.functions",)),
    "estimators": ("Estimators", ("estimators",)),
    "domains": ("Domains", ("domains",)),
    "losses": ("Losses", ("losses",)),
    "samplers": ("Samplers", ("exponential.samplers",)),
    "envelopes": ("Envelopes", ("exponential.envelopes",)),
    "kernels": ("Kernels", ("exponential.kernels",)),
    "risks": ("Risks of the perturbed optimum", ("mechanisms.optimum.risks",)),
    "bodies": ("Bodies of K-norm noise", ("mechanisms.k_norm.bodies",)),
    "ledger": ("Ledger", ("ledger", "ledger.verification: verify_certificate, verify_value")),
    "tables": ("Tables and their statistics", ("tables.release: release", "tables.statistics", "tables.sources")),
    "auditing": ("Audits", ("auditing",)),
    "theory": ("Bounds", ("theory",)),
    "core": ("Adjacency, errors and coins", ("core.adjacency: Adjacency", "core.errors: ExpmechError, ParameterError, ParameterTypeError, UnsupportedError, DataError, LossError, EnvelopeViolatedError", "core.coins.exact: Coins")),
    "interop": ("OpenDP and dp_accounting", ("interop.opendp: as_measurement", "interop.dp_accounting: event")),
}  # fmt: skip
ACRONYMS = {"MALA", "PMSE"}  # classes; other names in capitals are constants
ROLE = re.compile(r":[a-z]+:<code>~?([\w.]+)</code>")  # what Sphinx calls a role
FILE = re.compile(r"(?<![\w/])docs/([\w/]+)\.md")


@cache
def pages() -> dict[str, str]:
    """Return the text of each page by its path."""
    texts = {"reference/README.md": _overview()}
    for page, (title, _) in PAGES.items():
        entries = "\n\n".join(f"::: {name}" for name in entries_of(page))
        texts[f"reference/{page}.md"] = f"# {title}\n\n{_summary(page)}\n\n{entries}\n"
    return texts


def on_page_content(content: str, page: Page, **_: Any) -> str:
    """Link the names and the pages that docstrings mention."""
    if not page.file.src_uri.startswith("reference/"):
        return content
    return FILE.sub(r'<a href="../\1.html">\1</a>', ROLE.sub(_named, content))


def _named(match: re.Match[str]) -> str:
    short = match[1].rpartition(".")[2]
    return f'<autoref identifier="{match[1]}" optional><code>{short}</code></autoref>'


def entries_of(page: str) -> list[str]:
    """Return the dotted names that a page shows, the short ones that `expmech` itself exports."""
    return [
        f"expmech.{name}" if name in exported() else f"expmech.{module}.{name}"
        for module, name in listed(page)
    ]


def listed(page: str) -> list[tuple[str, str]]:
    """Return the module and the name of everything that a page shows, without constants."""
    entries = []
    for item in PAGES[page][1]:
        module, _, names = item.partition(": ")
        public = names.split(", ") if names else _all(ast.parse(_file(module).read_text()))
        entries += [(module, name) for name in public if not name.isupper() or name in ACRONYMS]
    return entries


@cache
def exported() -> set[str]:
    """Return the names that `expmech` itself exports."""
    return set(_all(ast.parse((SOURCE / "__init__.py").read_text())))


def _all(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise ValueError("A module of the reference has no list __all__.")


def _file(module: str) -> Path:
    path = SOURCE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _summary(page: str) -> str:
    room = SOURCE / page / "__init__.py"
    file = room if room.exists() else _file(PAGES[page][1][0].partition(":")[0])
    return ast.get_docstring(ast.parse(file.read_text())) or ""


def _overview() -> str:
    lines = [
        "# API reference",
        "",
        "Everything public, from the docstrings of the source. `import expmech as em`; what a user needs first"
        " is `em.ExponentialMechanism`, `em.Box`, the losses and the estimators.",
        "",
        "| page | about |",
        "|---|---|",
    ]
    for page, (title, _) in PAGES.items():
        lines.append(f"| [{title}]({page}.md) | {_summary(page).splitlines()[0]} |")
    return "\n".join([*lines, ""])
