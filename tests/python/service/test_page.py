"""The page of the service in a browser: what it shows, by keyboard, to a screen reader, dark."""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastdx import Tem, calibration
from helpers.browser import BROWSER, Browser

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium")

POLICIES = """
default = "reviews"
[policies.reviews]
epsilon = 3.0
[policies.strict]
epsilon = 1.0
skip = ["Anna"]
oov = "mask"
[policies.same]
epsilon = 1.0
consistent = true
"""
SENTENCE = "I would like to book a table for two."


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile") as opened:
        yield opened


@pytest.fixture
def page(start: Callable[..., str], browser: Browser, tmp_path: Path) -> Browser:
    """The page, loaded, with the measures of the default policy."""
    config = tmp_path / "policies.toml"
    config.write_text(POLICIES)
    browser.open(f"http://{start('--config', str(config))}/")
    browser.wait("!measures.hidden")
    return browser


def text(page: Browser, id: str) -> str:
    found: str = page.run(f"document.getElementById({id!r}).innerText")
    return found


def percentages(shown: str) -> list[float]:
    return [float(p) / 100 for p in re.findall(r"([\d.]+)\s%", shown)]


def test_what_it_says_of_a_policy(page: Browser) -> None:
    options = page.run("[...policy.options].map(o => o.value)")
    assert options == ["reviews", "strict"] and page.run("policy.value") == "reviews"
    assert "ε = 3" in text(page, "sentence") and len(text(page, "users")) > 50
    assert "200 words" in text(page, "sample") and "20,000" in text(page, "sample")
    tem = Tem(epsilon=3.0, exclude="offensive")
    words = [tem.space.words[i * 19_999 // 199] for i in range(200)]
    table = calibration.statistics(tem, words, inputs=False)
    mean, most = percentages(text(page, "unchanged"))
    assert mean == pytest.approx(table["N_w"].mean(), abs=1e-3)
    assert most == pytest.approx(table["N_w"].max(), abs=1e-3)
    named, chance = percentages(text(page, "named"))
    assert chance == 1 / 200 < mean < named < 1
    # A stricter policy: fewer words stay, fewer are named.
    page.run("policy.value = 'strict'; policy.dispatchEvent(new Event('change'))")
    page.wait("sentence.innerText.includes('ε = 1 ') && !measures.hidden")
    assert percentages(text(page, "unchanged"))[0] < mean
    assert percentages(text(page, "named"))[0] < named


def test_drawing_by_keyboard_alone(page: Browser) -> None:
    page.run("document.activeElement.blur()")
    order = []
    for _ in range(4):
        page.press("Tab")
        order.append(page.run("document.activeElement.id"))
    assert order == ["text", "policy", "key", "draw"]
    outline = page.run("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.press("Enter", text="\r")
    page.wait("!words.hidden")
    first = text(page, "out")
    assert first.endswith(".") and len(first.split()) == len(SENTENCE.split())
    rows = page.run("[...words.querySelectorAll('tbody tr')].map(r => r.innerText)")
    assert [row.split("\t")[0] for row in rows] == SENTENCE.rstrip(".").split()
    for row in rows:
        # Replacements, and all others.
        assert sum(percentages(row.split("\t")[2])) == pytest.approx(1, abs=0.01)
    # Draws of nine words that are equal by chance: each is unchanged with far less than one half.
    assert text(page, "draw") == "Draw again"
    draws = {first}
    for _ in range(20):
        before = page.run("performance.getEntriesByType('resource').length")
        page.press("Enter", text="\r")
        page.wait(f"performance.getEntriesByType('resource').length >= {before} + 2")
        page.wait("!form.hasAttribute('aria-busy')")
        draws.add(text(page, "out"))
    assert len(draws) > 1
    # From the sentence, too: Ctrl and Enter.
    page.run("text.focus(); text.value = 'Anna qwxyz tea'; policy.value = 'strict'")
    page.press("Enter", modifiers=2)
    page.wait("words.querySelectorAll('tbody tr').length === 3")
    shown = text(page, "words")
    assert "RELEASED AS IT IS" in shown and "becomes [MASK]" in shown
    assert text(page, "out").startswith("Anna [MASK] ")


def test_what_a_screen_reader_gets(page: Browser) -> None:
    page.run("form.requestSubmit()")
    page.wait("!words.hidden")
    tree = page.tree()
    names = {role: [n for r, n in tree if r == role] for role, _ in tree}
    assert names["main"] == [""] and names["heading"][0] == "fastdx"
    assert {"Released", "Each word", "Guarantee"} <= set(names["heading"])
    assert ("textbox", "Sentence") in tree and ("button", "Draw again") in tree
    assert any(role == "combobox" and name == "Policy" for role, name in tree)
    assert any(role == "status" and name == "Released" for role, name in tree)
    assert len(names["columnheader"]) == 3 and names["rowheader"][:2] == ["I", "would"]
    assert any("unchanged" in name for name in names["table"])
    # Faults are said, and tell nothing of the sentence.
    page.run("text.value = 'zqx '.repeat(400000); form.requestSubmit()")
    page.wait("error.innerText")
    assert "zqx" not in text(page, "error") and ("alert", "") in [
        (role, "") for role, _ in page.tree()
    ]


def contrast(page: Browser, selector: str) -> float:
    """The contrast of a text and what is behind it (WCAG 2.2)."""
    script = """(selector => {
        const canvas = document.createElement("canvas").getContext("2d")
        const luminance = color => {
            canvas.fillStyle = color
            canvas.fillRect(0, 0, 1, 1)
            const of = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => v / 255)
            const [r, g, b] = of.map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            return 0.2126 * r + 0.7152 * g + 0.0722 * b
        }
        const found = document.querySelector(selector)
        let behind = found
        const clear = e => getComputedStyle(e).backgroundColor === "rgba(0, 0, 0, 0)"
        while (behind && clear(behind)) behind = behind.parentElement
        const canvasColor = matchMedia("(prefers-color-scheme: dark)").matches ? "#121212" : "#fff"
        const back = behind ? getComputedStyle(behind).backgroundColor : canvasColor
        const [a, b] = [getComputedStyle(found).color, back].map(luminance)
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
    })(%s)"""
    found: float = page.run(script % json.dumps(selector))
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_widths_and_colours(page: Browser, scheme: str, width: int) -> None:
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    page("Emulation.setEmulatedMedia", features=media)
    page("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1,
         mobile=width < 500)  # fmt: skip
    page.run("form.requestSubmit()")
    page.wait("!words.hidden")
    page.run("error.textContent = 'a fault'")
    assert page.run("document.documentElement.scrollWidth") <= width
    # Words stand on one line each.
    lines = """[...words.querySelectorAll('tbody th')].map(cell => {
        const range = document.createRange()
        range.selectNodeContents(cell)
        return range.getClientRects().length
    })"""
    assert page.run(lines) == [1] * len(SENTENCE.split())
    assert page.run("matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    for selector in ("p", "textarea", "select", "button", "output", "td", "th", "#error", "dd"):
        assert contrast(page, selector) >= 4.5, selector
    folder = os.environ.get("FASTDX_SCREENSHOTS")
    if folder:
        height = page.run("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = page("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        (Path(folder) / f"page-{scheme}-{width}.png").write_bytes(base64.b64decode(shot))


def urls(events: list[dict[str, Any]]) -> list[str]:
    asked = [e["params"] for e in events if e.get("method") == "Network.requestWillBeSent"]
    return [request["request"]["url"] for request in asked]


def test_it_asks_this_service_alone_and_has_no_fault(page: Browser) -> None:
    page.run("form.requestSubmit()")
    page.wait("!words.hidden")
    origin = page.run("location.origin")
    paths = {url.removeprefix(origin) for url in urls(page.events) if url != "about:blank"}
    assert paths - {"/favicon.ico"} == {
        "/", "/v1/policies", "/v1/guarantee/reviews", "/v1/measures/reviews", "/v1/privatize",
        "/v1/law"}  # fmt: skip
    wrong = ("Runtime.exceptionThrown", "Log.entryAdded")
    faults = [e for e in page.events if e.get("method") in wrong]
    assert not [e for e in faults if "favicon" not in json.dumps(e)], faults
    assert page.run("localStorage.length + sessionStorage.length + document.cookie.length") == 0


def test_policies_that_are_not_shown(start: Callable[..., str], browser: Browser) -> None:
    browser.open(f"http://{start('--epsilon', '3', '--no-page')}/")
    assert "there is no such path" in browser.run("document.body.innerText")


def test_no_policy_is_shown(start: Callable[..., str], browser: Browser, tmp_path: Path) -> None:
    config = tmp_path / "policies.toml"
    config.write_text("[policies.same]\nepsilon = 1.0\nconsistent = true\n")
    browser.open(f"http://{start('--config', str(config))}/")
    browser.wait("error.innerText")
    assert "No policy of this service is shown" in text(browser, "error")
    assert browser.run("draw.disabled")
