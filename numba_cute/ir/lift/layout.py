# SPDX-License-Identifier: Apache-2.0
"""Long lines of Python, folded as formatters do."""

from __future__ import annotations

WIDTH = 110


def folded(indent: str, text: str) -> str:
    """Write a line; one that is too long has what its last brackets hold on lines of its own."""
    if len(indent) + len(text) <= WIDTH or text.endswith(":") or text.startswith(("assert", "@")):
        return indent + text
    cut = _outermost(text)
    if cut is None:
        return indent + text
    begin, end = cut
    inner = _split(text[begin + 1 : end])
    if len(inner) < 2 and not inner[0].endswith(")"):
        return indent + text
    more = indent + "    "
    whole = ", ".join(inner)
    lines = [more + whole] if len(more) + len(whole) <= WIDTH else [folded(more, f"{x},") for x in inner]
    return "\n".join([indent + text[: begin + 1], *lines, indent + text[end:]])


def _outermost(text: str) -> tuple[int, int] | None:
    """Return the begin and the end of the longest brackets outside all others, the last of them; None if there are
    none."""
    depth, begin, quoted = 0, 0, ""
    best: tuple[int, int] | None = None
    for i, c in enumerate(text):
        if quoted:
            quoted = "" if c == quoted and text[i - 1] != "\\" else quoted
        elif c in "'\"":
            quoted = c
        elif c in "([":
            begin = i if depth == 0 else begin
            depth += 1
        elif c in ")]":
            depth -= 1
            if depth == 0 and c == ")" and (best is None or i - begin >= best[1] - best[0]):
                best = begin, i
    return best


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets and quotes."""
    found, depth, start, quoted = [], 0, 0, ""
    for i, c in enumerate(text):
        if quoted:
            quoted = "" if c == quoted and text[i - 1] != "\\" else quoted
        elif c in "'\"":
            quoted = c
        else:
            depth += (c in "([") - (c in ")]")
            if c == "," and not depth:
                found.append(text[start:i].strip())
                start = i + 1
    last = text[start:].strip()
    return [*found, last] if last else found


__all__ = ["folded"]
