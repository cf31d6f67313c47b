# SPDX-License-Identifier: Apache-2.0
"""Look at the built site in headless Chromium.

    python -m website.check [--screenshots] [--chromium PATH]     after `make docs`; needs playwright and a Chromium

Every page is opened: nothing may be logged as an error, fail to load, or come from elsewhere, and at a phone's width
nothing may stick out. Search finds a word, and a tap changes light for dark. Ends with the number of what is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "out" / "site"
PICTURES = ROOT / "docs" / "img"
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 800}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


class Visit:
    """A browser at the site, and what it found wrong."""

    def __init__(self, browser: Any, address: str) -> None:
        self.address, self.wrong = address, []
        self.page = browser.new_page(viewport=DESK)
        self.page.on("console", lambda m: self.say(f"console: {m.text}") if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.say(f"error: {e}"))
        self.page.on("requestfailed", lambda r: self.say(f"not loaded: {r.url}"))
        self.page.on("response", lambda r: self.say(f"{r.status}: {r.url}") if r.status >= 400 else None)
        self.page.on("request", lambda r: None if self.ours(r.url) else self.say(f"from elsewhere: {r.url}"))

    def ours(self, url: str) -> bool:
        return url.startswith((self.address, "data:", "blob:"))

    def say(self, what: str) -> None:
        self.wrong.append(f"{self.page.url}: {what}")
        print(self.wrong[-1], flush=True)

    def open(self, path: str) -> None:
        self.page.goto(f"{self.address}/{path}", wait_until="networkidle")

    def need(self, holds: bool, what: str) -> None:
        if not holds:
            self.say(what)


def chromium() -> str | None:
    """The browser of this machine; None for playwright's own."""
    return shutil.which("chromium") or shutil.which("google-chrome")


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder meanwhile; gives the address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def pages() -> list[str]:
    """The pages of the navigation: all but those of files outside of docs/."""
    found = (f.parent.relative_to(SITE).as_posix() for f in SITE.rglob("index.html"))
    return sorted("" if p == "." else f"{p}/" for p in found if not p.startswith("repo"))


def every_page(visit: Visit) -> None:
    for path in pages():
        visit.page.set_viewport_size(DESK)
        visit.open(path)
        visit.need(visit.page.locator("h1").count() >= 1, "no heading")
        visit.page.set_viewport_size(PHONE)
        over = visit.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        visit.need(over <= 0, f"{over} pixels stick out at a phone's width")
    visit.page.set_viewport_size(DESK)


def navigation(visit: Visit) -> None:
    visit.open("")
    tabs = visit.page.locator(".md-tabs__link")
    names = [name.strip() for name in tabs.all_inner_texts()]
    visit.need({"Home", "Guides", "Reference"} <= set(names), f"tabs: {names}")
    tabs.nth(names.index("Guides")).click()
    visit.page.wait_for_load_state("networkidle")
    visit.need(visit.page.url.endswith("/language/"), "Guides leads elsewhere")
    visit.page.locator(".md-footer__link--next").click()
    visit.page.wait_for_load_state("networkidle")
    visit.need(visit.page.url.endswith("/layouts/"), "the next page is another")


def search(visit: Visit) -> None:
    visit.open("")
    visit.page.locator(".md-search__input").first.click()
    visit.page.keyboard.type("mbarrier_init", delay=20)
    visit.page.wait_for_selector(".md-search-result__item", timeout=20000)
    found = visit.page.locator(".md-search-result__item").count()
    visit.need(found > 0, "search finds nothing")


def colours(visit: Visit) -> None:
    visit.open("")
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    before = visit.page.evaluate(scheme)
    visit.page.locator("label.md-header__button[for^=__palette]:visible").first.click()
    visit.need(visit.page.evaluate(scheme) != before, "the colours stay")


def screenshots(visit: Visit) -> None:
    """Those of docs/img."""
    PICTURES.mkdir(exist_ok=True)
    places = {"home": "", "tutorial": "tutorials/01_layouts/", "reference": "reference/numba_cute_layouts/"}
    for name, path in places.items():
        visit.open(path)
        visit.page.screenshot(path=PICTURES / f"site_{name}.png")
    visit.page.set_viewport_size(PHONE)
    visit.open("")
    visit.page.screenshot(path=PICTURES / "site_phone.png")
    visit.page.set_viewport_size(DESK)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chromium", default=chromium())
    parser.add_argument("--screenshots", action="store_true")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play, served(SITE) as address:
        browser = play.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
        visit = Visit(browser, address)
        parts = [every_page, navigation, search, *([screenshots] if given.screenshots else []), colours]
        for part in parts:
            part(visit)
            print(f"{re.sub('_', ' ', part.__name__)}: looked at", flush=True)
        browser.close()
    print(f"{len(pages())} pages, {len(visit.wrong)} wrong")
    return min(len(visit.wrong), 100)


if __name__ == "__main__":
    sys.exit(main())
