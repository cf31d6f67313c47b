# SPDX-License-Identifier: Apache-2.0
"""Mistakes with copies, their atoms and their tilings."""

import numpy as np

import numba_cute as cute
from numba_cute import utils
from numba_cute.nvgpu import CopyUniversalOp, cpasync, warp

from .form import mistake
from .tensors import tensor

ATOM = cute.make_copy_atom(CopyUniversalOp(), cute.Float32, 32)


@mistake("must be 8, 16, 32, 64", tensor(8, 4))
def atom_of_48_bits(t):
    cute.make_copy_atom(CopyUniversalOp(), cute.Float32, 48)  # wrong


@mistake("is not a copy operation", tensor(8, 4))
def atom_of_a_text(t):
    cute.make_copy_atom("copy", cute.Float32)  # wrong


@mistake("is not a copy operation such as CopyUniversalOp", tensor(8, 4))
def atom_of_an_operation_that_was_not_made(t):
    cute.make_copy_atom(CopyUniversalOp, cute.Float32)  # wrong


@mistake("make_copy_atom: copy_internal_type", tensor(8, 4))
def atom_of_no_element_type(t):
    cute.make_copy_atom(CopyUniversalOp(), 32)  # wrong


@mistake("instructions, but dst of shape", tensor(8, 4))
def copy_of_two_sizes(t):
    cute.copy(ATOM, cute.make_rmem_tensor((1, 4), cute.Float32), cute.make_rmem_tensor((1, 8), cute.Float32))  # wrong


@mistake("copy: src has", tensor(8, 4))
def automatic_copy_of_two_sizes(t):
    r = cute.make_rmem_tensor(8, cute.Float32)
    cute.autovec_copy(t, r)  # wrong


@mistake("convert", tensor(8, 4))
def automatic_copy_between_types(t):
    r = cute.make_rmem_tensor((8, 4), cute.Float16)
    cute.autovec_copy(t, r)  # wrong


@mistake("neither a CopyAtom", tensor(8, 4))
def copy_by_a_number(t):
    cute.copy(5, t, t)  # wrong


@mistake("must be a tensor", tensor(8, 4))
def copy_of_coordinates(t):
    cute.autovec_copy(cute.make_identity_tensor((8, 4)), t)  # wrong


@mistake("copy: src TensorSSA", tensor(8, 4))
def copy_of_a_vector(t):
    cute.copy(ATOM, t.load(), t)  # wrong


@mistake("mcast_mask is for", tensor(8, 4))
def multicast_of_an_ordinary_copy(t):
    a, b = cute.make_rmem_tensor((1, 1), cute.Float32), cute.make_rmem_tensor((1, 1), cute.Float32)
    a.fill(0.0)
    cute.copy(ATOM, a, b, mcast_mask=1)  # wrong


@mistake("must be compact: each number below the size must be one", tensor(8, 4))
def tiled_copy_of_threads_that_overlap(t):
    cute.make_tiled_copy_tv(ATOM, cute.make_layout((4, 8), stride=(1, 1)), cute.make_layout(1))  # wrong


@mistake("is not a layout: make one with make_layout", tensor(8, 4))
def tiled_copy_of_a_shape(t):
    cute.make_tiled_copy_tv(ATOM, (4, 8), cute.make_layout(1))  # wrong


@mistake("its result is dropped, and the call does nothing else:", tensor(8, 4))
def tiled_copy_of_fewer_values_than_the_atom(t):
    atom = cute.make_copy_atom(CopyUniversalOp(), cute.Float32, 128)
    cute.make_tiled_copy_tv(atom, cute.make_layout((8, 4)), cute.make_layout((1, 1)))  # wrong


@mistake("expected is an integer", tensor(8, 4))
def slice_of_a_thread_that_is_text(t):
    tiled = cute.make_tiled_copy_tv(ATOM, cute.make_layout((4, 8)), cute.make_layout((1, 1)))
    tiled.get_slice("a")  # wrong


@mistake("must be a tensor of at least", tensor(8, 4))
def partition_of_a_shape(t):
    tiled = cute.make_tiled_copy_tv(ATOM, cute.make_layout((4, 8)), cute.make_layout((1, 1)))
    tiled.get_slice(0).partition_S((8, 4))  # wrong


@mistake("instructions to guard", tensor(8, 4))
def predicate_of_another_shape(t):
    a, b = cute.make_rmem_tensor((1, 4), cute.Float32), cute.make_rmem_tensor((1, 4), cute.Float32)
    p = cute.make_rmem_tensor((1, 3), cute.Boolean)
    a.fill(0.0)
    p.fill(True)
    cute.copy(ATOM, a, b, pred=p)  # wrong


@mistake("num_matrices", tensor(8, 4))
def three_matrices(t):
    warp.LdMatrix8x8x16bOp(False, 3)  # wrong


@mistake("but the atom copies 8", tensor(8, 64, dtype=np.float16))
def ldmatrix_from_global_memory(t):
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
    r = cute.make_rmem_tensor((8, 1), cute.Float16)
    cute.copy(atom, cute.local_tile(t, (1, 8), (0, 0)), r)  # wrong


@mistake("but the atom copies", tensor(8, 4))
def ldmatrix_of_32_bits(t):
    s = utils.SmemAllocator().allocate_tensor(cute.Float32, (8, 64), 128)
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float32)
    r = cute.make_rmem_tensor((8, 1), cute.Float32)
    cute.copy(atom, cute.local_tile(s, (1, 8), (0, 0)), r)  # wrong


@mistake("but the atom copies", tensor(8, 4))
def cp_async_into_registers(t):
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, 128)
    r = cute.make_rmem_tensor((4, 1), cute.Float32)
    cute.copy(atom, cute.local_tile(t, (1, 4), (0, 0)), r)  # wrong


@mistake("its result is dropped, and the call does nothing else:", tensor(8, 4))
def cp_async_of_16_bits(t):
    cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float16, 16)  # wrong


@mistake("copy: tma_bar_ptr is for TMA operations, and the atom", tensor(8, 4))
def copy_with_a_keyword_of_tma(t):
    a, b = cute.make_rmem_tensor((1, 1), cute.Float32), cute.make_rmem_tensor((1, 1), cute.Float32)
    a.fill(0.0)
    cute.copy(ATOM, a, b, tma_bar_ptr=a.iterator)  # wrong
