"""Links of HTML pages and of Markdown files: do they lead anywhere?"""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """A page's anchors, where it leads a reader to, and what a browser loads when it opens it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id":
                self.anchors.add(value)
            elif name == "href":
                (self.links if tag == "a" else self.loaded).append(value)
            elif name == "src":
                self.loaded.append(value)


def pages(site: Path) -> dict[Path, Page]:
    return {path.resolve(): Page(path) for path in site.rglob("*.html")}


def broken_links(site: Path) -> list[str]:
    """Return every link within a site that leads to no file, or to no anchor of a page."""
    all_pages = pages(site)
    broken = []
    for page in all_pages.values():
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path.resolve()
            there = all_pages.get(target)
            if not target.is_file() or (
                parts.fragment and (there is None or unquote(parts.fragment) not in there.anchors)
            ):
                broken.append(f"{page.path.relative_to(site)}: {link}")
    return broken


def loaded_from_elsewhere(site: Path) -> list[str]:
    """Return what a browser would load from another machine: by the pages' tags, and by their style sheets."""
    tags = [
        f"{page.path.relative_to(site)}: {address}"
        for page in pages(site).values()
        for address in page.loaded
        if urlsplit(address).netloc
    ]
    styles = [
        f"{style.relative_to(site)}: {address}"
        for style in site.rglob("*.css")
        for address in re.findall(
            r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")\s]+)", style.read_text(encoding="utf-8")
        )
    ]
    return tags + styles


def markdown_links(text: str) -> Iterator[str]:
    """Yield the addresses of links and pictures, Markdown's and HTML's."""
    code = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
    text = code.sub("", text)
    yield from re.findall(r"\]\(([^)\s]+)", text)
    yield from re.findall(r"(?:src|href)=[\"']([^\"']+)", text)


def anchors_of_markdown(text: str) -> set[str]:
    """Return the anchors that GitHub gives the headings."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
