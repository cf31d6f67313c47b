# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: B018
"""Mistakes with shared memory, structures, and classes."""

from numba import cuda

import numba_cute as cute
from numba_cute import utils

from .form import mistake

SW128 = cute.make_swizzle(3, 4, 3)


@cute.struct
class Storage:
    bars: cute.struct.MemRange[cute.Int64, 2]
    data: cute.struct.Align[cute.struct.MemRange[cute.Float32, 64], 128]


@cute.struct
class State:
    index: cute.Int32
    phase: cute.Int32


class Plain:
    def __init__(self, x):
        self.x = x


@mistake("static number of bytes")
def negative_size(x):
    utils.SmemAllocator().allocate(-4)  # wrong


@mistake("power of two")
def alignment_of_3(x):
    utils.SmemAllocator().allocate(16, 3)  # wrong


@mistake("must be a power of two, at most")
def alignment_of_4096(x):
    utils.SmemAllocator().allocate(16, 4096)  # wrong


@mistake("exceed the 232448 bytes")
def shared_memory_over_the_limit(x):
    s = utils.SmemAllocator().allocate_array(cute.Float32, 1 << 16)  # wrong
    x[0] = s.load()


@mistake("makes one, and a second begins at the same byte and gives out the same memory: pass the first one on")
def two_allocators(x):
    a = utils.SmemAllocator().allocate_array(cute.Float32, 4)
    b = utils.SmemAllocator().allocate_array(cute.Float32, 4)  # wrong
    x[0] = a.load() + b.load()


@mistake("makes one, and a second begins at the same byte")
def a_second_allocator_behind_a_branch(x):
    if cute.arch.thread_idx()[0] == 0:
        smem = utils.SmemAllocator()
        x[0] = smem.allocate_array(cute.Float32, 4).load()
    b = utils.SmemAllocator().allocate_array(cute.Float32, 4)  # wrong
    x[1] = b.load()


@mistake("exceed the 232448 bytes", other="exceed the 232448 bytes", only="simulator", reason=(
    "what several allocations come to is a number of the PTX: the compiler says the same of the kernel, not of the line"
))  # fmt: skip
def shared_memory_over_the_limit_in_parts(x):
    smem = utils.SmemAllocator()
    a = smem.allocate_array(cute.Float32, 1 << 15)
    b = smem.allocate_array(cute.Float32, 1 << 15)  # wrong
    x[0] = a.load() + b.load()


@mistake("must be a static number of bytes")
def array_of_a_negative_size(x):
    utils.SmemAllocator().allocate_array(cute.Float32, -1)  # wrong


@mistake("swizzles its elements, and swizzle=S<3,4,3> the bytes")
def layout_swizzled_twice(x):
    lay = cute.make_composed_layout(SW128, 0, cute.make_layout((8, 64), stride=(64, 1)))
    utils.SmemAllocator().allocate_tensor(cute.Float16, lay, 1024, SW128)  # wrong


@mistake(
    "period is 1024 bytes", only="simulator",
    reason="where an allocator stands is a number at run time; the first allocation of a kernel is aligned",
)  # fmt: skip
def swizzle_that_is_not_aligned(x):
    smem = utils.SmemAllocator()
    smem.allocate(16)
    smem.allocate_tensor(cute.Float16, (64, 64), 16, SW128)  # wrong


@mistake("SmemAllocator.allocate: Plain does not describe memory; use")
def allocation_of_an_instance(x):
    utils.SmemAllocator().allocate(Plain)  # wrong


@mistake("has no")
def field_of_a_storage_that_is_not_there(x):
    s = utils.SmemAllocator().allocate(Storage)
    s.nothing  # wrong


@mistake("State has no attribute")
def field_of_a_struct_that_is_not_there(x):
    s = State(0, 1)
    x[0] = s.nothing  # wrong


@mistake("its fields are index, phase")
def unknown_field_of_a_struct_set(x):
    s = State(0, 1)
    s.stage = 1  # wrong
    x[0] = s.index


@mistake("kernels have no such function for these types")
def shared_array_of_no_type(x):
    s = cuda.shared.array(4, "quad")  # wrong
    s[0] = 1.0
    x[0] = s[0]
    cute.size(4)


@mistake("was called with other arguments: too many positional")
def struct_with_too_many_values(x):
    s = State(0, 1, 2)  # wrong
    x[0] = s.index


@mistake("was called with other arguments: missing a required argument")
def struct_with_too_few_values(x):
    s = State(0)  # wrong
    x[0] = s.index


@mistake("was called with other arguments: missing a required argument")
def struct_with_an_unknown_field(x):
    s = State(0, stage=1)  # wrong
    x[0] = s.index


@mistake("was called with other arguments: missing a required argument")
def allocator_in_two_ways(x):
    a = cute.experimental.allocate(cute.Float32, 4)  # wrong
    b = utils.SmemAllocator().allocate_array(cute.Float32, 4)
    x[0] = a.load() + b.load()
