"""The page in a real Chromium: every control, every question, a link, a narrow screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from xml.etree import ElementTree

import pytest
from support.explore import QUESTIONS, VARIANTS, chromium, command, state_of
from support.patience import PATIENCE

from expmech.explore.panels import PANELS as ALL

playwright = pytest.importorskip("playwright.sync_api")

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PANELS = [name for name in ALL if name != "enumerated"]  # which is drawn when asked for
CLIPPED = """() => [...document.querySelectorAll("figure svg text")].filter((one) => {
  const box = one.getBBox(), wide = one.ownerSVGElement.viewBox.baseVal.width;
  return box.x < -1 || box.x + box.width > wide + 1;
}).map((one) => one.textContent)"""

# What a button says for a moment, remembered: whoever looks late still reads it.
LISTEN = """(button) => {
  window.said = [];
  const write = () => window.said.push(button.textContent);
  new MutationObserver(write).observe(button, { childList: true });
}"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if chromium() is None:
        pytest.skip("no Chromium is installed: `make servers` installs it where it can")
    with command() as found:
        yield found


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        made = running.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield made
        made.close()


class Visit:
    """A tab, with what it complained about and whom it asked."""

    def __init__(self, page: Any, address: str) -> None:
        page.context.set_default_timeout(1000 * PATIENCE)  # milliseconds
        self.page, self.address = page, address
        self.complaints: list[str] = []
        self.asked: set[str] = set()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.add(urlsplit(request.url).netloc))

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def open(self, **state: str) -> None:
        self.page.goto(f"{self.address}?{urlencode(state)}")
        self.settled()

    def settled(self) -> None:
        """Wait until all panels show the state of the page."""
        self.page.wait_for_selector("body[data-drawn]")

    def after(self, act: Any) -> dict[str, str]:
        """Do something and return the state once everything is drawn again."""
        self.page.evaluate("() => { delete document.body.dataset.drawn; }")
        act()
        self.settled()
        return self.state()

    def state(self) -> dict[str, str]:
        found = parse_qs(urlsplit(self.page.url).query)
        return {name: values[0] for name, values in found.items()}

    def figure(self, panel: str) -> str:
        return str(self.page.locator(f"#{panel} figure").inner_html())

    def copied(self, button: str) -> str:
        """Press a button that copies; return what it copied, once it said so."""
        place = self.page.locator(button).first
        place.evaluate(LISTEN)
        place.click()
        self.page.wait_for_function("() => window.said.includes('Copied')")
        return str(self.page.evaluate("() => navigator.clipboard.readText()"))

    def slide(self, control: str, key: str) -> dict[str, str]:
        """Move a slider by the keyboard."""
        self.page.focus(f"#{control}")
        return self.after(lambda: self.page.keyboard.press(key))

    def own(self, control: str, panel: str, key: str) -> None:
        """Move a slider that belongs to one panel, and wait for that panel."""
        before = self.figure(panel)
        self.page.focus(f"#{control}")
        self.page.keyboard.press(key)
        self.page.wait_for_function(
            "([panel, before]) => document.querySelector(`#${panel} figure`).innerHTML !== before",
            arg=[panel, before],
        )


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visit]:
    with browser.new_context(viewport={"width": 1200, "height": 900}) as context:
        made = Visit(context.new_page(), address)
        yield made
        assert made.complaints == []
        assert made.asked <= {urlsplit(address).netloc}


def test_every_question_draws_every_panel(visit: Visit) -> None:
    visit.open()
    for question in QUESTIONS:
        if visit.state()["question"] != question:
            visit.after(partial(visit.page.select_option, "#question", question))
        assert visit.state()["question"] == question
        for panel in PANELS:
            assert visit.page.locator(f"#{panel} .message").inner_text()
            if panel != "code":
                assert visit.page.locator(f"#{panel} figure svg").count() == 1
        assert "made up" in visit.page.locator("header").inner_text()
        assert visit.page.locator("#answers figure circle.draw, #answers path.draw").count() >= 20


