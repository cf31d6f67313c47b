# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from numba_cute.isa.facts.fragment_layouts import (
    CopyLayouts,
    MmaLayouts,
    elements,
    ldmatrix_b16,
    stmatrix_b16,
    wgmma_m64k16,
)
from numba_cute.layout.layout import make_layout
from numba_cute.seam import CuteError


@pytest.mark.parametrize("n", range(8, 257, 8))
def test_wgmma_accumulator_is_the_figure_of_the_ptx_isa(n):
    # PTX ISA, D fragment of wgmma .m64nNk16: row = warp * 16 + lane / 4 (+ 8 for i % 4 >= 2),
    # column = i / 4 * 8 + lane % 4 * 2 + i % 2.
    thread, i = np.arange(128)[:, None], np.arange(n // 2)[None, :]
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (i % 4 >= 2)
    column = i // 4 * 8 + thread % 4 * 2 + i % 2
    assert np.array_equal(elements(wgmma_m64k16(n).c), row + 64 * column)


def test_wgmma_a_fragment_is_the_figure_of_the_ptx_isa():
    # A fragment of wgmma .m64nNk16: row as above with i / 2 % 2, column = lane % 4 * 2 + i % 2 (+ 8 for i >= 4).
    thread, i = np.arange(128)[:, None], np.arange(8)[None, :]
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (i // 2 % 2)
    column = thread % 4 * 2 + i % 2 + 8 * (i >= 4)
    assert np.array_equal(elements(wgmma_m64k16(8, True).a), row + 64 * column)


@pytest.mark.parametrize("num", [1, 2, 4])
@pytest.mark.parametrize("trans", [False, True])
def test_ldmatrix_registers_are_the_figure_of_the_ptx_isa(num, trans):
    lane, i = np.arange(32)[:, None], np.arange(2 * num)[None, :]
    row, column = lane // 4, lane % 4 * 2 + i % 2
    if trans:
        row, column = column, row
    atom = ldmatrix_b16(num, trans)
    assert np.array_equal(elements(atom.dst), i // 2 * 64 + row * 8 + column)
    assert np.array_equal(elements(atom.src)[: 8 * num], np.arange(64 * num).reshape(-1, 8))
    assert stmatrix_b16(num, trans) == CopyLayouts(32, 64 * num, atom.dst, atom.src)


def test_values_of_distinct_arguments_are_named_in_errors():
    with pytest.raises(CuteError, match="n is 12"):
        wgmma_m64k16(12)
    with pytest.raises(CuteError, match="num is 3"):
        ldmatrix_b16(3, False)


RIGHT = wgmma_m64k16(8)


@pytest.mark.parametrize(
    "wrong, why",
    [
        ({"shape_mnk": (64, 16, 16)}, "operand b|operand c"),
        ({"c": make_layout(((4, 8, 4), (2, 2)), stride=((128, 1, 16), (64, 16)))}, "does not cover"),
        ({"c": make_layout(((4, 8, 4), (2, 4)), stride=((128, 1, 16), (64, 8)))}, "values are not"),
        ({"c": make_layout(((4, 8, 2), (2, 2)), stride=((128, 1, 16), (64, 8)))}, "64 threads, but 128 issue it"),
    ],
)
def test_an_inconsistent_mma_atom_is_refused(wrong, why):
    fields = {"shape_mnk": RIGHT.shape_mnk, "threads": 128, "a": RIGHT.a, "b": RIGHT.b, "c": RIGHT.c, **wrong}
    with pytest.raises(CuteError, match=why):
        MmaLayouts(**fields)


def test_a_copy_atom_that_misses_elements_is_refused():
    good = ldmatrix_b16(1, False)
    with pytest.raises(CuteError, match="dst: .* does not cover"):
        CopyLayouts(32, 64, good.src, make_layout((32, 2), stride=(2, 0)))
