# SPDX-License-Identifier: Apache-2.0
"""`inspect_layouts`: what layouts and tensors became in a kernel, and how many registers they take."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.compiler import inspect_layouts
from numba_cute.runtime import from_dlpack

SMEM = cute.make_layout((64, 128))


@cuda.jit
def kernel(x, m, i):
    static = SMEM
    mixed = cute.make_layout((m, (4, 8)), stride=(32, (1, 4)))
    swizzled = cute.composition(cute.make_swizzle(3, 4, 3), static)
    identity = cute.make_identity_tensor((m, 8))
    fragment = cute.make_rmem_tensor((4, 2), cute.Float16)
    tile = cute.local_tile(x, (16, 32), (i, None))
    moved = mixed
    if i > 3:
        moved = cute.make_layout((m, (4, 8)), stride=(8, (1, 4)))
    fragment.fill(0.0)
    x[0, 0] = mixed(i) + moved(i) + swizzled(3) + fragment[0] + tile[0, 0, 0] + identity[i, 2][0]


def listing():
    x = from_dlpack(np.zeros((64, 128), np.float32), assumed_align=16).mark_layout_dynamic()
    return inspect_layouts(kernel, (x, np.int32(64), np.int32(1)))


FOUND = {
    "static": ("!cute.layout<(64,128):(1,64)>", 0),
    "mixed": ("!cute.layout<(?,(4,8)):(32,(1,4))>", 1),
    "swizzled": ("!cute.composed_layout<S<3,4,3> o 0 o (64,128):(1,64)>", 0),
    "identity": ("!cute.coord_tensor<(0,0), (?,8):(1@0,1@1)>", 1),
    "fragment": ("!cute.memref<f16, rmem, align<16>, (4,2):(1,4)>", 4),
    "x": ("!cute.memref<f32, gmem, align<16>, (?,?):(?,1)>", 6),
    "tile": ("!cute.memref<f32, gmem, align<4>, (16,32,?):(?,1,32)>", 5),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_variable_is_listed_in_cute_notation_with_its_registers(name):
    entries = [v for v in listing() if v.name == name]
    assert [(v.type, v.registers) for v in entries] == [FOUND[name]]


def test_a_variable_that_turns_out_less_static_is_listed_as_what_it_became():
    types = {v.type for v in listing() if v.name == "moved"}
    assert "!cute.layout<(?,(4,8)):(?,(1,4))>" in types


def test_entries_name_the_line_and_print_one_a_line():
    entries = listing()
    first = kernel.py_func.__code__.co_firstlineno
    assert next(v for v in entries if v.name == "static").line == first + 2
    assert [v.line for v in entries] == sorted(v.line for v in entries)
    assert str(entries) == "\n".join(map(str, entries))
    assert f"line {first + 2}: static: !cute.layout<(64,128):(1,64)>, 0 registers" in str(entries)
    assert "mixed: !cute.layout<(?,(4,8)):(32,(1,4))>, 1 register\n" in str(entries)


def test_what_is_no_layout_is_left_out_and_arguments_are_checked():
    assert {v.name for v in listing()} <= {*FOUND, "moved"}
    with pytest.raises(cute.CuteError, match="inspect_layouts takes a @cuda.jit kernel"):
        inspect_layouts(3, ())
    with pytest.raises(cute.CuteError, match="not a known target"):
        inspect_layouts(kernel, (), arch="sm_99")
