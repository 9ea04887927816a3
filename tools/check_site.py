"""Checks that a built site loads nothing from other hosts, and that all its links have targets.

    python tools/check_site.py target/site

Prints each fault with its page; the exit code is 1 if there is a fault. It needs no network.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes whose address a browser fetches by itself. It fetches links in <a> only on a click.
LOADED = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
NOT_LOADED = {"canonical", "alternate", "prev", "next", "license", "author", "edit"}
IN_CSS = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


class Page(HTMLParser):
    """The addresses that a page loads or links to, and its own anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self._style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        self._style = tag == "style"
        if tag in ("a", "area") and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and NOT_LOADED & set(given.get("rel", "").split()):
            return
        for name in LOADED.get(tag, ()):
            if name == "srcset":
                self.loaded += [x.split()[0] for x in given.get(name, "").split(",") if x.strip()]
            elif name in given:
                self.loaded.append(given[name])
        self.loaded += in_css(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self._style:
            self.loaded += in_css(data)

    def handle_endtag(self, tag: str) -> None:
        self._style = self._style and tag != "style"


def in_css(text: str) -> list[str]:
    return [a or b for a, b in IN_CSS.findall(text)]


def faults(site: Path) -> Iterator[str]:
    """Yield every fault as a line."""
    site = site.resolve()
    pages = {p: Page(p.read_text("utf-8")) for p in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site}: no page"
    for path, page in pages.items():
        here = path.relative_to(site)
        for url in page.loaded:
            if fault := unreachable(url, path, site, pages, loaded=True):
                yield f"{here}: loads {url}: {fault}"
        for url in page.links:
            if fault := unreachable(url, path, site, pages, loaded=False):
                yield f"{here}: links to {url}: {fault}"
    for path in sorted(site.rglob("*.css")):
        for url in in_css(path.read_text("utf-8")):
            if fault := unreachable(url, path, site, pages, loaded=True):
                yield f"{path.relative_to(site)}: loads {url}: {fault}"


def unreachable(
    url: str, path: Path, site: Path, pages: dict[Path, Page], *, loaded: bool
) -> str | None:
    """Return the reason why an address has no target, or None."""
    parts = urlsplit(url)
    if parts.scheme == "data":
        return None
    if parts.scheme or parts.netloc:
        return "is elsewhere" if loaded else None
    base = site if parts.path.startswith("/") else path.parent
    target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(site) or not target.is_file():
        return "is not there"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors | {"__top"}:
        return "has no such place"
    return None


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/check_site.py FOLDER")
    found = list(faults(Path(sys.argv[1])))
    print(*found, sep="\n", file=sys.stderr, end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
