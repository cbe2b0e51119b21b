"""How fast the page of `expmech explore` is, measured in the browser: python -m benchmarks.explore_benchmark.

The goals: the first picture within 3 s of the page's opening, a slider's within 200 ms.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.support import write
from expmech.explore.questions import QUESTIONS

HERE = Path(__file__).parent
BROWSERS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
MOVES = 20
# From the event of the slider until the frame after the one in which the new picture is there.
MOVE = """async ([control, by]) => {
  const slider = document.getElementById(control), figure = document.querySelector("#answers figure");
  const target = Number(slider.value) + by, start = performance.now();
  await new Promise((done) => {
    new MutationObserver((_, watch) => { watch.disconnect(); done(); }).observe(figure, { childList: true });
    slider.value = target;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - start;
}"""
FIRST = """() => new Promise((done) => {
  const look = () => document.querySelector("#answers figure svg")
    ? requestAnimationFrame(() => done(performance.now())) : setTimeout(look, 5);
  look();
})"""


def main() -> None:
    words = [sys.executable, "-m", "benchmarks.explore_benchmark", "serve"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        try:
            with sync_playwright() as running:
                path = next(one for one in BROWSERS if Path(one).exists())
                browser = running.chromium.launch(executable_path=path, args=FLAGS)
                rows = [_question(browser, address, name) for name in QUESTIONS]
                browser.close()
        finally:
            server.terminate()
    write("explore", _page(rows).splitlines(), module="explore_benchmark")


def _question(browser: Any, address: str, name: str) -> list[str]:
    """Open the page at a question and move its sliders, without waiting for the other panels."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.goto(f"{address}?question={name}")
    first = page.evaluate(FIRST)
    page.wait_for_selector("body[data-drawn]", timeout=60_000)
    drawn = page.evaluate("() => performance.now()")
    epsilon = [page.evaluate(MOVE, ["epsilon", 3 if j % 2 else -2]) for j in range(MOVES)]
    # The other panels of the last move are being drawn while the next one comes.
    during = []
    for j in range(MOVES):
        page.wait_for_timeout(170)
        during.append(page.evaluate(MOVE, ["epsilon", 3 if j % 2 else -2]))
    accuracy = []
    if page.is_enabled("#accuracy"):
        accuracy = [page.evaluate(MOVE, ["accuracy", 3 if j % 2 else -2]) for j in range(MOVES)]
    page.close()
    return [name, f"{first:.0f}", f"{drawn:.0f}", *map(_told, (epsilon, during, accuracy))]


def _told(times: list[float]) -> str:
    if not times:
        return "no public error"
    return f"{statistics.median(times):.0f} ({max(times):.0f})"


def _page(rows: list[list[str]]) -> str:
    heads = (
        "question",
        "first picture",
        "all panels",
        "epsilon",
        "epsilon, panels busy",
        "accuracy",
    )
    lines = [heads, ("---",) * len(heads), *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"""# The page of `expmech explore`, measured in the browser

`python -m benchmarks.explore_benchmark` opens the page at each question in Chromium (without a screen, two cores) and moves the sliders by script. Milliseconds: from the opening of the page until its first picture and until
all eight panels are drawn; from the event of a slider until the frame after the new picture, the median of {MOVES} moves and the slowest in brackets. "Panels busy" moves the slider while the other panels of the move before are being computed. Every move draws
twenty values at an epsilon that was not seen before, so that no draw comes from a cache.

{table}

The goals are 3000 ms for the first picture and 200 ms for a slider. The machine did other work at the same time, which the slowest moves show.
"""


def _serve() -> None:
    from expmech.explore import make_server

    with make_server() as server:
        print(server.address, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    _serve() if sys.argv[1:] == ["serve"] else main()
