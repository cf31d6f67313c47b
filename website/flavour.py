# SPDX-License-Identifier: Apache-2.0
"""GitHub's Markdown as Python-Markdown reads it."""

from __future__ import annotations

import re

LIST = re.compile(r"\s*([-*]|\d+\.) ")


def as_python_markdown(text: str) -> str:
    """The page with an empty line before lists, tables and comments, and nested lists four places in."""
    out: list[str] = []
    fenced = ""
    for line in text.split("\n"):
        fence = re.match(r"\s*(`{3,})", line)
        if fence and (not fenced or fence[1] == fenced):
            fenced = "" if fenced else fence[1]
            named = re.match(r"(\s*`{3,}\w+) (\w+)$", line)  # a name behind the language
            line = f'{named[1]} title="{named[2]}.py"' if named and "python" in line else line
            line = named[1] if named and "python" not in line else line
        elif not fenced:
            before = out[-1] if out else ""
            begins = LIST.match(line) and not LIST.match(before) and not before.startswith("  ")
            table = line.startswith("|") and not before.startswith("|")
            comment = line.startswith("<!--") or before.startswith("<!--")
            if before.strip() and (begins or table or comment):
                out.append("")
            indented = re.match(r"( {2,3})(?=[-*] |\d+\. )", line)
            line = "    " + line.lstrip() if indented else line
        out.append(line)
    return "\n".join(out)