def test_epsilon_moves_the_dots_and_the_accuracy_slider_moves_epsilon(visit: Visit) -> None:
    visit.open(question="mean")
    before = visit.figure("answers")
    state = visit.slide("epsilon", "ArrowRight")
    assert float(state["epsilon"]) > 1.0
    assert visit.figure("answers") != before
    assert visit.page.input_value("#epsilon-number") == state["epsilon"]
    for _ in range(3):
        after = visit.slide("accuracy", "ArrowLeft")
    assert float(after["epsilon"]) < float(state["epsilon"])
    shown = float(visit.page.inner_text("#accuracy-value").split()[0])
    assert shown > 0.9

    def typed() -> None:
        visit.page.fill("#epsilon-number", "0.25")
        visit.page.press("#epsilon-number", "Enter")

    assert visit.after(typed)["epsilon"] == "0.25"
    assert "epsilon = 0.25" in visit.page.inner_text("#answers .message")
    assert visit.page.inner_text("#tile-privacy") == "epsilon 0.25"


def test_rows_size_bounds_and_method_are_controls(visit: Visit) -> None:
    visit.open(question="mean")
    assert int(visit.slide("rows", "End")["rows"]) == 20_000
    assert visit.slide("size", "ArrowRight")["size"] == "2"

    def fill(control: str, value: str) -> Any:
        def act() -> None:
            visit.page.fill(f"#{control}", value)
            visit.page.press(f"#{control}", "Tab")

        return act

    assert visit.after(fill("rows-number", "50"))["rows"] == "50"
    assert visit.after(fill("size-number", "1"))["size"] == "1"
    assert visit.after(fill("upper", "60"))["upper"] == "60"
    assert visit.after(fill("lower", "10"))["lower"] == "10"
    visit.after(lambda: visit.page.select_option("#question", "selection"))
    assert not visit.page.is_visible("#bounds")
    state = visit.after(lambda: visit.page.select_option("#method", "exponential"))
    assert state["method"] == "exponential"
    assert visit.page.locator("#samplers details").count() == 2


def test_where_no_error_is_public_the_accuracy_slider_says_so(visit: Visit) -> None:
    visit.open(question="regression")
    assert visit.page.is_disabled("#accuracy")
    assert "depends on the rows" in visit.page.inner_text("#accuracy-reason")
    visit.after(lambda: visit.page.select_option("#method", "ridge"))
    assert visit.page.is_enabled("#accuracy")


def test_a_panels_own_controls_move_that_panel(visit: Visit) -> None:
    visit.open(question="quantiles")
    visit.own("prior", "attacker", "ArrowRight")
    visit.own("releases", "composition", "PageUp")
    visit.own("failure", "composition", "ArrowRight")
    visit.own("people", "paper", "ArrowRight")
    visit.own("weight", "paper", "ArrowRight")
    visit.own("pace", "paper", "ArrowRight")
    visit.page.wait_for_url(re.compile("pace=1.1"))
    state = visit.state()
    assert (state["prior"], state["failure"], state["people"]) == ("51", "7", "11")
    assert "51% sure" in visit.page.inner_text("#attacker .message")
    visit.page.click("#enumerate")
    visit.page.wait_for_selector("#enumerated figure svg")
    assert "the claim is 1." in visit.page.inner_text("#enumerated .message")
    visit.own("people", "paper", "ArrowLeft")
    assert visit.page.locator("#enumerated figure svg").count() == 0  # it was of another state


def test_draws_and_rows_can_be_others(visit: Visit) -> None:
    visit.open(question="mean")
    first = visit.figure("answers")
    assert visit.after(lambda: visit.page.click("#again"))["seed"] == "2"
    second = visit.figure("answers")
    assert visit.after(lambda: visit.page.click("#other"))["data"] == "8"
    assert len({first, second, visit.figure("answers")}) == 3


@pytest.mark.parametrize("variant", ["means", "ridge", "three columns"])
def test_a_link_shows_the_same_picture(visit: Visit, variant: str) -> None:
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.open(**VARIANTS[variant], seed="5")
    before = {panel: visit.figure(panel) for panel in PANELS}
    other = visit.page.context.new_page()
    other.goto(visit.copied("#link"))
    other.wait_for_selector("body[data-drawn]")
    for panel, figure in before.items():
        assert other.locator(f"#{panel} figure").inner_html() == figure, panel
    other.close()


