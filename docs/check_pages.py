"""Check the built site: links, no network, search, accessibility; and take pictures of it.

Run ``make docs-check``, or ``python docs/check_pages.py build/docs``. Links and anchors within the
site are followed on every page. Main pages are opened in Chromium from their files, light and
dark: axe must have no serious finding, nothing may be asked of the network or cut on a narrow
screen, and a search must find something. Pictures go to ``build/pages``.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What is looked at in a browser beside all pages of the first level: one page of each kind.
OTHERS = (
    "gallery/index.html",
    "gallery/plot_01_first_fit.html",
    "api/index.html",
    "api/generated/discernel.MultipleKernelDiscriminant.html",
    "api/generated/discernel.learn_kernel.html",
    "_modules/discernel/programs/rkda.html",
    "search.html?q=importances",
)
#: Indices of names, and the search without words.
NOT_LOOKED_AT = {"genindex.html", "py-modindex.html", "search.html"}
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 900}
#: Findings of these weights fail the check.
GRAVE = ("serious", "critical")
#: Returns the texts that end right of the window, unless a box around them scrolls.
CUT = """() => {
  const article = document.querySelector('.bd-article-container');
  const scrolls = element => element !== article && (
    getComputedStyle(element).overflowX !== 'visible' || scrolls(element.parentElement));
  return [...article.querySelectorAll('*')].filter(element => {
    const place = element.getBoundingClientRect();
    return place.width > 1 && place.right > innerWidth + 1 && !scrolls(element);
  }).map(element => element.textContent.trim());
}"""


class Links(HTMLParser):
    """The links, the anchors and the loaded resources of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in ("script", "img", "iframe", "source") and "src" in found:
            self.loaded.append(found["src"])
        if tag == "link" and found.get("rel") in ("stylesheet", "preload", "icon", "manifest"):
            self.loaded.append(found.get("href", ""))


def read(page: Path) -> Links:
    """Return what a page links to and loads."""
    links = Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links


def all_pages(site: Path) -> list[Path]:
    """Return the pages of a site, less the templates that its theme leaves there."""
    return [page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts]


def broken_links(site: Path) -> Iterator[str]:
    """Yield a line per link within the site that leads nowhere, or resource from outside."""
    pages = {page.resolve(): read(page) for page in all_pages(site)}
    for page, links in pages.items():
        here = page.relative_to(site.resolve())
        for link in [*links.links, *links.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in links.loaded and parts.scheme != "data":
                    yield f"{here} loads {link}"
                continue
            there = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not there.exists():
                yield f"{here} links to {link}: no such file"
            elif there in pages and unquote(parts.fragment) not in pages[there].anchors:
                yield f"{here} links to {link}: no such anchor"
    for style in sorted(site.rglob("*.css")):
        for url in re.findall(r"url\(['\"]?(https?:[^)'\"]+)", style.read_text(encoding="utf-8")):
            yield f"{style.relative_to(site)} loads {url}"


def main_pages(site: Path) -> list[str]:
    """Return the addresses within a site that are opened in a browser."""
    return [*sorted({page.name for page in site.glob("*.html")} - NOT_LOOKED_AT), *OTHERS]


def findings(site: Path, pictures: Path) -> Iterator[str]:
    """Yield what is wrong with the main pages in a browser, light and dark; take pictures."""
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    pictures.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium)
        for scheme in ("light", "dark"):
            context = browser.new_context(color_scheme=scheme, viewport=WIDE)
            page = context.new_page()
            asked: list[str] = []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            for name in main_pages(site):
                asked.clear()
                page.goto(f"{site.resolve().as_uri()}/{name}")
                page.wait_for_timeout(300)
                yield from (
                    f"{name} asks the network for {url}" for url in asked if url[:4] == "http"
                )
                if name.startswith("search"):
                    page.wait_for_selector("#search-results ul.search li", timeout=10_000)
                plain = re.sub(r"\W+", "_", name.partition(".html")[0])
                page.screenshot(path=pictures / f"{plain}_{scheme}.png")
                for found in Axe().run(page).response["violations"]:
                    if found["impact"] in GRAVE:
                        first = found["nodes"][0]
                        yield (
                            f"{name}, {scheme}: {found['impact']} {found['id']} in "
                            f"{len(found['nodes'])} places, such as {first['html'][:160]} "
                            f"({first['target']})"
                        )
                page.set_viewport_size(NARROW)
                if cut := page.evaluate(CUT):
                    yield f"{name}: {len(cut)} texts are cut on a narrow screen: {cut[0][:80]!r}"
                page.set_viewport_size(WIDE)
            context.close()
        browser.close()


def main(folder: str) -> int:
    """Print all that is wrong; return how many things that are."""
    site = Path(folder)
    wrong = [*broken_links(site), *findings(site, site.parent / "pages")]
    for line in wrong:
        print(line)
    opened = 2 * len(main_pages(site))
    print(f"{len(all_pages(site))} pages, {opened} opened in a browser, {len(wrong)} findings")
    return min(len(wrong), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "build/docs"))
