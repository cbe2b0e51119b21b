"""What other libraries of differential privacy offer, read from the installed packages.

    pip install opendp==0.16.0 && python -m benchmarks.peers opendp
    pip install diffprivlib==0.6.6 'scikit-learn<1.8' && python -m benchmarks.peers diffprivlib
    pip install --no-deps tmlt.analytics==0.21.0 tmlt.core==0.20.0 && python -m benchmarks.peers tumult

Tumult is read as text: its packages import Spark, which is not needed for that.
"""

from __future__ import annotations

import ast
import importlib
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path


def opendp() -> dict[str, list[str]]:
    """Return the constructors of measurements and the privacy measures of opendp."""
    measurements = importlib.import_module("opendp.measurements")
    measures = importlib.import_module("opendp.measures")
    return {
        "measurements": [name for name in dir(measurements) if name.startswith("make_")],
        "measures": [name for name in dir(measures) if name.endswith("divergence")],
    }


def diffprivlib() -> dict[str, list[str]]:
    """Return mechanisms, models and tools of diffprivlib, and what a fit without bounds does."""
    found = {}
    for part in ("mechanisms", "models", "tools"):
        module = importlib.import_module(f"diffprivlib.{part}")
        found[part] = [name for name in dir(module) if not name.startswith("_")]
    models = importlib.import_module("diffprivlib.models")
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        models.LinearRegression(epsilon=1.0).fit([[0.1], [0.5], [0.9]], [0.0, 0.5, 1.0])
    found["without bounds"] = sorted({warning.category.__name__ for warning in raised})
    return found


def tumult() -> dict[str, list[str]]:
    """Return the queries and the kinds of budget of Tumult Analytics, and the noise of its core."""
    return {
        "queries": _methods("tmlt.analytics", "query_builder.py"),
        "budgets": _classes("tmlt.analytics", "privacy_budget.py"),
        "noise": _classes("tmlt.core", "measurements/noise_mechanisms.py"),
    }


def _tree(package: str, file: str) -> ast.Module:
    root, _, inner = package.partition(".")
    found = find_spec(root)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"{package} is not installed; see the head of this file.")
    return ast.parse((Path(found.submodule_search_locations[0]) / inner / file).read_text())


def _classes(package: str, file: str) -> list[str]:
    return [node.name for node in _tree(package, file).body if isinstance(node, ast.ClassDef)]


def _methods(package: str, file: str) -> list[str]:
    nodes = [node for node in ast.walk(_tree(package, file)) if isinstance(node, ast.FunctionDef)]
    return sorted({node.name for node in nodes if not node.name.startswith("_")})


def main() -> None:
    """Print what the library named on the command line offers."""
    readers = {"opendp": opendp, "diffprivlib": diffprivlib, "tumult": tumult}
    for part, names in readers[sys.argv[1]]().items():
        print(f"{part}: {', '.join(names)}")


if __name__ == "__main__":
    main()
