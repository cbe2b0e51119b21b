"""The built site: clean, whole, and readable without a network. It is built once for all."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from support.pages import Page, read_html
from support.patience import PATIENCE

import expmech

ROOT = Path(__file__).parents[2]
ROOMS = (
    "auditing",
    "domains",
    "estimators",
    "exponential.envelopes",
    "exponential.kernels",
    "exponential.samplers",
    "ledger",
    "losses",
    "mechanisms.k_norm.bodies",
    "mechanisms.optimum.risks",
    "tables.statistics",
    "theory",
)
MODULES = {"bodies", "estimators", "interop", "kernels", "risks", "tables"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {file: read_html(file) for file in sorted(site.rglob("*.html"))}


def test_every_page_of_the_repository_is_on_the_site(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        expected = name.with_name("index.html") if name.stem == "README" else name
        assert (site / expected).exists(), page
    for page in (ROOT / "benchmarks" / "results").glob("*.md"):
        assert page.stem == "README" or (site / f"benchmarks/results/{page.stem}.html").exists()


def test_links_of_the_site_lead_to_a_page_and_an_anchor_there(
    site: Path, pages: dict[Path, Page]
) -> None:
    for file, page in pages.items():
        if file.name == "404.html":
            continue  # it is shown at any address, so its links are not relative
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = (file.parent / path).resolve() if path else file
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), (file.relative_to(site), link)
            if anchor and target in pages:
                assert anchor in pages[target].anchors, (file.relative_to(site), link)


def test_the_site_asks_no_other_host_for_anything(site: Path, pages: dict[Path, Page]) -> None:
    elsewhere = re.compile(r"(?:[a-z]+:)?//")
    for file, page in pages.items():
        asked = [address for address in page.fetched if elsewhere.match(address)]
        assert not asked, (file.relative_to(site), asked)
    for style in site.rglob("*.css"):
        text = style.read_text()
        assert "@import" not in text, style
        assert not [
            found for found in re.findall(r"url\(['\"]?([^)]*)", text) if elsewhere.match(found)
        ], style


def test_every_formula_is_drawn(site: Path, pages: dict[Path, Page]) -> None:
    for file, page in pages.items():
        prose = "".join(page.prose)
        left = re.findall(r"\\[a-zA-Z(\[]+|\$", prose)
        assert not left, (file.relative_to(site), left)
        assert "arithmatex" not in file.read_text(), file
    assert pages[site / "theory" / "affine.html"].formulas > 300
    assert (site / "assets" / "formulas.woff").stat().st_size > 10_000


def test_every_public_name_is_in_the_reference(pages: dict[Path, Page]) -> None:
    anchors = set().union(*(page.anchors for page in pages.values()))
    short = {name for name in expmech.__all__ if not name.startswith("__") and name not in MODULES}
    assert not [name for name in sorted(short) if f"expmech.{name}" not in anchors]
    for room in ROOMS:
        public = importlib.import_module(f"expmech.{room}").__all__
        names = [name for name in public if not name.isupper() and name not in short]
        assert not [name for name in names if f"expmech.{room}.{name}" not in anchors], room


def test_the_search_knows_pages_headings_and_names(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    places = {entry["location"] for entry in index["docs"]}
    assert {"theory/bounds.html#1-the-floor-p_0", "reference/domains.html#expmech.Box"} <= places
    (recipe,) = (
        entry
        for entry in index["docs"]
        if entry["location"] == "guides/from_scikit_learn.html#categorical-features"
    )
    assert "one-hot encoding" in recipe["text"] and "OneHotEncoder" in recipe["text"]
    assert recipe["boost"] > 1  # before the names of code


def test_the_search_works_from_a_disk_without_a_network(site: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("There is no Chromium on this machine.")
    alone = ["--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
    address = f"{(site / 'index.html').as_uri()}?q=minorisation"
    done = subprocess.run(
        [browser, *alone, "--virtual-time-budget=20000", "--dump-dom", address],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert "theory/metropolis.html?h=minorisation#1-total-variation" in done.stdout
