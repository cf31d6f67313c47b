# SPDX-License-Identifier: Apache-2.0
"""What FlashAttention's kernels are written with: each is Python's in the simulator, and compiles."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from types import FunctionType
from typing import NamedTuple

import numpy as np

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.seam.source.followed import followed
from tests.compiler import elected
from tests.compiler.test_files_of_the_dsl import both


@cute.jit
def scaled(a, b, out, is_sum: bool, scale=2):
    if arch.thread_idx()[0] == 0:
        if cute.const_expr(is_sum):
            out[0] = a + b * scale
        else:
            out[1] = a - b


def plain(a, b, x, y):
    return a * 1000 + b * 100 + x * 10 + y


@cute.kernel
def spreading(out: cute.Tensor, n: cute.Int32):
    args = (n, 3, out)
    if n > 5:
        scaled(*args, is_sum=True)
    else:
        scaled(n, *args[1:], is_sum=False, scale=n)
    scaled(*args, is_sum=True, scale=n)
    if arch.thread_idx()[0] == 0:
        out[2] = plain(*args[:2], y=4, x=n)
        out[3] = cute.size(*(cute.make_layout((n, 4)),), mode=[1])


def test_arguments_are_spread_before_named_ones():
    out = np.zeros(4, np.int32)
    both(spreading, from_dlpack(out), cute.Int32(5))
    assert out.tolist() == [20, 2, 5354, 4]


def as_words(x):
    """The words of a number, by registers of its own type."""
    held = cute.make_rmem_tensor(x.width // 32, type(x))
    held[0] = x
    return cute.recast_tensor(held, cute.Int32)[0]


@cute.jit
def words(x):
    return as_words(x)


def chosen(where):
    if cute.const_expr(isinstance(where, type)):
        return where.width
    return cute.size(where)


@cute.kernel
def of_types(out: cute.Tensor, x: cute.Tensor):
    out[0] = words(x[0])
    out[1] = words(cute.Int32(7))
    out[2] = (out[0] > 3).width
    out[3] = cute.Int64(out[0]).width + chosen(cute.Float16) + chosen(cute.make_layout(100))
    out[4] = type(x[0]) == cute.Float32  # noqa: E721 - as the kernels ask
    out[5] = type(x[0]) == cute.Int32  # noqa: E721


def test_numbers_say_their_type_and_types_are_classes():
    out = np.zeros(6, np.int32)
    both(of_types, from_dlpack(out), from_dlpack(np.ones(1, np.float32)))
    assert out.tolist() == [0x3F800000, 7, 8, 180, 1, 0]


@dataclasses.dataclass(frozen=True)
class Lengths:
    q: cute.Int32
    k: cute.Int32

    @staticmethod
    def create(at, given):
        return Lengths(given[at], given[at + 1])


class Pair(NamedTuple):
    first: cute.Tensor
    second: cute.Tensor | None = None

    def __new_from_mlir_values__(self, values):
        return Pair(*values)


@cute.jit
def blocks(lengths: Lengths, least: cute.Int32):
    if lengths.q > least:
        return lengths.q - lengths.k
    return lengths.k


def copier(src, dst, **options):
    """Return what copies a column of one tensor to one of another, and options that a call names."""

    def copy(src_idx, dst_idx, bar, **more):
        atom = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), src.element_type)
        with arch.elect_one():
            cute.copy(atom, src[None, src_idx], dst[None, dst_idx], mbar_ptr=bar, **more, **options)

    return copy


def at_stage(copy: Callable[..., None], stages: int):
    def staged(src_idx, bar, **more):
        copy(src_idx=src_idx, dst_idx=src_idx % stages, bar=bar, **more)

    return staged


def joined(first, second=0, third=0):
    return first * 100 + second * 10 + third


class Planned:
    def __init__(self, has_third: bool) -> None:
        self.has_third = has_third

    @cute.kernel
    def kernel(self, out: cute.Tensor, n: cute.Int32):
        def join(x, second=None):
            return joined(
                x,
                **({"second": second} if second is not None else {}),
                **({"third": n} if self.has_third else {}),
            )

        a, b, c = (join(x, y) if cute.const_expr(y is not None) else join(x) for x, y in [(1, 2), (n, None), (3, n)])
        out[0] = a
        out[1] = b
        out[2] = c


def test_names_and_generators_in_closures_of_a_kernel():
    out = np.zeros(3, np.int32)
    for has_third, want in ((True, [127, 707, 377]), (False, [120, 700, 370])):
        both(Planned(has_third).kernel, from_dlpack(out), cute.Int32(7))
        assert out.tolist() == want


@cute.kernel
def unpacking(out: cute.Tensor, pair: Pair, n: cute.Int32):
    first, *_ = pair
    a, *b, c = (n, 2, 3, 4)
    d, *e = (n, 5)
    out[0] = first[1]
    out[1] = a * 1000 + b[0] * 100 + b[1] * 10 + c
    out[2] = len(b) * 100 + len(e) * 10 + e[0]
    out[3] = d + 6


def test_starred_variables_take_what_is_left():
    out = np.zeros(4, np.int32)
    both(unpacking, from_dlpack(out), Pair(from_dlpack(np.array([7, 8], np.int32))), cute.Int32(1))
    assert out.tolist() == [8, 1234, 215, 7]


@cute.kernel
def by_closures(out: cute.Tensor, pair: Pair, lengths: cute.Tensor):
    smem = utils.SmemAllocator()
    staged = smem.allocate_tensor(cute.Float32, cute.make_layout((32, 2)), 128)
    bar = smem.allocate_array(cute.Int64, 1)
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
    arch.sync_warp()
    copy = at_stage(copier(pair.first, staged), 2)
    copy(2, bar)
    copy(1, bar)
    arch.mbarrier_wait(bar, 0)
    lane = arch.thread_idx()[0]
    out[lane] = staged[lane, 0] + staged[lane, 1] + blocks(Lengths.create(0, lengths), cute.Int32(3))


def test_closures_with_elect_one_copy_as_much_as_lies_together():
    src = np.arange(96, dtype=np.float32).reshape(3, 32)
    out, lengths = np.zeros(32, np.float32), np.array([9, 5], np.int32)
    both(by_closures, from_dlpack(out), Pair(from_dlpack(src.T, assumed_align=16)), from_dlpack(lengths), threads=32)
    np.testing.assert_array_equal(out, src[2] + src[1] + 4)


@cute.jit
def warp_sum(x, width: cute.Constexpr[int]):
    if cute.const_expr(isinstance(x, cute.TensorSSA)):
        sums = cute.make_rmem_tensor(x.shape, x.dtype)
        sums.store(x)
        for i in cute.range_constexpr(cute.size(x.shape)):
            sums[i] = warp_sum(sums[i], width)
        return sums.load()
    for i in cute.range_constexpr(int(math.log2(width))):
        x = x + arch.shuffle_sync_bfly(x, offset=1 << i)
    return x


@cute.kernel
def summing(out: cute.Tensor):
    lane = arch.thread_idx()[0]
    held = cute.make_rmem_tensor(2, cute.Float32)
    if lane < 8:
        held[0] = lane
        held[1] = 2 * lane
    sums = warp_sum(held.load(), 8)
    if lane < 8:
        out[lane] = sums[0] + sums[1]


def test_a_version_for_numbers_takes_those_that_nobody_has_set():
    out = np.zeros(8, np.float32)
    both(summing, from_dlpack(out), threads=32)
    assert (out == 84).all()


@cute.jit
def asking_of_the_module(out):
    out[1] = elected.STEP


@cute.kernel
def by_module(out: cute.Tensor):
    elected.elected(out)
    if arch.thread_idx()[0] == 0:
        asking_of_the_module(out)


def test_a_module_is_one_for_all_functions_that_name_it():
    out = np.zeros(2, np.int32)
    both(by_module, from_dlpack(out), threads=32)
    assert out.tolist() == [5, 3]


def told_by_name(x, *, off=False):
    return x, not off


def test_a_function_made_for_numba_takes_by_place_what_its_source_has_by_name_alone():
    code = told_by_name.__code__
    by_place = code.replace(co_argcount=2, co_posonlyargcount=0, co_kwonlyargcount=0)
    made = followed(FunctionType(by_place, globals(), code.co_name, (False,)))
    assert made(3, True) == (3, False) and made(3) == (3, True)
    assert followed(told_by_name)(3, off=True) == (3, False)
