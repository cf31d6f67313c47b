# SPDX-License-Identifier: Apache-2.0
"""`cute.show`: pictures say what the objects do, as text, SVG and pages; what ends a notebook's cell is short."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import utils
from numba_cute.nvgpu import CopyUniversalOp, warp, warpgroup
from numba_cute.seam.ground.drawing import brief

MMA = cute.make_mma_atom(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
COPY = cute.make_copy_atom(CopyUniversalOp(), cute.Float32, num_bits_per_copy=64)
TILED = cute.make_tiled_copy_tv(COPY, cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((1, 2)))
RASTER = utils.PersistentTileSchedulerParams((4, 6, 2), (2, 1, 1), swizzle_size=2)
SHOWN = {
    "layout": cute.make_layout((4, 8), stride=(8, 1)),
    "nested": cute.make_layout((4, (2, 4)), stride=(1, (16, 4))),
    "swizzled": cute.make_composed_layout(cute.make_swizzle(2, 0, 2), 0, cute.make_layout((4, 4), stride=(4, 1))),
    "swizzle": cute.make_swizzle(3, 4, 3),
    "copy atom": COPY,
    "tiled copy": TILED,
    "thread's copy": TILED.get_slice(3),
    "mma atom": MMA,
    "tiled mma": cute.make_tiled_mma(MMA, (2, 1, 1)),
    "raster": RASTER,
    "tensor": cute.make_tensor(np.zeros((4, 8), np.float32)),
}


def cells(picture):
    """The cells of a picture's first table as text: by row."""
    lines = str(picture).split("\n\n")[0].splitlines()[2:]
    return [re.split(r" +(?!V)", line.strip())[1:] for line in lines]


@pytest.mark.parametrize("x", SHOWN.values(), ids=SHOWN.keys())
def test_what_is_drawn_is_well_formed_and_says_what_the_text_does(x, tmp_path):
    picture = cute.show(x)
    svg = ElementTree.fromstring(picture.svg(tmp_path / "a.svg"))
    drawn = {t.text for t in svg.iter("{http://www.w3.org/2000/svg}text")}
    for cell in {c for row in cells(picture) for c in row}:
        assert set(cell.split()) <= drawn | {"."}
    page = picture.html(tmp_path / "a.html")
    assert page == (tmp_path / "a.html").read_text() and "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "nc-step" in page and 'data-from="' in page
    assert type(x).__name__.startswith("Thr") or x._repr_svg_() == picture.svg()


