"""Make the page that lists the versions of a site: python docs/hooks/versions.py site.

The site of the newest main is in the folder itself; that of version 0.1.0 in a folder 0.1.0.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>expmech: versions of the documentation</title>
<style>body {{ font: 1.1rem/1.6 system-ui, sans-serif; margin: 3rem auto; max-width: 34rem }}</style>
<h1>Versions of the documentation</h1>
<p>To verify a certificate, read the pages of the version that it names.</p>
<ul>
<li><a href="index.html">newest</a> (not yet released)</li>
{}
</ul>
"""


def versions(site: Path) -> list[str]:
    """Return the folders that are named like a version, the newest first."""
    found = [path.name for path in site.iterdir() if re.fullmatch(r"\d+\.\d+\.\d+", path.name)]
    return sorted(found, key=lambda name: [int(part) for part in name.split(".")], reverse=True)


def main() -> None:
    """Write versions.html into the site."""
    site = Path(sys.argv[1])
    lines = (f'<li><a href="{name}/index.html">{name}</a></li>' for name in versions(site))
    (site / "versions.html").write_text(PAGE.format("\n".join(lines)))


if __name__ == "__main__":
    main()
