"""The site that `make site` has built, in a browser where there is one. Opened as files."""

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from helpers import ROOT
from helpers.browser import BROWSER, dom

SITE = ROOT / "target" / "site"

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no chromium"),
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="make site has not run"),
]

WIDTHS = """
<pre id="found"></pre>
<script>
(async () => {
  const widths = {}
  for (const page of %s) {
    const frame = document.createElement("iframe")
    frame.style = "width: 360px; height: 700px; border: 0"
    frame.src = page
    document.body.append(frame)
    await new Promise(done => { frame.onload = done })
    await new Promise(done => setTimeout(done, 100))
    widths[page] = frame.contentDocument.documentElement.scrollWidth
    frame.remove()
  }
  found.textContent = JSON.stringify(widths)
})()
</script>
"""


# Without a network.
ALONE = ("--host-resolver-rules=MAP * ~NOTFOUND", "--allow-file-access-from-files",
         "--virtual-time-budget=60000")  # fmt: skip


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("repetition", "reference/limitations.html"),
        ("ε", "how-to/choose-epsilon.html"),
        ("GDPR", "reference/glossary.html"),
        ("docker", "reference/glossary.html"),
        ("posterior", "reference/api/fastdx.calibration.html"),  # of max_posterior
        ("Tem", "reference/api/fastdx.mechanisms.html"),
        ("privatize_frame", "reference/api/fastdx.mechanisms.html"),
    ],
)
def test_the_search_finds_a_word(tmp_path: Path, word: str, page: str) -> None:
    shown = dom(f"{(SITE / 'index.html').as_uri()}?q={quote(word)}", tmp_path / "profile", *ALONE)
    found = re.findall(r'<a href="([^"?#]*)[^"]*" class="md-search-result__link', shown)
    assert any(link.endswith(page) for link in found[:40])


def test_examples_with_prompts_can_be_copied() -> None:
    examples = 0
    for path in SITE.rglob("*.html"):
        for block in re.findall(r"<pre[^>]*>.*?</pre>", path.read_text("utf-8"), flags=re.S):
            if ">&gt;&gt;&gt; <" in block:
                copied = re.match(r'<pre data-copy="([^"]+)"', block)
                assert copied and "&gt;&gt;&gt; " not in copied[1], path
                examples += 1
    assert examples > 100


def test_no_page_is_wider_than_a_telephone(tmp_path: Path) -> None:
    pages = [p.as_uri() for p in sorted(SITE.rglob("*.html"))]
    harness = tmp_path / "widths.html"
    harness.write_text(WIDTHS % json.dumps(pages), "utf-8")
    shown = dom(harness.as_uri(), tmp_path / "profile", *ALONE)
    found = re.search(r'<pre id="found">(.+?)</pre>', shown)
    assert found
    widths = json.loads(found[1])
    assert len(widths) == len(pages) > 30
    assert {page: w for page, w in widths.items() if w > 360} == {}
