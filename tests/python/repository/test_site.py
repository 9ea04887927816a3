"""The site that `make site` has built, in a browser where there is one. Opened as files."""

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
