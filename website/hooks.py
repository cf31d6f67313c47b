# SPDX-License-Identifier: Apache-2.0
"""What MkDocs is told beside mkdocs.yml.

The navigation is that of docs/index.md: a tab for each of its headings, a page for each link below. Files outside of
docs/ that a page leads to are pages too, so that the site leads nowhere else. The reference is made of docstrings.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mkdocs.structure.files import File  # noqa: E402

from website import links, reference, versions  # noqa: E402
from website.flavour import as_python_markdown  # noqa: E402


def on_config(config: Any) -> Any:
    config["nav"] = navigation()
    if version := versions.being_built():
        config["site_url"] = f"{versions.address()}{version}/"
        config["extra"]["version"] = {"provider": "mike", "default": versions.LATEST}
    return config


def navigation() -> list[Any]:
    """A tab for each heading of docs/index.md, of the pages that it leads to."""
    index = links.DOCS / "index.md"
    nav: list[Any] = [{"Home": "index.md"}]
    named = set()
    for section in re.split(r"^## ", index.read_text(), flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        pages: list[str] = []
        for link in links.links(body):
            file = links.target(index, link)
            if file.suffix == ".md" and file not in named and file != index:
                named.add(file)
                pages.append(links.place(file))
        pages[1:1] = [p for p in lessons(pages) if p not in pages]
        if title == "Reference":
            pages = [*reference.pages(), *pages]
        if pages:
            nav.append({title: pages})
    return nav


def lessons(pages: list[str]) -> list[str]:
    """The tutorials, behind the page that lists them."""
    folder = links.DOCS / "tutorials"
    if "tutorials/index.md" not in pages:
        return []
    return [links.place(f) for f in sorted(folder.glob("[0-9]*.md"))]


def on_files(files: Any, config: Any) -> Any:
    for file in links.reached():
        where = links.place(file)
        if file.is_dir():
            files.append(File.generated(config, where, content=listing(file)))
        elif links.shown_as_code(file):
            files.append(File.generated(config, where, content=source(file)))
        elif file.suffix == ".md":
            files.append(File.generated(config, where, content=links.moved(file, file.read_text())))
        else:
            files.append(File.generated(config, where, abs_src_path=str(file)))
    for where, text in reference.pages_with_text():
        files.append(File.generated(config, where, content=text))
    for file in files:
        if file.src_uri.startswith("repo/"):
            file.inclusion = type(file.inclusion).NOT_IN_NAV
    return files


def listing(folder: Path) -> str:
    names = sorted(f.name + ("/" if f.is_dir() else "") for f in folder.iterdir() if f.name[0] not in "._")
    inside = folder.relative_to(links.ROOT)
    return f"# {inside}\n\n" + "\n".join(f"- `{name}`" for name in names) + "\n"


def source(file: Path) -> str:
    language = {".py": "python", ".toml": "toml", ".yml": "yaml"}.get(file.suffix, "text")
    return f"# {file.relative_to(links.ROOT)}\n\n````{language}\n{file.read_text()}\n````\n"


def kernel_of_the_readme() -> str:
    return re.findall(r"```python\n.*?```", (links.ROOT / "README.md").read_text(), re.DOTALL)[0] + "\n\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    uri = page.file.src_uri
    if uri == "index.md":
        markdown = re.sub(r"<!-- kernel of the README -->\n", lambda _: kernel_of_the_readme(), markdown)
    if not uri.startswith(("repo/", "reference/")):
        markdown = links.moved(links.DOCS / uri, markdown)
    return as_python_markdown(markdown)