@pytest.mark.parametrize("name", ["layout", "nested", "swizzled"])
def test_a_layout_shows_its_offsets(name):
    lay = SHOWN[name]
    shown = cells(cute.show(lay))
    for i in range(4):
        assert shown[i] == [str(lay((i, j))) for j in range(cute.size(lay) // 4)]


def test_more_than_two_modes_and_long_rows_are_folded():
    lay = cute.make_layout((2, 3, 4))
    assert cells(cute.show(lay))[1] == [str(1 + 2 * j) for j in range(12)]
    rows = cells(cute.show(cute.make_layout(40, stride=3)))
    assert [c for row in rows for c in row][:40] == [str(3 * i) for i in range(40)]
    assert str(cute.show(cute.make_layout(40))).splitlines()[3].startswith("16  16 17")


def test_banks_are_those_of_the_elements():
    page = cute.show(cute.make_layout((2, 64), stride=(64, 1)), cute.Float16).svg()
    assert "(0,3): 3, bank 1" in page and "(1,0): 64, bank 0" in page and "(0,63): 63, bank 31" in page


def test_a_swizzle_shows_where_chunks_go():
    swizzle = cute.make_swizzle(3, 4, 3)
    shown = cells(cute.show(swizzle))
    assert shown == [[str(swizzle(128 * i + 16 * j) // 16 % 8) for j in range(8)] for i in range(8)]
    assert "banks 4 to 7" in cute.show(swizzle).svg()


def test_an_mma_shows_the_fragments_of_the_ptx_isa():
    c = str(cute.show(MMA)).split("\n\n")[2]
    row = re.split(r" +(?!V)", c.splitlines()[2].strip())[1:]
    assert row == ["T0 V0", "T0 V1", "T1 V0", "T1 V1", "T2 V0", "T2 V1", "T3 V0", "T3 V1"]
    for i in range(16):  # rows groupID and groupID + 8, of four threads each
        assert f"({i},5): T{4 * (i % 8) + 2} V{2 * (i // 8) + 1}" in cute.show(MMA).svg()


def test_ldmatrix_shows_a_matrix_a_row_and_the_fragment_of_the_ptx_isa():
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
    source, destination = (t.splitlines()[2:] for t in str(cute.show(atom)).split("\n\n"))
    for i in range(32):  # row i % 8 of matrix i // 8: thread i names it, and four threads get two elements each
        assert source[i].split()[1::2] == [f"T{i}"] * 8
        assert destination[i].split()[1::2] == [f"T{4 * (i % 8) + j // 2}" for j in range(8)]
        assert destination[i].split()[2::2] == [f"V{2 * (i // 8) + j % 2}" for j in range(8)]


def test_operands_in_shared_memory_are_every_threads():
    k = warpgroup.OperandMajorMode.K
    op = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 64, 16), warpgroup.OperandSource.SMEM, k, k)
    a, _, c = str(cute.show(cute.make_mma_atom(op))).split("\n\n")
    assert re.split(r" +(?!V)", a.splitlines()[3].strip())[1:3] == ["T0..127 V1", "T0..127 V65"]
    assert c.splitlines()[2 + 16].split()[1:5] == ["T32", "V0", "T32", "V1"]  # the second warp's first row


def test_a_raster_shows_every_cluster_once_in_order():
    tables = str(cute.show(RASTER)).split("\n\n")
    numbers = sorted(int(c) for t in tables for line in t.splitlines()[2:] for c in line.split()[1:])
    assert numbers == list(range(RASTER.num_clusters))
    i, j, batch = RASTER.decode(7)
    assert tables[batch].splitlines()[2 + i].split()[1 + j] == "7"


@pytest.mark.parametrize("x", [3, "a", None, cute.make_layout((128, 129)), cute.make_swizzle(0, 4, 3)], ids=str)
def test_what_has_no_picture_is_refused(x):
    with pytest.raises(cute.CuteError, match="show: "):
        cute.show(x)


def test_a_notebook_shows_text_where_there_is_no_picture():
    assert cute.make_layout((256, 256))._repr_svg_() is None and cute.make_swizzle(0, 4, 3)._repr_svg_() is None


@cuda.jit
def kernel(a):
    t = cute.make_tensor(a)
    cute.range_push("add")
    t[cuda.threadIdx.x] += 1
    cute.range_pop()
    cuda.syncthreads()


def test_what_ends_a_cell_is_at_most_ten_lines():
    x = np.zeros(64, np.float32)
    trace = cute.sim.Trace()
    cute.simulate(kernel, trace=trace)[1, 64](x)
    line = cute.timeline(cute.simulate(kernel)[1, 64], x)
    compiled = cute.compile(kernel, x)
    listed = cute.inspect_ptx(kernel, (x,))
    proof = cute.simulate(kernel).prove()[1, 64](x)
    for made in (trace, line, compiled, listed, cute.inspect_layouts(kernel, (x,)), proof):
        assert 1 <= repr(made).count("\n") + 1 <= 10 and len(repr(made)) < 1500, repr(made)
    assert "registers: " in repr(compiled) and "kernel for sm_90a" in repr(compiled)
    assert listed.text().count("\n") > 10 and "more lines: print(…) shows all" in repr(listed)
    for made in (trace, line):
        assert cute.show(made) is made and "nc-step" in made.html() and made._repr_svg_().startswith("<svg")
    assert cute.show(proof) is proof.memory


def test_what_is_cut_is_counted():
    assert brief("a\nb", 2) == "a\nb" and brief("a\nb\nc", 2) == "a\n… 2 more lines: print(…) shows all"


def test_the_pages_pictures_are_what_is_drawn():
    folder = Path(__file__).parents[2] / "docs" / "pictures"
    matrix = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 1), cute.Float16)
    for name, x in (("swizzle", cute.make_swizzle(3, 4, 3)), ("ldmatrix", matrix)):
        assert (folder / f"{name}.svg").read_text() == cute.show(x).svg()


def test_a_deadlock_shows_who_waits():
    @cuda.jit
    def waits(a):
        p = utils.SmemAllocator().allocate_array(cute.Int64, 1)
        if cuda.threadIdx.x == 0:
            cute.arch.mbarrier_init(p, 2)
        cute.arch.sync_threads()
        cute.arch.mbarrier_wait(p, 0)

    with pytest.raises(cute.sim.DeadlockError) as e:
        cute.simulate(waits)[1, 32](np.zeros(1, np.float32))
    assert cute.show(e.value) is e.value.graph and "<svg" in cute.show(e.value).html()