def test_code_can_be_copied_and_figures_saved(visit: Visit, tmp_path: Path) -> None:
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.open(question="mean")
    assert visit.copied("#code h3 button") == visit.page.locator("#code pre").first.inner_text()
    for panel in [name for name in PANELS if name != "code"]:
        with visit.page.expect_download() as saving:
            visit.page.click(f"#{panel} .downloads a")
        saving.value.save_as(tmp_path / f"{panel}.svg")
        ElementTree.parse(tmp_path / f"{panel}.svg")
    with visit.page.expect_download() as saving:
        visit.page.click("#answers .downloads button")
    saving.value.save_as(tmp_path / "answers.png")
    assert (tmp_path / "answers.png").read_bytes()[:4] == b"\x89PNG"


def test_a_mistake_is_said_beside_the_controls_and_can_be_mended(visit: Visit) -> None:
    visit.open(question="mean")
    before = visit.figure("answers")
    visit.page.fill("#upper", "-5")
    visit.page.press("#upper", "Tab")
    visit.page.wait_for_selector("#problem:has-text('must be above')")
    assert visit.figure("answers") == before

    def mend() -> None:
        visit.page.fill("#upper", "100")
        visit.page.press("#upper", "Tab")

    assert visit.after(mend)["upper"] == "100"
    assert visit.page.inner_text("#problem") == ""
    assert all("400" in complaint for complaint in visit.complaints)  # the browser's own word
    visit.complaints.clear()


def test_an_address_that_makes_no_sense_is_one_sentence(visit: Visit) -> None:
    visit.page.goto(f"{visit.address}?rows=many")
    assert "`rows` of the page must be" in visit.page.inner_text("main")
    visit.page.click("main a")
    visit.settled()
    visit.complaints.clear()  # the browser's own word for the status 400


@pytest.mark.parametrize(
    ("scheme", "variants"), [("light", QUESTIONS), ("dark", ["means", "ridge"])]
)
def test_a_narrow_screen_has_nothing_beyond_its_edge(
    browser: Any, address: str, scheme: str, variants: list[str]
) -> None:
    size = {"width": 360, "height": 740}
    with browser.new_context(viewport=size, has_touch=True, color_scheme=scheme) as context:
        visit = Visit(context.new_page(), address)
        for variant in variants:
            visit.open(**VARIANTS[variant])
            for folded in visit.page.locator("details").all():
                folded.evaluate("(one) => { one.open = true; }")
            wide = visit.page.evaluate("() => document.documentElement.scrollWidth")
            assert wide <= size["width"], variant
            assert visit.page.evaluate(CLIPPED) == []
        assert visit.complaints == []


def test_a_phone_keeps_the_picture_in_sight_while_a_slider_moves(
    browser: Any, address: str
) -> None:
    size = {"width": 400, "height": 800}
    with browser.new_context(viewport=size, has_touch=True) as context:
        visit = Visit(context.new_page(), address)
        visit.open(question="mean")
        for slider in ("epsilon", "accuracy", "rows"):
            visit.slide(slider, "ArrowRight")
            visit.page.locator(f"#{slider}").evaluate(
                "(slider) => window.scrollBy(0, slider.getBoundingClientRect().top - 600)"
            )
            drawn = visit.page.locator("#answers figure").bounding_box()
            moved = visit.page.locator(f"#{slider}").bounding_box()
            assert drawn["y"] >= 0 and drawn["y"] + drawn["height"] < moved["y"] < 800, slider
        visit.page.locator("#composition").scroll_into_view_if_needed()
        left = visit.page.locator("#answers").bounding_box()
        assert left["y"] + left["height"] <= 0, "it leaves with the sliders"
        assert visit.complaints == []


def test_every_control_is_reached_by_the_keyboard_and_has_a_name(visit: Visit) -> None:
    visit.open(question="mean")
    wanted = visit.page.evaluate(
        "() => [...document.querySelectorAll('input, select, button')]"
        ".filter((one) => !one.disabled && one.offsetParent !== null).map((one) => one.id)"
    )
    reached = set()
    visit.page.focus("#question")
    for _ in range(80):
        reached.add(visit.page.evaluate("() => document.activeElement.id"))
        visit.page.keyboard.press("Tab")
    assert {one for one in wanted if one} <= reached
    unnamed = visit.page.evaluate(
        "() => [...document.querySelectorAll('input, select')].filter((one) =>"
        " !one.labels.length && !one.getAttribute('aria-label')).map((one) => one.id)"
    )
    assert unnamed == []
    assert state_of(**visit.state()).question == "mean"
