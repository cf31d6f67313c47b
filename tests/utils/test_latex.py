# SPDX-License-Identifier: Apache-2.0
"""`print_latex`, `print_latex_tv`: documents of the right structure, which show the layout; LaTeX takes them."""

from __future__ import annotations

import io
import re
import shutil
import subprocess

import pytest

import numba_cute as cute
from numba_cute import utils
from numba_cute.nvgpu import CopyUniversalOp, warp

NODE = re.compile(r"\\node\[fill=(\w+),align=center,font=\\tiny\] at \((\d+),(\d+)\) \{([^}]*)\};")
MMA = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
COPY = cute.make_tiled_copy_tv(
    cute.make_copy_atom(CopyUniversalOp(), cute.Float32, 128),
    cute.make_layout((4, 8), stride=(8, 1)),
    cute.make_layout((1, 4)),
)


def printed(x, **kwargs):
    out = io.StringIO()
    utils.print_latex(x, file=out, **kwargs)
    return out.getvalue()


def printed_tv(*args, **kwargs):
    out = io.StringIO()
    utils.print_latex_tv(*args, file=out, **kwargs)
    return out.getvalue()


def cells(text):
    """(row, column) -> (text, colour) of each picture."""
    pictures = re.findall(r"\\begin\{tikzpicture\}.*?\\end\{tikzpicture\}", text, re.S)
    return [{(int(i), int(j)): (what, fill) for fill, i, j, what in NODE.findall(p)} for p in pictures]


def check_structure(text):
    begun, ended = re.findall(r"\\begin\{(\w+)\}", text), re.findall(r"\\end\{(\w+)\}", text)
    assert sorted(begun) == sorted(ended) and begun[0] == "document" == ended[-1]
    assert text.startswith("\\documentclass") and "\\usepackage{tikz}" in text
    assert text.count("{") == text.count("}") and text.count("[") == text.count("]")
    defined = set(re.findall(r"\\definecolor\{(\w+)\}\{HTML\}\{[0-9A-F]{6}\}", text)) | {"white"}
    assert set(re.findall(r"fill=(\w+)", text)) <= defined
    for line in text.splitlines():
        if line.startswith(("\\node", "\\draw")):
            assert line.endswith(";")


LAYOUTS = {
    "column-major": cute.make_layout((4, 8)),
    "hierarchical": cute.make_layout(((2, 2), (2, 4)), stride=((1, 4), (2, 8))),
    "swizzled": cute.make_composed_layout(cute.make_swizzle(2, 0, 3), 0, cute.make_layout((8, 8), stride=(8, 1))),
    "one mode": cute.make_layout(6, stride=2),
    "identity": cute.make_identity_layout((2, 3)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_picture_shows_what_the_layout_maps_each_coordinate_to(name):
    lay = LAYOUTS[name]
    text = printed(lay)
    check_structure(text)
    (picture,) = cells(text)
    rows = cute.size(lay, [0]) if cute.rank(lay) == 2 else 1
    columns = cute.size(lay) // rows
    assert set(picture) == {(i, j) for i in range(rows) for j in range(columns)}
    for (i, j), (what, _) in picture.items():
        assert what == str(lay((i, j)) if cute.rank(lay) == 2 else lay(j))
    assert f"grid ({rows},{columns})" in text and f"% {lay}" in text


def test_cells_are_coloured_by_their_value_and_palettes_can_be_chosen():
    (picture,) = cells(printed(cute.make_layout((3, 5), stride=(5, 1)), color=["FF0000", "00ff00"]))
    assert {int(what) % 2: fill for what, fill in picture.values()} == {0: "cell0", 1: "cell1"}
    for name, colors in utils.PALETTES.items():
        text = printed(cute.make_layout(2), color=name)
        assert [c for c in colors if f"{{HTML}}{{{c}}}" in text] == list(colors)


def test_a_thread_value_picture_shows_who_holds_each_element_as_which_value():
    tv = MMA.tv_layout_A_tiled
    text = printed_tv(tv, (16, 16))
    check_structure(text)
    (picture,) = cells(text)
    seen = set()
    for (i, j), (what, fill) in picture.items():
        thread, value = map(int, re.fullmatch(r"T(\d+) \\\\ V(\d+)", what).groups())
        assert tv((thread, value)) == i + 16 * j and fill == f"cell{thread % 8}"
        seen.add((thread, value))
    assert len(seen) == 256


def test_an_element_that_several_hold_or_nobody_is_shown_as_such():
    (picture,) = cells(printed_tv(cute.make_layout((4, 2), stride=(0, 1)), (2, 2)))
    held = {(0, 0): ("T0..3 \\\\ V0", "cell0"), (1, 0): ("T0..3 \\\\ V1", "cell0")}
    assert picture == {**held, (0, 1): ("", "white"), (1, 1): ("", "white")}


@pytest.mark.parametrize(("what", "shapes"), [(MMA, [(16, 16), (8, 16), (16, 8)]), (COPY, [(4, 32), (4, 32)])], ids=str)
def test_tiled_objects_are_drawn_operand_by_operand(what, shapes):
    text = printed(what)
    check_structure(text)
    assert [max(p) for p in cells(text)] == [(m - 1, n - 1) for m, n in shapes]


WRONG = {
    "is not a layout": lambda: printed(3),
    "has 3 modes; group them": lambda: printed(cute.make_layout((2, 2, 2))),
    "is not static": lambda: printed(cute.make_layout((cute.Int32(4), 4))),
    "too many to draw": lambda: printed(cute.make_layout((256, 256))),
    "must map 2 modes, thread and value": lambda: printed_tv(cute.make_layout(4), (2, 2)),
    "outside the tile": lambda: printed_tv(cute.make_layout((4, 2)), (2, 2)),
    "is not a palette; there are gray": lambda: printed(cute.make_layout(4), color="mauve"),
    "or colours such as": lambda: printed(cute.make_layout(4), color=["red"]),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_drawn_is_explained(message):
    with pytest.raises(cute.CuteError, match=message):
        WRONG[message]()


def test_it_prints_to_standard_output(capsys):
    utils.print_latex(cute.make_layout(2))
    assert capsys.readouterr().out.endswith("\\end{document}\n")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
@pytest.mark.parametrize("what", [LAYOUTS["swizzled"], MMA], ids=str)
def test_latex_compiles_it(what, tmp_path):
    (tmp_path / "picture.tex").write_text(printed(what))
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "picture.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
