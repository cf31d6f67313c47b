# SPDX-License-Identifier: Apache-2.0
"""The one writer of SVG: boxes, lines and words, in colours for light and for dark pages; and `Picture`, what shows
itself so."""

from __future__ import annotations

from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

SIZE = 12  # of letters, in pixels
LETTER = 0.61 * SIZE  # how wide each is, in a monospaced font
LINE = SIZE + 4
PALE = 0.3  # how opaque what is pale is

COLOURS = ("#4c8bf5", "#e8710a", "#34a853", "#a142f4", "#d93025", "#12b5cb", "#f9ab00", "#9aa0a6")
"""For boxes of several kinds, told apart on white and on black."""
_STYLE = (
    f".nc{{font:{SIZE}px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}}"
    ".nc text{fill:#1f2328;white-space:pre}.nc .faint{fill:#656d76}.nc .strong{font-weight:bold}"
    ".nc .page{fill:#fff}.nc .box{fill:#f3f4f6;stroke:#8c959f}.nc .line{fill:none;stroke:#656d76}"
    ".nc .wrong{stroke:#d93025;stroke-width:2}.nc .mark{stroke:#1f2328}.nc rect:hover{stroke:#1f2328}"
    "@media(prefers-color-scheme:dark){.nc text{fill:#e6edf3}.nc .faint{fill:#9198a1}.nc .page{fill:#0d1117}"
    ".nc .box{fill:#21262d;stroke:#6e7681}.nc .line{stroke:#9198a1}.nc .wrong{stroke:#ff6b60}.nc .mark{stroke:#e6edf3}"
    ".nc rect:hover{stroke:#e6edf3}}"
)


class Words(NamedTuple):
    """A text in a drawing: where its left lower corner is, and how wide it is."""

    x: float
    y: float
    width: float
    text: str


def wide(text: str) -> float:
    """Return how many pixels a text takes."""
    return len(text) * LETTER


class Drawing:
    """A picture that grows with what is drawn: coordinates are pixels, to the right and down. words: its texts."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.words: list[Words] = []
        self.width = self.height = 0.0

    def _needs(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)

    def text(self, x: float, y: float, text: str, style: str = "") -> None:
        """Write a text from x on, above y. style: "", "faint" or "strong"."""
        self.words.append(Words(x, y, wide(text), text))
        self._needs(x + wide(text), y + 4)
        of = f' class="{style}"' if style else ""
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{of}>{escape(text)}</text>')

    def box(self, x: float, y: float, width: float, height: float, colour: str = "", title: str = "", style: str = "",
            opacity: float = 1.0, steps: tuple[float, float] | None = None) -> None:  # fmt: skip
        """Draw a box, plain or of a colour. title: is shown where one points at it. steps: when it is there, from
        which step to before which, where a page has a slider."""
        self._needs(x + width, y + height)
        of = f' fill="{colour}"' if colour else f' class="box {style}"'
        of += f' fill-opacity="{opacity}"' if opacity < 1 else ""
        of += f' data-from="{steps[0]:g}" data-to="{steps[1]:g}"' if steps else ""
        shape = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"{of}'
        self._parts.append(shape + (f"><title>{escape(title)}</title></rect>" if title else "/>"))

    def line(self, path: str, style: str = "", title: str = "", dashes: str = "", arrow: bool = False) -> None:
        """Draw along an SVG path. style: "", "wrong" or "mark". arrow: it has a head at its end."""
        of = f' class="line {style}"' if style else ' class="line"'
        of += f' stroke-dasharray="{dashes}"' if dashes else ""
        of += f' marker-end="url(#nc-{"wrong" if style == "wrong" else "head"})"' if arrow else ""
        self._parts.append(f'<path d="{path}"{of}' + (f"><title>{escape(title)}</title></path>" if title else "/>"))

    def legend(self, x: float, y: float, entries: dict[str, str], across: float = 1000, pale: str = "") -> None:
        """Say what colours mean, from x on, below y, in lines of at most `across` pixels. entries: name to colour.
        pale: the name whose boxes are pale."""
        start = x
        for name, colour in entries.items():
            if x > start and x + 34 + wide(name) > start + across:
                x, y = start, y + LINE + 2
            self.box(x, y + 2, SIZE - 2, SIZE - 2, colour, opacity=PALE if name == pale else 1.0)
            self.text(x + SIZE + 4, y + SIZE - 1, name)
            x += SIZE + 24 + wide(name)

    def __str__(self) -> str:
        w, h = self.width + 10, self.height + 10
        heads = "".join(
            f'<marker id="nc-{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
            for name, colour in (("head", COLOURS[7]), ("wrong", COLOURS[4]))
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="nc" width="{w:.0f}" height="{h:.0f}" '
            f'viewBox="0 0 {w:.0f} {h:.0f}"><style>{_STYLE}</style><defs>{heads}</defs>'
            f'<rect class="page" width="100%" height="100%"/>{"".join(self._parts)}</svg>'
        )


class Steps(NamedTuple):
    """The steps of a page's slider: its name ("thread", "ns"), and the last of its numbers, from 0 on."""

    name: str
    last: float


