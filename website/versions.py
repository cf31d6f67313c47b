# SPDX-License-Identifier: Apache-2.0
"""Put the site on the branch gh-pages beside those of other versions, by mike.

    python -m website.versions REF [--push]     REF: main, which is the version "dev", or a release's tag, as v0.2.0
    python -m website.versions --try            two versions on a branch of a scratch repository, looked at in Chromium

The last release is "latest" too; who comes without a version is led there, and before the first release to "dev".
`make docs` builds one site, without versions.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DEV, LATEST = "dev", "latest"


def address() -> str:
    """The site's, as pyproject.toml has it."""
    found = re.search(r'^Documentation = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found, "pyproject.toml names no Documentation"
    return found[1]


def being_built() -> str | None:
    """The version that mike builds, or None for a site without versions."""
    return os.environ.get("MIKE_DOCS_VERSION")


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def names(ref: str, there: list[str]) -> list[str]:
    """The version of a branch or tag, and its alias if it is the last release. there: the versions of the site."""
    if ref == "main":
        return [DEV]
    if not re.fullmatch(r"v\d+\.\d+\.\d+", ref):
        raise SystemExit(f"website.versions: {ref!r} is neither main nor a release's tag, as v0.2.0")
    version = ref[1:]
    is_last = all(numbers(version) >= numbers(v) for v in there if v != DEV)
    return [version, LATEST] if is_last else [version]


def deploy(ref: str, push: bool, repository: Path = ROOT) -> None:
    scripts = Path(sys.executable).parent  # mike calls mkdocs by its name
    env = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}

    def mike(command: str, *arguments: str, output: int | None = None) -> Any:
        named = [str(scripts / "mike"), command, "--config-file", str(ROOT / "mkdocs.yml"), *arguments]
        return subprocess.run(named, check=True, cwd=repository, env=env, stdout=output, text=True).stdout

    branch = subprocess.run(["git", "rev-parse", "-q", "--verify", "gh-pages"], cwd=repository, stdout=subprocess.PIPE)
    listed = [] if branch.returncode else json.loads(mike("list", "--json", output=subprocess.PIPE))
    pushed = ["--push"] if push else []
    given = names(ref, [v["version"] for v in listed])
    mike("deploy", "--update-aliases", *pushed, *given)
    released = LATEST in given or any(LATEST in v["aliases"] for v in listed)
    mike("set-default", *pushed, LATEST if released else DEV)


def tried() -> int:
    """Deploy a release and main without pushing, and look at the selector. Gives how much is wrong."""
    from playwright.sync_api import sync_playwright

    from .check import Visit, chromium, served

    with tempfile.TemporaryDirectory() as folder:
        git = functools.partial(subprocess.run, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        git(["git", "init", "--quiet"])
        for key, value in (("user.name", "website.versions"), ("user.email", "versions@localhost")):
            git(["git", "config", key, value])
        git(["git", "commit", "--quiet", "--allow-empty", "--message", "A first one, which mike asks for"])
        for ref in ("v0.0.1", "main"):
            deploy(ref, push=False, repository=Path(folder))
        git(["git", "checkout", "--quiet", "gh-pages"])
        with sync_playwright() as play, served(Path(folder)) as at:
            visit = Visit(play.chromium.launch(executable_path=chromium(), args=["--no-sandbox"]), at)
            select(visit)
    print(f"the selector: {len(visit.wrong)} wrong")
    return len(visit.wrong)


def select(visit: Any) -> None:
    visit.open("")
    visit.need(visit.page.url.endswith(f"/{LATEST}/"), "the root does not lead to the last release")
    visit.open(f"{DEV}/layouts/")
    visit.page.wait_for_selector(".md-version__link", state="attached")
    found = [n.strip() for n in visit.page.locator(".md-version__link").all_text_contents()]
    visit.need(found == [DEV, "0.0.1"], f"versions: {found}")
    visit.page.locator(".md-version").hover()
    visit.page.locator(".md-version__link", has_text="0.0.1").click()
    visit.page.wait_for_url("**/0.0.1/**")
    visit.need(visit.page.locator("h1").count() >= 1, "the version has no page")
    canonical = visit.page.locator("link[rel=canonical]").get_attribute("href")
    visit.need(canonical == f"{address()}0.0.1/{visit.page.url.partition('/0.0.1/')[2]}", f"canonical: {canonical}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ref", nargs="?")
    parser.add_argument("--push", action="store_true")
    parser.add_argument("--try", action="store_true", dest="tries")
    given = parser.parse_args()
    if given.tries:
        return tried()
    if not given.ref:
        parser.error("give main or a tag, or --try")
    deploy(given.ref, given.push)
    return 0


if __name__ == "__main__":
    sys.exit(main())
