# SPDX-License-Identifier: Apache-2.0
"""A docstring as Markdown: its parameters as a list, its PTX and least target, its errors, its examples as code."""

from __future__ import annotations

import re
from collections.abc import Sequence

PTX = re.compile(r"\bPTX ([^.,()]*(?:\.[^.,()\s]+)*(?:, [a-z][^,]*?)*),\s+(sm_\w+|any\starget)\.(?=\s|$)")
SENTENCE = r"(?:^|(?<=[.:] )|(?<=\n))"


def as_markdown(doc: str, parameters: Sequence[str]) -> str:
    """doc: cleaned by `inspect.cleandoc`. parameters: the names that may begin a parameter's words."""
    out = []
    for part in re.split(r"\n\s*\n", doc):
        if part.lstrip().startswith(">>>"):
            out.append(f"```python\n{part}\n```")
        elif part.startswith("    "):
            out.append(f"```text\n{re.sub(r'^    ', '', part, flags=re.MULTILINE)}\n```")
        else:
            out.append(prose(part, parameters))
    return "\n\n".join(out)


def _instruction(found: re.Match[str]) -> str:
    target = f"from {found[2]}" if found[2].startswith("sm_") else "any target"
    return f"\n\n*PTX* `{found[1]}`, {target}."


def prose(text: str, parameters: Sequence[str]) -> str:
    """A paragraph, with a list of the parameters that it tells of."""
    text = re.sub(rf"\s*{PTX.pattern}", _instruction, text)
    text = re.sub(r"(?<=[.] )Raises (?=\w*Error)", r"\n\n*Raises* ", text.replace("\nRaises ", " Raises "))
    if not parameters:
        return escaped(text)
    names = "|".join(sorted(map(re.escape, parameters), key=len, reverse=True))
    mark = re.compile(rf"{SENTENCE}((?:{names})(?:, (?:{names}))*): ")
    found = list(mark.finditer(text))
    if not found:
        return escaped(text)
    head = text[: found[0].start()].strip()
    items, rest = [], ""
    for this, following in zip(found, [*found[1:], None]):
        said = text[this.end() : following.start() if following else len(text)].strip()
        if following is None:
            said, _, rest = said.partition("\n\n")
        code = ", ".join(f"`{n}`" for n in this[1].split(", "))
        items.append(f"- {code}: {escaped(' '.join(said.split()))}")
    return "\n\n".join(p for p in (escaped(head), "\n".join(items), escaped(rest.strip())) if p)


def escaped(text: str) -> str:
    """Text without what Markdown and HTML would take for markup; code in backticks stays."""
    parts = re.split(r"(`[^`\n]*`|\*PTX\*|\*Raises\*)", text)
    return "".join(p if i % 2 else p.replace("*", r"\*").replace("<", "&lt;") for i, p in enumerate(parts))