class Picture:
    """A picture, shown as text (`print`, and at the prompt), SVG and HTML, and in notebooks by itself. A subclass has
    `__str__` and `drawn`, and `slides` if its page has a slider: boxes that are not there at a step are faint."""

    slides: Steps | None = None

    def drawn(self) -> Drawing:
        """Draw it."""
        raise NotImplementedError

    def svg(self, file: str | PathLike[str] | None = None) -> str:
        """Draw it and return the picture, as SVG; write it to `file` if one is given."""
        return written(str(self.drawn()), file)

    def html(self, file: str | PathLike[str] | None = None) -> str:
        """Return it as a page that needs nothing else, with the picture and the text; write it to `file` if one is
        given."""
        slider = "" if self.slides is None else _slider(self.slides)
        return written(page(type(self).__name__, slider + self._repr_html_()), file)

    def __repr__(self) -> str:
        return brief(str(self), 40)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f"<div>{self.drawn()}<details><summary>as text</summary><pre>{escape(str(self))}</pre></details></div>"


_FOLLOW = """
const slider = document.querySelector('.nc-step'), said = document.querySelector('.nc-said');
const boxes = document.querySelectorAll('[data-from]');
function step() {
  const k = Number(slider.value), all = k < 0;
  said.textContent = all ? 'all' : slider.dataset.name + ' ' + k;
  for (const b of boxes)
    b.style.opacity = all || (Number(b.dataset.from) <= k && k < Number(b.dataset.to)) ? 1 : 0.12;
}
slider.addEventListener('input', step);
step();
"""


def _slider(steps: Steps) -> str:
    """Write a slider, and what follows it."""
    by = max(1, round(steps.last / 1000))
    return (
        f"<p style='font:{SIZE}px monospace'><input class='nc-step' type='range' min='{-by}' max='{steps.last:g}' "
        f"step='{by}' value='{-by}' data-name='{escape(steps.name)}' style='width:60%'/> "
        "<span class='nc-said'></span></p>"
        f"<script>addEventListener('DOMContentLoaded', () => {{{_FOLLOW}}})</script>"
    )


def brief(text: str, most: int = 10) -> str:
    """Return a text of at most so many lines: what is left out is counted in the last of them."""
    lines = text.splitlines()
    if len(lines) <= most:
        return text
    return "\n".join([*lines[: most - 1], f"… {len(lines) - most + 1} more lines: print(…) shows all"])


def written(text: str, file: Any) -> str:
    """Return a text, and write it to `file` if that is not None."""
    if file is not None:
        Path(file).write_text(text, encoding="utf-8")
    return text


def page(title: str, body: str) -> str:
    """Return an HTML page."""
    return (
        f"<!doctype html><html><head><meta charset='utf-8'/><title>{escape(title)}</title>"
        f"<meta name='color-scheme' content='light dark'/></head><body>{body}</body></html>"
    )
